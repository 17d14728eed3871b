import { describe, expect, test } from 'vitest';
import { eventBridgeBody, faultOf, recordOf } from '../../support/event-fixtures.ts';

describe('an EventBridge record', () => {
  test('tells all that it says, its key as it stands', () => {
    expect(recordOf(eventBridgeBody({ key: 'a+b%20c', 'version-id': 'v', etag: '"e"' }))).toEqual({
      dialect: 'eventbridge',
      bucket: 'media',
      key: 'a+b%20c',
      keyUncertain: false,
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
    expect(Object.keys(recordOf(body)).toSorted()).toEqual(['bucket', 'change', 'dialect', 'eventName', 'key', 'keyUncertain']);
  });

  test.each([
    ['key', 1, 'record.invalid'],
    ['size', '1', 'record.invalid'],
    ['sequencer', 1, 'record.invalid'],
    ['version-id', [], 'record.invalid'],
    ['key', '', 'record.key-missing'],
    ['key', 'x'.repeat(1_025), 'record.key-invalid'],
  ])('whose %s is %j is %s, with its bucket', (field, value, code) => {
    expect(faultOf(eventBridgeBody({ [field]: value }))).toMatchObject({ code, bucket: 'media' });
  });

  test('without detail is record.invalid', () => {
    expect(faultOf(eventBridgeBody({}, {}, { detail: null })).code).toBe('record.invalid');
  });

  test('of a bucket that is none is record.bucket-invalid', () => {
    expect(faultOf(eventBridgeBody({}, { bucket: { name: '/' } })).code).toBe('record.bucket-invalid');
  });

  test('of an event that is not known is ignored, whatever the rest of it looks like', () => {
    expect(recordOf(eventBridgeBody({}, {}, { 'detail-type': 'Object Imagined', detail: 7 }))).toMatchObject({
      bucket: '',
      change: { kind: 'ignored', reason: 'unknown-event' },
    });
  });
});
