/**
 * Where the clients of AWS send their requests, and for which region and service they sign them: requests of the real SDK
 * reach a server of this test through a proxy, whatever host they are for. It shows the hosts that real accounts have;
 * what AWS itself answers there is not shown.
 */
import { DeleteMessageBatchCommand, GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { HeadObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AwsClients } from '../../src/aws/clients.ts';
import { createSqsClient } from '../../src/aws/sqs-client.ts';
import { faultOf } from '../../src/base/fault.ts';
import { openClients } from '../support/servers/aws-clients.ts';
import { startRecordingProxy, type ProxiedAsk, type RecordingProxy } from '../support/servers/recording-proxy.ts';
import { signatureMistake } from '../support/sigv4.ts';

const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalr/EXAMPLE+KEY' };
const account = '123456789012';
const clock = { monotonicMs: () => performance.now() };

interface Given {
  /** The endpoint of the service, of a variable or of the profile. */
  readonly endpoint?: string;
  readonly switches?: readonly ('fips' | 'dualstack')[];
}

const vpce = 'https://vpce-0a1b2c3d-4e5f.sqs.ap-south-1.vpce.amazonaws.com';
const switches = ['fips', 'dualstack'] as const;

/** `origin`: the queue's URL without its path. `asked`: where the request goes; absent: to the origin. */
type QueueCase = [what: string, origin: string, region: string, more?: Given & { readonly asked?: string }];

const queues: readonly QueueCase[] = [
  ['a regular host', 'https://sqs.eu-west-1.amazonaws.com', 'eu-west-1'],
  ['GovCloud', 'https://sqs.us-gov-west-1.amazonaws.com', 'us-gov-west-1'],
  ['China', 'https://sqs.cn-north-1.amazonaws.com.cn', 'cn-north-1'],
  [
    'a regular host with both switches',
    'https://sqs.us-west-2.amazonaws.com',
    'us-west-2',
    { switches, asked: 'https://sqs-fips.us-west-2.api.aws' },
  ],
  ['a VPC endpoint with both switches', vpce, 'ap-south-1', { switches }],
  ['a VPC endpoint of FIPS in China', 'https://vpce-0a1b2c3d-4e5f.sqs-fips.cn-north-1.vpce.amazonaws.com.cn', 'cn-north-1'],
  ['the first host that SQS had', 'https://queue.amazonaws.com', 'us-east-1', { asked: 'https://sqs.us-east-1.amazonaws.com' }],
  [
    'a legacy host in China',
    'https://cn-north-1.queue.amazonaws.com.cn',
    'cn-north-1',
    { asked: 'https://sqs.cn-north-1.amazonaws.com.cn' },
  ],
  ['an emulator', 'http://queues.internal:4566', 'eu-south-1'],
  ['LocalStack', 'http://sqs.us-east-2.localhost.localstack.cloud:4566', 'us-east-2'],
  ['LocalStack’s names by region', 'http://us-west-1.queue.localhost.localstack.cloud:4566', 'us-west-1'],
  ['a host of one’s own', 'https://queues.example.com', 'eu-south-1', { switches }],
  ['a host that is only alike a regular one', 'https://sqs.eu-west-1.amazonaws.com.example.com', 'eu-west-1'],
  [
    'an emulator behind a given endpoint',
    'http://sqs.us-east-2.localhost.localstack.cloud:4566',
    'us-east-2',
    { endpoint: 'http://emulator.internal:32771', asked: 'http://emulator.internal:32771' },
  ],
  [
    'a regular host behind a given VPC endpoint, with both switches',
    'https://sqs.ap-south-1.amazonaws.com',
    'ap-south-1',
    { endpoint: vpce, switches, asked: vpce },
  ],
];

/** `asked`: the URL of the bucket. */
type PlaceCase = [what: string, region: string, asked: string, given?: Given];

const buckets: readonly PlaceCase[] = [
  ['a region', 'eu-west-1', 'https://photos.s3.eu-west-1.amazonaws.com'],
  ['FIPS and dual-stack', 'us-east-2', 'https://photos.s3-fips.dualstack.us-east-2.amazonaws.com', { switches }],
  ['another store', 'eu-south-1', 'http://minio.internal:9000/photos', { endpoint: 'http://minio.internal:9000' }],
];

const EMPTY_LISTING = '<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>';

function answerOf({ headers, path }: ProxiedAsk) {
  if (headers['x-amz-target'] !== undefined) return { headers: { 'content-type': 'application/x-amz-json-1.0' }, body: '{}' };
  return path.includes('list-type') ? { headers: { 'content-type': 'application/xml' }, body: EMPTY_LISTING } : {};
}

function attributesAnswer(more: Readonly<Record<string, string>> = {}) {
  const counts = ['', 'NotVisible', 'Delayed'].map((kind) => [`ApproximateNumberOfMessages${kind}`, '0']);
  return { body: JSON.stringify({ Attributes: { ...Object.fromEntries(counts), VisibilityTimeout: '30', ...more } }) };
}

describe('requests to AWS', () => {
  let proxy: RecordingProxy;

  beforeAll(async () => {
    const used = [...queues.flatMap(([, origin, , { asked = origin } = {}]) => [origin, asked]), ...buckets.map(([, , asked]) => asked)];
    proxy = await startRecordingProxy(used.map((url) => new URL(url).hostname));
  });
  afterAll(() => proxy.close());
  beforeEach(() => {
    vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent');
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nonexistent');
    proxy.asked.length = 0;
    proxy.answer = answerOf;
  });
  afterEach(() => void vi.unstubAllEnvs());

  function clientsWith({ switches: switched = [], endpoint }: Given = {}): AwsClients {
    if (switched.includes('fips')) vi.stubEnv('AWS_USE_FIPS_ENDPOINT', 'true');
    if (switched.includes('dualstack')) vi.stubEnv('AWS_USE_DUALSTACK_ENDPOINT', 'true');
    return openClients({
      region: 'eu-south-1',
      endpoints: { sqs: endpoint, sns: endpoint, s3: endpoint },
      credentials,
      proxyEnv: proxy.env,
      s3: { forcePathStyle: endpoint !== undefined },
    });
  }

  it.each(queues)(
    'about a queue at %s go to its host, signed for its region',
    async (_, origin, region, { asked = origin, ...given } = {}) => {
      const queueUrl = `${origin}/${account}/events`;
      const clients = clientsWith(given);
      // one of the requests that Tally builds itself, and one of the SDK
      const Entries = [{ Id: '0', ReceiptHandle: 'r' }];
      await clients.sqsFor(queueUrl).send(new DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries }));
      await clients.sqsReceivingFor(queueUrl).send(new GetQueueAttributesCommand({ QueueUrl: queueUrl }));
      const { protocol, hostname, port } = new URL(asked);
      const host = port === '' ? hostname : `${hostname}:${port}`;
      expect(proxy.asked.map(({ url, headers }) => [url, headers.host])).toEqual([0, 1].map(() => [`${protocol}//${host}/`, host]));
      const signer = { ...credentials, sessionToken: '', region, service: 'sqs' };
      expect(proxy.asked.map((request) => signatureMistake(request, signer))).toEqual([undefined, undefined]);
      expect(proxy.asked.map(({ body }) => (JSON.parse(body) as { QueueUrl: string }).QueueUrl)).toEqual([queueUrl, queueUrl]);
    },
  );

  it.each(buckets)('about a bucket at %s go to its host, signed for its region', async (_, region, asked, given = {}) => {
    const client = clientsWith(given).s3For(region);
    await client.send(new HeadObjectCommand({ Bucket: 'photos', Key: 'a b/ü.jpg' }));
    await client.send(new ListObjectsV2Command({ Bucket: 'photos' }));
    const list = given.endpoint === undefined ? `${asked}/` : asked;
    expect(proxy.asked.map(({ url, scope }) => [url.replace(/\/$/, ''), scope])).toEqual([
      [`${asked}/a%20b/%C3%BC.jpg`, `${region}/s3`],
      [list.replace(/\/$/, ''), `${region}/s3`],
    ]);
  });

  it.each([`/${account}`, '//elsewhere.example'])(
    'about the redrive target go where the queue itself is reached, although SQS names its regular host (%s)',
    async (path) => {
      const client = createSqsClient({ clientFor: clientsWith().sqsFor, clock });
      proxy.answer = ({ headers }) => {
        if (headers['x-amz-target'] === 'AmazonSQS.GetQueueUrl')
          return { body: JSON.stringify({ QueueUrl: `https://sqs.ap-south-1.amazonaws.com${path}/letters` }) };
        const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: `arn:aws:sqs:ap-south-1:${account}:letters`, maxReceiveCount: 20 });
        return attributesAnswer({ RedrivePolicy });
      };
      const { deadLetterQueueUrl } = await client.attributes(`${vpce}/${account}/events`);
      expect(deadLetterQueueUrl).toBe(`${vpce}${path}/letters`);
      await client.attributes(deadLetterQueueUrl!);
      expect(new Set(proxy.asked.map(({ url, scope }) => [url, scope].join(' ')))).toEqual(new Set([`${vpce}/ ap-south-1/sqs`]));
    },
  );

  it.each([
    { what: 'a web page', answer: { body: '<html>Sign in</html>' } },
    { what: 'JSON of another kind', answer: { body: '{"ok":true}' } },
    { what: 'nothing', answer: { body: '' } },
    { what: 'an error page', answer: { status: 404, body: '<html>Not found</html>' } },
  ])('that reach another server than SQS, which answers with $what, are a fault; another queue is read meanwhile', async ({ answer }) => {
    const client = createSqsClient({ clientFor: clientsWith().sqsFor, clock });
    proxy.answer = (ask) => (ask.url.startsWith('https://queues.example.com') ? answer : attributesAnswer());
    const elsewhere = `https://queues.example.com/${account}/events`;
    const faultWhen = (asked: Promise<unknown>) => asked.then(() => expect.fail('no fault'), faultOf);
    const wrong = [faultWhen(client.attributes(elsewhere)), faultWhen(client.send(elsewhere, { body: 'taken by nobody', attributes: {} }))];
    expect(await client.attributes(`https://sqs.eu-west-1.amazonaws.com/${account}/events`)).toMatchObject({ visible: 0 });
    const [asked, sent] = await Promise.all(wrong);
    for (const [operation, { code, reason }] of [
      ['GetQueueAttributes', asked!],
      ['SendMessage', sent!],
    ] as const) {
      expect(code).toBe('queue.unreachable');
      expect(reason).toMatch(new RegExp(String.raw`^${operation} https://queues\.example\.com/123456789012/events: \S`));
      if (!('status' in answer)) expect(reason).toContain('the answer is not one of SQS: ');
    }
  });
});
