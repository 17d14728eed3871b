import { ReceiveMessageCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { expect, onTestFinished, test } from 'vitest';
import { createFauxqs } from '../../src/demo/fauxqs.ts';
import { until } from '../support/servers/aws.ts';

const REGION = 'us-east-1';

test('Fix: a long poll whose client has gone does not take the next message, which would be hidden until its visibility time-out', async () => {
  const { app, sqs } = await createFauxqs(REGION);
  onTestFinished(() => app.close());
  const endpoint = await app.listen({ host: '127.0.0.1', port: 0 });
  const queue = sqs.createQueue('q', `${endpoint}/000000000000/q`, `arn:aws:sqs:${REGION}:000000000000:q`);
  const connections = (): Promise<number> =>
    new Promise((resolve, reject) => app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))));
  const client = new SQSClient({ endpoint, region: REGION, credentials: { accessKeyId: 'test', secretAccessKey: 'test' } });
  onTestFinished(() => client.destroy());
  // as a worker ends it when it stops
  const stopping = new AbortController();
  const command = new ReceiveMessageCommand({ QueueUrl: queue.url, WaitTimeSeconds: 20, VisibilityTimeout: 600 });
  const polling = client.send(command, { abortSignal: stopping.signal });
  await until('the poll waits', () => queue.pollWaiters.length === 1);
  stopping.abort();
  await expect(polling).rejects.toThrow('aborted');
  await until('the connection is closed', async () => (await connections()) === 0);

  await client.send(new SendMessageCommand({ QueueUrl: queue.url, MessageBody: 'task' }));
  const { Messages } = await client.send(new ReceiveMessageCommand({ QueueUrl: queue.url, MessageSystemAttributeNames: ['All'] }));
  expect(Messages).toMatchObject([{ Body: 'task', Attributes: { ApproximateReceiveCount: '1' } }]);
});
