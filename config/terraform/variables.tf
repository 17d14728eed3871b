variable "name" {
  description = "The first word of the queues and the role. Use another one for each installation of Tally."
  type        = string
  default     = "tally"

  validation {
    condition     = can(regex("^[a-zA-Z0-9-]{1,40}$", var.name))
    error_message = "The name has 1 to 40 letters, digits and hyphens."
  }
}

variable "installation" {
  description = "The name of the installation, with which the names of topics and rules begin. By default it follows from the bucket queue."
  type        = string
  default     = null

  validation {
    condition     = var.installation == null ? true : can(regex("^[0-9a-f]{8}$", var.installation))
    error_message = "The name of the installation has 8 hex digits."
  }
}

variable "buckets" {
  description = "The buckets whose events reach the queue. They are in the region of the provider."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for bucket in var.buckets : can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", bucket))])
    error_message = "The buckets are given by their names, not by their ARNs."
  }
}

variable "trusted_services" {
  description = "The services that may assume the role of Tally: pods.eks.amazonaws.com, ecs-tasks.amazonaws.com, ec2.amazonaws.com."
  type        = list(string)
  default     = ["pods.eks.amazonaws.com"]
}

variable "irsa" {
  description = "The service account that may assume the role of Tally by the OpenID Connect provider of its EKS cluster (IRSA)."
  type = object({
    provider_arn    = string
    namespace       = optional(string, "tally")
    service_account = optional(string, "tally")
  })
  default = null

  validation {
    condition     = var.irsa == null ? true : can(regex("^arn:[a-z-]+:iam::[0-9]{12}:oidc-provider/.+$", var.irsa.provider_arn))
    error_message = "The provider is named by its ARN: arn:aws:iam::ACCOUNT:oidc-provider/HOST."
  }
}

variable "kms_key_arn" {
  description = "The key of the queues. Its policy must let events.amazonaws.com and sns.amazonaws.com use it. By default SQS encrypts with its own key."
  type        = string
  default     = null
}

variable "permissions_boundary" {
  description = "The ARN of the permissions boundary of the role."
  type        = string
  default     = null
}

variable "tags" {
  description = "The tags of everything that can have tags."
  type        = map(string)
  default     = {}
}
