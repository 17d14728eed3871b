/** The contract of searches that both stores must pass: filters, patterns, orders and cursors, compared with the plainest model. */
import * as fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { nameOf, type ObjectDocument } from '../../src/ordering/document.ts';
import { queryWordsOf } from '../../src/base/words.ts';
import { holds, sortFields, type Condition, type Test } from '../../src/store/conditions.rules.ts';
import { parseQuery } from '../../src/search/parse.rules.ts';
import { patternOf } from '../../src/store/pattern.rules.ts';
import type { ObjectFilter, Store } from '../../src/store/store.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import {
  allPages,
  contractWorld,
  placesOf,
  DAY_MS,
  iso,
  live as liveOf,
  tombstone as tombstoneOf,
  unique,
  type Breadth,
  type OpenStore,
} from './world.ts';
import { filterOf } from '../../src/search/search.ts';

const NOON_MS = Date.UTC(2026, 8, 1, 12);
const [ONE, TWO] = ['1', '2'].map((name) => unique(`search-${name}`)) as [string, string];

const live = (bucket: string, key: string, more: Partial<ObjectDocument> = {}): ObjectDocument =>
  liveOf(bucket, key, { ...nameOf(key), indexed_at: iso(NOON_MS), ...more });
const tombstone = (bucket: string, key: string, deletedMs = NOON_MS): ObjectDocument =>
  tombstoneOf(bucket, key, { indexed_at: iso(NOON_MS), deleted_at: iso(deletedMs) });

const documents: readonly ObjectDocument[] = [
  live(ONE, 'logs/2026/App.LOG.gz', { size: 10, last_modified: iso(NOON_MS), storage_class: 'STANDARD', etag: 'e1' }),
  live(ONE, 'logs/2026/app.tar.gz', { size: 2 ** 31, last_modified: iso(NOON_MS - DAY_MS), storage_class: 'GLACIER', etag: 'e2' }),
  live(ONE, 'logs/.tar.gz', { size: 0, last_modified: iso(NOON_MS + 1) }),
  live(ONE, 'photos/Übersicht (2).JPG', { size: 10, content_type: 'image/jpeg', tags: { team: 'ml', 'a=b': 'c' } }),
  live(ONE, 'photos/übersicht (2).png', { content_type: 'image/png', tags: { team: 'ML' }, user_metadata: { 'cost.center': '42' } }),
  live(ONE, 'photos/x.jpg', { content_type: 'image', user_metadata: { größe: 'a b', note: '' }, size: 5 }),
  live(ONE, 'tricky/100%_[a]*b?c\\d"e\'f.txt', { size: 7 }),
  live(ONE, 'tricky/new\nline.txt', { size: 7 }),
  live(ONE, 'tricky/😀smile😀.txt', { size: 7 }),
  live(ONE, 'tricky/Nul\0Byte.txt', { size: 7 }),
  live(ONE, '\0Lead/nul.txt', { size: 7 }),
  live(ONE, '\0\0', { size: 7 }),
  live(ONE, 'tricky/last\uffffof the BMP.txt', { size: 7 }),
  live(ONE, 'Straße/ΟΔΟΣ', { size: 1 }),
  live(ONE, 'report', { size: 3, last_modified: iso(NOON_MS) }),
  live(ONE, 'a/report', { size: 3, last_modified: iso(NOON_MS) }),
  live(ONE, 'xreport', { size: 3 }),
  live(TWO, 'report.parquet', { size: 3, last_modified: iso(NOON_MS) }),
  live(TWO, 'iPhone15Pro.heic', { size: 10, last_modified: iso(NOON_MS) }),
  tombstone(ONE, 'logs/Gone.log'),
  tombstone(ONE, 'logs/earlier.log', NOON_MS - DAY_MS),
  tombstone(TWO, 'Gone.jpg', NOON_MS - 1),
];

function match(text: string, hasPrefix = true): Test {
  const pattern = patternOf(text, hasPrefix);
  if ('mistake' in pattern) throw new Error(pattern.mistake);
  return { kind: 'match', pattern };
}

const not = (...anyOf: readonly Test[]): Condition => ({ anyOf, negated: true });
const any = (...anyOf: readonly Test[]): Condition => ({ anyOf, negated: false });
const contains = (text: string): Condition => holds({ kind: 'contains', text });
const words = (q: string): Test => ({ kind: 'words', words: queryWordsOf(q, true)! });

