/**
 * What AWS refuses about a connection, by the services' own protocols on loopback: LocalStack enforces no policies, takes overlapping
 * configurations and ignores ExpectedBucketOwner. What AWS takes: iam-policy.test.ts and flow/connections-story.test.ts.
 */
import { describe, expect, it } from 'vitest';
import type { AwsClients } from '../../../src/aws/clients.ts';
import { confirmSubscription } from '../../../src/aws/sqs-client.ts';
import { createProvisioner } from '../../../src/connect/aws/provisioner.ts';
import { systemClock } from '../../../src/process/clock.ts';
import { refusalOf } from '../../../src/connect/aws/ask.ts';
import { createSharedParts } from '../../../src/connect/aws/shared-parts.ts';
import { desired } from '../../../src/connect/sources/sources.ts';
import { parseNotification, type NotificationEntry } from '../../../src/connect/notification.rules.ts';
import { ACCOUNT, INSTALLATION, LETTERS_ARN, QUEUE_ARN, QUEUE_URL, REGION, REGISTRY, TOPIC_ARN } from '../../support/fakes/aws-parts.ts';
import { openClients } from '../../support/servers/aws-clients.ts';
import { startScripted } from '../../support/servers/scripted.ts';

const awsAt = (endpoint: string): AwsClients =>
  openClients({
    region: REGION,
    endpoints: { sqs: endpoint, sns: endpoint, s3: endpoint, events: endpoint, trails: endpoint },
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
  });

/** What speaks to a service at this address. */
function provisionerAt(endpoint: string, queueUrl = QUEUE_URL) {
  const aws = awsAt(endpoint);
  const provisioner = createProvisioner({ aws, queueUrl, clock: systemClock });
  return { ...provisioner, shared: createSharedParts(aws, provisioner) };
}

// Bug: the dead-letter queue was asked for at SQS's regular host, which a network with a VPC endpoint may not reach
it('a queue is reached at the address of the bucket queue, whatever host SQS names', async () => {
  const regular = `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/letters`;
  const { url: endpoint } = await startScripted(({ headers }) => ({
    headers: { 'content-type': 'application/x-amz-json-1.0' },
    body: headers['x-amz-target'] === 'AmazonSQS.GetQueueUrl' ? { QueueUrl: regular } : { Attributes: { QueueArn: LETTERS_ARN } },
  }));
  const provisioner = provisionerAt(endpoint, `https://vpce-1.sqs.${REGION}.vpce.amazonaws.com/${ACCOUNT}/events`);
  expect(await provisioner.queueOf(LETTERS_ARN)).toMatchObject({
    url: `https://vpce-1.sqs.${REGION}.vpce.amazonaws.com/${ACCOUNT}/letters`,
  });
});

it('a connection is an entry beside a function of others, which stays byte for byte', async () => {
  let stored = '';
  const { url } = await startScripted(({ method, body }) => {
    if (method === 'PUT') stored = body;
    return { headers: { 'content-type': 'application/xml', 'x-amz-request-id': 'request-1' }, body: method === 'PUT' ? '' : stored };
  });
  const provisioner = provisionerAt(url);
  const at = { bucket: 'photos', region: REGION, account: ACCOUNT };
  const arn = `arn:aws:lambda:${REGION}:${ACCOUNT}:function:scan`;
  const filter = [{ name: 'prefix', value: 'a b/' }];
  const theirs = { kind: 'function', id: 'scan', arn, events: ['s3:ObjectRestore:Completed'], filter } as const;
  const ours = { kind: 'topic', id: 'ours', arn: TOPIC_ARN, events: ['s3:ObjectCreated:*'], filter: [] } as const;
  const put = (...entries: readonly NotificationEntry[]) =>
    provisioner.putNotification(at, { entries, eventBridge: true }, { skipValidation: true });
  const read = async () => parseNotification(await provisioner.notificationOf(at));
  await put(theirs);
  const before = stored;
  expect(await read()).toEqual({ ok: true, configuration: { entries: [theirs], eventBridge: true } });
  await put(theirs, ours);
  expect(await read()).toMatchObject({ configuration: { entries: expect.arrayContaining([theirs, ours]) } });
  await put(theirs);
  expect(stored).toBe(before);
});

