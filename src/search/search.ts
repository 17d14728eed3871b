/** Searches the index. Both stores return the same objects in the same order for the same request. */
import type { z } from 'zod';
import type { searchAnswer, searchQuery, asOf, clause, filterFields } from '../registry/contract/search.ts';
import { type ObjectDocument, FOLDER_LEVELS } from '../ordering/document.ts';
import { RequestError } from '../base/request-error.ts';
import { partsOfPlace, placeOfCursor, type SearchOrder } from './cursor.rules.ts';
import { overlapping, type Readable, readsAll, readsSome, touches } from '../store/readable.rules.ts';
import { requireReadable, requireBucket, shownTo } from '../observing/buckets.ts';
import type {
  ObjectFilter,
  ObjectIndex,
  ObjectQuery,
  StateStore,
  WithPorts,
  SumUsage,
  UsageGroup,
  UsageSum,
  UsageSums,
} from '../store/store.ts';
import { readPage, listAllRecords } from '../store/stored.ts';
import { defined } from '../base/defined.ts';
import { bucketView } from '../registry/contract/buckets.ts';
import { asksForMore, bucketRecordSchema, type BucketRecord, type EnrichMode } from '../records/bucket.ts';
import { bucketSeverities, bucketStatus } from '../records/bucket-status.ts';
import { troublesOf, type Processes } from '../observing/processes.ts';
import { gapsOf } from '../observing/gaps.ts';
import { queryWordsOf, type QueryWords } from '../base/words.ts';
import { type Condition, type Test, holds, CLAUSES_OF_PART, WEIGHT_MAX, weightOf, weightOfWords } from '../store/conditions.rules.ts';
import { isFieldName, type FieldName } from './fields.rules.ts';
import { lexemesOf, type Mistake, type Operator } from './lexer.rules.ts';
import { foreignOperators, parseQuery, type Parameter } from './parse.rules.ts';
import { isPattern } from '../store/pattern.rules.ts';
import { isTimeZone } from './values.rules.ts';
import type { Grouping, Usage, UsageRequest } from '../registry/contract/usage.ts';
import { groupClause, type UsageBy } from '../store/groups.rules.ts';

export type SearchRequest = z.output<typeof searchQuery>;
type SearchAnswer = z.output<typeof searchAnswer>;
export type Search = (request: SearchRequest, readable: Readable, signal?: AbortSignal) => Promise<SearchAnswer>;

interface SearchDependencies extends WithPorts<'state' | 'clock'> {
  readonly objects: ObjectIndex;
  readonly processes: Pick<Processes, 'troubles'>;
  readonly compareIntervalMs: number;
}

/** Results are counted up to this number. A higher one would change nothing for its reader, and counting takes as long as reading. */
const TOTAL_MAX = 10_000;
const NOTHING = { value: 0, exact: true } as const;

/** Creates the search. Throws `request.invalid` for mistakes, `bucket.not-connected` and the store's faults. */
export function createSearch(dependencies: SearchDependencies): Search {
  const { objects, state, clock } = dependencies;
  const asOf = createAsOf(dependencies);

  return async function search(request, readable, signal) {
    const order = orderOf(request);
    const place = request.cursor === undefined ? undefined : placeOfCursor(request.cursor, order);
    // ages are relative to the moment of the first page
    const nowMs = place?.nowMs ?? clock.nowMs();
    const understood = await understand(state, request, { nowMs, readable }, signal);
    checkOrder(order, understood.filter);
    const beside = await besidesOf(request, understood, { readable, signal });
    const { filter } = understood;
    if (filter === null) return { items: [], ...beside };
    const now = understood.relative ? { nowMs } : {};
    const page = await readPage({
      limit: request.limit,
      after: place === undefined ? undefined : partsOfPlace(order, place),
      fetch: (limit, position) => objects.search({ ...filter, ...sorted(order, position), limit }, signal),
      positionOf: (document) => partsOfPlace(order, { ...now, ...placeOfDocument(document, order) }),
    });
    return { ...page, ...beside };
  };

  /** What the answer contains besides its items. */
  async function besidesOf(
    request: SearchRequest,
    { filter, understood, foundIn }: NarrowedFilter,
    { readable, signal }: { readonly readable: Readable; readonly signal: AbortSignal | undefined },
  ): Promise<Omit<SearchAnswer, 'items' | 'next'>> {
    return {
      ...(understood !== undefined && { understood }),
      ...(request.as_of === 'true' && { as_of: await asOf([...new Set(foundIn)], readable, signal) }),
      ...(request.total === 'true' && { total: filter === null ? NOTHING : await totalOf(filter, signal) }),
    };
  }

  async function totalOf(filter: ObjectFilter, signal: AbortSignal | undefined): Promise<NonNullable<SearchAnswer['total']>> {
    const count = await objects.count(filter, TOTAL_MAX, signal);
    return { value: Math.min(count, TOTAL_MAX), exact: count <= TOTAL_MAX };
  }
}