/** What is asked, by its name. The model says what must be found; each case finds something or states that it does not. */
const cases: readonly (readonly [string, ObjectFilter, 'nothing'?])[] = [
  ['contains in any case', { where: [contains('app.l')] }],
  ['contains across slashes', { where: [contains('s/2026/a')] }],
  ['contains without accents', { where: [contains('ubersicht (2)')] }],
  ['contains ss for ß', { where: [contains('strasse/οδοσ')] }],
  ['contains special characters literally', { where: [contains('%_[a]*b?c\\d"e\'f')] }],
  ['contains a star literally', { where: [contains('a]*b')] }],
  ['contains no pattern', { where: [contains('app*gz')] }, 'nothing'],
  ['contains a newline', { where: [contains('w\nl')] }],
  ['contains a character beyond the BMP', { where: [contains('😀smile😀')] }],
  ['contains a NUL', { where: [contains('l\0b')] }],
  ['contains what follows a NUL', { where: [contains('byte')] }],
  ['contains what follows a NUL at the beginning', { where: [contains('lead/nul')] }],
  ['contains a NUL at the beginning', { where: [contains('\0lead')] }],
  ['a pattern that begins with a NUL', { where: [any(match('\0lead*'), match('?\0'))] }],
  ['contains no NUL', { where: [contains('l\ufffdb')] }, 'nothing'],
  ['contains U+FFFF', { where: [contains('t\uffffo')] }],
  [
    'contains no other character than U+FFFF',
    { where: [any(...['\ufffd', '\ufffe'].map((text): Test => ({ kind: 'contains', text: `t${text}o` })))] },
    'nothing',
  ],
  ['a question mark for a NUL and for U+FFFF', { where: [any(match('nul?byte.txt'), match('last?of*'))] }],
  ['contains the whole key', { where: [contains('report')] }],
  ['contains, in one bucket and prefix', { bucket: ONE, prefix: 'logs/', where: [contains('app')] }],
  ['a pattern at both ends', { where: [holds(match('logs/*.gz'))] }],
  ['a pattern with a slash begins at the beginning', { where: [holds(match('2026/*.gz'))] }, 'nothing'],
  ['a pattern without a slash begins after any slash', { where: [holds(match('report'))] }],
  ['a pattern without a slash may span slashes', { where: [holds(match('logs*gz'))] }],
  ['a pattern of question marks', { where: [holds(match('?.jpg'))] }],
  ['a question mark for one character, beyond the BMP too', { where: [holds(match('?smile?.txt'))] }],
  ['a question mark for a newline', { where: [holds(match('new?line*'))] }],
  ['a pattern with special characters', { where: [holds(match('100%_[a]?b?c\\d"e\'*'))] }],
  ['a pattern in capitals with accents', { where: [holds(match('ÜBERSICHT*'))] }],
  ['a pattern that must match to the end', { where: [holds(match('*.tar'))] }, 'nothing'],
  ['a bracket is no set', { where: [holds(match('*[ab]*'))] }, 'nothing'],
  ['any of several patterns', { where: [any(match('*.jpg'), match('*.png'))] }],
  ['no pattern of several', { where: [not(match('*.jpg'), match('*.gz'))] }],
  ['extension', { where: [holds({ kind: 'extension', value: 'gz' })] }],
  ['dotted extension', { where: [holds({ kind: 'extension', value: 'tar.gz' })] }],
  ['dotted extension in any case', { where: [holds({ kind: 'extension', value: 'log.gz' })] }],
  ['dotted extension that is none', { where: [holds({ kind: 'extension', value: '2026/app.gz' })] }, 'nothing'],
  ['any of two extensions', { where: [any({ kind: 'extension', value: 'jpg' }, { kind: 'extension', value: 'heic' })] }],
  [
    'none of two extensions, names without one too',
    { where: [not({ kind: 'extension', value: 'jpg' }, { kind: 'extension', value: 'gz' })] },
  ],
  ['size at least', { where: [holds({ kind: 'size', min: 10 })] }],
  ['size at most', { where: [holds({ kind: 'size', max: 3 })] }],
  ['size within', { where: [holds({ kind: 'size', min: 3, max: 7 })] }],
  ['size beyond 32 bits', { where: [holds({ kind: 'size', min: 2 ** 31 })] }],
  ['not of a size, unknown ones too', { where: [not({ kind: 'size', min: 3 })] }],
  ['modified from', { where: [holds({ kind: 'modified', from: NOON_MS })] }],
  ['modified before', { where: [holds({ kind: 'modified', before: NOON_MS })] }],
  ['modified within', { where: [holds({ kind: 'modified', from: NOON_MS, before: NOON_MS + 1 })] }],
  ['modified within all times', { where: [holds({ kind: 'modified', from: Date.parse('0000-01-01'), before: Date.parse('9999-12-31') })] }],
  ['modified before 1970', { where: [holds({ kind: 'modified', before: -1 })] }, 'nothing'],
  ['not modified before, unknown ones too', { where: [not({ kind: 'modified', before: NOON_MS })] }],
  ['content type', { where: [holds({ kind: 'type', value: 'image/png', family: false })] }],
  ['family of content types', { where: [holds({ kind: 'type', value: 'image/', family: true })] }],
  ['storage class', { where: [holds({ kind: 'class', value: 'GLACIER' })] }],
  ['etag', { where: [holds({ kind: 'etag', value: 'e1' })] }],
  ['tag', { where: [holds({ kind: 'tag', name: 'team', value: 'ml' })] }],
  ['tag with = in its name', { where: [holds({ kind: 'tag', name: 'a=b', value: 'c' })] }],
  ['tag whose name and value are split elsewhere', { where: [holds({ kind: 'tag', name: 'a', value: 'b=c' })] }],
  ['tag of another value', { where: [holds({ kind: 'tag', name: 'team', value: 'm' })] }, 'nothing'],
  ['tag of any value', { where: [holds({ kind: 'tag', name: 'team' })] }],
  ['tag of any value, with = in its name', { where: [holds({ kind: 'tag', name: 'a=b' })] }],
  ['no tag of this name', { where: [not({ kind: 'tag', name: 'team' })] }],
  ['tag of the beginning of a name', { where: [holds({ kind: 'tag', name: 'tea' })] }, 'nothing'],
  ['metadata of any value, the empty one too', { where: [holds({ kind: 'meta', name: 'note' })] }],
  ['metadata of any value, with a dot in its name', { where: [holds({ kind: 'meta', name: 'cost.center' })] }],
  ['metadata of the part of a name before a dot', { where: [holds({ kind: 'meta', name: 'cost' })] }, 'nothing'],
  ['no metadata of these names', { where: [not({ kind: 'meta', name: 'note' }, { kind: 'meta', name: 'cost.center' })] }],
  ['metadata with a dot in its name', { where: [holds({ kind: 'meta', name: 'cost.center', value: '42' })] }],
  ['metadata beyond ASCII', { where: [holds({ kind: 'meta', name: 'größe', value: 'a b' })] }],
  ['metadata that is empty', { where: [holds({ kind: 'meta', name: 'note', value: '' })] }],
  ['metadata is no tag', { where: [holds({ kind: 'meta', name: 'team', value: 'ml' })] }, 'nothing'],
  ['any of two buckets', { where: [any({ kind: 'bucket', value: ONE }, { kind: 'bucket', value: TWO })], prefix: 'report' }],
  ['not of a bucket', { where: [not({ kind: 'bucket', value: ONE })] }],
  ['any of two prefixes', { where: [any({ kind: 'prefix', value: 'logs/' }, { kind: 'prefix', value: 'photos/x' })] }],
  ['from a key on', { where: [holds({ kind: 'from', value: 'logs/m' })] }],
  ['not below a prefix', { where: [not({ kind: 'prefix', value: 'logs/' })] }],
  ['any of two keys', { where: [any({ kind: 'key', value: 'report' }, { kind: 'key', value: 'a/report' })] }],
  ['words and a filter', { words: queryWordsOf('report')!, where: [holds({ kind: 'modified', from: 0 })] }],
  ['words and a prefix and a filter', { words: queryWordsOf('report')!, prefix: 'a/', where: [holds({ kind: 'size', min: 3 })] }],
  ['words in one bucket and a filter', { bucket: TWO, words: queryWordsOf('iphone')!, where: [holds({ kind: 'size', min: 3 })] }],
  ['any of two words', { where: [any(words('iphone'), words('übersicht'))] }],
  ['not a word', { where: [not(words('report'))] }],
  ['a joined word among others', { where: [any(words('iphone15pro'), words('none'))] }],
  ['deleted', { deleted: true }],
  ['deleted in a bucket', { deleted: true, bucket: ONE }],
  ['deleted that contain', { deleted: true, where: [contains('gone.')] }],
  ['deleted by pattern and prefix', { deleted: true, prefix: 'logs/', where: [holds(match('*.log'))] }],
  ['deleted within', { deleted: true, where: [holds({ kind: 'deleted', from: NOON_MS - 1, before: NOON_MS })] }],
  [
    'everything at once',
    { bucket: ONE, prefix: 'logs/', where: [contains('app'), not({ kind: 'class', value: 'GLACIER' }), holds({ kind: 'size', min: 1 })] },
  ],
];

