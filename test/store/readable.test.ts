/** What parts of buckets contain, compared with a list of all keys that a few characters can spell. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { unionOf } from '../../src/identity/grants/grant.rules.ts';
import {
  mergedParts,
  overlapping,
  PARTS_MAX,
  readsAll,
  readsKey,
  readsSome,
  touches,
  type BucketPart,
  type Readable,
} from '../../src/store/readable.rules.ts';

/** The order of the last two is another one in UTF-8 than in UTF-16. */
const CHARACTERS = ['a', '/', '\uffff', '\u{1f600}'] as const;
const BUCKETS = ['bucket-1', 'bucket-2'] as const;
const LENGTH_MAX = 3;

function spelled(length: number): readonly string[] {
  return length === 0 ? [''] : spelled(length - 1).flatMap((text) => CHARACTERS.map((character) => `${text}${character}`));
}
const texts = Array.from({ length: LENGTH_MAX + 1 }, (_, length) => spelled(length)).flat();
const places = BUCKETS.flatMap((bucket) => texts.filter((key) => key !== '').map((key) => ({ bucket, key })));

function beginsWith(text: string, prefix: string): boolean {
  const bytes = Buffer.from(prefix);
  return Buffer.from(text).subarray(0, bytes.length).equals(bytes);
}

type Place = (typeof places)[number];
const isIn = (parts: readonly BucketPart[], { bucket, key }: Place): boolean =>
  parts.some((part) => part.bucket === bucket && beginsWith(key, part.prefix));
const inReadable = (readable: Readable, place: Place): boolean => readable === 'everything' || isIn(readable, place);
const keysIn = (readable: Readable): readonly Place[] => places.filter((place) => inReadable(readable, place));

const someBucket = fc.constantFrom(...BUCKETS);
const somePrefix = fc.constantFrom(...texts);
const somePart = fc.record({ bucket: someBucket, prefix: fc.oneof(somePrefix, somePrefix, fc.constant('a')) });
const someParts = fc.array(somePart, { maxLength: 12 });
const someReadable: fc.Arbitrary<Readable> = fc.oneof(
  { weight: 9, arbitrary: someParts.map(mergedParts) },
  { weight: 1, arbitrary: fc.constant('everything' as const) },
);

/** Parts are in the order of both stores, and none contains another. */
function expectMerged(parts: readonly BucketPart[]): void {
  const bytes = parts.map(({ bucket, prefix }) => Buffer.from(`${bucket}\0${prefix}`));
  expect(bytes.toSorted((a, b) => Buffer.compare(a, b))).toEqual(bytes);
  for (const [at, { bucket, prefix }] of parts.entries()) {
    const others = parts.filter((_, index) => index !== at);
    expect(others.filter((other) => other.bucket === bucket && beginsWith(prefix, other.prefix))).toEqual([]);
  }
}

describe('the union of parts', () => {
  it('has the keys of each of them, in the order of the stores, and no part within another', () => {
    fc.assert(
      fc.property(someParts, (parts) => {
        const merged = mergedParts(parts);
        expect(keysIn(merged)).toEqual(keysIn(parts));
        expectMerged(merged);
        expect(mergedParts(merged)).toEqual(merged);
      }),
    );
  });
});

describe('a part of what is read', () => {
  it('has the keys below the prefix of the question, of one bucket or of all', () => {
    fc.assert(
      fc.property(someParts.map(mergedParts), fc.option(someBucket, { nil: undefined }), somePrefix, (parts, bucket, prefix) => {
        const found = overlapping(parts, { bucket, prefix });
        const wanted = keysIn(parts).filter((place) => (bucket ?? place.bucket) === place.bucket && beginsWith(place.key, prefix));
        expect(keysIn(found)).toEqual(wanted);
        expectMerged(found);
      }),
    );
  });

  it('is not asked about where no key of the question may be read', () => {
    fc.assert(
      fc.property(someReadable, someBucket, somePrefix, (readable, bucket, prefix) => {
        // a key that is the longer one of both prefixes is in both
        const below = keysIn(readable).filter((place) => place.bucket === bucket && beginsWith(place.key, prefix));
        expect(touches(readable, { bucket, prefix })).toBe(below.length > 0);
      }),
    );
  });
});

describe('a key, a prefix and a bucket', () => {
  it('are read exactly if a part has all of their keys, or some of the bucket', () => {
    fc.assert(
      fc.property(someReadable, someBucket, somePrefix, (readable, bucket, prefix) => {
        const below = places.filter((place) => place.bucket === bucket && beginsWith(place.key, prefix));
        const isWhole = inReadable(readable, { bucket, key: prefix });
        expect(readsAll(readable, { bucket, prefix })).toBe(isWhole);
        if (isWhole) expect(below.every((place) => inReadable(readable, place))).toBe(true);
        if (prefix !== '') expect(readsKey(readable, bucket, prefix)).toBe(isWhole);
        expect(readsSome(readable, bucket)).toBe(keysIn(readable).some((place) => place.bucket === bucket));
      }),
    );
  });

  it.each([
    ['a prefix that ends within a name', 'logs/a', ['logs/a', 'logs/ab/x', 'logs/a/x'], ['logs/b', 'logs/', 'LOGS/a']],
    ['a prefix that is a whole key', 'report.txt', ['report.txt', 'report.txt.bak'], ['report.tx', 'report']],
    ['a prefix with the slash of a folder', 'logs/', ['logs/', 'logs/x'], ['logs', 'logsx', 'Logs/x']],
    ['the empty prefix', '', ['x', '/', '\u{1f600}'], []],
    ['a prefix that is composed in Unicode', '\u00fc', ['\u00fcx'], ['u\u0308x', 'u']],
  ])('%s reads the keys that begin with it, and no others', (_, prefix, read, others) => {
    const parts = [{ bucket: 'photos', prefix }];
    expect(read.filter((key) => !readsKey(parts, 'photos', key))).toEqual([]);
    expect(others.filter((key) => readsKey(parts, 'photos', key))).toEqual([]);
    expect([...read, ...others].filter((key) => readsKey(parts, 'photos-2', key) || readsKey(parts, 'photo', key))).toEqual([]);
  });
});

describe('the bound of parts', () => {
  const apart = (count: number): readonly BucketPart[] =>
    Array.from({ length: count }, (_, at) => ({ bucket: `bucket-${at % 3}`, prefix: `${at}/` }));

  it('counts what is left after merging: one part more, and the person reads nothing', () => {
    const { readable, tooMany } = unionOf(apart(PARTS_MAX));
    expect(readable).toHaveLength(PARTS_MAX);
    expect(tooMany).toBe(false);
    expect(unionOf([...apart(PARTS_MAX), ...apart(PARTS_MAX), { bucket: 'bucket-0', prefix: '0/below' }])).toEqual({ readable, tooMany });
    expect(unionOf(apart(PARTS_MAX + 1))).toEqual({ readable: [], tooMany: true });
    const merging = { bucket: 'bucket-0', prefix: '' };
    expect(unionOf([...apart(PARTS_MAX + 1), merging])).toMatchObject({ tooMany: false });
  });

  it('does not matter to those who are granted everything', () => {
    expect(unionOf([...apart(PARTS_MAX + 1), 'everything'])).toEqual({ readable: 'everything', tooMany: false });
    expect(unionOf([])).toEqual({ readable: [], tooMany: false });
  });
});
