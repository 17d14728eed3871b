/**
 * (a): what receiving costs before anything is done with a message. sqs-consumer and the SDK at their defaults; each
 * batch is deleted as it came.
 */
import { SQSClient } from '@aws-sdk/client-sqs';
import { Consumer } from 'sqs-consumer';

const [queueUrl, pollers] = process.argv.slice(2);
if (queueUrl === undefined) throw new Error('usage: null-consumer.ts QUEUE_URL POLLERS');

// one for all, as the SDK recommends; its endpoint comes from AWS_ENDPOINT_URL
const sqs = new SQSClient({});
for (let poller = 0; poller < Number(pollers); poller += 1) {
  const consumer = Consumer.create({ queueUrl, sqs, batchSize: 10, handleMessageBatch: async (messages) => messages });
  consumer.on('error', (error) => {
    console.error(error);
    process.exit(1);
  });
  consumer.start();
}
process.once('SIGTERM', () => process.exit(0));
console.log('ready');