/** Few characters, so that texts often contain each other, and all that is special in the grammar, in SQL or in OpenSearch. */
const awkwardText = fc.string({ unit: fc.constantFrom(...Array.from('aAbß1 .=:/*?"\\\'%_-,😀é\0')), minLength: 1, maxLength: 5 });
const awkwardName = fc.oneof(awkwardText, fc.constantFrom('team', 'team.x', 'Team', 'a', 'a=', 'a=b', '__proto__', '$.a', 'a"b'));
const awkwardPairs = fc.uniqueArray(fc.tuple(awkwardName, fc.oneof(awkwardText, fc.constant(''))), {
  maxLength: 3,
  selector: ([name]) => name,
});
const awkwardDocument = fc.record(
  {
    key: fc.array(awkwardText, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/')),
    size: fc.constantFrom(0, 1, 2, 2 ** 31),
    last_modified: fc.constantFrom(...[-1, 0, 1, DAY_MS, -DAY_MS].map((ms) => iso(NOON_MS + ms))),
    storage_class: fc.constantFrom('STANDARD', 'GLACIER'),
    etag: awkwardText,
    content_type: fc.constantFrom('image/png', 'image/*', 'image', 'text/csv; charset=utf-8'),
    tags: awkwardPairs.map((pairs) => Object.fromEntries(pairs)),
    user_metadata: awkwardPairs.map((pairs) => Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]))),
  },
  { requiredKeys: ['key'] },
);

