/** A search as an OpenSearch query. All of it is in filter context: there are no scores. */
import type { BucketPart } from '../readable.rules.ts';
import { FOLDER_LEVELS } from '../../ordering/document.ts';
import type { WordForm } from '../../ordering/words.ts';
import type { Condition, SortField, Test } from '../conditions.rules.ts';
import type { Pattern } from '../pattern.rules.ts';
import { timeText } from '../../base/texts.ts';
import type { ObjectFilter, ObjectQuery } from '../store.ts';

type Query = Readonly<Record<string, unknown>>;

/** The query for a search's documents, without its position. */
export function filterQuery(query: ObjectFilter): Query {
  const { deleted = false, bucket } = query;
  return { bool: { filter: [{ term: { deleted } }, ...(bucket === undefined ? [] : [{ term: { bucket } }]), ...conditionsOf(query)] } };
}

/** The filter's conditions, without the bucket, which has its own index, and without the choice of tombstones. */
function conditionsOf(query: ObjectFilter): readonly Query[] {
  const { deleted = false, key, prefix = '' } = query;
  return [
    ...(key === undefined ? [] : [{ term: { key } }]),
    ...(prefix === '' ? [] : [{ prefix: { key: prefix } }]),
    ...(query.words ?? []).map(runQuery),
    ...(query.where ?? []).map(conditionQuery),
    ...(query.within === undefined ? [] : [partsQuery(query.within, deleted ? 'key' : 'folder')]),
  ];
}

/**
 * Documents in one of these parts, with at most two clauses for each. `folder`: live documents only, whose folders are terms. All of a
 * bucket's folders of one level form one list of terms, which takes a fraction of the time of as many alternatives.
 */
export function partsQuery(parts: readonly BucketPart[], by: 'folder' | 'key'): Query {
  const whole = parts.filter(({ prefix }) => prefix === '').map(({ bucket }) => bucket);
  const inBuckets = Map.groupBy(
    parts.filter(({ prefix }) => prefix !== ''),
    ({ bucket }) => bucket,
  );
  const inside = [...inBuckets].map(([bucket, within]) => ({
    bool: { filter: [{ term: { bucket } }, anyOf(belowQueries(within, by))] },
  }));
  return anyOf([...(whole.length === 0 ? [] : [{ terms: { bucket: whole } }]), ...inside]);
}

/** Documents below one of a bucket's prefixes. */
function belowQueries(parts: readonly BucketPart[], by: 'folder' | 'key'): readonly Query[] {
  const levelOf = (prefix: string): number => (by === 'folder' && prefix.endsWith('/') ? prefix.split('/').length - 1 : Infinity);
  const byLevel = Map.groupBy(
    parts.map(({ prefix }) => prefix),
    (prefix) => Math.min(levelOf(prefix), FOLDER_LEVELS + 1),
  );
  return [...byLevel].flatMap(([level, prefixes]): readonly Query[] =>
    level <= FOLDER_LEVELS ? [{ terms: { [`d${level}`]: prefixes } }] : prefixes.map((prefix) => ({ prefix: { key: prefix } })),
  );
}

const FIELDS: Readonly<Record<SortField, string>> = {
  key: 'key',
  size: 'size',
  last_modified: 'last_modified',
  deleted_at: 'deleted_at',
};

/** A search's order, and the position after which it continues. */
export function sortOf({ sort, after }: ObjectQuery): Query {
  const { by = 'key', order = 'asc' } = sort ?? {};
  // keywords sort by their UTF-8 bytes; this is the order of index.sort, so reading a page costs only that page
  if (by === 'key')
    return { sort: [{ bucket: order }, { key: order }], ...(after !== undefined && { search_after: [after.bucket, after.key] }) };
  return {
    sort: [{ [FIELDS[by]]: { order, missing: -1 } }, { bucket: 'asc' }, { key: 'asc' }],
    ...(after !== undefined && { search_after: [after.value ?? -1, after.bucket, after.key] }),
  };
}

/** One form of a run of words must occur. */
function runQuery(forms: readonly WordForm[]): Query {
  const queries = forms.map(({ whole, prefix }) => [
    ...whole.map((word) => ({ term: { words: word } })),
    ...(prefix === undefined ? [] : [{ prefix: { words: prefix } }]),
  ]);
  const [only, ...others] = queries;
  if (others.length === 0 && only?.length === 1 && only[0] !== undefined) return only[0];
  return anyOf(queries.map((filter) => ({ bool: { filter } })));
}

function conditionQuery({ anyOf: tests, negated }: Condition): Query {
  const queries = tests.map(testQuery);
  return negated ? { bool: { must_not: queries } } : anyOf(queries);
}

/** Documents that match one of the queries; none if there are none. */
export function anyOf(queries: readonly Query[]): Query {
  const [first] = queries;
  // an empty list of alternatives would match every document
  if (first === undefined) return { match_none: {} };
  return queries.length === 1 ? first : { bool: { should: queries, minimum_should_match: 1 } };
}

function testQuery(test: Test): Query {
  switch (test.kind) {
    case 'words':
      return { bool: { filter: test.words.map(runQuery) } };
    case 'contains':
      return folded(`*${escaped(test.text)}*`);
    case 'match':
      return patternQuery(test.pattern);
    case 'bucket':
    case 'key':
    case 'etag':
      return { term: { [test.kind]: test.value } };
    case 'from':
      return rangeQuery('key', { gte: test.value });
    case 'class':
      return { term: { storage_class: test.value } };
    case 'prefix':
      return test.value === '' ? { match_all: {} } : { prefix: { key: test.value } };
    case 'extension':
      return { term: { [test.value.includes('.') ? 'extensions' : 'extension']: test.value } };
    case 'type':
      return test.family ? { prefix: { content_type: test.value } } : { term: { content_type: test.value } };
    case 'tag':
      return pairQuery(`tags.${test.name}`, test.value);
    case 'meta':
      return pairQuery(`user_metadata.${test.name}`, test.value);
    case 'size':
      return rangeQuery('size', { gte: test.min, lte: test.max });
    case 'modified':
      // as texts: times before 1970 are no numbers of OpenSearch's format epoch_millis
      return rangeQuery('last_modified', { gte: timeText(test.from), lt: timeText(test.before) });
    case 'deleted':
      return rangeQuery('deleted_at', { gte: timeText(test.from), lt: timeText(test.before) });
  }
}

/** A flat_object stores its pairs as NAME=VALUE, so an empty prefix matches any value. */
function pairQuery(field: string, value: string | undefined): Query {
  return value === undefined ? { prefix: { [field]: '' } } : { term: { [field]: value } };
}

function rangeQuery(field: string, bounds: Readonly<Record<string, number | string | undefined>>): Query {
  return { range: { [field]: Object.fromEntries(Object.entries(bounds).filter(([, bound]) => bound !== undefined)) } };
}

function folded(value: string): Query {
  return { wildcard: { folded: { value: wildcardText(value) } } };
}

/** A wildcard field's text. OpenSearch treats a leading NUL as the end, so a character that no program writes replaces it. */
export function wildcardText(text: string): string {
  return text.replaceAll('\0', '\u{1fffe}');
}

function patternQuery({ parts, anywhere }: Pattern): Query {
  const pattern = parts.map((part) => ('wild' in part ? part.wild : escaped(part.literal))).join('');
  return anywhere && !pattern.startsWith('*') ? anyOf([folded(pattern), folded(`*/${pattern}`)]) : folded(pattern);
}

function escaped(literal: string): string {
  return literal.replaceAll(/[*?\\]/g, String.raw`\$&`);
}
