import { describe, expect, test } from 'vitest';
import { recordOf, resultsOf, syntheticBody } from '../support/event-fixtures.ts';

const storage = (object: object = {}): object => ({ bucket: { name: 'media' }, object: { eTag: '', key: 'a', ...object } });

describe('a synthetic record', () => {
  test.each([
    ['awsRegion and s3', { awsRegion: 'r', s3: storage() }],
    ['cloudRegion and storage', { awsRegion: undefined, s3: undefined, cloudRegion: 'r', storage: storage() }],
    ['awsRegion and storage', { awsRegion: 'r', s3: undefined, storage: storage() }],
    ['cloudRegion and s3', { awsRegion: undefined, cloudRegion: 'r', s3: storage() }],
    ['the audit trail’s eventSource', { eventSource: 's3.amazonaws.com', s3: storage() }],
    ['empty eventSource and eventVersion', { eventSource: '', eventVersion: '', s3: storage() }],
  ])('is read when it says %s', (_, over) => {
    expect(recordOf(syntheticBody({}, over))).toEqual({
      dialect: 'synthetic',
      bucket: 'media',
      key: 'a',
      eventName: 'PutObject',
      change: { kind: 'created', copied: false },
      eventTimeMs: Date.parse('2026-03-01T08:30:05Z'),
    });
  });

  test.each(['aws:sqs', 's3express.amazonaws.com', 5, {}])(
    'of an unknown eventSource (%j) may spell its key in either way',
    (eventSource) => {
      const keys = resultsOf(syntheticBody({ key: 'a+b' }, { eventSource })).map((result) => result.ok && result.record.key);
      expect(keys).toEqual(['a b', 'a+b']);
    },
  );
});
