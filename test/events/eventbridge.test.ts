import { describe, expect, test } from 'vitest';
import { eventBridgeBody, recordOf, resultsOf } from '../support/event-fixtures.ts';

describe('an EventBridge record', () => {
  test('tells all that it says, its key as it stands', () => {
    expect(recordOf(eventBridgeBody({ key: 'a+b%20c', 'version-id': 'v', etag: '"e"' }))).toEqual({
      dialect: 'eventbridge',
      bucket: 'media',
      key: 'a+b%20c',
      eventName: 'Object Created',
      change: { kind: 'created', copied: false },
      eventTimeMs: Date.parse('2026-03-01T08:30:05Z'),
      sequencer: '0069A3F9CD1F7CED91',
      etag: 'e',
      sizeBytes: 1,
      versionId: 'v',
    });
  });

  test('leaves out what is empty or absent', () => {
    const body = eventBridgeBody({ 'version-id': '', etag: null, size: null, sequencer: undefined }, {}, { time: null });
    expect(Object.keys(recordOf(body)).toSorted()).toEqual(['bucket', 'change', 'dialect', 'eventName', 'key']);
  });

  test('of another source states nothing, and may spell its key in either way', () => {
    for (const source of ['aws.ec2', undefined, 7]) {
      const results = resultsOf(eventBridgeBody({ key: 'a+b' }, {}, { source }));
      expect(results).toMatchObject([{ record: { key: 'a b' } }, { record: { key: 'a+b' } }]);
      for (const result of results) expect(result).not.toHaveProperty('record.sequencer');
    }
  });
});
