import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PresentState } from '../../src/ordering/document.ts';
import { compareKeys } from '../../src/base/key-order.ts';
import { compareObject, compareSides, type ComparedDocument, type Sides } from '../../src/ordering/agreement.ts';
import { anyCharacter } from '../support/random/characters.ts';

const AT_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
const iso = (ms: number): string => new Date(ms).toISOString();

const state: PresentState = { present: true, etag: 'abc', sizeBytes: 0, storageClass: 'STANDARD', lastModifiedMs: AT_MS };
const document: ComparedDocument = {
  etag: 'abc',
  size: 0,
  storage_class: 'STANDARD',
  last_modified: iso(AT_MS),
  last_modified_exact: true,
};

describe('an object and its document', () => {
  it('are equal where they say the same', () => {
    expect(compareObject(state, document)).toEqual({ kind: 'equal', fields: [], isInexact: false });
  });

  it.each<[string, Partial<ComparedDocument>, readonly string[]]>([
    ['the etag', { etag: 'abd' }, ['etag']],
    ['the case of the etag', { etag: 'Abc' }, ['etag']],
    ['the size', { size: 1 }, ['size']],
    ['the storage class', { storage_class: 'GLACIER' }, ['storage_class']],
    ['an older LastModified', { last_modified: iso(AT_MS - 1_000) }, ['last_modified']],
    ['a newer LastModified', { last_modified: iso(AT_MS + 1_000) }, ['last_modified']],
    ['several', { etag: 'x', size: 9 }, ['etag', 'size']],
  ])('are stale where %s differs', (_what, change, fields) => {
    expect(compareObject(state, { ...document, ...change })).toMatchObject({ kind: 'stale', fields });
  });

  it.each(['etag', 'size', 'storage_class', 'last_modified'] as const)(
    'are incomplete, not stale, where the document lacks %s',
    (field) => {
      const { [field]: _, ...lacking } = document;
      expect(compareObject(state, lacking)).toMatchObject({ kind: 'incomplete', fields: [field] });
    },
  );

  it.each(['"abc"', '&quot;abc&quot;'])('do not differ by the quotes of %s', (etag) => {
    expect(compareObject(state, { ...document, etag })).toMatchObject({ kind: 'equal' });
    expect(compareObject({ ...state, etag }, document)).toMatchObject({ kind: 'equal' });
  });

  it('may lie 17 s apart where the document’s LastModified is an event’s time, which is to be corrected', () => {
    const told = (offMs: number) => ({ ...document, last_modified: iso(AT_MS + offMs), last_modified_exact: false });
    for (const offMs of [-17_000, 0, 17_000]) expect(compareObject(state, told(offMs))).toMatchObject({ kind: 'equal', isInexact: true });
    for (const offMs of [-17_001, 17_001]) {
      expect(compareObject(state, told(offMs))).toMatchObject({ kind: 'stale', fields: ['last_modified'] });
    }
  });
});

