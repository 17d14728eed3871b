#!/bin/sh
# LocalStack runs this when it is up (/etc/localstack/init/ready.d). It makes what Tally wants of AWS:
#   bucket demo ─ notification ─► topic bucket-events ─► queue bucket-events ─ after 20 receives ─► queue bucket-events-dead-letters
# and the queue that re-index work travels on.
set -eu
arn() { echo "arn:aws:$1:us-east-1:000000000000:$2"; }

awslocal sqs create-queue --queue-name bucket-events-dead-letters --attributes MessageRetentionPeriod=1209600
# 20: a message that waits for an object or an outage is received again, and must not be given up for that
awslocal sqs create-queue --queue-name bucket-events --attributes "$(cat <<JSON
{ "RedrivePolicy": "{\"deadLetterTargetArn\":\"$(arn sqs bucket-events-dead-letters)\",\"maxReceiveCount\":20}" }
JSON
)"
awslocal sns create-topic --name bucket-events
awslocal sns subscribe --topic-arn "$(arn sns bucket-events)" --protocol sqs --notification-endpoint "$(arn sqs bucket-events)" \
  --attributes RawMessageDelivery=true
awslocal s3api create-bucket --bucket demo
awslocal s3api put-bucket-notification-configuration --bucket demo --notification-configuration "$(cat <<JSON
{ "TopicConfigurations": [ {
  "TopicArn": "$(arn sns bucket-events)",
  "Events": [ "s3:ObjectCreated:*", "s3:ObjectRemoved:*", "s3:LifecycleExpiration:*" ] } ] }
JSON
)"
