/** What a request asks of documents: its parameters and its query as one filter. */
import { defined } from '../../domain/defined.ts';
import type { z } from 'zod';
import type { clause, filterFields } from '../../api/search.ts';
import { queryWordsOf, type QueryWords } from '../../domain/documents/words.ts';
import { RequestError } from '../../domain/request-error.ts';
import { holds, type Condition, type Test } from '../../domain/search/conditions.ts';
import { extensionTest, pairTest, typeTest } from '../../domain/search/field-tests.ts';
import { parseQuery, type ParsedQuery } from '../../domain/search/parse.ts';
import { containedText, patternOf } from '../../domain/search/pattern.ts';
import { CLAUSES_OF_PART, WEIGHT_MAX, weightOf, weightOfWords } from '../../domain/search/weight.ts';
import { isTimeZone } from '../../domain/search/zones.ts';
import type { ObjectFilter } from '../ports/object-index.ts';

/** The parameters of a request that narrow its search, as they are checked. */
export type FilterRequest = { readonly [Name in keyof typeof filterFields]?: z.output<(typeof filterFields)[Name]> };

export interface UnderstoodFilter {
  /** Null: the words contain no word, so that nothing can match. */
  readonly filter: ObjectFilter | null;
  /** The buckets that it names; each must be connected. */
  readonly buckets: readonly string[];
  /** Those whose documents it finds; empty: those of any bucket. */
  readonly foundIn: readonly string[];
  /** Ages in it are counted from the moment of the query. */
  readonly relative: boolean;
  readonly understood: readonly z.output<typeof clause>[] | undefined;
}

/** Understands a request. Throws `request.invalid` for the first mistake; of `query` with its `position`. */
export function filterOf(request: FilterRequest, nowMs: number): UnderstoodFilter {
  const parsed = parsedQueryOf(request, nowMs);
  const conditions = [...parameterConditions(request), ...(parsed?.conditions ?? [])];
  const deleted = request.deleted === 'true' || parsed?.deleted === true;
  checkContradictions(request, conditions, deleted);
  const words = wordsIn(request.q);
  checkWeight({ where: conditions, words: words ?? [] });
  return {
    filter: words === null ? null : placed(conditions, { words, deleted }),
    buckets: conditions.flatMap(({ anyOf }) => anyOf.flatMap((test) => (test.kind === 'bucket' ? test.value : []))),
    foundIn: conditions
      .filter(({ negated }) => !negated)
      .flatMap(({ anyOf }) => anyOf.flatMap((test) => (test.kind === 'bucket' ? test.value : []))),
    relative: parsed?.relative === true,
    understood: parsed?.clauses,
  };
}

/** The words of `q`; null if no object can have them. */
function wordsIn(q: string | undefined): QueryWords | null {
  return isEmpty(q) ? [] : queryWordsOf(q ?? '');
}

/** Refuses a search that a store would refuse. `parts`: how many parts of buckets it is narrowed to. */
export function checkWeight(filter: Pick<ObjectFilter, 'where' | 'words'>, parts = 0): void {
  const weight = weightOf(filter.where ?? []) + weightOfWords(filter.words ?? []) + CLAUSES_OF_PART * parts;
  if (weight <= WEIGHT_MAX) return;
  throw new RequestError(
    'request.invalid',
    `the words, texts and patterns of a search are too long together${parts === 0 ? '' : ` with the ${parts} parts that you may read`} (${weight} of at most ${WEIGHT_MAX}): leave some out`,
  );
}

/** Whether words were left out: an empty text is no filter. */
function isEmpty(q: string | undefined): boolean {
  return q === undefined || q.trim() === '';
}

function parsedQueryOf({ query, q, tz = 'UTC' }: FilterRequest, nowMs: number): ParsedQuery | undefined {
  if (!isTimeZone(tz)) throw new RequestError('request.invalid', 'tz: must be a time zone such as Europe/Berlin, UTC or +02:00');
  if (query === undefined) return undefined;
  if (q !== undefined) throw new RequestError('request.invalid', 'query: not beside q, whose words can stand in it');
  const parsed = parseQuery(query, { nowMs, timeZone: tz });
  if (!('message' in parsed)) return parsed;
  const { position, message } = parsed;
  throw new RequestError('request.invalid', `query: at character ${position + 1}: ${message}`, { position });
}

