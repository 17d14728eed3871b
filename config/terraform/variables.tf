variable "name" {
  description = "The first word of the queues' and the role's names. Use a different one for each installation of Tally."
  type        = string
  default     = "tally"

  validation {
    condition     = can(regex("^[a-zA-Z0-9-]{1,40}$", var.name))
    error_message = "The name must have 1 to 40 letters, digits and hyphens."
  }
}

variable "installation" {
  description = "The installation's name, which begins the names of topics and rules. By default, it is derived from the bucket queue."
  type        = string
  default     = null

  validation {
    condition     = var.installation == null ? true : can(regex("^[0-9a-f]{8}$", var.installation))
    error_message = "The installation's name must have 8 hex digits."
  }
}

variable "buckets" {
  description = "The buckets whose events reach the queue. They must be in the provider's region."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for bucket in var.buckets : can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", bucket))])
    error_message = "Give the buckets' names, not their ARNs."
  }
}

variable "trusted_services" {
  description = "The services that may assume Tally's role: pods.eks.amazonaws.com, ecs-tasks.amazonaws.com, ec2.amazonaws.com."
  type        = list(string)
  default     = ["pods.eks.amazonaws.com"]
}

variable "irsa" {
  description = "The service account that may assume Tally's role through its EKS cluster's OpenID Connect provider (IRSA)."
  type = object({
    provider_arn    = string
    namespace       = optional(string, "tally")
    service_account = optional(string, "tally")
  })
  default = null

  validation {
    condition     = var.irsa == null ? true : can(regex("^arn:[a-z-]+:iam::[0-9]{12}:oidc-provider/.+$", var.irsa.provider_arn))
    error_message = "Give the provider's ARN: arn:aws:iam::ACCOUNT:oidc-provider/HOST."
  }
}

variable "kms_key_arn" {
  description = "The queues' KMS key. Its policy must let events.amazonaws.com and sns.amazonaws.com use it. By default, SQS encrypts with its own key."
  type        = string
  default     = null
}

variable "permissions_boundary" {
  description = "The ARN of the role's permissions boundary."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags for everything that can have tags."
  type        = map(string)
  default     = {}
}
