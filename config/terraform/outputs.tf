output "queue_url" {
  description = "For TALLY_QUEUE_URL, or aws.queueUrls of the Helm chart."
  value       = aws_sqs_queue.bucket_events.url
}

output "queue_arn" {
  description = "The ARN of the bucket queue."
  value       = aws_sqs_queue.bucket_events.arn
}

output "dead_letter_queue_arn" {
  description = "The ARN of the dead-letter queue."
  value       = aws_sqs_queue.dead_letters.arn
}

output "installation" {
  description = "The name of the installation, with which the names of topics and rules begin."
  value       = local.installation
}

output "role_arn" {
  description = "The ARN of the role of Tally, for serviceAccount.roleArn of the Helm chart or the task role of ECS."
  value       = aws_iam_role.this.arn
}

output "role_name" {
  description = "The name of the role of Tally, for an instance profile."
  value       = aws_iam_role.this.name
}

output "policy" {
  description = "The policy of the role, as JSON."
  value       = local.policy
}

output "rule_arns" {
  description = "The rule of each bucket."
  value       = { for bucket, rule in aws_cloudwatch_event_rule.this : bucket => rule.arn }
}

output "connect_commands" {
  description = "What to run once Tally serves: one command for each bucket."
  value       = [for bucket in local.buckets : "tally bucket add ${bucket} --source eventbridge --wired-by-hand"]
}
