data "aws_partition" "current" {}
data "aws_caller_identity" "current" {}
data "aws_region" "current" {}

locals {
  partition = data.aws_partition.current.partition
  account   = data.aws_caller_identity.current.account_id
  region    = data.aws_region.current.id
  buckets   = sort(tolist(var.buckets))

  # The names are fixed, so that a plan shows whole policies before anything exists.
  bucket_events_arn = "arn:${local.partition}:sqs:${local.region}:${local.account}:${var.name}-bucket-events"
  dead_letters_arn  = "arn:${local.partition}:sqs:${local.region}:${local.account}:${var.name}-dead-letters"

  # The owner follows from the queue, as with `tally setup`, so each recognises what the other has created.
  owner        = sha256("tally ${local.bucket_events_arn}")
  installation = coalesce(var.installation, substr(local.owner, 0, 8))
  registry     = substr(local.owner, 8, 32)
  mark         = "tally-${local.installation}-${substr(local.registry, 0, 8)}"
  tags         = merge(var.tags, { "tally:installation" = local.installation, "tally:registry" = local.registry })
  topic_arns = {
    events = "arn:${local.partition}:sns:${local.region}:${local.account}:tally-${local.installation}-events"
    routed = "arn:${local.partition}:sns:${local.region}:${local.account}:tally-${local.installation}-routed"
  }
}

################################################################################
# What all buckets share, as `tally setup` creates it
################################################################################

resource "aws_sqs_queue" "dead_letters" {
  name                       = "${var.name}-dead-letters"
  message_retention_seconds  = 1209600
  visibility_timeout_seconds = 60
  receive_wait_time_seconds  = 20
  delay_seconds              = 0
  kms_master_key_id          = var.kms_key_arn
  sqs_managed_sse_enabled    = var.kms_key_arn == null ? true : null
  tags                       = local.tags
}

resource "aws_sqs_queue" "bucket_events" {
  name                       = "${var.name}-bucket-events"
  message_retention_seconds  = 604800
  visibility_timeout_seconds = 60
  receive_wait_time_seconds  = 20
  delay_seconds              = 0
  kms_master_key_id          = var.kms_key_arn
  sqs_managed_sse_enabled    = var.kms_key_arn == null ? true : null
  tags                       = local.tags

  # SQS redelivers a message that waits for an object or an outage, and must not give it up for that
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters.arn
    maxReceiveCount     = 100
  })
}

resource "aws_sqs_queue_policy" "this" {
  for_each = {
    (local.bucket_events_arn) = aws_sqs_queue.bucket_events.id
    (local.dead_letters_arn)  = aws_sqs_queue.dead_letters.id
  }

  queue_url = each.value

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "OnlyEncryptedConnections"
        Effect    = "Deny"
        Principal = "*"
        Action    = "sqs:*"
        Resource  = each.key
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
      {
        Sid       = "${local.mark}-topics"
        Effect    = "Allow"
        Principal = { Service = "sns.amazonaws.com" }
        Action    = "sqs:SendMessage"
        Resource  = each.key
        Condition = { ArnLike = { "aws:SourceArn" = "arn:${local.partition}:sns:*:${local.account}:tally-${local.installation}-*" } }
      },
      {
        Sid       = "${local.mark}-rules"
        Effect    = "Allow"
        Principal = { Service = "events.amazonaws.com" }
        Action    = "sqs:SendMessage"
        Resource  = each.key
        Condition = { ArnLike = { "aws:SourceArn" = "arn:${local.partition}:events:*:${local.account}:rule/tally-${local.installation}-*" } }
      },
    ]
  })
}

resource "aws_sns_topic" "this" {
  for_each = local.topic_arns

  name = "tally-${local.installation}-${each.key}"
  tags = local.tags
}