function parameterConditions(request: FilterRequest): readonly Condition[] {
  const { contains, match, extension, content_type: type, prefix = '' } = request;
  const made: readonly (readonly [string, Test | { readonly mistake: string } | undefined])[] = [
    ['bucket', valueTest('bucket', request.bucket)],
    ['key', valueTest('key', request.key)],
    ['prefix', prefix === '' ? undefined : valueTest('prefix', prefix)],
    ['etag', valueTest('etag', request.etag)],
    ['storage_class', valueTest('class', request.storage_class?.toUpperCase())],
    ['contains', contains === undefined ? undefined : containsTest(contains)],
    ['match', match === undefined ? undefined : matchTest(match, prefix !== '')],
    ['extension', extension === undefined ? undefined : extensionTest(extension)],
    ['content_type', type === undefined ? undefined : typeTest(type)],
    ...listOf(request.tag).map((pair) => ['tag', pairTest('tag', pair)] as const),
    ...listOf(request.meta).map((pair) => ['meta', pairTest('meta', pair)] as const),
    ['size_min', sizeTest(request)],
    ['modified_after', timeTest('modified', request.modified_after, request.modified_before)],
    ['deleted_after', timeTest('deleted', request.deleted_after, request.deleted_before)],
  ];
  return made.flatMap(([name, test]) => {
    if (test === undefined) return [];
    if ('mistake' in test) throw new RequestError('request.invalid', `${name}: ${test.mistake}`);
    return [holds(test)];
  });
}

function listOf(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === 'string' ? [value] : value;
}

function valueTest(kind: 'bucket' | 'key' | 'prefix' | 'etag' | 'class', value: string | undefined): Test | undefined {
  return value === undefined ? undefined : { kind, value };
}

function containsTest(text: string): Test | { readonly mistake: string } {
  const contained = containedText(text);
  return 'mistake' in contained ? contained : { kind: 'contains', ...contained };
}

function matchTest(text: string, hasPrefix: boolean): Test | { readonly mistake: string } {
  const pattern = patternOf(text, hasPrefix);
  return 'mistake' in pattern ? pattern : { kind: 'match', pattern };
}

function sizeTest({ size_min: min, size_max: max }: FilterRequest): Test | { readonly mistake: string } | undefined {
  if (min === undefined && max === undefined) return undefined;
  if ((min ?? 0) > (max ?? Infinity)) return { mistake: 'is greater than size_max' };
  return { kind: 'size', ...defined({ min, max }) };
}

function timeTest(
  kind: 'modified' | 'deleted',
  after: string | undefined,
  earlier: string | undefined,
): Test | { readonly mistake: string } | undefined {
  if (after === undefined && earlier === undefined) return undefined;
  const from = after === undefined ? undefined : Date.parse(after);
  const before = earlier === undefined ? undefined : Date.parse(earlier);
  if ((from ?? -Infinity) >= (before ?? Infinity)) return { mistake: `is not before ${kind}_before` };
  return { kind, ...defined({ from, before }) };
}

/** What tombstones can be searched by: they have a key and no fields of an object. */
const ofTombstones: ReadonlySet<Test['kind']> = new Set(['bucket', 'prefix', 'contains', 'match', 'deleted', 'key']);

function checkContradictions(request: FilterRequest, conditions: readonly Condition[], deleted: boolean): void {
  const kinds = conditions.flatMap(({ anyOf }) => anyOf.map(({ kind }) => kind));
  if (!deleted && kinds.includes('deleted')) {
    throw new RequestError('request.invalid', 'deleted_after, deleted_before: only with deleted=true');
  }
  if (!deleted) return;
  const wrong = kinds.find((kind) => !ofTombstones.has(kind)) ?? (isEmpty(request.q) ? undefined : 'words');
  if (wrong !== undefined) {
    throw new RequestError(
      'request.invalid',
      `deleted: deleted objects have no ${wrong}; they can be searched by bucket, prefix, contains and match`,
    );
  }
  if (request.deleted === 'false') throw new RequestError('request.invalid', 'deleted: the query asks for deleted objects');
}

/** Moves what an index can be read by out of the conditions: one bucket, key and prefix, and all words that must occur. */
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

/** The test of a condition that has one, which must succeed. */
function onlyTest({ anyOf: [first, ...others], negated }: Condition): Test | undefined {
  return negated || others.length > 0 ? undefined : first;
}

function isPlace(test: Test | undefined): test is Test & { readonly kind: 'bucket' | 'key' | 'prefix' } {
  return test?.kind === 'bucket' || test?.kind === 'key' || test?.kind === 'prefix';
}
