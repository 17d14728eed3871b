/** What tests of event sources need of an emulator beyond AWS's own API. */
import type { TestAws } from './servers/aws.ts';

/** Whether S3's EventBridge events have url-encoded keys: those of a stock LocalStack do, those of AWS do not. */
export async function encodesEventBridgeKeys(aws: TestAws): Promise<boolean> {
  const queue = await aws.createQueue();
  const bucket = await aws.createBucket();
  await aws.createRule({ pattern: { source: ['aws.s3'], detail: { bucket: { name: [bucket] } } }, targetArn: queue.arn });
  await aws.notify(bucket, 'eventbridge');
  await aws.put(bucket, 'a b', 'hello');
  const [body] = await aws.takeBodies(queue.url, 1);
  if (body === undefined) throw new Error('EventBridge told nothing of an object that was put');
  const { detail } = JSON.parse(body) as { detail: { object: { key: string } } };
  return detail.object.key !== 'a b';
}

/** As “Parsing message formats” in the SNS developer guide shows it. Nobody may fetch its URLs. */
export function confirmationBody(topicArn: string, token: string): string {
  return JSON.stringify({
    Type: 'SubscriptionConfirmation',
    MessageId: '165545c9-2a5c-472c-8df2-7ff2be2b3b1b',
    Token: token,
    TopicArn: topicArn,
    Message: `You have chosen to subscribe to the topic ${topicArn}.`,
    SubscribeURL: 'http://127.0.0.1:1/must-not-be-fetched',
    Timestamp: '2026-03-01T08:30:06.000Z',
    SignatureVersion: '1',
    Signature: 'EXAMPLE==',
    SigningCertURL: 'http://127.0.0.1:1/must-not-be-fetched.pem',
  });
}
