import { ReceiveMessageCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createFauxqs } from '../../src/demo/fauxqs.ts';
import type { Fauxqs } from '../../src/demo/fauxqs.ts';
import { until } from '../support/servers/aws.ts';

const REGION = 'eu-west-1';
const CREDENTIALS = { accessKeyId: 'test', secretAccessKey: 'test' };

let fauxqs: Fauxqs;
let queue: ReturnType<Fauxqs['sqs']['createQueue']>;
let endpoint: string;
let clients: SQSClient[];

/** A client with connections of its own. */
function clientOf(): SQSClient {
  const client = new SQSClient({ endpoint, region: REGION, credentials: CREDENTIALS });
  clients.push(client);
  return client;
}

beforeEach(async () => {
  clients = [];
  fauxqs = await createFauxqs(REGION);
  endpoint = await fauxqs.app.listen({ host: '127.0.0.1', port: 0 });
  queue = fauxqs.sqs.createQueue('q', `${endpoint}/000000000000/q`, `arn:aws:sqs:${REGION}:000000000000:q`);
});

afterEach(async () => {
  for (const client of clients) client.destroy();
  await fauxqs.app.close();
});

function connections(): Promise<number> {
  return new Promise((resolve, reject) => {
    fauxqs.app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}

/** A long poll that its client ended, as a worker does when it stops. The server has seen the connection close. */
async function abandonedPoll(client: SQSClient): Promise<void> {
  const stopping = new AbortController();
  const command = new ReceiveMessageCommand({ QueueUrl: queue.url, WaitTimeSeconds: 20, VisibilityTimeout: 600 });
  const polling = client.send(command, { abortSignal: stopping.signal });
  await until('the poll waits', () => queue.pollWaiters.length === 1);
  stopping.abort();
  await expect(polling).rejects.toThrow('aborted');
  await until('the connection is closed', async () => (await connections()) === 0);
}

describe('a long poll whose client has gone', () => {
  test('Fix: does not take the next message, which would be hidden until its visibility time-out', async () => {
    await abandonedPoll(clientOf());
    const client = clientOf();
    await client.send(new SendMessageCommand({ QueueUrl: queue.url, MessageBody: 'task' }));
    const { Messages } = await client.send(new ReceiveMessageCommand({ QueueUrl: queue.url, MessageSystemAttributeNames: ['All'] }));
    expect(Messages).toMatchObject([{ Body: 'task', Attributes: { ApproximateReceiveCount: '1' } }]);
  });
});