const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;

/** A clause of any kind, also one that is a mistake. Half of the values are those of a document, so that something is found. */
function anyClause(some: readonly ObjectDocument[], buckets: readonly string[]): fc.Arbitrary<string> {
  const one = fc.constantFrom(...some);
  const nameAndValue = (pairs: ObjectDocument['tags'] = {}): readonly string[] =>
    Object.entries(pairs).flatMap(([name, value]) => [name, `${name}=${value}`, `${name.replaceAll('=', '%3D')}=${value}`]);
  const of = (values: (document: ObjectDocument) => readonly (string | undefined)[]): fc.Arbitrary<string> => {
    const known = one.chain((document) => fc.constantFrom(...values(document), undefined)).map((text) => text ?? 'a');
    const text = fc.oneof(known, awkwardText);
    return fc.oneof(text.map(quoted), text);
  };
  const parts = (text: string): readonly string[] =>
    [
      [0, undefined],
      [0, 3],
      [1, undefined],
      [0, -1],
    ].map(([from, to]) => Array.from(text).slice(from, to).join(''));
  const values: Readonly<Record<string, fc.Arbitrary<string>>> = {
    'bucket:': fc.constantFrom(...buckets),
    'key:': of(({ key }) => [key]),
    'key>=': of(({ key }) => parts(key)),
    'prefix:': of(({ key }) => parts(key)),
    'ext:': of(({ extension, key }) => [extension, key.split('.').slice(-2).join('.')]),
    'type:': fc.oneof(
      of(({ content_type: type }) => [type]),
      fc.constantFrom('image/*', 'text/*'),
    ),
    'class:': of(({ storage_class: storageClass }) => [storageClass, storageClass?.toLowerCase()]),
    'etag:': of(({ etag }) => [etag]),
    'tag:': of(({ tags }) => nameAndValue(tags)),
    'meta:': of(({ user_metadata: metadata }) => nameAndValue(metadata)),
    '': of(({ key }) => [
      ...parts(key),
      `${Array.from(key).slice(0, 3).join('')}*`,
      `*${Array.from(key).slice(-3).join('')}`,
      key.replace(/^./u, '?'),
    ]),
  };
  const compared = fc
    .tuple(
      fc.constantFrom('>', '>=', '<', '<=', '='),
      fc.constantFrom('0', '1', '2', '2G'),
      fc.constantFrom('2026-09-01', '2026', '2026-09-01T12:00Z', '1d', '24h'),
    )
    .chain(([operator, size, time]) => fc.constantFrom(`size${operator}${size}`, `modified${operator}${time}`));
  const listed = fc
    .constantFrom(...Object.keys(values))
    .chain((field) => fc.array(values[field]!, { minLength: 1, maxLength: 2 }).map((texts) => `${field}${texts.join(',')}`));
  return fc.tuple(fc.constantFrom('', '', '-'), fc.oneof(compared, { weight: 5, arbitrary: listed })).map((each) => each.join(''));
}

