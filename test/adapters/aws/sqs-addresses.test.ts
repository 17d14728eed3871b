import { describe, expect, it } from 'vitest';
import { createAwsClients } from '../../../src/adapters/aws/clients.ts';

function clientsAt(sqsEndpoint?: string) {
  return createAwsClients({
    region: 'eu-central-1',
    endpoints: { sqs: sqsEndpoint },
    s3: { forcePathStyle: false, timeoutMs: 1_000, connectionsMax: 1 },
    sqs: { receivesMax: 1, waitS: 1 },
  });
}

async function addressOf(queueUrl: string, sqsEndpoint?: string) {
  const { config } = clientsAt(sqsEndpoint).sqsFor(queueUrl);
  const endpoint = await config.endpoint?.();
  return {
    region: await config.region(),
    ...(endpoint && { endpoint: `${endpoint.protocol}//${endpoint.hostname}${endpoint.port === undefined ? '' : `:${endpoint.port}`}` }),
  };
}

describe('where a queue is asked', () => {
  it.each([
    { url: 'https://sqs.us-west-2.amazonaws.com/123456789012/q', address: { region: 'us-west-2' } },
    { url: 'https://sqs.us-gov-west-1.amazonaws.com/123456789012/q', address: { region: 'us-gov-west-1' } },
    { url: 'https://sqs.cn-north-1.amazonaws.com.cn/123456789012/q', address: { region: 'cn-north-1' } },
    {
      url: 'https://eu-west-1.queue.amazonaws.com/123456789012/q',
      address: { region: 'eu-west-1', endpoint: 'https://eu-west-1.queue.amazonaws.com' },
    },
    {
      url: 'https://vpce-0a1b-2c3d.sqs.ap-south-1.vpce.amazonaws.com/123456789012/q',
      address: { region: 'ap-south-1', endpoint: 'https://vpce-0a1b-2c3d.sqs.ap-south-1.vpce.amazonaws.com' },
    },
    { url: 'http://localhost:4566/000000000000/q', address: { region: 'eu-central-1', endpoint: 'http://localhost:4566' } },
  ])('is its region, and its own host where that is no regular one: $url', async ({ url, address }) => {
    expect(await addressOf(url)).toEqual(address);
  });

  it('is the given endpoint, whatever host and port the URL names', async () => {
    const url = 'http://sqs.us-east-2.localhost.localstack.cloud:4566/000000000000/q';
    expect(await addressOf(url, 'http://127.0.0.1:32771')).toEqual({ region: 'us-east-2', endpoint: 'http://127.0.0.1:32771' });
  });

  it('is one client a queue, and another one for receiving', () => {
    const clients = clientsAt();
    const url = 'https://sqs.us-west-2.amazonaws.com/123456789012/q';
    expect(clients.sqsFor(url)).toBe(clients.sqsFor(url));
    expect(clients.sqsFor(url)).not.toBe(clients.sqsReceivingFor(url));
    clients.close();
  });
});