resource "aws_sns_topic_policy" "events" {
  arn = aws_sns_topic.this["events"].arn

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = local.mark
        Effect    = "Allow"
        Principal = { Service = "s3.amazonaws.com" }
        Action    = "sns:Publish"
        Resource  = local.topic_arns.events
        Condition = { StringEquals = { "aws:SourceAccount" = local.account }, ArnLike = { "aws:SourceArn" = "arn:${local.partition}:s3:::*" } }
      },
    ]
  })
}

resource "aws_sns_topic_policy" "routed" {
  arn = aws_sns_topic.this["routed"].arn

  # without a Condition: SNS supports none for EventBridge
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = local.mark
        Effect    = "Allow"
        Principal = { Service = "events.amazonaws.com" }
        Action    = "sns:Publish"
        Resource  = local.topic_arns.routed
      },
    ]
  })
}

resource "aws_sns_topic_subscription" "this" {
  for_each = aws_sns_topic.this

  topic_arn = each.value.arn
  protocol  = "sqs"
  endpoint  = aws_sqs_queue.bucket_events.arn

  redrive_policy = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead_letters.arn })

  # SNS delivers only what the queue admits
  depends_on = [aws_sqs_queue_policy.this]
}

################################################################################
# Buckets, by EventBridge
################################################################################

resource "aws_cloudwatch_event_rule" "this" {
  for_each = var.buckets

  # the queue admits rules with this prefix. A rule's name has at most 64 characters, and a bucket's may have 63
  name        = length(each.value) <= 49 ? "tally-${local.installation}-${each.value}" : "tally-${local.installation}-${substr(sha256(each.value), 0, 16)}"
  description = "Events of the bucket ${each.value} to Tally"
  tags        = var.tags

  event_pattern = jsonencode({
    source = ["aws.s3"]
    "detail-type" = [
      "Object Created",
      "Object Deleted",
      "Object Restore Completed",
      "Object Restore Expired",
      "Object Storage Class Changed",
      "Object Access Tier Changed",
      "Object Tags Added",
      "Object Tags Deleted",
    ]
    detail = { bucket = { name = [each.value] } }
  })
}

resource "aws_cloudwatch_event_target" "this" {
  for_each = var.buckets

  rule      = aws_cloudwatch_event_rule.this[each.value].name
  target_id = "bucket-queue"
  arn       = aws_sqs_queue.bucket_events.arn

  dead_letter_config {
    arn = aws_sqs_queue.dead_letters.arn
  }
}

################################################################################
# Tally's role
################################################################################

locals {
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = local.permissions
  })

  service_trust = length(var.trusted_services) == 0 ? [] : [
    {
      Sid       = "Services"
      Effect    = "Allow"
      Principal = { Service = var.trusted_services }
      # Pod Identity tags its sessions
      Action = ["sts:AssumeRole", "sts:TagSession"]
    },
  ]

  irsa_trust = var.irsa == null ? [] : [
    {
      Sid       = "ServiceAccount"
      Effect    = "Allow"
      Principal = { Federated = var.irsa.provider_arn }
      Action    = ["sts:AssumeRoleWithWebIdentity"]
      Condition = {
        StringEquals = {
          "${split("oidc-provider/", var.irsa.provider_arn)[1]}:aud" = "sts.amazonaws.com"
          "${split("oidc-provider/", var.irsa.provider_arn)[1]}:sub" = "system:serviceaccount:${var.irsa.namespace}:${var.irsa.service_account}"
        }
      }
    },
  ]

  trust = jsonencode({
    Version   = "2012-10-17"
    Statement = concat(local.service_trust, local.irsa_trust)
  })
}

resource "aws_iam_role" "this" {
  name                 = var.name
  description          = "Tally: reads bucket events and the buckets, and changes nothing in them"
  assume_role_policy   = local.trust
  permissions_boundary = var.permissions_boundary
  tags                 = var.tags

  lifecycle {
    precondition {
      condition     = length(var.trusted_services) > 0 || var.irsa != null
      error_message = "Set trusted_services or irsa: otherwise nothing can assume the role."
    }
  }
}

resource "aws_iam_role_policy" "this" {
  name   = var.name
  role   = aws_iam_role.this.id
  policy = local.policy
}