it('a trail is found by its ARN, with whether it is stopped, and one that is not there is absent', async () => {
  const arn = `arn:aws:cloudtrail:${REGION}:${ACCOUNT}:trail/audit`;
  const trail = { TrailARN: arn, HomeRegion: REGION, S3BucketName: 'trail-logs' };
  const answers: Readonly<Record<string, object>> = {
    DescribeTrails: { trailList: [trail] },
    GetTrailStatus: { IsLogging: false },
    GetEventSelectors: { EventSelectors: [] },
  };
  const { url } = await startScripted(({ headers }) => ({
    headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amzn-requestid': 'request-1' },
    body: answers[String(headers['x-amz-target']).split('.').at(-1) ?? ''],
  }));
  const provisioner = provisionerAt(url);
  const stopped = { arn, homeRegion: REGION, isLogging: false, logBucket: 'trail-logs', selectors: { kind: 'basic' } };
  expect(await provisioner.trailOf(arn)).toMatchObject(stopped);
  expect(await provisioner.trailOf(`${arn}-absent`)).toBe('absent');
});

/** The same, where the service gives every request this answer. */
async function startService(status: number, type: string, body: string) {
  const headers = { 'content-type': type, 'x-amzn-requestid': 'request-1' };
  return provisionerAt((await startScripted(() => ({ status, headers, body }))).url);
}

const xml = (code: string, message: string): string =>
  `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error><RequestId>1</RequestId></ErrorResponse>`;
const json = (type: string, message: string): string => JSON.stringify({ __type: type, message });

const { rule } = desired({
  bucket: 'photos',
  partition: 'aws',
  region: REGION,
  account: ACCOUNT,
  bucketAccount: ACCOUNT,
  installation: INSTALLATION,
  registry: REGISTRY,
  source: 'eventbridge',
  enrich: 'none',
  queueArn: QUEUE_ARN,
  deadLetterArn: LETTERS_ARN,
});

// Bug: a sign-in page's 200 meant that nothing is there, and its 404 that what was asked about is gone
describe('an answer of another server than AWS', () => {
  const page = { headers: { 'content-type': 'text/html' }, body: '<!DOCTYPE html><html><body>Sign in</body></html>' };
  const bucket = { bucket: 'photos', region: REGION, account: ACCOUNT };
  const trailArn = `arn:aws:cloudtrail:${REGION}:${ACCOUNT}:trail/events`;

  it.each([
    ['a page', page],
    ['nothing', { body: '' }],
    ['an object without fields', { headers: { 'content-type': 'application/json' }, body: '{}' }],
    ['a page for what is not there', { ...page, status: 404 }],
    ['a page that blocks', { ...page, status: 403 }],
    ['a redirect to a page', { ...page, status: 302, headers: { ...page.headers, location: 'http://127.0.0.1:1/' } }],
  ])('that is %s says neither that something exists nor that it does not', async (_, answer) => {
    const other = provisionerAt((await startScripted(() => answer)).url);
    const asked = {
      GetTopicAttributes: () => other.topicOf(TOPIC_ARN, QUEUE_ARN),
      Publish: () => other.publish(TOPIC_ARN, 'probe'),
      Unsubscribe: () => other.unsubscribe(`${TOPIC_ARN}:x`),
      DescribeRule: () => other.ruleOf({ region: REGION }, 'rule'),
      DescribeTrails: () => other.trailOf(trailArn),
    };
    for (const [operation, send] of Object.entries(asked))
      await expect(send(), operation).rejects.toMatchObject({
        code: 'connect.unavailable',
        reason: expect.stringContaining(operation) as string,
      });
    await expect(other.notificationOf(bucket)).rejects.toMatchObject({
      code: expect.stringMatching(/^(connect\.unavailable|connect\.denied|s3\.unavailable|object\.failed)$/) as string,
    });
  });

  it('confirms no subscription', async () => {
    const { url } = await startScripted(() => page);
    const aws = awsAt(url);
    const confirmed = confirmSubscription(aws.snsFor, TOPIC_ARN, 'token', new AbortController().signal);
    await expect(confirmed).rejects.toMatchObject({ code: 'message.confirmation-failed' });
  });

  it('is told from one of AWS, which says that there is no rule', async () => {
    const { ruleOf } = await startService(400, 'application/x-amz-json-1.1', json('ResourceNotFoundException', 'no such rule'));
    expect(await ruleOf({ region: REGION }, 'rule')).toBe('absent');
  });
});

