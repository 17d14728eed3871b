#!/bin/sh
# LocalStack runs this when it is up (/etc/localstack/init/ready.d). It makes what Tally wants of AWS:
#   bucket demo ─ notification ─► topic bucket-events ─► queue bucket-events ─ after 100 receives ─► queue bucket-events-dead-letters
# with the policies that AWS would demand, so that `tally doctor demo` finds nothing.
set -eu
arn() { echo "arn:aws:$1:us-east-1:000000000000:$2"; }
# the policy that admits what service $1 sends for ARN $2 by action $3 to ARN $4, as text in a JSON string
admits() {
  printf '{\\"Version\\":\\"2012-10-17\\",\\"Statement\\":[{\\"Effect\\":\\"Allow\\",\\"Principal\\":{\\"Service\\":\\"%s\\"},' "$1"
  printf '\\"Action\\":\\"%s\\",\\"Resource\\":\\"%s\\",\\"Condition\\":{\\"ArnLike\\":{\\"aws:SourceArn\\":\\"%s\\"}}}]}' "$3" "$4" "$2"
}
topic=$(arn sns bucket-events)
queue=$(arn sqs bucket-events)
letters=$(arn sqs bucket-events-dead-letters)

awslocal sqs create-queue --queue-name bucket-events-dead-letters --attributes "$(cat <<JSON
{ "MessageRetentionPeriod": "1209600",
  "Policy": "$(admits sns.amazonaws.com "$topic" sqs:SendMessage "$letters")" }
JSON
)"
# 20: a message that waits for an object or an outage is received again, and must not be given up for that
awslocal sqs create-queue --queue-name bucket-events --attributes "$(cat <<JSON
{ "RedrivePolicy": "{\"deadLetterTargetArn\":\"$letters\",\"maxReceiveCount\":100}",
  "Policy": "$(admits sns.amazonaws.com "$topic" sqs:SendMessage "$queue")" }
JSON
)"
awslocal sns create-topic --name bucket-events --attributes "$(cat <<JSON
{ "Policy": "$(admits s3.amazonaws.com arn:aws:s3:::demo sns:Publish "$topic")" }
JSON
)"
awslocal sns subscribe --topic-arn "$topic" --protocol sqs --notification-endpoint "$queue" --attributes "$(cat <<JSON
{ "RedrivePolicy": "{\"deadLetterTargetArn\":\"$letters\"}" }
JSON
)"
awslocal s3api create-bucket --bucket demo
awslocal s3api put-bucket-notification-configuration --bucket demo --notification-configuration "$(cat <<JSON
{ "TopicConfigurations": [ {
  "TopicArn": "$topic",
  "Events": [ "s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:LifecycleExpiration:*" ] } ] }
JSON
)"
