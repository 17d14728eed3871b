import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { BulkAction } from '../../../src/store/opensearch/bulk.ts';
import { bulkAction, bulkVerdicts, linesOf } from '../../../src/store/opensearch/bulk.ts';
import { indexNames } from '../../../src/store/opensearch/setup.ts';
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import type { IndexWrite } from '../../../src/store/store.ts';
import { live } from '../../contracts/world.ts';

const names = indexNames('tally');

const document = (given: Partial<ObjectDocument> = {}): ObjectDocument =>
  live('photos', 'a/b.txt', { clock: 1_790_000_000_123_457, ...given });

function action(given: Partial<ObjectDocument> = {}, equalClock: IndexWrite['equalClock'] = 'accept'): BulkAction {
  const built = bulkAction({ document: document(given), equalClock }, names);
  if ('write' in built) return built;
  throw new Error(built.fault.reason);
}

describe('the lines of a write', () => {
  it('name alias, id and external version, and hold the document with its words', () => {
    const [first = '', second = '', end] = linesOf(action()).split('\n');
    expect(JSON.parse(first)).toEqual({
      index: { _index: 'tally-write-photos', _id: 'k:a/b.txt', version: 1_790_000_000_123_457, version_type: 'external_gte' },
    });
    expect(JSON.parse(second)).toEqual({ ...document(), words: ['a', 'b', 'txt'], folded: 'a/b.txt', d1: 'a/' });
    expect(end).toBe('');
  });

  it('ask for a strictly higher version where an equal clock is to be refused', () => {
    expect(linesOf(action({}, 'refuse'))).toContain('"version_type":"external"}');
  });

  it('are two well-formed ones with an id of at most 512 bytes, whatever bucket, key and fields say', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme', maxLength: 1_024 }), fc.constant('e'.repeat(600)));
    const lone = fc.constantFrom('\ud83d', '\udc00x', 'a\u0000b', '\n{"delete":{}}\n', '"},"version":1', '\u2028');
    fc.assert(
      fc.property(fc.oneof(text, lone), fc.oneof(text, lone), fc.oneof(text, lone), fc.maxSafeNat(), (bucket, key, etag, clock) => {
        const lines = linesOf(action({ bucket, key, etag, clock }));
        expect(lines.endsWith('\n')).toBe(true);
        const parsed = lines
          .slice(0, -1)
          .split('\n')
          .map((line) => JSON.parse(line) as Record<string, unknown>);
        expect(parsed).toHaveLength(2);
        expect(parsed[1]).toMatchObject({ bucket, key, etag, clock });
        const { _id: id, version } = parsed[0]!['index'] as { _id: string; version: number };
        expect(Buffer.byteLength(id)).toBeLessThanOrEqual(512);
        expect(version).toBe(clock);
      }),
    );
  });

  it.each([-1, 1.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY])('cannot be built for the clock %d: that write is rejected', (clock) => {
    expect(bulkAction({ document: document({ clock }), equalClock: 'accept' }, names)).toMatchObject({
      kind: 'fault',
      fault: { code: 'index.rejected' },
    });
  });
});

describe('the answer to a request', () => {
  const conflict = (reason: string) => ({
    items: [{ index: { status: 409, error: { type: 'version_conflict_engine_exception', reason } } }],
  });

  it('is written for each document that was created or updated', () => {
    const body = {
      items: [{ index: { status: 201, result: 'created' } }, { index: { status: 200, result: 'updated' } }],
    };
    expect(bulkVerdicts([action(), action()], body)).toEqual([{ kind: 'written' }, { kind: 'written' }]);
  });

  it.each([
    ['a pipeline dropped it', { status: 200, result: 'noop' }],
    ['it was deleted', { status: 200, result: 'deleted' }],
    ['nothing says what happened', { status: 200 }],
  ])('is a fault of the index when %s, although it tells no error', (_, item) => {
    expect(bulkVerdicts([action()], { items: [{ index: item }] })).toMatchObject([
      { kind: 'fault', fault: { code: 'bucket.index-misconfigured' } },
    ]);
  });

  it.each([
    ['accept', 10, '[k:a]: version conflict, current version [11] is higher than the one provided [10]', 'superseded'],
    ['refuse', 10, '[k:a]: version conflict, current version [11] is higher or equal to the one provided [10]', 'superseded'],
    ['refuse', 10, '[k:a]: version conflict, current version [10] is higher or equal to the one provided [10]', 'equal'],
    [
      'refuse',
      1_790_000_000_123_457,
      '[k:a]: version conflict, current version [1790000000123458] is higher or equal to the one provided [1790000000123457]',
      'superseded',
    ],
    // a key that pretends
    [
      'refuse',
      10,
      '[k:current version [10] is higher or equal to the one provided [10]]: version conflict, current version [11] is higher or equal to the one provided [10]',
      'superseded',
    ],
    ['refuse', 10, '[k:current version [10]]: version conflict, worded otherwise', 'equal'],
    ['accept', 10, '[k:a]: version conflict, worded otherwise', 'superseded'],
  ] as const)('to a conflict with equalClock %s at %i (%s) is %s', (equalClock, clock, reason, kind) => {
    expect(bulkVerdicts([action({ clock }, equalClock)], conflict(reason))).toEqual([{ kind }]);
  });

  it.each([
    ['is not JSON', '<html></html>'],
    ['lacks items', { items: [] }],
    ['has an item of another shape', { items: [{ delete: { status: 200 } }] }],
  ])('is unreachable when it %s', (_, body) => {
    expect(() => bulkVerdicts([action()], body)).toThrowError(expect.objectContaining({ code: 'index.unreachable' }));
  });
});