/** The filter narrowed to what the caller may read; null: nothing. */
type NarrowedFilter = Omit<UnderstoodFilter, 'filter'> & { readonly filter: ObjectFilter | null };

/**
 * Understands a request's filter, checks that its buckets are connected and have the enrichment that it needs, and narrows it to what
 * the caller may read.
 */
export async function understand(
  state: StateStore,
  request: FilterRequest,
  { nowMs, readable }: { readonly nowMs: number; readonly readable: Readable },
  signal: AbortSignal | undefined,
): Promise<NarrowedFilter> {
  const understood = filterOf(request, nowMs);
  const named = await Promise.all([...new Set(understood.buckets)].map((bucket) => requireReadable(state, { bucket, readable }, signal)));
  await checkEnriched(state, understood, named, readable);
  const filter = narrowed(understood.filter, readable);
  if (filter?.within !== undefined) checkWeight(filter, filter.within.length);
  return { ...understood, filter };
}

/** Without the enrichment, the index does not know whether an object lacks a tag. */
async function checkEnriched(
  state: StateStore,
  { filter, foundIn }: UnderstoodFilter,
  named: readonly BucketRecord[],
  readable: Readable,
): Promise<void> {
  const asked = enrichmentOf(filter);
  if (asked === 'none') return;
  const isFound = ({ bucket }: BucketRecord): boolean => foundIn.includes(bucket);
  const isNamed = ({ bucket }: BucketRecord): boolean => named.some((each) => each.bucket === bucket);
  const searched =
    foundIn.length > 0
      ? named.filter(isFound)
      : (await listAllRecords(state, 'bucket', bucketRecordSchema)).filter((each) => !isNamed(each) && readsSome(readable, each.bucket));
  const lacking = searched.find(({ enrich }) => asksForMore(enrich, asked));
  if (lacking === undefined) return;
  const { bucket } = lacking;
  const [what, set] =
    asked === 'tags'
      ? ['tags', `\`tally bucket add ${bucket} --enrich tags\``]
      : ['metadata', `\`tally bucket add ${bucket} --enrich head\``];
  throw new RequestError(
    'request.invalid',
    `${bucket} is not enriched with ${what}, so the index cannot tell: exclude it (-bucket:${bucket}), or enrich it (${set}, then \`tally reindex ${bucket} --fill\`)`,
  );
}

/** The enrichment that a search needs its buckets to have. */
function enrichmentOf({ where = [] }: ObjectFilter): EnrichMode {
  const kinds = new Set(where.flatMap(({ anyOf }) => anyOf.map(({ kind }) => kind)));
  if (kinds.has('tag')) return 'tags';
  return kinds.has('meta') || kinds.has('type') ? 'head' : 'none';
}

/** The filter narrowed to what may be read; null: nothing. */
function narrowed(filter: ObjectFilter, readable: Readable): ObjectFilter | null {
  if (readable === 'everything') return filter;
  const { bucket, prefix = '' } = filter;
  const within = overlapping(readable, filter);
  const [part] = within;
  if (part === undefined) return null;
  // the filter's part may be read whole
  return part.bucket === bucket && part.prefix === prefix ? filter : { ...filter, within };
}

function orderOf({ sort: by = 'key', order = 'asc' }: Pick<SearchRequest, 'sort' | 'order'>): SearchOrder {
  return { by, order };
}

function checkOrder({ by }: SearchOrder, filter: ObjectFilter | null): void {
  const deleted = filter?.deleted === true;
  if (by === 'key' || filter === null || deleted === (by === 'deleted_at')) return;
  throw new RequestError('request.invalid', deleted ? `sort: deleted objects have no ${by}` : 'sort: deleted_at needs deleted=true');
}

function sorted(order: SearchOrder, position: readonly string[] | undefined): Pick<ObjectQuery, 'sort' | 'after'> {
  const isDefault = order.by === 'key' && order.order === 'asc';
  return { ...(!isDefault && { sort: order }), ...(position !== undefined && { after: afterOf(position) }) };
}

