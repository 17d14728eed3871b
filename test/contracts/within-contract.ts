/** The contract of parts that both stores must pass: within them, every question has the answers of a list that has nothing else. */
import * as fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { mergedParts, overlapping, PARTS_MAX, type BucketPart } from '../../src/store/readable.rules.ts';
import { compareKeys } from '../../src/base/key-order.ts';
import { nameOf, type ObjectDocument } from '../../src/ordering/document.ts';
import { queryWordsOf } from '../../src/base/words.ts';
import { usageBy } from '../../src/store/groups.rules.ts';
import { holds, sortFields, type Test } from '../../src/store/conditions.rules.ts';
import type { ObjectFilter, UsageQuery, Store } from '../../src/store/store.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { allPages, contractWorld, placesOf, keysOf, DAY_MS, iso, unique, type Breadth, type OpenStore } from './world.ts';

const run = unique('within');
const NOON_MS = Date.UTC(2026, 8, 1, 12);

const ONE = `${run}-1`;
const TWO = `${run}-2`;
/** The name begins with that of another one. */
const THREE = `${run}-22`;
/** Granted, and never connected. */
const NEVER = `${run}-3`;

const fields = { clock: 1_000, settled: true, source: 'check' } as const;
const classes = ['STANDARD', 'GLACIER', undefined] as const;
let made = 0;

/** A live document. Sizes, times and classes are shared by several, so that every order has ties, and some have none. */
function live(bucket: string, key: string): ObjectDocument {
  const at = (made += 1);
  const storageClass = classes[at % classes.length];
  return {
    ...fields,
    bucket,
    key,
    ...nameOf(key),
    deleted: false,
    indexed_at: iso(NOON_MS + (at % 4)),
    ...(at % 5 !== 0 && { size: at % 7 }),
    ...(at % 3 !== 0 && { last_modified: iso(NOON_MS - (at % 4) * 20 * DAY_MS) }),
    ...(storageClass !== undefined && { storage_class: storageClass }),
  };
}

function tombstone(bucket: string, key: string): ObjectDocument {
  const at = (made += 1);
  return { ...fields, bucket, key, deleted: true, indexed_at: iso(NOON_MS + (at % 4)), deleted_at: iso(NOON_MS - (at % 2)) };
}

const DEEP = 'a/b/c/d/e/f/g/';
const keys = [
  'report',
  'report.txt',
  'reports/1.txt',
  'reporter/x.gz',
  'logs',
  'logs/',
  'logs/2025/app.gz',
  'logs/2026/app.gz',
  'logs/2026/app.tar.gz',
  'logs/20260/app.gz',
  'logs//double.txt',
  'logs-old/app.gz',
  'Logs/app.gz',
  '/lead.txt',
  `${DEEP}seven.txt`,
  `${DEEP}h/eight.txt`,
  `${DEEP}h/i/nine.txt`,
  `${DEEP}h/i/j/ten.txt`,
  `${DEEP}h/ix/nine.txt`,
  '\u00fcber/report.txt',
  'u\u0308ber/report.txt',
  '\uffff/report.txt',
  '\u{1f600}/report.txt',
  '\u{10ffff}\u{10ffff}x/report',
  '*/report?',
];
const MANY = 330;
const numbered = (at: number): string => `many/${String(at).padStart(3, '0')}/report.txt`;

const documents: readonly ObjectDocument[] = [
  ...[ONE, TWO, THREE].flatMap((bucket) => keys.map((key) => live(bucket, key))),
  ...[ONE, TWO].flatMap((bucket) =>
    ['logs/gone.gz', 'logs/2026/gone.gz', 'gone/report', `${DEEP}h/i/gone`].map((key) => tombstone(bucket, key)),
  ),
  ...Array.from({ length: MANY }, (_, at) => live(ONE, numbered(at))),
];

const part = (bucket: string, prefix = ''): BucketPart => ({ bucket, prefix });
const inOne = (...prefixes: readonly string[]) => prefixes.map((prefix) => part(ONE, prefix));
const times = <Value>(count: number, make: (at: number) => Value): readonly Value[] => Array.from({ length: count }, (_, at) => make(at));

