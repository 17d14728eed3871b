import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { unwrap } from '../../../src/events/envelope.ts';
import type { ChangeRecord } from '../../../src/events/record.ts';
import { documentedTransformer } from '../../support/audit-trail.ts';
import type { TestAws } from '../../support/servers/aws.ts';
import { createTestAws } from '../../support/servers/aws.ts';
import { awsEndpoint } from '../../support/servers/found.ts';

const KEY = 'dir/a b+c ü%20.txt';

/** The records of message bodies that hold nothing else. */
function recordsOf(bodies: readonly string[]): ChangeRecord[] {
  return bodies.flatMap((body) => {
    const unwrapped = unwrap(body);
    if (unwrapped.kind !== 'records') throw new Error(`no records: ${body}`);
    return unwrapped.records.map((result) => {
      if (!result.ok) throw new Error(`${result.fault.reason}: ${body}`);
      return result.record;
    });
  });
}

const EVENT_TIME = '2026-11-21T09:00:00Z';

function trailEvent(eventName: string, requestParameters: object, responseElements: object | undefined) {
  return {
    source: 'aws.s3',
    detailType: 'AWS API Call via CloudTrail',
    detail: {
      eventVersion: '1.09',
      eventSource: 's3.amazonaws.com',
      eventName,
      eventTime: EVENT_TIME,
      awsRegion: 'us-east-1',
      requestParameters,
      responseElements: responseElements ?? null,
    },
  };
}

describe.skipIf(!awsEndpoint())('what arrives on the bucket queue from LocalStack', () => {
  let aws: TestAws;
  beforeAll(() => {
    aws = createTestAws(awsEndpoint()!);
  });
  afterAll(() => aws.dispose());

  describe.each([{ raw: false }, { raw: true }])('with raw delivery $raw', ({ raw }) => {
    async function topicToQueue() {
      const [topicArn, queue] = [await aws.createTopic(), await aws.createQueue()];
      await aws.subscribe(topicArn, queue, { raw });
      return { topicArn, queue };
    }

    it('is a test event and then native records, by bucket → SNS → SQS', async () => {
      const { topicArn, queue } = await topicToQueue();
      const bucket = await aws.createBucket({ versioned: true });
      await aws.notify(bucket, { topicArn });
      const [test] = await aws.takeBodies(queue.url, 1);
      expect(unwrap(test!).kind).toBe('test-event');
      await aws.put(bucket, KEY, 'hello');
      const [created] = recordsOf(await aws.takeBodies(queue.url, 1));
      expect(created).toMatchObject({ dialect: 'native', bucket, key: KEY, change: { kind: 'created' }, sizeBytes: 5 });
      expect(created).toHaveProperty('versionId');
      await aws.remove(bucket, KEY);
      const bodies = await aws.takeBodies(queue.url, 1);
      expect(recordsOf(bodies)).toMatchObject([{ bucket, key: KEY, change: { kind: 'marker-created' } }]);
      expect(unwrap(bodies[0]!)).toMatchObject(raw ? { kind: 'records' } : { kind: 'records', topicArn });
    });

    it('is one synthetic record a call, by PutEvents → rule with transformer → SNS → SQS', async () => {
      const { topicArn, queue } = await topicToQueue();
      const bucketName = `tally-test-${Date.now()}-${raw ? 'raw' : 'wrapped'}`;
      const pattern = { source: ['aws.s3'], detail: { requestParameters: { bucketName: [bucketName] } } };
      await aws.createRule({ pattern, targetArn: topicArn, transformer: documentedTransformer });
      await aws.putEvents([
        trailEvent('PutObject', { bucketName, key: KEY }, { 'x-amz-version-id': 'v1' }),
        trailEvent('DeleteObject', { bucketName, key: 'gone' }, { 'x-amz-version-id': 'm1', 'x-amz-delete-marker': true }),
        trailEvent('DeleteObjects', { bucketName, delete: '' }, undefined),
      ]);
      const records = recordsOf(await aws.takeBodies(queue.url, 3)).toSorted((a, b) => a.eventName.localeCompare(b.eventName));
      expect(records).toMatchObject([
        { dialect: 'synthetic', bucket: bucketName, key: 'gone', eventName: 'DeleteObject', versionId: 'm1' },
        { dialect: 'synthetic', bucket: bucketName, key: '', change: { kind: 'bulk-deleted' } },
        { dialect: 'synthetic', bucket: bucketName, key: KEY, eventName: 'PutObject', versionId: 'v1' },
      ]);
      expect(records[2]!.eventTimeMs).toBe(Date.parse(EVENT_TIME));
    });

    it('is the audit-trail event itself where the rule has no transformer', async () => {
      const { topicArn, queue } = await topicToQueue();
      const bucketName = `tally-test-${Date.now()}-${raw ? 'raw' : 'wrapped'}-untransformed`;
      const pattern = { source: ['aws.s3'], detail: { requestParameters: { bucketName: [bucketName] } } };
      await aws.createRule({ pattern, targetArn: topicArn });
      await aws.putEvents([trailEvent('PutObject', { bucketName, key: KEY }, { 'x-amz-version-id': 'v1' })]);
      expect(recordsOf(await aws.takeBodies(queue.url, 1))).toMatchObject([{ dialect: 'trail', bucket: bucketName, key: KEY }]);
    });
  });

  it('is native records without an envelope, by bucket → SQS', async () => {
    const queue = await aws.createQueue();
    const bucket = await aws.createBucket();
    await aws.notify(bucket, { queue });
    await aws.takeBodies(queue.url, 1);
    await aws.put(bucket, KEY, 'hello');
    expect(recordsOf(await aws.takeBodies(queue.url, 1))).toMatchObject([{ dialect: 'native', bucket, key: KEY }]);
    await aws.remove(bucket, KEY);
    expect(recordsOf(await aws.takeBodies(queue.url, 1))).toMatchObject([{ bucket, key: KEY, change: { kind: 'deleted' } }]);
  });

  it('is S3’s own events, by bucket → EventBridge → SQS', async () => {
    const queue = await aws.createQueue();
    const bucket = await aws.createBucket({ versioned: true });
    await aws.createRule({ pattern: { source: ['aws.s3'], detail: { bucket: { name: [bucket] } } }, targetArn: queue.arn });
    await aws.notify(bucket, 'eventbridge');
    // a plain key: unpatched LocalStack encodes keys here, which AWS does not
    await aws.put(bucket, 'plain.txt', 'hello');
    const [created] = recordsOf(await aws.takeBodies(queue.url, 1));
    expect(created).toMatchObject({ dialect: 'eventbridge', bucket, key: 'plain.txt', change: { kind: 'created' }, sizeBytes: 5 });
    await aws.remove(bucket, 'plain.txt');
    expect(recordsOf(await aws.takeBodies(queue.url, 1))).toMatchObject([{ key: 'plain.txt', change: { kind: 'marker-created' } }]);
  });
});
