/** What AWS refuses about a connection, by the services' own protocols on loopback. */
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { SNSClient } from '@aws-sdk/client-sns';
import { SQSClient } from '@aws-sdk/client-sqs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAwsClients } from '../../../src/aws/clients.ts';
import { createProvisioner } from '../../../src/connect/aws/provisioner.ts';
import { systemClock } from '../../../src/process/system-clock.ts';
import { createSqsProvision } from '../../../src/connect/aws/queues.ts';
import { refusalOf, type Action } from '../../../src/connect/aws/ask.ts';
import { createEventsProvision } from '../../../src/connect/aws/rules.ts';
import { createSnsProvision } from '../../../src/connect/aws/topics.ts';
import { desired } from '../../../src/connect/sources/sources.ts';
import { ACCOUNT, INSTALLATION, LETTERS_ARN, QUEUE_ARN, QUEUE_URL, REGION, REGISTRY, TOPIC_ARN } from '../../support/fakes/aws-parts.ts';
import { startScripted } from '../../support/servers/scripted.ts';

/** What speaks to a service that gives every request this answer. */
async function startService(status: number, type: string, body: string) {
  const { url: endpoint } = await startScripted(() => ({ status, headers: { 'content-type': type }, body }));
  const config = { region: REGION, endpoint, credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, maxAttempts: 1 };
  const topics = () => new SNSClient(config);
  const queues = () => new SQSClient({ ...config, useQueueUrlAsEndpoint: false });
  const rules = async () => new EventBridgeClient(config);
  return {
    topics: createSnsProvision({ clientFor: topics, writerFor: topics }),
    queues: createSqsProvision({ clientFor: queues, writerFor: queues, queueUrl: QUEUE_URL, region: REGION }),
    rules: createEventsProvision({ clientFor: rules, writerFor: rules }),
  };
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

describe('a request about a connection that AWS refuses', () => {
  it('for its credentials is no missing permission, whatever protocol the service speaks', async () => {
    const { topics } = await startService(403, 'text/xml', xml('ExpiredToken', 'The security token included in the request is expired'));
    await expect(topics.topicOf(TOPIC_ARN, QUEUE_ARN)).rejects.toMatchObject({
      code: 'connect.credentials',
      reason: expect.stringMatching(new RegExp(`^GetTopicAttributes ${TOPIC_ARN}: ExpiredToken`)),
    });
    const { queues, rules } = await startService(403, 'application/x-amz-json-1.1', json('UnrecognizedClientException', 'expired'));
    await expect(queues.queueOf(QUEUE_ARN)).rejects.toMatchObject({ code: 'connect.credentials' });
    await expect(rules.ruleOf({ region: REGION }, 'rule')).rejects.toMatchObject({ code: 'connect.credentials' });
  });

  const codeOf = (action: Action, name: string): unknown =>
    Object.entries(refusalOf(action, 'what', Object.assign(new Error('no'), { name }))).find(([field]) => field === 'code')?.[1];

  it.each(['ExpiredTokenException', 'InvalidClientTokenId', 'RequestExpired', 'SignatureDoesNotMatch', 'InvalidSignatureException'])(
    'with %s is one for its credentials',
    (name) => {
      expect(codeOf('sns:Subscribe', name)).toBe('connect.credentials');
    },
  );

  it('because a role cannot be assumed is no missing permission of that role', () => {
    const error = Object.assign(new Error('the role x cannot be assumed: AccessDenied'), { name: 'CredentialsProviderError' });
    expect(refusalOf('events:PutRule', 'r', error)).toMatchObject({ code: 'connect.credentials' });
  });

  it('because a permission is missing names it, as the service calls it', async () => {
    const { topics } = await startService(403, 'text/xml', xml('AuthorizationError', 'not authorized'));
    await expect(topics.topicOf(TOPIC_ARN, QUEUE_ARN)).rejects.toMatchObject({
      code: 'connect.denied',
      message: expect.stringMatching(
        new RegExp(`^GetTopicAttributes ${TOPIC_ARN} is denied: the permission sns:GetTopicAttributes is missing`),
      ),
      extra: { action: 'sns:GetTopicAttributes' },
    });
  });

  // no printed policy names a trail of before: only the records know it
  it('names the trail that a bucket cannot leave', () => {
    const arn = `arn:aws:cloudtrail:${REGION}:${ACCOUNT}:trail/before`;
    const denied = Object.assign(new Error('no'), { name: 'AccessDeniedException' });
    const message = `PutEventSelectors ${arn} is denied: the permission cloudtrail:PutEventSelectors is missing`;
    expect(refusalOf('cloudtrail:PutEventSelectors', arn, denied)).toMatchObject({ message: expect.stringContaining(message) });
  });

  it('in an entry of an answer that is none of a refusal is the same', async () => {
    const body = JSON.stringify({ FailedEntryCount: 1, FailedEntries: [{ ErrorCode: 'LimitExceededException', ErrorMessage: 'no room' }] });
    const { rules } = await startService(200, 'application/x-amz-json-1.1', body);
    const told = { code: 'connect.unavailable', reason: expect.stringContaining('no room') };
    await expect(rules.putTarget({ region: REGION }, rule!)).rejects.toMatchObject(told);
  });

  it('ends with the signal of its caller, and with its reason', async () => {
    const { topics } = await startService(200, 'text/xml', '');
    const end = new Error('enough');
    await expect(topics.topicOf(TOPIC_ARN, QUEUE_ARN, AbortSignal.abort(end))).rejects.toBe(end);
  });

  // what is there must be read before the next one
  it('is sent once by each client that writes', async () => {
    const { url: endpoint, asked } = await startScripted(() => ({
      status: 503,
      body: '{"__type":"InternalFailure","message":"refused here"}',
    }));
    const clients = createAwsClients({
      region: REGION,
      endpoints: { sqs: endpoint, sns: endpoint, s3: endpoint, events: endpoint, trails: endpoint },
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
      s3: { forcePathStyle: true, timeoutMs: 30_000, connectionsMax: 10 },
      sqs: { receivesMax: 1, waitS: 1 },
    });
    onTestFinished(() => clients.close());
    const provisioner = createProvisioner({ aws: clients, queueUrl: `${endpoint}/000000000000/tally-nothing`, clock: systemClock });
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
      () => provisioner.setQueue(arn.replace(':sns:', ':sqs:'), { Policy: '' }),
      () => provisioner.putSelectors(arn.replace(':sns:', ':cloudtrail:'), { kind: 'advanced', list: [] }),
    ];
    for (const [index, write] of writes.entries()) {
      await expect(write()).rejects.toThrow(/.+/);
      expect(asked).toHaveLength(index + 1);
    }
  });
});
