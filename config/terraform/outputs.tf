output "queue_url" {
  description = "For TALLY_QUEUE_URL, or the Helm chart's aws.queueUrls."
  value       = aws_sqs_queue.bucket_events.url
}

output "queue_arn" {
  description = "The bucket queue's ARN."
  value       = aws_sqs_queue.bucket_events.arn
}

output "dead_letter_queue_arn" {
  description = "The dead-letter queue's ARN."
  value       = aws_sqs_queue.dead_letters.arn
}

output "installation" {
  description = "The installation's name, which begins the names of topics and rules."
  value       = local.installation
}

output "role_arn" {
  description = "The ARN of Tally's role, for the Helm chart's serviceAccount.roleArn or ECS's task role."
  value       = aws_iam_role.this.arn
}

output "role_name" {
  description = "The name of Tally's role, for an instance profile."
  value       = aws_iam_role.this.name
}

output "policy" {
  description = "The role's policy, as JSON."
  value       = local.policy
}

output "rule_arns" {
  description = "Each bucket's rule."
  value       = { for bucket, rule in aws_cloudwatch_event_rule.this : bucket => rule.arn }
}

output "connect_commands" {
  description = "What to run once Tally is running: one command for each bucket."
  value       = [for bucket in local.buckets : "tally bucket add ${bucket} --source eventbridge --wired-by-hand"]
}
