/** Searches: how they are sent to the indices of their buckets, and their conditions as a query. */
import { z } from 'zod';
import { objectDocumentSchema, type ObjectDocument, FOLDER_LEVELS } from '../../ordering/document.ts';
import type { ObjectFilter, ObjectQuery } from '../store.ts';
import type { OpenSearchAnswer, OpenSearchClient } from './client.ts';
import { bodyOf, isIndexMissing, parseAnswer } from './faults.ts';
import type { IndexNames } from './setup.ts';
import type { BucketPart } from '../readable.rules.ts';
import type { WordForm } from '../../base/words.ts';
import type { Condition, SortField, Test } from '../conditions.rules.ts';
import type { Pattern } from '../pattern.rules.ts';
import { timeText } from '../../base/texts.ts';

export type SendSearch = (
  /** `partial`: the answer may lack what a shard did not find in time, and says so. */
  filter: Pick<ObjectFilter, 'bucket' | 'deleted' | 'within'> & { readonly partial?: boolean },
  body: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
) => Promise<unknown>;

const documentsSchema = z.object({ hits: z.object({ hits: z.array(z.object({ _source: objectDocumentSchema })) }) });

/** A search's documents in its order. */
export function documentsOf(found: unknown): readonly ObjectDocument[] {
  return found === undefined ? [] : parseAnswer(documentsSchema, found).hits.hits.map((hit) => hit._source);
}

const severalSchema = z.object({ responses: z.tuple([z.looseObject({ status: z.number() })]) });

const aliasesSchema = z.record(z.string(), z.object({ aliases: z.record(z.string(), z.unknown()) }));

/** Sends searches to the indices of a filter. Resolves with the answer's body; undefined if there is no such index. */
export function createSearchSender(client: OpenSearchClient, names: IndexNames): SendSearch {
  return async function sendSearch({ bucket, deleted = false, within, partial = false }, body, signal) {
    const buckets = bucket === undefined ? within && [...new Set(within.map((part) => part.bucket))] : [bucket];
    // a search that names no index would search all
    if (buckets?.length === 0) return undefined;
    const sent = { partial, body };
    // an index outside the search must not affect it: it may be closed, broken or slow
    const answer = buckets === undefined ? await sendToAll(deleted, sent, signal) : await sendToSome(buckets, sent, signal);
    return isIndexMissing(answer) ? undefined : bodyOf(answer, buckets === undefined ? 'cluster' : 'index');
  };

  function sendToAll(deleted: boolean, { partial, body }: Sent, signal: AbortSignal | undefined): Promise<OpenSearchAnswer> {
    // the alias of live documents leaves tombstones out
    const alias = deleted ? names.bucketAliases : names.liveAlias;
    // unlike an alias, a pattern would silently leave out closed indices
    const closed = deleted ? { expand_wildcards: 'open,closed' } : {};
    return client.send(
      { method: 'POST', path: `/${alias}/_search`, query: { allow_partial_search_results: partial, ...closed }, body },
      signal,
    );
  }

  async function sendToSome(buckets: readonly string[], sent: Sent, signal: AbortSignal | undefined): Promise<OpenSearchAnswer> {
    const [only, ...others] = buckets;
    if (only === undefined || others.length > 0) return sendToSeveral(buckets, sent, signal);
    const query = { allow_partial_search_results: sent.partial };
    return client.send({ method: 'POST', path: `/${names.objectsAlias(only)}/_search`, query, body: sent.body }, signal);
  }

  /** The names are in the body of the request: an address has at most 4 kB. */
  async function sendToSeveral(
    buckets: readonly string[],
    { partial, body }: Sent,
    signal: AbortSignal | undefined,
  ): Promise<OpenSearchAnswer> {
    const send = async (index: readonly string[]): Promise<OpenSearchAnswer> => {
      const header = { index, allow_partial_search_results: partial };
      const answer = await client.send(
        { method: 'POST', path: '/_msearch', lines: `${JSON.stringify(header)}\n${JSON.stringify(body)}\n` },
        signal,
      );
      if (answer.status !== 200) return answer;
      const { status, ...found } = parseAnswer(severalSchema, answer.body).responses[0];
      return { ...answer, status, body: found };
    };
    const aliases = buckets.map((bucket) => names.objectsAlias(bucket));
    const answer = await send(aliases);
    if (!isIndexMissing(answer)) return answer;
    // not `ignore_unavailable`, which silently leaves out closed indices too
    const existing = await existingAliases(signal);
    const left = aliases.filter((alias) => existing.has(alias));
    if (left.length === 0) return answer;
    const ofExisting = await send(left);
    // an index was removed in between: without a retry, the answer would lack the others
    bodyOf(ofExisting, 'index');
    return ofExisting;
  }

  /** The aliases of all buckets that have an index, even a closed one. */
  async function existingAliases(signal: AbortSignal | undefined): Promise<ReadonlySet<string>> {
    const query = { filter_path: '*.aliases', expand_wildcards: 'open,closed' };
    const answer = await client.send({ method: 'GET', path: `/${names.bucketAliases}`, query }, signal);
    if (isIndexMissing(answer)) return new Set();
    return new Set(Object.values(parseAnswer(aliasesSchema, bodyOf(answer))).flatMap(({ aliases }) => Object.keys(aliases)));
  }
}

interface Sent {
  readonly partial: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

// ── a search as a query: all of it is in filter context, and there are no scores ───────────────────────────────────

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
function anyOf(queries: readonly Query[]): Query {
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
