/**
 * Where the clients of AWS send their requests, and for which region and service they sign them: requests of the real SDK
 * reach a server of this test through a proxy, whatever host they are for. It shows the hosts that real accounts have;
 * what AWS itself answers there is not shown.
 */
import { GetTopicAttributesCommand } from '@aws-sdk/client-sns';
import { DeleteMessageBatchCommand, GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { HeadObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createAwsClients, type AwsClientOptions, type AwsClients } from '../../src/aws/clients.ts';
import { createSqsClient } from '../../src/aws/sqs-client.ts';
import { createS3Storage } from '../../src/aws/s3-storage.ts';
import { faultOf } from '../../src/base/fault.ts';
import { startRecordingProxy, type ProxiedAsk, type RecordingProxy } from '../support/servers/recording-proxy.ts';
import { signatureMistake } from '../support/sigv4.ts';

const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalr/EXAMPLE+KEY' };
const account = '123456789012';
const clock = { monotonicMs: () => performance.now() };

interface QueueCase {
  readonly what: string;
  /** The queue's URL without its path. */
  readonly origin: string;
  /** AWS_ENDPOINT_URL_SQS or that of the profile. */
  readonly endpoint?: string;
  readonly switches?: readonly ('fips' | 'dualstack')[];
  /** Where the request goes; absent: to the origin of the queue's URL. */
  readonly asked?: string;
  readonly region: string;
}

const vpce = 'https://vpce-0a1b2c3d-4e5f.sqs.ap-south-1.vpce.amazonaws.com';

const queues: readonly QueueCase[] = [
  { what: 'a regular host', origin: 'https://sqs.eu-west-1.amazonaws.com', region: 'eu-west-1' },
  { what: 'GovCloud', origin: 'https://sqs.us-gov-west-1.amazonaws.com', region: 'us-gov-west-1' },
  { what: 'China', origin: 'https://sqs.cn-north-1.amazonaws.com.cn', region: 'cn-north-1' },
  {
    what: 'a regular host with both switches',
    origin: 'https://sqs.us-west-2.amazonaws.com',
    switches: ['fips', 'dualstack'],
    asked: 'https://sqs-fips.us-west-2.api.aws',
    region: 'us-west-2',
  },
  { what: 'a VPC endpoint with both switches', origin: vpce, switches: ['fips', 'dualstack'], region: 'ap-south-1' },
  {
    what: 'a VPC endpoint of FIPS in China’s domain',
    origin: 'https://vpce-0a1b2c3d-4e5f.sqs-fips.cn-north-1.vpce.amazonaws.com.cn',
    region: 'cn-north-1',
  },
  {
    what: 'the first host that SQS had',
    origin: 'https://queue.amazonaws.com',
    asked: 'https://sqs.us-east-1.amazonaws.com',
    region: 'us-east-1',
  },
  {
    what: 'a legacy host in China',
    origin: 'https://cn-north-1.queue.amazonaws.com.cn',
    asked: 'https://sqs.cn-north-1.amazonaws.com.cn',
    region: 'cn-north-1',
  },
  { what: 'an emulator', origin: 'http://queues.internal:4566', region: 'eu-south-1' },
  { what: 'LocalStack', origin: 'http://sqs.us-east-2.localhost.localstack.cloud:4566', region: 'us-east-2' },
  { what: 'LocalStack’s names by region', origin: 'http://us-west-1.queue.localhost.localstack.cloud:4566', region: 'us-west-1' },
  { what: 'a host of one’s own', origin: 'https://queues.example.com', switches: ['fips', 'dualstack'], region: 'eu-south-1' },
  {
    what: 'a host that is only alike a regular one',
    origin: 'https://sqs.eu-west-1.amazonaws.com.example.com',
    region: 'eu-west-1',
  },
  {
    what: 'an emulator behind a given endpoint',
    origin: 'http://sqs.us-east-2.localhost.localstack.cloud:4566',
    endpoint: 'http://emulator.internal:32771',
    asked: 'http://emulator.internal:32771',
    region: 'us-east-2',
  },
  {
    what: 'a regular host behind a given VPC endpoint, with both switches',
    origin: 'https://sqs.ap-south-1.amazonaws.com',
    endpoint: vpce,
    switches: ['fips', 'dualstack'],
    asked: vpce,
    region: 'ap-south-1',
  },
];

interface BucketCase {
  readonly what: string;
  readonly region: string;
  readonly switches?: readonly ('fips' | 'dualstack')[];
  readonly endpoint?: string;
  /** The URL of the bucket. */
  readonly asked: string;
}

const buckets: readonly BucketCase[] = [
  { what: 'a region', region: 'eu-west-1', asked: 'https://photos.s3.eu-west-1.amazonaws.com' },
  {
    what: 'FIPS and dual-stack',
    region: 'us-east-2',
    switches: ['fips', 'dualstack'],
    asked: 'https://photos.s3-fips.dualstack.us-east-2.amazonaws.com',
  },
  { what: 'another store', region: 'eu-south-1', endpoint: 'http://minio.internal:9000', asked: 'http://minio.internal:9000/photos' },
];

const topics = [
  { what: 'a region', region: 'eu-west-1', asked: 'https://sns.eu-west-1.amazonaws.com' },
  {
    what: 'a VPC endpoint with both switches',
    region: 'eu-west-1',
    endpoint: 'https://vpce-0a1b2c3d-4e5f.sns.eu-west-1.vpce.amazonaws.com',
    switches: ['fips', 'dualstack'],
    asked: 'https://vpce-0a1b2c3d-4e5f.sns.eu-west-1.vpce.amazonaws.com',
  },
] as const satisfies readonly BucketCase[];

const EMPTY_LISTING = '<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>';

function answerOf({ headers, method, path }: ProxiedAsk) {
  if (headers['x-amz-target'] !== undefined) return { headers: { 'content-type': 'application/x-amz-json-1.0' }, body: '{}' };
  if (method === 'POST')
    return {
      headers: { 'content-type': 'text/xml' },
      body: '<GetTopicAttributesResponse><GetTopicAttributesResult/></GetTopicAttributesResponse>',
    };
  return path.includes('list-type') ? { headers: { 'content-type': 'application/xml' }, body: EMPTY_LISTING } : {};
}

function attributesAnswer(more: Readonly<Record<string, string>> = {}) {
  const counts = ['', 'NotVisible', 'Delayed'].map((kind) => [`ApproximateNumberOfMessages${kind}`, '0']);
  return { body: JSON.stringify({ Attributes: { ...Object.fromEntries(counts), VisibilityTimeout: '30', ...more } }) };
}

describe('requests to AWS', () => {
  let proxy: RecordingProxy;
  let opened: AwsClients[] = [];

  beforeAll(async () => {
    const used = [...queues, ...buckets, ...topics].flatMap((each) => [
      'origin' in each ? each.origin : each.asked,
      ...(each.asked === undefined ? [] : [each.asked]),
    ]);
    proxy = await startRecordingProxy([...used.map((url) => new URL(url).hostname), 'photos.s3.eu-central-1.amazonaws.com']);
  });
  afterAll(() => proxy.close());
  beforeEach(() => {
    vi.stubEnv('AWS_CONFIG_FILE', '/nonexistent');
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nonexistent');
    proxy.asked.length = 0;
    proxy.answer = answerOf;
  });
  afterEach(() => {
    for (const clients of opened) clients.close();
    opened = [];
    vi.unstubAllEnvs();
  });

  function clientsWith(
    { switches = [], endpoint }: Pick<QueueCase, 'switches' | 'endpoint'>,
    more: Partial<AwsClientOptions> = {},
  ): AwsClients {
    if (switches.includes('fips')) vi.stubEnv('AWS_USE_FIPS_ENDPOINT', 'true');
    if (switches.includes('dualstack')) vi.stubEnv('AWS_USE_DUALSTACK_ENDPOINT', 'true');
    const clients = createAwsClients({
      region: 'eu-south-1',
      endpoints: { sqs: endpoint, sns: endpoint, s3: endpoint },
      credentials,
      proxyEnv: proxy.env,
      s3: { forcePathStyle: endpoint !== undefined, timeoutMs: 10_000, connectionsMax: 2 },
      sqs: { receivesMax: 2, waitS: 1 },
      ...more,
    });
    opened.push(clients);
    return clients;
  }

  it.each(queues)('about a queue at $what go to its host, signed for its region', async ({ origin, asked = origin, region, ...given }) => {
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
  });

  it.each(buckets)('about a bucket at $what go to its host, signed for its region', async ({ region, asked, ...given }) => {
    const client = clientsWith(given).s3For(region);
    await client.send(new HeadObjectCommand({ Bucket: 'photos', Key: 'a b/ü.jpg' }));
    await client.send(new ListObjectsV2Command({ Bucket: 'photos' }));
    const list = given.endpoint === undefined ? `${asked}/` : asked;
    expect(proxy.asked.map(({ url, scope }) => [url.replace(/\/$/, ''), scope])).toEqual([
      [`${asked}/a%20b/%C3%BC.jpg`, `${region}/s3`],
      [list.replace(/\/$/, ''), `${region}/s3`],
    ]);
  });

  it.each<BucketCase>(topics)('about a topic at $what go to its host, signed for its region', async ({ region, asked, ...given }) => {
    const TopicArn = `arn:aws:sns:${region}:${account}:events`;
    await clientsWith(given).snsFor(region).send(new GetTopicAttributesCommand({ TopicArn }));
    expect(proxy.asked.map(({ url, scope }) => [url, scope])).toEqual([[`${asked}/`, `${region}/sns`]]);
  });

  it('about the redrive target go where the queue itself is reached, although SQS names its regular host', async () => {
    const client = createSqsClient({ clientFor: clientsWith({}).sqsFor, clock });
    proxy.answer = ({ headers }) => {
      if (headers['x-amz-target'] === 'AmazonSQS.GetQueueUrl')
        return { body: JSON.stringify({ QueueUrl: `https://sqs.ap-south-1.amazonaws.com/${account}/letters` }) };
      const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: `arn:aws:sqs:ap-south-1:${account}:letters`, maxReceiveCount: 20 });
      return attributesAnswer({ RedrivePolicy });
    };
    const { deadLetterQueueUrl } = await client.attributes(`${vpce}/${account}/events`);
    expect(deadLetterQueueUrl).toBe(`${vpce}/${account}/letters`);
    await client.attributes(deadLetterQueueUrl!);
    expect(new Set(proxy.asked.map(({ url, scope }) => [url, scope].join(' ')))).toEqual(new Set([`${vpce}/ ap-south-1/sqs`]));
  });

  it.each([
    { what: 'a web page', answer: { body: '<html>Sign in</html>' } },
    { what: 'JSON of another kind', answer: { body: '{"ok":true}' } },
    { what: 'an error page', answer: { status: 404, body: '<html>Not found</html>' } },
  ])('that reach another server than SQS, which answers with $what, are a fault; another queue is read meanwhile', async ({ answer }) => {
    const client = createSqsClient({ clientFor: clientsWith({}).sqsFor, clock });
    proxy.answer = (ask) => (ask.url.startsWith('https://queues.example.com') ? answer : attributesAnswer());
    const wrong = client.attributes(`https://queues.example.com/${account}/events`).then(() => expect.fail('no fault'), faultOf);
    expect(await client.attributes(`https://sqs.eu-west-1.amazonaws.com/${account}/events`)).toMatchObject({ visible: 0 });
    const { code, reason } = await wrong;
    expect(code).toBe('queue.unreachable');
    expect(reason).toMatch(/^GetQueueAttributes https:\/\/queues\.example\.com\/123456789012\/events: \S/);
    if (!('status' in answer)) expect(reason).toContain('the answer is not one of SQS: ');
  });

  it('about a bucket of another region are not redirected', async () => {
    const storage = createS3Storage({ clientFor: clientsWith({}).s3For, region: 'eu-west-1', clock });
    proxy.answer = () => ({ status: 301, headers: { 'x-amz-bucket-region': 'eu-central-1' } });
    await storage.readState({ bucket: 'photos', region: 'eu-west-1' }, 'a').catch(() => undefined);
    expect(proxy.asked.map(({ url, scope }) => [url, scope])).toEqual([['https://photos.s3.eu-west-1.amazonaws.com/a', 'eu-west-1/s3']]);
    // and the neighbour's requests, with the region that was found
    proxy.answer = answerOf;
    await storage.readState({ bucket: 'photos', region: 'eu-central-1' }, 'a').catch(() => undefined);
    expect(proxy.asked.at(-1)).toMatchObject({ scope: 'eu-central-1/s3' });
  });
});