/** The place that these parts describe, which come from a checked cursor or a document. */
function afterOf(parts: readonly string[]): NonNullable<ObjectQuery['after']> {
  const [, , value = '', bucket = '', key = ''] = parts;
  return { bucket, key, ...(value !== '' && { value: Number(value) }) };
}

function placeOfDocument(
  document: ObjectDocument,
  { by }: SearchOrder,
): { readonly bucket: string; readonly key: string; readonly value?: number } {
  const { bucket, key } = document;
  if (by === 'key') return { bucket, key };
  const value = document[by];
  return { bucket, key, value: typeof value === 'string' ? Date.parse(value) : (value ?? -1) };
}

type AsOf = z.output<typeof asOf>;

/** As many buckets as fit above the results. */
const BUCKETS_MAX = 8;

/** Waits are noted once a minute. An older note says nothing about now, because no event has come since. */
const NOTE_AGE_MAX_MS = 180_000;

/** How far events are behind, by their slowest queue; undefined: not noticeably. */
function behindMs({ eventQueues = [] }: Pick<BucketRecord, 'eventQueues'>, nowMs: number): number | undefined {
  const waits = eventQueues.flatMap(({ atMs, waitedMs }) => (waitedMs !== undefined && nowMs - atMs <= NOTE_AGE_MAX_MS ? waitedMs : []));
  return waits.length === 0 ? undefined : Math.round(Math.max(...waits));
}

/** Creates the function that says how far the indexes of a search's buckets can be relied on now. */
export function createAsOf({ state, clock, processes, compareIntervalMs }: Omit<SearchDependencies, 'objects'>) {
  async function asOfBucket(bucket: string, readable: Readable, signal: AbortSignal | undefined): Promise<AsOf> {
    const nowMs = clock.nowMs();
    const [record, troubles, all] = await Promise.all([
      requireBucket(state, bucket, signal),
      processes.troubles(),
      gapsOf(state, bucket, signal),
    ]);
    const gaps = all.filter((gap) => touches(readable, gap));
    const { status, last_event_at, last_compared_at } = bucketView(
      record,
      shownTo(readable, bucketStatus({ record, ...troublesOf(troubles, record, nowMs), gaps, nowMs, compareIntervalMs })),
    );
    const times = defined({ last_event_at, last_compared_at, behind_ms: behindMs(record, nowMs) });
    return {
      bucket,
      status,
      // these times concern keys of the whole bucket
      ...(readsAll(readable, { bucket, prefix: '' }) && times),
      gaps: gaps.length,
    };
  }

  return async function asOfBuckets(buckets: readonly string[], readable: Readable, signal?: AbortSignal): Promise<readonly AsOf[]> {
    const all = await Promise.all(buckets.map((bucket) => asOfBucket(bucket, readable, signal)));
    // the worst come first, so that they are never left out
    const rank = ({ status }: AsOf): number => bucketSeverities.indexOf(status.severity);
    return all.toSorted((a, b) => rank(a) - rank(b)).slice(0, BUCKETS_MAX);
  };
}

/** A request's checked parameters that narrow its search. */
export type FilterRequest = { readonly [Name in keyof typeof filterFields]?: z.output<(typeof filterFields)[Name]> };

interface UnderstoodFilter {
  readonly filter: ObjectFilter;
  /** The buckets that the request names, each of which must be connected. */
  readonly buckets: readonly string[];
  /** The buckets in which it searches; empty: all. */
  readonly foundIn: readonly string[];
  /** It contains ages, which are relative to the moment of the query. */
  readonly relative: boolean;
  readonly understood: readonly z.output<typeof clause>[] | undefined;
}

