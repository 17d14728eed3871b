import { describe, expect, it } from 'vitest';
import { documentOf, type ObjectDocument, type ObjectState, type PresentState, clockOfMs } from '../../src/ordering/document.ts';
import { MARGIN_MS } from '../../src/ordering/constants.ts';
import { clockOfListing, decideListed, rewrittenDocument, withListedClass } from '../../src/repair/decide.rules.ts';

const D = Date.UTC(2026, 0, 2, 3, 4, 5);
const AT_MS = D - 3_600_000;
const state: PresentState = { present: true, etag: 'abc', sizeBytes: 7, lastModifiedMs: AT_MS, storageClass: 'STANDARD' };
const clock = clockOfMs(D - MARGIN_MS);

/** A document of the state, written at a clock. */
function stored(says: ObjectState, at: number, more: Partial<ObjectDocument> = {}): ObjectDocument {
  const facts = { bucket: 'b', key: 'k', state: says, clock: at, settled: true, source: 'native', cause: {} } as const;
  return { ...documentOf({ ...facts, stateAtMs: AT_MS, nowMs: AT_MS }), ...more };
}

describe('what a listing means', () => {
  const old = clock - 1;
  it.each<[string, PresentState | undefined, ObjectDocument | undefined, string]>([
    ['a key without a document', state, undefined, 'missing'],
    ['a key with an older tombstone', state, stored({ present: false }, old), 'missing'],
    ['a key with a tombstone of its own clock', state, stored({ present: false }, clock), 'in_flight'],
    ['an older document that differs', state, stored({ ...state, etag: 'x' }, old), 'stale'],
    ['a document of its own clock that differs', state, stored({ ...state, etag: 'x' }, clock), 'in_flight'],
    ['an older document that says the same', state, stored(state, old), 'equal'],
    ['a newer document that says the same', state, stored(state, clock + 1), 'equal'],
    ['a document that lacks a field', state, stored({ present: true, etag: 'abc' }, old), 'incomplete'],
    ['no key, and an older document', undefined, stored(state, old), 'phantom'],
    ['no key, and a document of its own clock', undefined, stored(state, clock), 'in_flight'],
    ['no key, and a tombstone', undefined, stored({ present: false }, clock + 1), 'gone'],
    ['no key, and nothing', undefined, undefined, 'gone'],
  ])('for %s', (_what, listed, document, kind) => {
    expect(decideListed(listed, document, clockOfListing(D)).kind).toBe(kind);
  });
});

it('a HEAD’s answer has the listing’s storage class only while both are about the same object', () => {
  const seen = { present: true, etag: 'abc', sizeBytes: 7, lastModifiedMs: AT_MS } as const;
  const listed: PresentState = { ...seen, storageClass: 'GLACIER' };
  expect(withListedClass({ state: seen }, listed).state).toEqual(listed);
  for (const other of [{ etag: 'x' }, { sizeBytes: 8 }, { lastModifiedMs: AT_MS + 1_000 }]) {
    const rewritten: PresentState = { ...seen, ...other };
    expect(withListedClass({ state: rewritten }, listed).state).toEqual(rewritten);
  }
});

describe('the document that is written', () => {
  const known: Partial<ObjectDocument> = {
    version_id: 'v1',
    content_type: 'text/plain',
    user_metadata: { a: 'b' },
    tags: { c: 'd' },
    expires_at: '2027-01-01T00:00:00.000Z',
    event_name: 'ObjectCreated:Put',
    event_time: '2026-01-01T00:00:00.000Z',
  };
  const facts = { bucket: 'b', key: 'k', state, clock, settled: true, source: 'listing', observedAtMs: D, nowMs: D } as const;

  it('says what the listing says, that it is exact, and where it is from', () => {
    expect(rewrittenDocument({ ...facts, stored: undefined })).toEqual({
      bucket: 'b',
      key: 'k',
      name: 'k',
      etag: 'abc',
      size: 7,
      last_modified: new Date(AT_MS).toISOString(),
      last_modified_exact: true,
      storage_class: 'STANDARD',
      deleted: false,
      clock,
      settled: true,
      source: 'listing',
      indexed_at: new Date(D).toISOString(),
    });
  });

  it.each<[string, Partial<PresentState>]>([
    ['its LastModified was an event’s time', { lastModifiedMs: AT_MS + 900, lastModifiedExact: false }],
    ['its storage class changed', { storageClass: 'GLACIER' }],
    ['nothing differs', {}],
  ])('keeps what neither listing nor HEAD tells of the same object: %s', (_what, change) => {
    const document = rewrittenDocument({ ...facts, stored: stored({ ...state, ...change }, 1, known) });
    const listed = { etag: 'abc', last_modified: new Date(AT_MS).toISOString(), storage_class: 'STANDARD', clock };
    expect(document).toMatchObject({ ...known, ...listed });
  });

  it.each<[string, ObjectDocument]>([
    ['its etag differs', stored({ ...state, etag: 'x' }, 1, known)],
    ['its size differs', stored({ ...state, sizeBytes: 8 }, 1, known)],
    ['it was written anew', stored({ ...state, lastModifiedMs: AT_MS - 60_000 }, 1, known)],
    ['it was deleted', stored({ present: false }, 1, { event_name: 'ObjectRemoved:Delete' })],
  ])('keeps nothing of another object: %s', (_what, before) => {
    expect(rewrittenDocument({ ...facts, stored: before })).toEqual(rewrittenDocument({ ...facts, stored: undefined }));
  });
});
