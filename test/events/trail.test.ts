import { describe, expect, test } from 'vitest';
import { recordOf, trailBody } from '../support/event-fixtures.ts';

describe('an audit-trail record', () => {
  test('tells all that it says, its key as it stands', () => {
    expect(recordOf(trailBody({ key: 'a+b%20c' }, { responseElements: { 'x-amz-version-id': 'v' } }))).toEqual({
      dialect: 'trail',
      bucket: 'media',
      key: 'a+b%20c',
      eventName: 'PutObject',
      change: { kind: 'created', copied: false },
      eventTimeMs: Date.parse('2026-03-01T08:30:05Z'),
      versionId: 'v',
    });
  });

  test('without a time of its own has its event’s', () => {
    expect(recordOf(trailBody({}, { eventTime: '' })).eventTimeMs).toBe(Date.parse('2026-03-01T08:30:07Z'));
  });

  test('of a call that names no bucket is ignored, not rejected', () => {
    expect(recordOf(trailBody({}, { eventName: 'ListBuckets', requestParameters: null }))).toMatchObject({
      bucket: '',
      change: { kind: 'ignored', reason: 'no-effect' },
    });
  });
});
