/** What a request asks of documents: its parameters and its query as one filter. */
import type { z } from 'zod';
import type { clause, filterFields } from '../../api/search.ts';
import { queryWordsOf, type QueryWords } from '../../domain/documents/words.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Condition, Test } from '../../domain/search/conditions.ts';
import { isFieldName, type FieldName } from '../../domain/search/fields.ts';
import { lexemesOf, type Mistake, type Operator } from '../../domain/search/lexer.ts';
import { foreignOperators, parseQuery, type Parameter } from '../../domain/search/parse.ts';
import { isPattern } from '../../domain/search/pattern.ts';
import { CLAUSES_OF_PART, WEIGHT_MAX, weightOf, weightOfWords } from '../../domain/search/weight.ts';
import { isTimeZone } from '../../domain/search/zones.ts';
import type { ObjectFilter } from '../ports/object-index.ts';

/** The parameters of a request that narrow its search, as they are checked. */
export type FilterRequest = { readonly [Name in keyof typeof filterFields]?: z.output<(typeof filterFields)[Name]> };

export interface UnderstoodFilter {
  readonly filter: ObjectFilter;
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
  const { query, q, tz: timeZone = 'UTC' } = request;
  if (!isTimeZone(timeZone)) throw new RequestError('request.invalid', 'tz: must be a time zone such as Europe/Berlin, UTC or +02:00');
  if (query !== undefined && q !== undefined) throw new RequestError('request.invalid', 'query: not beside q, whose words can stand in it');
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
  if (words.length > 0) throw new RequestError('request.invalid', 'q: deleted objects have no words; write contains or match');
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

/** The clause that each parameter means. `*` and `?` are characters of keys, so a key and a prefix are texts. */
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

/** The words of `q`. Throws `request.invalid` for what only `query` can mean, so that it is never taken for words. */
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
  if (isQuery) throw new RequestError('request.invalid', 'q: takes words only; clauses, patterns and quotes belong into query');
  const words = queryWordsOf(q);
  if (words === null) throw new RequestError('request.invalid', 'q: this has no letters or digits; write it as contains');
  return words;
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
