/**
 * Connections on LocalStack. It enforces no policies, accepts overlapping configurations and ignores ExpectedBucketOwner, so AWS's
 * refusals are tested with a fake (test/pipeline/provision) and by their texts.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GetBucketNotificationConfigurationCommand, PutBucketNotificationConfigurationCommand } from '@aws-sdk/client-s3';
import { GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { GetTopicAttributesCommand } from '@aws-sdk/client-sns';
import { readRecord } from '../../../src/pipeline/records/stored.ts';
import { unwrap } from '../../../src/domain/events/envelope.ts';
import { specifiedTransformer } from '../../support/audit-trail.ts';
import { createTestAws, until, type TestAws } from '../../support/servers/aws.ts';
import { awsEndpoint } from '../../support/servers/found.ts';
import { addStatement, connectedBucket } from './connected.ts';
import { refs } from '../../../src/pipeline/provision/refs.ts';

describe.skipIf(!awsEndpoint())('a connection on LocalStack', () => {
  let aws: TestAws;
  beforeAll(() => {
    aws = createTestAws(awsEndpoint()!);
  });
  afterAll(() => aws.dispose());

  /** A connected bucket, on which others have a queue's notification, and a bucket queue with somebody's statement. */
  async function startWorld() {
    const theirs = await aws.createQueue();
    const { bucket, queue, provisioning, store } = await connectedBucket(aws);
    await addStatement(aws, queue);
    const theirEntry = {
      Id: 'theirs',
      QueueArn: theirs.arn,
      Events: ['s3:ObjectTagging:*' as const],
      Filter: { Key: { FilterRules: [{ Name: 'prefix' as const, Value: 'a%20b/' }] } },
    };
    const NotificationConfiguration = { QueueConfigurations: [theirEntry] };
    await aws.s3.send(new PutBucketNotificationConfigurationCommand({ Bucket: bucket, NotificationConfiguration }));
    const policyOf = async (url: string): Promise<string | undefined> =>
      (await aws.sqs.send(new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['Policy'] }))).Attributes?.['Policy'];
    return {
      bucket,
      queue,
      provisioning,
      store,
      /** What is not Tally's. */
      foreign: async () => {
        const configuration = await aws.s3.send(new GetBucketNotificationConfigurationCommand({ Bucket: bucket }));
        const policy = JSON.parse((await policyOf(queue.url)) ?? '{"Statement":[]}') as { Statement: { Sid: string }[] };
        return { queues: configuration.QueueConfigurations, statements: policy.Statement.filter(({ Sid }) => Sid === 'Theirs') };
      },
    };
  }

  // each source, whole: flow/connections-story.test.ts
  it.each(['made by Tally', 'made by hand'])('is made for routed with somebody’s own topic, and a rule %s', async (how) => {
    const { bucket, provisioning, queue, store } = await startWorld();
    const topicArn = await aws.createTopic();
    const policyOf = async () => (await aws.sns.send(new GetTopicAttributesCommand({ TopicArn: topicArn }))).Attributes?.['Policy'];
    const before = JSON.parse((await policyOf())!) as object;
    const { paths, template } = specifiedTransformer;
    const requestParameters = { bucketName: [bucket] };
    const pattern = { source: ['aws.s3'], detail: { eventSource: ['s3.amazonaws.com'], requestParameters } };
    const byHand = how === 'made by hand';
    if (byHand) await aws.createRule({ pattern, targetArn: topicArn, transformer: { paths: { ...paths }, template } });
    const wish = { bucket, source: 'routed', topic_arn: topicArn, wired_by_hand: byHand } as const;
    const { plan } = await provisioning.plan(wish);
    const parts = new Set(plan.changes.map(({ part }) => part));
    expect(parts.has('rule')).toBe(!byHand);
    expect((await provisioning.apply(wish, { token: plan.token })).applied).toMatchObject({ state: 'applied' });
    expect((await provisioning.plan(wish)).plan.changes).toEqual([]);
    const record = (await readRecord(store.state, refs.bucket(bucket)))!;
    const codes = (await provisioning.diagnose({ ...record, source: 'routed', topicArn })).findings.map(({ code }) => code);
    expect(codes).toEqual(byHand ? [] : ['connect.trail-unchecked']);
    await aws.putEvents([
      {
        source: 'aws.s3',
        detailType: 'AWS API Call via CloudTrail',
        detail: {
          eventSource: 's3.amazonaws.com',
          eventName: 'PutObject',
          eventTime: '2026-07-01T10:00:00Z',
          requestParameters: { bucketName: bucket, key: 'a.txt' },
        },
      },
    ]);
    await eventArrives(queue.url);
    await provisioning.remove(bucket, { keepAws: false });
    expect(JSON.parse((await policyOf())!)).toEqual(before);
  });

  it('is probed through its topic, and the probe arrives', async () => {
    const { bucket, provisioning, queue, store } = await startWorld();
    const { plan } = await provisioning.plan({ bucket });
    await provisioning.apply({ bucket }, { token: plan.token });
    const connection = (await readRecord(store.state, refs.connection(bucket)))!;
    await provisioning.probe(connection, false);
    const found: unknown[] = [];
    await until('the probe has come', async () => {
      found.push(...(await aws.takeBodies(queue.url, 1)).map((body) => unwrap(body)));
      return found.some((each) => JSON.stringify(each).includes('"probe"'));
    });
    expect(found).toContainEqual({ kind: 'probe', topicArn: expect.stringMatching(/-events$/), sentAtMs: expect.any(Number) });
  });

  it('is paused and resumed', async () => {
    const { bucket, provisioning, foreign } = await startWorld();
    const { plan } = await provisioning.plan({ bucket });
    await provisioning.apply({ bucket }, { token: plan.token });
    const signal = new AbortController().signal;
    const before = await foreign();
    expect(await provisioning.pause(bucket, signal)).toMatchObject({ state: 'paused' });
    const paused = await aws.s3.send(new GetBucketNotificationConfigurationCommand({ Bucket: bucket }));
    expect(paused.TopicConfigurations).toBeUndefined();
    expect(await foreign()).toEqual(before);
    expect(await provisioning.resume(bucket, signal)).toMatchObject({ state: 'applied' });
    expect((await aws.s3.send(new GetBucketNotificationConfigurationCommand({ Bucket: bucket }))).TopicConfigurations).toHaveLength(1);
  });

  /** Test events may come before it, or together with it. */
  async function eventArrives(queueUrl: string): Promise<void> {
    const kinds: string[] = [];
    await until('the event of the object has come', async () => {
      kinds.push(...(await aws.takeBodies(queueUrl, 1)).map((body) => unwrap(body).kind));
      return kinds.includes('records');
    });
  }
});