/** Declares the contract's tests for one store. */
export function searchContract(name: string, open: () => Promise<OpenStore>, { runs }: Pick<Breadth, 'runs'>): void {
  describe(`${name} keeps the contract of searches`, () => {
    const world = contractWorld(open);
    let store: Store;
    const model = createMemoryStore();

    beforeAll(async () => {
      ({ store } = world);
      for (const each of [store, model]) for (const bucket of [ONE, TWO]) await each.objects.createBucket(bucket);
      await world.write(documents, model);
    });

    it.each(cases.map(([title, filter, nothing]) => ({ title, filter, nothing })))('finds by $title', async ({ filter, nothing }) => {
      const wanted = await model.objects.search({ ...filter, limit: 1_000 });
      expect(wanted.length === 0 ? 'nothing' : undefined).toBe(nothing);
      expect(await store.objects.search({ ...filter, limit: 1_000 })).toEqual(wanted);
      expect(await store.objects.count(filter, 100)).toBe(wanted.length);
      if (wanted.length > 1) expect(await store.objects.count(filter, wanted.length - 1)).toBe(wanted.length);
    });

    it('counts no further than it must', async () => {
      expect(await store.objects.count({}, 3)).toBe(4);
      expect(await store.objects.count({ bucket: `${ONE}-never` }, 3)).toBe(0);
    });

    const orders = sortFields.flatMap((by) => (['asc', 'desc'] as const).map((order) => ({ by, order })));

    it.each(orders)('sorts by $by $order, page by page', async (sort) => {
      const deleted = sort.by === 'deleted_at';
      const filters: readonly ObjectFilter[] = [
        { deleted },
        { deleted, bucket: ONE },
        { deleted, prefix: 'logs/' },
        ...(deleted ? [] : [{ words: queryWordsOf('report')! }, { where: [holds(match('*r*'))] }]),
      ];
      for (const filter of filters) {
        const wanted = placesOf(await model.objects.search({ ...filter, sort, limit: 1_000 }));
        for (const limit of [1, 1_000]) expect(await allPages(store, { ...filter, sort }, limit)).toEqual(wanted);
      }
    });

    it('finds by any query what the model finds, among objects with awkward keys, tags and metadata', async () => {
      const bucket = unique('awkward');
      const awkward = fc.sample(awkwardDocument, 80).map((more) => live(bucket, more.key, more));
      const distinct = [...new Map(awkward.map((document) => [document.key, document])).values()];
      for (const each of [store, model]) await each.objects.createBucket(bucket);
      await world.write(distinct, model);
      const clause = anyClause(distinct, [ONE, bucket]);
      let found = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.array(clause, { minLength: 1, maxLength: 4 }),
          fc.constantFrom(...orders.slice(0, 6)),
          async (clauses, sort) => {
            const text = clauses.join(' ');
            const query = parseQuery(text, { nowMs: NOON_MS, timeZone: 'UTC' });
            if ('message' in query || query.deleted) return;
            const wanted = placesOf(await model.objects.search({ where: query.conditions, sort, limit: 1_000 }));
            found += wanted.length;
            // the same conditions, and as a request asks: by an index, with its place and its words apart
            const { filter } = filterOf({ query: text }, NOON_MS);
            expect(placesOf(await store.objects.search({ where: query.conditions, sort, limit: 1_000 })), text).toEqual(wanted);
            expect(await allPages(store, { ...filter, sort }, 7), text).toEqual(wanted);
            expect(await store.objects.count(filter, 1_000), text).toBe(wanted.length);
          },
        ),
        { numRuns: runs },
      );
      expect(found).toBeGreaterThan(0);
    });

    it('takes patterns with the most stars on the longest keys in a moment', async () => {
      const bucket = `${ONE}-long`;
      await store.objects.createBucket(bucket);
      const keys = Array.from({ length: 50 }, (_, at) => `${'a'.repeat(1_000)}${at}`);
      await world.write(keys.map((key) => live(bucket, key)));
      for (const text of [`${'a*a'.repeat(8)}aab`, `*${'a'.repeat(254)}b`, '*aaa????????b', 'aaa*?*?*?*?*?*?*?*?b']) {
        expect(await store.objects.search({ bucket, where: [holds(match(text))], limit: 10 }), text).toEqual([]);
      }
      for (const text of ['a'.repeat(256), 'ab'.repeat(128), 'ж'.repeat(256), '😀'.repeat(256)]) {
        const found = await store.objects.search({ bucket, where: [contains(text)], limit: 100 });
        expect(found, text).toHaveLength(text.startsWith('aa') ? 50 : 0);
      }
    });
  });
}
