# Tally on an EKS cluster with two buckets that this configuration owns.
terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

provider "aws" {
  region = "eu-central-1"
}

variable "oidc_provider_arn" {
  description = "The EKS cluster's OpenID Connect provider."
  type        = string
}

resource "aws_s3_bucket" "this" {
  for_each = toset(["example-photos", "example-invoices"])

  bucket = each.value
}

# This resource owns its bucket's whole notification configuration. Here that is right, because the buckets are new and belong only to
# this configuration. For any other bucket, see the module's README.
resource "aws_s3_bucket_notification" "this" {
  for_each = aws_s3_bucket.this

  bucket      = each.value.id
  eventbridge = true
}

module "tally" {
  source = "../.."

  name             = "tally"
  buckets          = keys(aws_s3_bucket.this)
  trusted_services = []
  irsa             = { provider_arn = var.oidc_provider_arn }
  tags             = { team = "search" }
}

output "values" {
  description = "The AWS part of the Helm chart's values."
  value = yamlencode({
    aws            = { region = "eu-central-1", queueUrls = [module.tally.queue_url] }
    serviceAccount = { roleArn = module.tally.role_arn }
  })
}

output "connect_commands" {
  value = module.tally.connect_commands
}