/** What is granted, by its name. */
const granted: readonly (readonly [string, readonly BucketPart[]])[] = [
  ['nothing', []],
  ['a whole bucket', [part(TWO)]],
  ['all buckets', [part(ONE), part(TWO), part(THREE)]],
  ['a bucket without an index', [part(NEVER)]],
  ['a folder of a bucket without an index', [part(NEVER, 'logs/')]],
  ['buckets of which one has no index', [part(ONE, 'logs/'), part(NEVER, 'logs/'), part(NEVER.concat('3')), part(TWO)]],
  ['a folder', inOne('logs/')],
  ['a folder within a folder', inOne('logs/2026/')],
  ['the beginning of a name', inOne('logs/2026')],
  ['a whole key', inOne('report')],
  ['a whole key in each bucket', [part(ONE, 'report.txt'), part(TWO, 'report.txt'), part(THREE, 'report.txt')]],
  ['a slash', inOne('/')],
  ['an empty folder name', inOne('logs//')],
  [
    'folders of seven, eight, nine and ten levels',
    [part(ONE, DEEP), part(TWO, `${DEEP}h/`), part(THREE, `${DEEP}h/i/`), part(NEVER, DEEP)],
  ],
  ['a folder below those that are counted', inOne(`${DEEP}h/i/`)],
  ['the lowest folder', inOne(`${DEEP}h/i/j/`)],
  ['characters that patterns would take for others', inOne('*', 'log?')],
  ['one form of an umlaut', inOne('\u00fc')],
  ['characters in the order of UTF-8', inOne('\uffff', '\u{1f600}')],
  ['the last character', inOne('\u{10ffff}')],
  ['folders and buckets', [part(ONE, 'logs/2026'), part(ONE, 'many/1'), part(ONE, 'report'), part(TWO, 'logs/'), part(THREE)]],
  ['as many folders of one bucket as one person reads', times(PARTS_MAX, (at) => part(ONE, `many/${String(at).padStart(3, '0')}/`))],
  ['as many beginnings of names in one bucket', times(PARTS_MAX, (at) => part(ONE, `many/${String(at).padStart(3, '0')}/r`))],
  ['as many folders of many buckets', times(PARTS_MAX, (at) => part([ONE, TWO, THREE, NEVER][at % 4] ?? ONE, numbered(at).slice(0, 9)))],
  ['as many buckets, of which few have an index', [part(TWO), ...times(PARTS_MAX - 1, (at) => part(`${NEVER}-${at}`))]],
];

/** Filters beside the parts. */
const costly: readonly Test[] = times(50, (at) => ({ kind: 'contains', text: at === 0 ? 'report' : `none${at}` }));
const filters: readonly (readonly [string, ObjectFilter])[] = [
  ['alone', {}],
  ['of a bucket', { bucket: ONE }],
  ['below a folder', { prefix: 'logs/' }],
  ['below the beginning of a name', { bucket: ONE, prefix: 'many/1' }],
  ['with a key', { key: 'report' }],
  ['with words', { words: queryWordsOf('report')! }],
  ['with words in a bucket below a folder', { bucket: ONE, prefix: 'many/', words: queryWordsOf('report txt')! }],
  ['with an extension', { where: [holds({ kind: 'extension', value: 'gz' })] }],
  ['with conditions', { where: [holds({ kind: 'size', min: 2 }), { anyOf: [{ kind: 'class', value: 'GLACIER' }], negated: true }] }],
  ['with conditions that are read in many short calls', { where: [{ anyOf: costly, negated: false }] }],
  ['with words and conditions', { words: queryWordsOf('report')!, where: [holds({ kind: 'prefix', value: 'many/0' })] }],
  ['deleted', { deleted: true }],
  ['deleted in a bucket below a folder', { deleted: true, bucket: ONE, prefix: 'logs/' }],
];

/** What is asked in each order, within which parts: what the order of bucket and key alone might hide. */
const sorted: ReadonlySet<string> = new Set(['folders and buckets', 'characters in the order of UTF-8', 'as many folders of many buckets']);
const paged: ReadonlySet<string> = new Set(['alone', 'of a bucket', 'with words', 'with conditions', 'deleted']);

const orders = sortFields.flatMap((by) => (['asc', 'desc'] as const).map((order) => ({ by, order })));