const text = fc.string({ unit: anyCharacter, maxLength: 2 });
const awkward = fc.constantFrom('', 'a', 'a/', 'b', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{1f600}', '\u{10ffff}');
const keys = fc.uniqueArray(
  fc
    .tuple(awkward, text, awkward)
    .map((parts) => parts.join(''))
    .filter((key) => key !== ''),
  { maxLength: 30 },
);
/** The same three contents on both sides, so that they often agree. */
const contents = fc.constantFrom('x', 'y', 'z');
const side = keys.chain((list) => fc.tuple(...list.map((key) => fc.tuple(fc.constant(key), contents))).map((pairs) => new Map(pairs)));

const sorted = (map: ReadonlyMap<string, string>): [string, string][] => [...map].sort(([a], [b]) => compareKeys(a, b));
const listedOf = (bucket: ReadonlyMap<string, string>) =>
  sorted(bucket).map(([key, etag]) => ({ key, state: { present: true, etag } as const }));
const scannedOf = (index: ReadonlyMap<string, string>) => sorted(index).map(([key, etag]) => ({ key, etag }));

/** What both sides hold, key by key, in the plainest form. */
function expected(bucket: ReadonlyMap<string, string>, index: ReadonlyMap<string, string>): string[] {
  return [...new Set([...bucket.keys(), ...index.keys()])]
    .sort(compareKeys)
    .filter((key) => bucket.get(key) !== index.get(key))
    .map((key) => `${bucket.has(key) ? (index.has(key) ? 'stale' : 'missing') : 'phantom'} ${key}`);
}

describe('both sides walked together', () => {
  const whole: Omit<Sides, 'listed' | 'documents'> = {
    listedFrom: 0,
    documentsFrom: 0,
    isDocumentsEnd: true,
    through: undefined,
    headsMax: Number.POSITIVE_INFINITY,
    findsEqual: false,
    enrich: 'none',
    needsHead: ({ kind }) => kind === 'phantom',
  };

  it('name every difference once, in the order of UTF-8 bytes', () => {
    fc.assert(
      fc.property(side, side, (bucket, index) => {
        const slice = compareSides({ ...whole, listed: listedOf(bucket), documents: scannedOf(index) });
        expect(slice.comparedKeys.map(({ kind, key }) => `${kind} ${key}`)).toEqual(expected(bucket, index));
        expect(slice.isWhole).toBe(true);
      }),
    );
  });

  it('find the same in pieces of any size, on both sides, as at once, and nothing beyond what is listed', () => {
    const sizes = fc.record({
      page: fc.integer({ min: 1, max: 7 }),
      scan: fc.integer({ min: 1, max: 7 }),
      headsMax: fc.integer({ min: 1, max: 4 }),
    });
    fc.assert(
      fc.property(side, side, sizes, (bucket, index, { page, scan, headsMax }) => {
        const listing = listedOf(bucket);
        const documents = scannedOf(index);
        const found: string[] = [];
        const lastKeys: string[] = [];
        let used = 0;
        for (let start = 0; start === 0 || start < listing.length; start += page) {
          const listed = listing.slice(start, start + page);
          const isLast = start + page >= listing.length;
          for (let listedFrom = 0, isWhole = false; !isWhole;) {
            const inHand = documents.slice(0, Math.max(used + 1, Math.ceil((used + 1) / scan) * scan));
            const slice = compareSides({
              ...whole,
              listed,
              listedFrom,
              documents: inHand,
              documentsFrom: used,
              isDocumentsEnd: inHand.length === documents.length,
              through: isLast ? undefined : listed.at(-1)!.key,
              headsMax,
            });
            found.push(...slice.comparedKeys.map(({ kind, key }) => `${kind} ${key}`));
            if (slice.lastKey !== undefined) lastKeys.push(slice.lastKey);
            ({ listedTo: listedFrom, documentsTo: used, isWhole } = slice);
          }
        }
        expect(found).toEqual(expected(bucket, index));
        expect(lastKeys).toEqual([...new Set(lastKeys)].sort(compareKeys));
      }),
    );
  });

  it('wait for documents where it cannot be told which key is next', () => {
    const listed = listedOf(new Map([['b', 'x']]));
    const slice = compareSides({ ...whole, listed, documents: [], isDocumentsEnd: false });
    expect(slice).toMatchObject({ listedTo: 0, documentsTo: 0, isWhole: false, comparedKeys: [] });
    expect(slice.lastKey).toBeUndefined();
  });

  it('need no more documents once the last listed key was met', () => {
    const listed = listedOf(new Map([['b', 'x']]));
    const slice = compareSides({ ...whole, listed, documents: scannedOf(new Map([['b', 'x']])), isDocumentsEnd: false, through: 'b' });
    expect(slice).toMatchObject({ isWhole: true });
  });

  it('stop at so many phantoms', () => {
    const documents = scannedOf(new Map(['a', 'b', 'c', 'd'].map((key) => [key, 'x'])));
    const slice = compareSides({ ...whole, listed: [], documents, headsMax: 3 });
    expect(slice).toMatchObject({ lastKey: 'c', isWhole: false, documentsTo: 3 });
  });
});