describe('a request about a connection that AWS refuses', () => {
  it('for its credentials is no missing permission, whatever protocol the service speaks', async () => {
    const topics = await startService(403, 'text/xml', xml('ExpiredToken', 'The security token included in the request is expired'));
    await expect(topics.topicOf(TOPIC_ARN, QUEUE_ARN)).rejects.toMatchObject({
      code: 'connect.credentials',
      reason: expect.stringMatching(new RegExp(`^GetTopicAttributes ${TOPIC_ARN}: ExpiredToken`)),
    });
    const others = await startService(403, 'application/x-amz-json-1.1', json('UnrecognizedClientException', 'expired'));
    await expect(others.queueOf(QUEUE_ARN)).rejects.toMatchObject({ code: 'connect.credentials' });
    await expect(others.ruleOf({ region: REGION }, 'rule')).rejects.toMatchObject({ code: 'connect.credentials' });
  });

  it.each([
    'ExpiredTokenException',
    'InvalidClientTokenId',
    'RequestExpired',
    'SignatureDoesNotMatch',
    'InvalidSignatureException',
    // a role cannot be assumed
    'CredentialsProviderError',
  ])('with %s is one for its credentials', (name) => {
    const error = Object.assign(new Error('AccessDenied'), { name });
    expect(refusalOf('events:PutRule', 'r', error)).toMatchObject({ code: 'connect.credentials' });
  });

  it('because a permission is missing names it, as the service calls it', async () => {
    const topics = await startService(403, 'text/xml', xml('AuthorizationError', 'not authorized'));
    await expect(topics.topicOf(TOPIC_ARN, QUEUE_ARN)).rejects.toMatchObject({
      code: 'connect.denied',
      message: expect.stringMatching(
        new RegExp(`^GetTopicAttributes ${TOPIC_ARN} is denied: the permission sns:GetTopicAttributes is missing`),
      ),
      extra: { action: 'sns:GetTopicAttributes' },
    });
  });

  it('in an entry of an answer that is none of a refusal is the same', async () => {
    const body = JSON.stringify({ FailedEntryCount: 1, FailedEntries: [{ ErrorCode: 'LimitExceededException', ErrorMessage: 'no room' }] });
    const rules = await startService(200, 'application/x-amz-json-1.1', body);
    const told = { code: 'connect.unavailable', reason: expect.stringContaining('no room') };
    await expect(rules.putTarget({ region: REGION }, rule!)).rejects.toMatchObject(told);
  });

  // Bug: tags were set with AWS's own error. Fix: as every other request to a queue that is gone
  it('because the queue vanished since it was read says so, whatever was to be set of it', async () => {
    const queues = await startService(400, 'application/x-amz-json-1.0', json('QueueDoesNotExist', 'no such queue'));
    const part = { kind: 'queue', arn: QUEUE_ARN, url: QUEUE_URL, attributes: {}, tags: {} } as const;
    const missing = { code: 'connect.queue-missing', message: expect.stringContaining(REGION) as string };
    await expect(queues.shared.change(part, { attributes: {}, tags: { a: 'b' } })).rejects.toMatchObject(missing);
    await expect(queues.setQueue(QUEUE_ARN, { DelaySeconds: '0' })).rejects.toMatchObject(missing);
  });

  it('ends with the signal of its caller, and with its reason', async () => {
    const topics = await startService(200, 'text/xml', '');
    const end = new Error('enough');
    await expect(topics.topicOf(TOPIC_ARN, QUEUE_ARN, AbortSignal.abort(end))).rejects.toBe(end);
  });

  // what is there must be read before the next one
  it('is sent once by each client that writes', async () => {
    const { url: endpoint, asked } = await startScripted(() => ({
      status: 503,
      body: '{"__type":"InternalFailure","message":"refused here"}',
    }));
    const provisioner = provisionerAt(endpoint);
    const arn = `arn:aws:sns:${REGION}:000000000000:tally-nothing`;
    const ruleOfNobody = { name: 'tally-nothing', arn, pattern: {}, target: { Id: 'bucket-queue', Arn: arn } } as const;
    const bucket = { bucket: 'tally-nothing', region: REGION, account: '000000000000' };
    const at = { account: '000000000000', region: REGION };
    const none = { entries: [], eventBridge: false };
    const writes = [
      () => provisioner.putNotification(bucket, none, { skipValidation: true }),
      () => provisioner.setTopic(arn, { Policy: '{}' }),
      () => provisioner.subscribe(arn, arn, {}),
      () => provisioner.unsubscribe(`${arn}:x`),
      () => provisioner.putRule(at, ruleOfNobody, {}),
      () => provisioner.putTarget(at, ruleOfNobody),
      () => provisioner.removeRule(at, ruleOfNobody),
      () => provisioner.setQueue(QUEUE_ARN, { Policy: '' }),
      () => provisioner.putSelectors(arn.replace(':sns:', ':cloudtrail:'), { kind: 'advanced', list: [] }),
    ];
    for (const [index, write] of writes.entries()) {
      await expect(write()).rejects.toThrow(/.+/);
      expect(asked).toHaveLength(index + 1);
    }
  });
});
