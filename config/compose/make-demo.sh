#!/bin/sh
# LocalStack runs this when it is up (/etc/localstack/init/ready.d): the bucket queue, so that Tally is healthy when it starts, and a
# bucket. `tally setup --apply` then gives the queue its attributes, and makes what else all buckets share.
set -eu
awslocal sqs create-queue --queue-name tally-bucket-events
awslocal s3api create-bucket --bucket demo
