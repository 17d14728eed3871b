/** The AWS CLI blocks of docs/guides/connect.md are run on LocalStack, until a change of the bucket is a message on the bucket queue. */
import { DescribeRuleCommand, EventBridgeClient, ListTargetsByRuleCommand, TestEventPatternCommand } from '@aws-sdk/client-eventbridge';
import {
  DeleteTopicCommand,
  GetSubscriptionAttributesCommand,
  GetTopicAttributesCommand,
  ListSubscriptionsByTopicCommand,
} from '@aws-sdk/client-sns';
import { DeleteQueueCommand, GetQueueAttributesCommand, GetQueueUrlCommand } from '@aws-sdk/client-sqs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { unwrap } from '../../src/domain/events/envelope.ts';
import type { ChangeRecord } from '../../src/domain/events/record.ts';
import type { Call } from '../support/audit-trail.ts';
import { tellTrail, trailEvent } from '../support/audit-trail.ts';
import { AWS_CLI } from '../support/servers/aws-cli.ts';
import type { TestAws } from '../support/servers/aws.ts';
import { createTestAws, until } from '../support/servers/aws.ts';
import { startDaemon } from '../support/servers/daemon.ts';
import { awsEndpoint } from '../support/servers/found.ts';
import { pageTransformer, shellBlocks } from './connect-blocks.ts';
import type { PageShell } from './page-shell.ts';
import { JQ, openPageShell } from './page-shell.ts';
import { canRun } from './programs.ts';

const ACCOUNT = '000000000000';
/** A block takes seconds, and a re-index waits a minute for late events. */
const TEST_TIMEOUT_MS = 600_000;

const runs = canRun('the AWS CLI blocks of docs/guides/connect.md', [AWS_CLI, JQ]);

/** One installation as the page makes it. */
interface Place {
  readonly aws: TestAws;
  readonly events: EventBridgeClient;
  readonly shell: PageShell;
  readonly queueUrl: string;
  readonly deadLettersUrl: string;
  readonly queueArn: string;
  readonly deadLettersArn: string;
}

