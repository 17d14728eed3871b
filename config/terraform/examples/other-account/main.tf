# Another account's bucket: its owner sends its events to a topic, and lets Tally's role subscribe the queue to it and read the bucket.
terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

# Tally's account.
provider "aws" {
  region = "eu-central-1"
}

# The bucket's account, in the bucket's region.
provider "aws" {
  alias  = "owner"
  region = "eu-central-1"

  assume_role {
    role_arn = var.owner_role_arn
  }
}

variable "bucket" {
  description = "The other account's bucket."
  type        = string
}

variable "owner_role_arn" {
  description = "The role that Terraform uses in the bucket's account."
  type        = string
}

module "tally" {
  source = "../.."

  name = "tally"
}

data "aws_caller_identity" "owner" {
  provider = aws.owner
}

locals {
  topic_actions = ["sns:Subscribe", "sns:GetTopicAttributes", "sns:ListSubscriptionsByTopic", "sns:GetSubscriptionAttributes", "sns:ConfirmSubscription"]
  bucket_actions = [
    "s3:ListBucket",
    "s3:GetBucketVersioning",
    "s3:GetBucketNotification",
    "s3:GetLifecycleConfiguration",
    "s3:ListBucketMultipartUploads",
  ]
  object_actions = ["s3:GetObject", "s3:GetObjectVersion", "s3:GetObjectTagging", "s3:GetObjectVersionTagging"]
  bucket_arn     = "arn:aws:s3:::${var.bucket}"
}

resource "aws_sns_topic" "events" {
  provider = aws.owner

  name = "${var.bucket}-events"
}

resource "aws_sns_topic_policy" "events" {
  provider = aws.owner

  arn = aws_sns_topic.events.arn
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "TheBucketPublishes"
        Effect    = "Allow"
        Principal = { Service = "s3.amazonaws.com" }
        Action    = "sns:Publish"
        Resource  = aws_sns_topic.events.arn
        Condition = {
          ArnLike      = { "aws:SourceArn" = local.bucket_arn }
          StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.owner.account_id }
        }
      },
      {
        Sid       = "TallySubscribes"
        Effect    = "Allow"
        Principal = { AWS = module.tally.role_arn }
        Action    = local.topic_actions
        Resource  = aws_sns_topic.events.arn
      },
    ]
  })
}

# This resource owns the bucket's whole notification configuration: merge it with the owner's.
resource "aws_s3_bucket_notification" "events" {
  provider = aws.owner

  bucket = var.bucket

  topic {
    topic_arn = aws_sns_topic.events.arn
    events    = ["s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:LifecycleExpiration:*"]
  }

  depends_on = [aws_sns_topic_policy.events]
}

# This resource owns the bucket's whole policy: merge it with the owner's.
resource "aws_s3_bucket_policy" "tally" {
  provider = aws.owner

  bucket = var.bucket
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "TallyListsTheBucket"
        Effect    = "Allow"
        Principal = { AWS = module.tally.role_arn }
        Action    = local.bucket_actions
        Resource  = local.bucket_arn
      },
      {
        Sid       = "TallyLooksAtObjects"
        Effect    = "Allow"
        Principal = { AWS = module.tally.role_arn }
        Action    = local.object_actions
        Resource  = "${local.bucket_arn}/*"
      },
    ]
  })
}

# Access to another account needs both accounts' permission.
resource "aws_iam_role_policy" "other_account" {
  name = "tally-${var.bucket}"
  role = module.tally.role_name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      { Sid = "ReadTheTopic", Effect = "Allow", Action = local.topic_actions, Resource = aws_sns_topic.events.arn },
      { Sid = "ReadTheBucket", Effect = "Allow", Action = local.bucket_actions, Resource = local.bucket_arn },
      { Sid = "LookAtObjects", Effect = "Allow", Action = local.object_actions, Resource = "${local.bucket_arn}/*" },
    ]
  })
}

# The process that serves this command subscribes the queue, and also needs `tally iam-policy --for connecting`.
output "connect_command" {
  value = "tally bucket add ${var.bucket} --bucket-account ${data.aws_caller_identity.owner.account_id} --source topic --topic ${aws_sns_topic.events.arn}"
}