/** Makes one filter of a request's parameters and query. Throws `request.invalid` for the first mistake, with its `position` in `query`. */
export function filterOf(request: FilterRequest, nowMs: number): UnderstoodFilter {
  const { query, q, tz: timeZone = 'UTC' } = request;
  if (!isTimeZone(timeZone)) throw new RequestError('request.invalid', 'tz: must be a time zone such as Europe/Berlin, UTC or +02:00');
  if (query !== undefined && q !== undefined)
    throw new RequestError('request.invalid', 'query: cannot be combined with q; put its words into query');
  const parsed = parseQuery(query ?? '', { nowMs, timeZone, parameters: parametersOf(request) });
  if ('message' in parsed) throw mistakeOf(parsed);
  const { conditions, deleted, relative, clauses } = parsed;
  const words = wordsIn(q);
  if (deleted) checkDeleted(request, words);
  checkWeight({ where: conditions, words });
  const bucketsIn = (some: readonly Condition[]): readonly string[] =>
    some.flatMap(({ anyOf }) => anyOf.flatMap((test) => (test.kind === 'bucket' ? test.value : [])));
  return {
    filter: placed(conditions, { words, deleted }),
    buckets: bucketsIn(conditions),
    foundIn: bucketsIn(conditions.filter(({ negated }) => !negated)),
    relative,
    understood: query === undefined ? undefined : clauses,
  };
}

function checkDeleted(request: FilterRequest, words: QueryWords): void {
  if (request.deleted === 'false') throw new RequestError('request.invalid', 'deleted: the query asks for deleted objects');
  if (words.length > 0) throw new RequestError('request.invalid', 'q: deleted objects have no words; use contains or match');
}

function mistakeOf({ position, parameter, message }: Mistake): RequestError {
  if (parameter !== undefined) return new RequestError('request.invalid', `${parameter}: ${message}`);
  return new RequestError('request.invalid', `query: at character ${position + 1}: ${message}`, { position });
}

interface Twin extends Pick<Parameter, 'field'> {
  readonly parameter: Exclude<keyof typeof filterFields, 'query' | 'q' | 'tz' | 'deleted'>;
  readonly how: Omit<Parameter['value'], 'text'>;
}

const plain = { quoted: false } as const;
const asInQuotes = { quoted: true } as const;

function twin(parameter: Twin['parameter'], name: FieldName, operator: Operator = ':', how: Twin['how'] = plain): Twin {
  return { parameter, field: { name, operator }, how };
}

/** The clause that each parameter stands for. Keys may contain `*` and `?`, so a key and a prefix are literal. */
const twins: readonly Twin[] = [
  twin('bucket', 'bucket'),
  twin('key', 'key', ':', asInQuotes),
  twin('prefix', 'prefix', ':', asInQuotes),
  { parameter: 'contains', how: asInQuotes },
  { parameter: 'match', how: { ...plain, isPattern: true } },
  twin('extension', 'ext'),
  twin('size_min', 'size', '>='),
  twin('size_max', 'size', '<='),
  twin('modified_after', 'modified', '>='),
  twin('modified_before', 'modified', '<'),
  twin('content_type', 'type'),
  twin('storage_class', 'class'),
  twin('etag', 'etag'),
  twin('tag', 'tag'),
  twin('meta', 'meta'),
  twin('deleted_after', 'deleted', '>='),
  twin('deleted_before', 'deleted', '<'),
];

function parametersOf(request: FilterRequest): readonly Parameter[] {
  const given = twins.flatMap(({ parameter, how, ...clause }) =>
    [request[parameter] ?? []].flat().map((text) => ({ parameter, ...clause, value: { text: String(text), ...how } })),
  );
  const isDeleted = { parameter: 'deleted', field: { name: 'is', operator: ':' }, value: { text: 'deleted', ...plain } } as const;
  return request.deleted === 'true' ? [...given, isDeleted] : given;
}

/** The words of `q`. Throws `request.invalid` for syntax that only `query` understands, rather than taking it for words. */
function wordsIn(q = ''): QueryWords {
  if (q.trim() === '') return [];
  const lexemes = lexemesOf(q);
  const isQuery =
    !('message' in lexemes) &&
    lexemes.some(
      ({ field, negated, values }) =>
        isFieldName(field?.name ?? '') ||
        negated ||
        values.some(({ text, quoted }) => quoted || isPattern(text) || foreignOperators.has(text)),
    );
  if (isQuery) throw new RequestError('request.invalid', 'q: takes only words; use query for clauses, patterns and quotes');
  const words = queryWordsOf(q);
  if (words === null) throw new RequestError('request.invalid', 'q: has no letters or digits; use contains instead');
  return words;
}

/** Refuses a search that a store would refuse. `parts`: the number of bucket parts that it is narrowed to. */
function checkWeight(filter: Pick<ObjectFilter, 'where' | 'words'>, parts = 0): void {
  const weight = weightOf(filter.where ?? []) + weightOfWords(filter.words ?? []) + CLAUSES_OF_PART * parts;
  if (weight <= WEIGHT_MAX) return;
  throw new RequestError(
    'request.invalid',
    `the words, texts and patterns of a search are too long together${parts === 0 ? '' : ` with the ${parts} parts that you may read`} (${weight} of at most ${WEIGHT_MAX}): leave some out`,
  );
}