// one after the other: their blocks share a folder, as they do where a user pastes them
describe.skipIf(awsEndpoint() === undefined || !runs)('docs/guides/connect.md on LocalStack', { timeout: TEST_TIMEOUT_MS }, () => {
  let place: Place;
  /** Received, and not yet looked at. */
  const arrived: string[] = [];
  beforeAll(async () => {
    place = await makePlace();
  }, TEST_TIMEOUT_MS);
  afterAll(() => removePlace(place), TEST_TIMEOUT_MS);

  it('makes the queues: 20 receives, and policies that admit topics and rules with the prefix only', async () => {
    const { aws, shell, queueUrl, queueArn, deadLettersUrl, deadLettersArn } = place;
    // the page says that a block can be repeated
    await shell.run('Make the queues');
    const attributes = await attributesOf(aws, queueUrl);
    expect(JSON.parse(attributes['RedrivePolicy'] ?? '')).toEqual({ deadLetterTargetArn: deadLettersArn, maxReceiveCount: 20 });
    const deadLetters = await attributesOf(aws, deadLettersUrl);
    expect(Number(deadLetters['MessageRetentionPeriod'])).toBeGreaterThan(Number(attributes['MessageRetentionPeriod']));
    for (const [arn, { Policy = '' }] of [[queueArn, attributes] as const, [deadLettersArn, deadLetters] as const]) {
      expect(statementsOf(Policy)).toEqual([
        {
          Sid: 'TopicsWithThePrefix',
          Effect: 'Allow',
          Principal: { Service: 'sns.amazonaws.com' },
          Action: 'sqs:SendMessage',
          Resource: arn,
          Condition: { ArnLike: { 'aws:SourceArn': `arn:aws:sns:*:${ACCOUNT}:${shell.prefix}-*` } },
        },
        {
          Sid: 'RulesWithThePrefix',
          Effect: 'Allow',
          Principal: { Service: 'events.amazonaws.com' },
          Action: 'sqs:SendMessage',
          Resource: arn,
          Condition: { ArnLike: { 'aws:SourceArn': `arn:aws:events:*:${ACCOUNT}:rule/${shell.prefix}-*` } },
        },
      ]);
    }
  });

  it('gives the role of the daemon the permissions of config/aws/daemon-policy.json, with the user’s own names', async () => {
    const { shell } = place;
    const trust = { Version: '2012-10-17', Statement: [{ Effect: 'Allow', Principal: { AWS: '*' }, Action: 'sts:AssumeRole' }] };
    await shell.aws('iam', 'create-role', '--role-name', shell.prefix, '--assume-role-policy-document', JSON.stringify(trust));
    await shell.run('Give the daemon its permissions', { BUCKET: 'their-bucket', ROLE: shell.prefix });
    const policy = await shell.aws('iam', 'get-role-policy', '--role-name', shell.prefix, '--policy-name', 'tally');
    expect(policy).toContain(`arn:aws:sqs:us-east-1:${ACCOUNT}:${shell.prefix}-bucket-events`);
    expect(policy).toContain('arn:aws:s3:::their-bucket/*');
    expect(policy).not.toMatch(/eu-central-1|123456789012|photos|:tally-(?!test-)/);
    await shell.aws('iam', 'delete-role-policy', '--role-name', shell.prefix, '--policy-name', 'tally');
    await shell.aws('iam', 'delete-role', '--role-name', shell.prefix);
  });

  it('wires the source routed: of calls that succeeded the queue gets synthetic records', async () => {
    const { aws, events, shell, deadLettersArn } = place;
    // no bucket is needed: LocalStack has no trail, so the test says what was called
    const bucket = `${shell.prefix}-routed`;
    const topicArn = `arn:aws:sns:us-east-1:${ACCOUNT}:${shell.prefix}-routed`;
    const variables = { BUCKET: bucket, RULE: `${shell.prefix}-rule-routed` };
    await shell.run("Step 1: make a topic in the bucket's region", variables);
    const { Policy = '' } = await topicAttributesOf(aws, topicArn);
    expect(statementsOf(Policy)).toEqual([
      { Sid: 'EventBridge', Effect: 'Allow', Principal: { Service: 'events.amazonaws.com' }, Action: 'sns:Publish', Resource: topicArn },
    ]);
    expect(await subscriptionsOf(aws, topicArn)).toMatchObject([subscribed(deadLettersArn)]);
    expect(await shell.run('When nothing arrives', { TOPIC_ARN: topicArn })).toBe('true\n');
    await shell.run('Steps 3 to 5: make the rule', variables);
    await shell.run('Steps 6 to 8: set the target with its input transformer', variables);
    const { Targets } = await events.send(new ListTargetsByRuleCommand({ Rule: variables.RULE }));
    const target = { Arn: topicArn, DeadLetterConfig: { Arn: deadLettersArn }, InputTransformer: pageTransformer() };
    expect(Targets).toEqual([{ Id: 'routed-topic', ...target }]);

    const { EventPattern } = await events.send(new DescribeRuleCommand({ Name: variables.RULE }));
    const matches = async (example: Call): Promise<boolean | undefined> => {
      const { source, detailType, detail } = trailEvent(example);
      const event = { id: '1', account: ACCOUNT, time: '2026-01-01T00:00:00Z', region: 'us-east-1', resources: [] };
      const Event = JSON.stringify({ ...event, source, 'detail-type': detailType, detail });
      return (await events.send(new TestEventPatternCommand({ EventPattern, Event }))).Result;
    };
    const call: Call = { eventName: 'PutObject', bucket, key: 'a "q" \\ b.txt', timeMs: Date.now(), versionId: 'v1' };
    expect(await matches(call)).toBe(true);
    expect(await matches({ ...call, errorCode: 'AccessDenied' })).toBe(false);
    expect(await matches({ ...call, bucket: `${bucket}-2` })).toBe(false);

    await tellTrail(aws, [call]);
    const { record } = await recordOf(bucket);
    expect(record).toMatchObject({ dialect: 'synthetic', key: call.key, versionId: 'v1', change: { kind: 'created' } });
    expect(record.eventTimeMs).toBe(Math.floor(call.timeMs / 1_000) * 1_000);
    await tellTrail(aws, [{ ...call, eventName: 'DeleteObject', isDeleteMarker: true }]);
    expect(await recordOf(bucket)).toMatchObject({ record: { key: call.key, change: { kind: 'marker-created' } } });
    const [removeRule = ''] = shellBlocks('Disconnect a bucket');
    await shell.runBlock(removeRule, { ...variables, TARGET: 'routed-topic' });
  });

  it('connects the bucket, proves the path and indexes what the bucket held before', async () => {
    const { aws, shell, queueUrl, queueArn } = place;
    const folder = await mkdtemp(join(tmpdir(), 'tally-connect-index-'));
    const bucket = await aws.createBucket();
    await aws.put(bucket, 'earlier.txt', 'hello');
    const topicArn = await aws.createTopic();
    await aws.subscribe(topicArn, { url: queueUrl, arn: queueArn });
    await aws.notify(bucket, { topicArn });
    const env = {
      AWS_ENDPOINT_URL: aws.endpoint,
      TALLY_INDEX_URL: `sqlite:${join(folder, 'index.db')}`,
      TALLY_QUEUE_URL: queueUrl,
    };
    const daemon = await startDaemon(env);
    const variables = { BUCKET: bucket, TOPIC_ARN: topicArn, SOURCE: 'topic', TALLY_INDEX_URL: env.TALLY_INDEX_URL };
    expect(await shell.run('1. Connect the bucket', variables)).toMatch(/source +topic\n/);
    await daemon.ready();

    const [put = '', explain = ''] = shellBlocks('2. Prove the path');
    await shell.runBlock(put, variables);
    const isFound = async (key: string): Promise<boolean> =>
      JSON.stringify((await daemon.request('GET', `/v1/objects?bucket=${bucket}&key=${key}`)).body).includes(key);
    await until('the object is found', () => isFound('tally-was-here.txt'));
    expect(await shell.runBlock(explain, variables, env)).toMatch(/^A search finds it/m);
    expect(await isFound('earlier.txt')).toBe(false);
    await shell.run('3. Index what the bucket holds already', variables, env);
    expect(await isFound('earlier.txt')).toBe(true);
    await daemon.stop();
    await rm(folder, { recursive: true });
  });

  it('sets a key of the user’s own on the queues and topics', async () => {
    const { aws, shell, queueUrl, deadLettersUrl } = place;
    const [, setKey = ''] = shellBlocks('Encryption with your own key');
    await shell.runBlock(setKey, { ALIAS: 'alias/tally' });
    for (const url of [queueUrl, deadLettersUrl]) expect(await attributesOf(aws, url)).toMatchObject({ KmsMasterKeyId: 'alias/tally' });
    const topicArn = `arn:aws:sns:us-east-1:${ACCOUNT}:${shell.prefix}-routed`;
    expect(await topicAttributesOf(aws, topicArn)).toMatchObject({ KmsMasterKeyId: 'alias/tally' });
  });

  /** The record of the next message about this bucket. Fails when the queue stays empty for too long. */
  async function recordOf(bucket: string): Promise<{ readonly record: ChangeRecord; readonly topicArn?: string }> {
    for (;;) {
      if (arrived.length === 0) arrived.push(...(await place.aws.takeBodies(place.queueUrl, 1)));
      const body = arrived.shift();
      if (body === undefined) throw new Error(`nothing of ${bucket} came`);
      const unwrapped = unwrap(body);
      if (unwrapped.kind !== 'records') continue;
      const { topicArn, records } = unwrapped;
      for (const result of records)
        if (result.ok && result.record.bucket === bucket) return { record: result.record, ...(topicArn !== undefined && { topicArn }) };
    }
  }
});

