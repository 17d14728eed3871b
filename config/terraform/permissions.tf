# Written by `npm run docs` from the permissions that `tally iam-policy` prints for the sources notification and eventbridge.
locals {
  permissions = concat(
    [
      {
        Sid      = "ReceiveAndSettleMessages"
        Effect   = "Allow"
        Action   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:SendMessage"]
        Resource = [local.bucket_events_arn, local.dead_letters_arn, "arn:${local.partition}:sqs:*:${local.account}:tally-*-dead-letters"]
      },
      {
        Sid      = "ReadQueues"
        Effect   = "Allow"
        Action   = ["sqs:GetQueueAttributes"]
        Resource = [local.bucket_events_arn, local.dead_letters_arn, "arn:${local.partition}:sqs:*:${local.account}:tally-*-dead-letters"]
      },
      {
        Sid      = "KnowTheInstallation"
        Effect   = "Allow"
        Action   = ["sqs:ListQueueTags"]
        Resource = [local.bucket_events_arn]
      },
      {
        Sid      = "FindTheDeadLetterQueue"
        Effect   = "Allow"
        Action   = ["sqs:GetQueueUrl"]
        Resource = [local.dead_letters_arn, "arn:${local.partition}:sqs:*:${local.account}:tally-*-dead-letters"]
      },
      {
        Sid      = "ConfirmSubscriptions"
        Effect   = "Allow"
        Action   = ["sns:ConfirmSubscription"]
        Resource = ["arn:${local.partition}:sns:*:${local.account}:tally-*-*"]
      },
      {
        Sid      = "ReadTopics"
        Effect   = "Allow"
        Action   = ["sns:GetTopicAttributes", "sns:ListSubscriptionsByTopic", "sns:GetSubscriptionAttributes"]
        Resource = ["arn:${local.partition}:sns:*:${local.account}:tally-*-*"]
      },
      {
        Sid      = "ReadRules"
        Effect   = "Allow"
        Action   = ["events:DescribeRule", "events:ListTagsForResource", "events:ListTargetsByRule"]
        Resource = ["arn:${local.partition}:events:*:${local.account}:rule/tally-*-*"]
      },
      {
        Sid      = "CountRules"
        Effect   = "Allow"
        Action   = ["events:ListRules"]
        Resource = ["*"]
      },
      {
        Sid      = "ProbeTopics"
        Effect   = "Allow"
        Action   = ["sns:Publish"]
        Resource = ["arn:${local.partition}:sns:*:${local.account}:tally-*-*"]
      },
    ],
    # a statement without a resource would be refused
    [for statement in [
      {
        Sid      = "ReadTheBucket"
        Effect   = "Allow"
        Action   = ["s3:ListBucket", "s3:GetBucketVersioning", "s3:GetBucketNotification"]
        Resource = [for bucket in local.buckets : "arn:${local.partition}:s3:::${bucket}"]
      },
      {
        Sid      = "ReadLifecycleRules"
        Effect   = "Allow"
        Action   = ["s3:GetLifecycleConfiguration", "s3:ListBucketMultipartUploads"]
        Resource = [for bucket in local.buckets : "arn:${local.partition}:s3:::${bucket}"]
      },
      {
        Sid      = "LookAtObjects"
        Effect   = "Allow"
        Action   = ["s3:GetObject"]
        Resource = [for bucket in local.buckets : "arn:${local.partition}:s3:::${bucket}/*"]
      },
      {
        Sid      = "EnrichDocuments"
        Effect   = "Allow"
        Action   = ["s3:GetObjectVersion", "s3:GetObjectTagging", "s3:GetObjectVersionTagging"]
        Resource = [for bucket in local.buckets : "arn:${local.partition}:s3:::${bucket}/*"]
      },
    ] : statement if length(local.buckets) > 0],
    [for statement in [
      {
        Sid       = "UseTheKeyOfTheQueues"
        Effect    = "Allow"
        Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource  = [var.kms_key_arn]
        Condition = { StringEquals = { "kms:ViaService" = "sqs.${local.region}.${data.aws_partition.current.dns_suffix}" } }
      },
    ] : statement if var.kms_key_arn != null],
  )
}
