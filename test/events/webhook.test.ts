import { describe, expect, it } from 'vitest';
import { unwrapPosted } from '../../src/events/envelope.ts';
import { nativeRecord } from '../support/worlds/ingest.ts';

const recordsOf = (body: unknown, bucket = 'photos') => {
  const unwrapped = unwrapPosted(typeof body === 'string' ? body : JSON.stringify(body), bucket);
  if (unwrapped.kind !== 'records') throw new Error(JSON.stringify(unwrapped));
  return unwrapped.records;
};

describe('what was posted to a webhook', () => {
  it('says of a key that it changed, and nothing else, not even when', () => {
    const object = { etag: 'e', sizeBytes: 1, versionId: 'v' };
    const body = { Records: [nativeRecord('a.jpg', { eventTimeMs: 1_767_323_045_000, object })] };
    expect(recordsOf(body)).toEqual([
      {
        ok: true,
        record: {
          dialect: 'webhook',
          bucket: 'photos',
          key: 'a.jpg',
          eventName: 'ObjectCreated:Put',
          change: { kind: 'created', copied: false },
        },
      },
    ]);
  });

  it.each(['aws:s3', 'minio:s3', 'rustfs:s3', 'ceph:s3'])('may spell a key in either way, whatever source it names: %s', (eventSource) => {
    const record = { ...nativeRecord(''), eventSource, s3: { bucket: { name: 'photos' }, object: { key: 'a+b%20c' } } };
    expect(recordsOf([record]).map((result) => result.ok && result.record.key)).toEqual(['a b c', 'a+b%20c']);
  });

  it.each([
    { Type: 'SubscriptionConfirmation', TopicArn: 'arn:aws:sns:us-east-1:111122223333:events', Token: 'x' },
    { Type: 'UnsubscribeConfirmation', TopicArn: 'arn:aws:sns:us-east-1:111122223333:events' },
    { tallyProbe: { topicArn: 'arn:aws:sns:us-east-1:111122223333:events', sentAtMs: 1 } },
  ])('is rejected if it is about the wiring of the queue: %o', (body) => {
    expect(unwrapPosted(JSON.stringify(body), 'photos')).toMatchObject({ kind: 'rejected', fault: { code: 'message.unknown-wrapper' } });
  });

  it('may be the test that a store sends first, which changes nothing', () => {
    expect(recordsOf({ Service: 'S3', Event: 's3:TestEvent', Bucket: 'Test-Bucket' })).toMatchObject([
      { ok: true, record: { bucket: 'photos', change: { kind: 'ignored', reason: 'no-effect' } } },
    ]);
  });
});