/** Declares the contract's tests for one store. */
export function withinContract(name: string, open: () => Promise<OpenStore>, { runs, isWhole }: Breadth): void {
  describe(`${name} keeps the contract of parts`, () => {
    const world = contractWorld(open);
    let store: Store;
    const model = createMemoryStore();
    const cases = granted.map(([title, parts], place) => ({ title, within: mergedParts(parts), place }));
    /** Of two neighbours in the list each case has one, and the next case the other. */
    const inTurn = <Item>(items: readonly Item[], place: number): readonly Item[] =>
      isWhole ? items : items.filter((_, at) => (at + place) % 2 === 0);
    const places = [ONE, TWO, NEVER].flatMap((bucket) => ['', 'logs/', 'many/'].map((prefix) => ({ bucket, prefix })));

    beforeAll(async () => {
      ({ store } = world);
      for (const each of [store, model]) for (const bucket of [ONE, TWO, THREE]) await each.objects.createBucket(bucket);
      // the feed leaves out the deletions of what was never held
      const held = documents.filter(({ deleted }) => deleted).map(({ bucket, key, clock }) => ({ ...live(bucket, key), clock: clock - 1 }));
      await world.write(held, model);
      await world.write(documents, model);
    });

    it.each(cases)('finds and counts within $title what a list finds', async ({ within, place }) => {
      for (const [title, filter] of inTurn(filters, place)) {
        const query = { ...filter, within };
        const wanted = await model.objects.search({ ...query, limit: 1_000 });
        expect(placesOf(await store.objects.search({ ...query, limit: 1_000 })), title).toEqual(placesOf(wanted));
        // as the control plane asks: only the parts that the filter overlaps
        const narrowed = { ...query, within: overlapping(within, filter) };
        expect(await store.objects.search({ ...narrowed, limit: 3 }), title).toEqual(wanted.slice(0, 3));
        expect(await store.objects.count(narrowed, 1_000), title).toBe(wanted.length);
      }
    });

    it.each(orders)('sorts by $by $order page by page within parts', async (sort) => {
      const turn = orders.indexOf(sort);
      for (const { title, within } of inTurn(
        cases.filter((each) => sorted.has(each.title)),
        turn,
      )) {
        for (const [filterTitle, filter] of filters) {
          const { deleted = false } = filter;
          if (!paged.has(filterTitle) || (sort.by !== 'key' && deleted !== (sort.by === 'deleted_at'))) continue;
          const query = { ...filter, within, sort };
          const wanted = placesOf(await model.objects.search({ ...query, limit: 1_000 }));
          expect(await allPages(store, query, wanted.length > 20 ? 200 : 3), `${title}, ${filterTitle}`).toEqual(wanted);
        }
      }
    });

    const base = { nowMs: NOON_MS, timeLimitMs: 60_000, limit: 1_000 } as const;

    it.each(cases)('sums within $title what a list sums', async ({ within, place }) => {
      const agree = async (query: UsageQuery) => expect(await store.usage(query), JSON.stringify(query)).toEqual(await model.usage(query));
      for (const { bucket, prefix } of inTurn(places, place))
        for (const limit of inTurn([1_000, 2], Math.floor(place / 2)))
          await agree({ ...base, bucket, by: usageBy, prefix, limit, within: overlapping(within, { bucket, prefix }) });
      for (const bucket of inTurn([ONE, TWO, NEVER], place)) {
        const all = { ...base, bucket, by: usageBy, prefix: '', within };
        await agree({ ...all, where: [holds({ kind: 'prefix', value: 'many/0' })] });
        await agree({ ...all, words: queryWordsOf('report')! });
      }
      for (const prefix of inTurn(['', 'logs/2', 'many/1'], place))
        await agree({ ...base, by: usageBy.filter((by) => by !== 'folder'), prefix, within: overlapping(within, { prefix }) });
    });

    it.each(cases)('shows what changed within $title', async ({ within, place }) => {
      for (const { bucket, prefix } of inTurn(places, place)) {
        const page = { prefix, within, limit: 1_000 };
        // several shards have no common order
        const [found, wanted] = [await store.objects.latest(bucket, page), await model.objects.latest(bucket, page)];
        expect(keysOf(found).toSorted(), `${bucket}/${prefix}`).toEqual(keysOf(wanted).toSorted());
      }
    });

    it('answers for any parts what a list answers', async () => {
      const prefixes = [
        ...new Set(
          [...keys, numbered(7), numbered(77)].flatMap((key) => Array.from(key, (_, at) => Array.from(key).slice(0, at).join(''))),
        ),
      ];
      const somePart = fc.record({
        bucket: fc.constantFrom(ONE, TWO, THREE, NEVER),
        prefix: fc.constantFrom(...prefixes.toSorted(compareKeys)),
      });
      const someFilter = fc.constantFrom(...filters.map(([, filter]) => filter));
      await fc.assert(
        fc.asyncProperty(
          fc.array(somePart, { maxLength: 8 }).map(mergedParts),
          someFilter,
          fc.constantFrom(...orders),
          async (within, filter, sort) => {
            const { deleted = false } = filter;
            const isOfOrder = sort.by === 'key' || deleted === (sort.by === 'deleted_at');
            const query = { ...filter, within, ...(isOfOrder && { sort }) };
            const wanted = placesOf(await model.objects.search({ ...query, limit: 1_000 }));
            expect(await allPages(store, query, wanted.length > 20 ? 100 : 2)).toEqual(wanted);
            expect(await store.objects.count(query, 10_000)).toBe(wanted.length);
            const sums = { ...base, bucket: ONE, by: usageBy, prefix: '', within };
            expect(await store.usage(sums)).toEqual(await model.usage(sums));
          },
        ),
        { numRuns: runs },
      );
    });
  });
}
