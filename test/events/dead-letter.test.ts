import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bucketsNamedIn,
  deadLetterAttributes,
  letterNotes,
  letterReason,
  ownAttributes,
  type LetterFacts,
} from '../../src/events/dead-letter.ts';
import { anyCharacter } from '../support/random/characters.ts';

const MEBIBYTE = 1_048_576;
const context = { queue: 'http://q/bucket', messageId: 'm-1', firstReceived: '2026-01-02T03:04:05.000Z', records: [0, 3] };
const fault = { code: 'record.invalid', reason: 'no key' } as const;

function facts(change: Partial<LetterFacts> = {}): LetterFacts {
  return { body: '{}', attributes: {}, fault, context, ...change };
}

function own(count: number): LetterFacts['attributes'] {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`own-${index}`, { dataType: 'String', stringValue: 'x' }]));
}

function numbers(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index);
}

/** Bytes of what SQS counts beside the body. */
function sizeOf(attributes: LetterFacts['attributes'] = {}): number {
  return Object.entries(attributes).reduce(
    (sum, [name, { dataType, stringValue = '', binaryValue }]) =>
      sum + Buffer.byteLength(name + dataType + stringValue) + (binaryValue?.byteLength ?? 0),
    0,
  );
}

describe('the attributes of a dead letter', () => {
  it('name the fault, the reason and the context, which are read back', () => {
    const attributes = deadLetterAttributes(facts());
    expect(Object.keys(attributes).sort()).toEqual(['tally-context', 'tally-fault', 'tally-reason']);
    expect(letterNotes(attributes)).toEqual({ fault: 'record.invalid', reason: 'no key', context });
  });

  it('drop those of its own that would pass ten', () => {
    const attributes = deadLetterAttributes(facts({ attributes: own(10) }));
    expect(Object.keys(attributes)).toHaveLength(10);
    expect(letterNotes(attributes).fault).toBe('record.invalid');
  });

  it('replace those of an earlier death', () => {
    const earlier = deadLetterAttributes(facts({ fault: { code: 'object.denied', reason: 'earlier' }, attributes: own(7) }));
    const attributes = deadLetterAttributes(facts({ attributes: earlier }));
    expect(letterNotes(attributes).fault).toBe('record.invalid');
    expect(Object.keys(ownAttributes(attributes))).toHaveLength(7);
  });

  it.each([
    ['text', { dataType: 'String', stringValue: 'ü'.repeat(50) }],
    ['binary', { dataType: 'Binary', binaryValue: new Uint8Array(77) }],
  ])('fit beside a body up to 1,048,576 bytes in all, and not one byte more (%s)', (_, value) => {
    const attributes = { own: value };
    const restBytes = sizeOf(deadLetterAttributes(facts({ attributes })));
    const body = `${'é'.repeat(10)}${'x'.repeat(MEBIBYTE - 20 - restBytes)}`;
    expect(Object.keys(deadLetterAttributes(facts({ attributes, body })))).toHaveLength(4);
    expect(letterNotes(deadLetterAttributes(facts({ attributes, body: `${body}x` })))).toEqual({ fault: 'record.invalid' });
  });
});

describe('the reason of a dead letter', () => {
  it('is printable ASCII of 1 to 256 bytes, whatever it says', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 600 }), (reason) => {
        expect(letterReason({ code: 'record.invalid', reason })).toMatch(/^[\x20-\x7e]{1,256}$/);
      }),
    );
  });

  it('is the code where nothing was said', () => {
    expect(letterReason({ code: 'record.invalid', reason: '\n' })).toBe('?');
    expect(letterReason({ code: 'record.invalid', reason: ' ' })).toBe('record.invalid');
  });
});

describe('the notes of a letter', () => {
  const deep = (before: string, unit: string, after: string): string => `${before}${unit.repeat(2_000)}${after.repeat(2_000)}}`;

  it.each([
    ['deeply nested', deep('{"queue":', '[', ']'), {}],
    ['deeply nested in a field of others', deep('{"other":', '[', ']'), {}],
    ['an array in the place of a text', '{"queue":["q"],"messageId":"m-1"}', { messageId: 'm-1' }],
    ['longer than Tally’s', JSON.stringify({ queue: 'q'.repeat(2_000), messageId: 'm-1' }), { messageId: 'm-1' }],
    ['full of positions', JSON.stringify({ records: Array.from({ length: 800 }, (_, index) => index) }), { records: numbers(100) }],
    ['full of fields of others', JSON.stringify({ messageId: 'm-1', __proto__: 1, a: 1, b: [{}] }), { messageId: 'm-1' }],
  ])('Fix: keep of a context that is %s what is as Tally writes it', (_, stringValue, kept) => {
    const attribute = (text: string) => ({ dataType: 'String', stringValue: text });
    const notes = letterNotes({ 'tally-context': attribute(stringValue), 'tally-fault': attribute('record.invalid') });
    expect(notes).toEqual({ fault: 'record.invalid', context: kept });
  });

  it('leave out a context of a MiB, or that is no JSON, and cut a reason of a MiB', () => {
    const long = 'x'.repeat(MEBIBYTE);
    const attribute = { dataType: 'String', stringValue: long };
    const notes = letterNotes({ 'tally-context': { ...attribute, stringValue: `{"a":"${long}"}` }, 'tally-reason': attribute });
    expect(notes).toEqual({ reason: 'x'.repeat(1_024) });
    expect(letterNotes({ 'tally-context': { ...attribute, stringValue: '[' } })).toEqual({});
  });
});

describe('the buckets that an unread body names', () => {
  const buckets = new Set(['photos', 'my.videos', 'key', 'Old_Bucket']);
  const native = (bucket: string) => ({ Records: [{ eventSource: 'aws:s3', s3: { bucket: { name: bucket }, object: { k: 'a' } } }] });
  const wrapped = (content: unknown, times: number): string =>
    times === 0 ? JSON.stringify(content) : JSON.stringify({ Type: 'Notification', Message: wrapped(content, times - 1) });

  it.each([0, 1, 2, 8])('are found in %i envelopes', (times) => {
    for (const bucket of ['photos', 'my.videos', 'Old_Bucket'])
      expect(bucketsNamedIn(wrapped(native(bucket), times), buckets)).toEqual([bucket]);
  });

  it('are none where a bucket is not connected, its name is a part of another word, or base64 may hide it behind one that is found', () => {
    expect(bucketsNamedIn(wrapped(native('photos-2026'), 1), buckets)).toEqual([]);
    expect(bucketsNamedIn(JSON.stringify({ key: 1, data_base64: Buffer.from('photos').toString('base64') }), buckets)).toEqual([]);
  });
});