async function makePlace(): Promise<Place> {
  const aws = createTestAws(awsEndpoint() ?? '');
  const { endpoint, region, credentials } = aws;
  const shell = await openPageShell(endpoint);
  await shell.run('Make the queues');
  const arn = (name: string): string => `arn:aws:sqs:us-east-1:${ACCOUNT}:${shell.prefix}-${name}`;
  return {
    aws,
    events: new EventBridgeClient({ endpoint, region, credentials }),
    shell,
    queueUrl: await urlOf(aws, `${shell.prefix}-bucket-events`),
    deadLettersUrl: await urlOf(aws, `${shell.prefix}-dead-letters`),
    queueArn: arn('bucket-events'),
    deadLettersArn: arn('dead-letters'),
  };
}

async function removePlace({ aws, events, shell }: Place): Promise<void> {
  for (const name of ['bucket-events', 'dead-letters'])
    await aws.sqs.send(new DeleteQueueCommand({ QueueUrl: await urlOf(aws, `${shell.prefix}-${name}`) }));
  for (const name of ['events', 'routed'])
    await aws.sns.send(new DeleteTopicCommand({ TopicArn: `arn:aws:sns:us-east-1:${ACCOUNT}:${shell.prefix}-${name}` }));
  events.destroy();
  await Promise.all([aws.dispose(), shell.dispose()]);
}

async function topicAttributesOf(aws: TestAws, topicArn: string): Promise<Readonly<Record<string, string>>> {
  const { Attributes = {} } = await aws.sns.send(new GetTopicAttributesCommand({ TopicArn: topicArn }));
  return Attributes;
}

async function urlOf(aws: TestAws, name: string): Promise<string> {
  const { QueueUrl = '' } = await aws.sqs.send(new GetQueueUrlCommand({ QueueName: name }));
  return QueueUrl;
}

async function attributesOf(aws: TestAws, queueUrl: string): Promise<Readonly<Record<string, string>>> {
  const { Attributes = {} } = await aws.sqs.send(new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ['All'] }));
  return Attributes;
}

function statementsOf(policy: string): readonly unknown[] {
  return (JSON.parse(policy) as { Statement: unknown[] }).Statement;
}

/** The attributes of every subscription of a topic. */
async function subscriptionsOf(aws: TestAws, topicArn: string): Promise<readonly Readonly<Record<string, string>>[]> {
  const { Subscriptions = [] } = await aws.sns.send(new ListSubscriptionsByTopicCommand({ TopicArn: topicArn }));
  const found: Readonly<Record<string, string>>[] = [];
  for (const { SubscriptionArn } of Subscriptions) {
    const { Attributes = {} } = await aws.sns.send(new GetSubscriptionAttributesCommand({ SubscriptionArn }));
    found.push(Attributes);
  }
  return found;
}

/** What each subscription of the page has. */
function subscribed(deadLettersArn: string): Readonly<Record<string, string>> {
  return {
    RawMessageDelivery: 'false',
    PendingConfirmation: 'false',
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadLettersArn }),
  };
}
