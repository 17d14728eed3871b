import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  documentId,
  documentOf,
  documentWords,
  nameOf,
  sameContent,
  searchFieldsOf,
  type DocumentFacts,
} from '../../src/ordering/document.ts';

const facts: DocumentFacts = {
  bucket: 'photos',
  key: 'a/B.JPG',
  state: { present: true, etag: 'e', sizeBytes: 7, versionId: 'v', lastModifiedMs: 1_000, storageClass: 'GLACIER', expiresAtMs: 2_000 },
  clock: 5,
  settled: true,
  source: 'native',
  cause: { eventName: 'ObjectCreated:Put', eventTimeMs: 3_000 },
  stateAtMs: 4_000,
  nowMs: 6_000,
};

describe('a document', () => {
  it('of a present object says all that is known', () => {
    expect(documentOf(facts)).toEqual({
      bucket: 'photos',
      key: 'a/B.JPG',
      name: 'B.JPG',
      extension: 'jpg',
      etag: 'e',
      size: 7,
      version_id: 'v',
      last_modified: '1970-01-01T00:00:01.000Z',
      last_modified_exact: true,
      storage_class: 'GLACIER',
      expires_at: '1970-01-01T00:00:02.000Z',
      deleted: false,
      clock: 5,
      settled: true,
      source: 'native',
      event_name: 'ObjectCreated:Put',
      event_time: '1970-01-01T00:00:03.000Z',
      indexed_at: '1970-01-01T00:00:06.000Z',
    });
  });

  it('of an absent one is a tombstone without object fields or words', () => {
    const tombstone = documentOf({ ...facts, state: { present: false } });
    expect(tombstone).toEqual({
      bucket: 'photos',
      key: 'a/B.JPG',
      deleted: true,
      deleted_at: '1970-01-01T00:00:04.000Z',
      clock: 5,
      settled: true,
      source: 'native',
      event_name: 'ObjectCreated:Put',
      event_time: '1970-01-01T00:00:03.000Z',
      indexed_at: '1970-01-01T00:00:06.000Z',
    });
    expect(documentWords(tombstone)).toEqual([]);
    expect(documentWords(documentOf(facts))).toEqual(['a', 'b', 'jpg']);
  });

  it('has search fields that follow from its key', () => {
    const of = (key: string) => searchFieldsOf(documentOf({ ...facts, key }));
    expect(of('a/b/Ünï.TAR.gz')).toEqual({
      words: ['a', 'b', 'uni', 'tar', 'gz'],
      folded: 'a/b/uni.tar.gz',
      extensions: ['gz', 'tar.gz'],
      d1: 'a/',
      d2: 'a/b/',
    });
    expect(of('top')).toEqual({ words: ['top'], folded: 'top' });
    expect(of('//a/')).toMatchObject({ d1: '/', d2: '//', d3: '//a/' });
    expect(Object.keys(of('1/2/3/4/5/6/7/8/9/x')).filter((field) => /^d\d$/.test(field))).toHaveLength(8);
    expect(searchFieldsOf(documentOf({ ...facts, key: 'a/B.gz', state: { present: false } }))).toEqual({
      words: [],
      folded: 'a/b.gz',
    });
  });

  it.each([
    ['a.gz', ['gz']],
    ['a.tar.gz', ['gz', 'tar.gz']],
    ['a.B.TAR.GZ', ['gz', 'tar.gz']],
    ['a.TAR.\u0130', ['i\u0307', 'tar.i\u0307']],
    ['.tar.gz', ['gz']],
    ['dir/.tar.gz', ['gz']],
    ['dir.x/a.gz', ['gz']],
    ['a..gz', ['gz']],
    [`a.${'x'.repeat(32)}.gz`, ['gz', `${'x'.repeat(32)}.gz`]],
    [`a.${'x'.repeat(33)}.gz`, ['gz']],
  ])('has the last extension of %j and the last two: %j', (key, extensions) => {
    expect(searchFieldsOf(documentOf({ ...facts, key })).extensions).toEqual(extensions);
  });

  it('says every time as Date does, with or without a part of a millisecond', () => {
    const state = { present: false } as const;
    const ms = fc.oneof(
      fc.integer({ min: -8_640_000_000_000_000, max: 8_640_000_000_000_000 }),
      fc.date({ noInvalidDate: true }).map(Number),
    );
    // days, leap years, and years of more or less than four digits
    const edges = fc.constantFrom(-0, -1, 86_400_000, 951_782_400_000, 253_402_300_799_999, 253_402_300_800_000, -62_167_219_200_001);
    fc.assert(
      fc.property(fc.oneof(ms, edges), fc.double({ min: 0, max: 0.99, noNaN: true }), (whole, part) => {
        for (const stateAtMs of [whole, Math.min(whole + part, 8_640_000_000_000_000)])
          expect(documentOf({ ...facts, state, stateAtMs }).deleted_at).toBe(new Date(stateAtMs).toISOString());
      }),
    );
    expect(() => documentOf({ ...facts, state, stateAtMs: Number.NaN })).toThrow(RangeError);
  });
});

describe('name and extension of a key', () => {
  it.each([
    ['a/b/c.txt', { name: 'c.txt', extension: 'txt' }],
    ['c.TAR.GZ', { name: 'c.TAR.GZ', extension: 'gz' }],
    ['.bashrc', { name: '.bashrc' }],
    ['a.', { name: 'a.' }],
    ['noext', { name: 'noext' }],
    ['dir/', { name: 'dir/' }],
    ['x/dir.d/', { name: 'dir.d/' }],
    ['a//b', { name: 'b' }],
    ['a//', { name: '/' }],
    ['/', { name: '/' }],
    ['//', { name: '/' }],
    ['..', { name: '..' }],
    [`a.${'x'.repeat(32)}`, { name: `a.${'x'.repeat(32)}`, extension: 'x'.repeat(32) }],
    [`a.${'x'.repeat(33)}`, { name: `a.${'x'.repeat(33)}` }],
  ])('of %j', (key, expected) => {
    expect(nameOf(key)).toEqual(expected);
  });

  it('are never empty', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (key) => {
        expect(nameOf(key).name).not.toBe('');
      }),
    );
  });
});

describe('the id of a document', () => {
  it('is the key itself where that fits 512 bytes, else its hash', () => {
    expect(documentId('a/b')).toBe('k:a/b');
    expect(documentId('x'.repeat(510))).toBe(`k:${'x'.repeat(510)}`);
    expect(documentId('x'.repeat(511))).toMatch(/^h:[\w-]{43}$/);
    expect(documentId('ü'.repeat(255))).toBe(`k:${'ü'.repeat(255)}`);
    expect(documentId('ü'.repeat(256))).toMatch(/^h:/);
  });

  it('is never over 512 bytes and differs for different keys', () => {
    const key = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 400 });
    fc.assert(
      fc.property(key, key, (a, b) => {
        expect(Buffer.byteLength(documentId(a))).toBeLessThanOrEqual(512);
        expect(documentId(a) === documentId(b)).toBe(a === b);
      }),
    );
  });
});

describe('the same content', () => {
  const document = documentOf(facts);

  it.each([
    ['etag', { ...facts, state: { ...facts.state, etag: 'f' } }],
    ['size', { ...facts, state: { ...facts.state, sizeBytes: 8 } }],
    ['version', { ...facts, state: { ...facts.state, versionId: 'w' } }],
    ['presence', { ...facts, state: { present: false } }],
  ] as const)('another %s is one', (_what, other) => {
    expect(sameContent(document, documentOf(other))).toBe(false);
  });
});