/** Moves what the stores look up directly out of the conditions: one bucket, key and prefix, and all words that must occur. */
function placed(
  conditions: readonly Condition[],
  { words, deleted }: { readonly words: QueryWords; readonly deleted: boolean },
): ObjectFilter {
  const places: { bucket?: string; key?: string; prefix?: string } = {};
  const where: Condition[] = [];
  const allWords = [...words];
  for (const condition of conditions) {
    const test = onlyTest(condition);
    if (test?.kind === 'words') allWords.push(...test.words);
    else if (isPlace(test) && places[test.kind] === undefined) places[test.kind] = test.value;
    else where.push(condition);
  }
  const others = { ...(allWords.length > 0 && { words: allWords }), ...(where.length > 0 && { where }) };
  return { ...places, ...others, ...(deleted && { deleted }) };
}

/** The test that a condition requires, if it has only one. */
function onlyTest({ anyOf: [first, ...others], negated }: Condition): Test | undefined {
  return negated || others.length > 0 ? undefined : first;
}

function isPlace(test: Test | undefined): test is Test & { readonly kind: 'bucket' | 'key' | 'prefix' } {
  return test?.kind === 'bucket' || test?.kind === 'key' || test?.kind === 'prefix';
}

/** Less than the 15 s of a request to OpenSearch. */
const TIME_LIMIT_MS = 10_000;

/** Sums what the request finds. Throws `request.invalid`, `bucket.not-connected`, `search.too-wide` and the store's faults. */
export async function getUsage(
  { usage, state, clock }: WithPorts<'state' | 'clock'> & { readonly usage: SumUsage },
  request: UsageRequest,
  readable: Readable,
  signal?: AbortSignal,
): Promise<Usage> {
  const nowMs = clock.nowMs();
  const { filter, understood } = await understand(state, request, { nowMs, readable }, signal);
  const by = [...new Set([request.by ?? []].flat())];
  if (filter?.deleted === true) throw new RequestError('request.invalid', 'query: usage counts only live objects');
  const asked = filter === null || !by.includes('folder') ? filter : { ...filter, ...placeOf(filter) };
  const limits = { nowMs, limit: request.limit, timeLimitMs: TIME_LIMIT_MS };
  const sums = asked === null ? { objects: 0, bytes: 0, groups: by.map(() => []) } : await usage({ ...asked, by, ...limits }, signal);
  if (sums === 'too-slow') {
    throw new RequestError('search.too-wide', `the sums take longer than ${TIME_LIMIT_MS / 1_000} s: narrow the search`);
  }
  return {
    objects: sums.objects,
    bytes: sums.bytes,
    ...(understood !== undefined && { understood }),
    by: by.map((each, at) => groupingOf(each, sums, sums.groups[at] ?? [])),
  };
}

/**
 * The folder whose subfolders are summed. If a prefix doesn't end in a slash, its last part is the beginning of names within that folder,
 * which is a condition like others.
 */
function placeOf({ bucket, prefix = '', where = [] }: ObjectFilter): Pick<ObjectFilter, 'prefix' | 'where'> {
  if (bucket === undefined) throw new RequestError('request.invalid', 'by: folders need a bucket: name one');
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1);
  if (folder.split('/').length > FOLDER_LEVELS) {
    throw new RequestError(
      'request.invalid',
      `prefix: folders are counted down to ${FOLDER_LEVELS} levels; list the objects below instead`,
    );
  }
  return folder === prefix ? { prefix } : { prefix: folder, where: [...where, holds({ kind: 'prefix', value: prefix })] };
}

function groupingOf(by: UsageBy, { objects, bytes }: UsageSums, groups: readonly UsageGroup[]): Grouping {
  const sumOf = (name: keyof UsageSum): number => groups.reduce((sum, group) => sum + group[name], 0);
  const others = { objects: objects - sumOf('objects'), bytes: Math.max(0, bytes - sumOf('bytes')) };
  return {
    by,
    groups: groups.map(({ name, ...sums }) => {
      const filter = groupClause(by, name);
      return { ...(name !== '' && { name }), ...sums, ...(filter !== undefined && { filter }) };
    }),
    ...(others.objects > 0 && { others }),
  };
}
