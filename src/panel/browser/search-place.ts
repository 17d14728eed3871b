/** What a search is: all of it is in the address, and from there become the request, the command and the line for curl. */
import type { SortField, SortOrder } from '../../domain/search/conditions.ts';
import { addressOf, type Key, type RequestTo } from './api.ts';
import { shellWord } from '../../domain/commands.ts';
import { hrefOf, type Choices } from './place.ts';
import { asksForDeleted, clauseOf, withClauses } from './query-text.ts';
import { zoneName } from './words.ts';

const views = ['list', 'folders', 'changes'] as const;
export type View = (typeof views)[number];

export const groups = ['folder', 'class', 'extension', 'size', 'age'] as const;
export type GroupBy = (typeof groups)[number];
/** A person reads no more groups. */
const GROUPS_MAX = 200;

const sorts = ['key', 'size', 'last_modified', 'deleted_at'] as const satisfies readonly SortField[];

export interface Search {
  /** The text of the box. */
  readonly query: string;
  readonly view: View;
  /** What the page Usage groups by. */
  readonly by: GroupBy;
  readonly sort: SortField;
  readonly order: SortOrder;
  /** The zone of the dates in the query; empty: UTC. It is a part of the address, so that a link finds the same everywhere. */
  readonly tz: string;
  /** The object that is shown beside the results. */
  readonly open?: OpenObject | undefined;
}

export interface OpenObject {
  readonly bucket: string;
  readonly key: string;
}

type ObjectsQuery = NonNullable<RequestTo<'GET /v1/objects'>['query']>;

/** The search that an address asks for. */
export function searchOf(choices: Choices): Search {
  const { view, by, sort, order, tz = '', in: bucket, key } = choices;
  return {
    ...(bucket !== undefined && key !== undefined && { open: { bucket, key } }),
    query: choices['query'] ?? textOf(choices),
    view: views.find((each) => each === view) ?? 'list',
    by: groups.find((each) => each === by) ?? 'folder',
    sort: sorts.find((each) => each === sort) ?? 'key',
    order: order === 'desc' ? 'desc' : 'asc',
    tz,
  };
}

/** Links to what is in one bucket, and those of before there was one box, name each filter apart. */
function textOf({ q = '', bucket = '', prefix = '', extension = '' }: Choices): string {
  const fields = [
    ['bucket', bucket],
    ['prefix', prefix],
    ['ext', extension],
  ] as const;
  const clauses = fields.flatMap(([name, value]) => (value === '' ? [] : [clauseOf({ name, operator: ':' }, [value])]));
  return withClauses('', ...clauses, q.replaceAll(/[^\p{L}\p{M}\p{N}]+/gu, ' '));
}

/** The page on which a search is shown. */
export function pageOf({ view }: Search): 'usage' | 'search' {
  return view === 'folders' ? 'usage' : 'search';
}

/** The same search with another one, or none, of its objects beside it. */
export function opening(search: Search, open?: OpenObject): Choices {
  return choicesOf({ ...search, open });
}

/** The choices of an address for this search; what is usual is left out. */
export function choicesOf(search: Search): Choices {
  const { query, view, by, tz } = search;
  const { sort, order } = sortable(search);
  const chosen = {
    query,
    view: view === 'changes' ? view : '',
    by: view === 'folders' && by !== 'folder' ? by : '',
    sort: sort === 'key' ? '' : sort,
    order: order === 'asc' ? '' : order,
    tz,
    in: search.open?.bucket ?? '',
    key: search.open?.key ?? '',
  };
  return Object.fromEntries(Object.entries(chosen).filter(([, value]) => value !== ''));
}

/** Deleted objects have other times, and no size. */
function sortable({ query, sort, order }: Search): Pick<Search, 'sort' | 'order'> {
  const isPossible = sort === 'key' || asksForDeleted(query) === (sort === 'deleted_at');
  return isPossible ? { sort, order } : { sort: 'key', order: 'asc' };
}

/** The address of another search, with dates in the zone in which times are shown. */
export function searchHref(search: Search): string {
  return hrefOf('search', choicesOf({ ...search, tz: zoneName() }));
}

/** The filters of a request, without what belongs to its pages. */
export function requestOf(search: Search): ObjectsQuery {
  const { query, tz } = search;
  const { sort, order } = sortable(search);
  return {
    ...(query !== '' && { query }),
    ...(tz !== '' && { tz }),
    ...(sort !== 'key' && { sort }),
    ...(order !== 'asc' && { order }),
  };
}

/** The same search on the command line. */
export function commandOf(search: Search, ...more: readonly string[]): string {
  const options = Object.entries(requestOf(search)).map(([name, value]) => `--${name} ${shellWord(String(value))}`);
  return ['tally', 'search', ...options, ...more].join(' ');
}

/** The same search by curl. */
export function curlOf(search: Search, isLocal: boolean): string {
  return curlTo('GET /v1/objects', requestOf(search), isLocal);
}

/** The request of the page Usage: the sums of one bucket. */
export function usageOf({ query, by, tz }: Search, bucket: string) {
  return { bucket, by, query, ...(tz !== '' && { tz }), limit: GROUPS_MAX };
}

/** The same sums on the command line, and by curl. */
export function usageLines(search: Search, bucket: string, isLocal: boolean): readonly [command: string, curl: string] {
  const { bucket: _bucket, ...request } = usageOf(search, bucket);
  const options = Object.entries(request).map(([name, value]) => `--${name} ${shellWord(String(value))}`);
  const command = ['tally', 'du', ...options, '--', shellWord(bucket)].join(' ');
  return [command, curlTo('GET /v1/usage', usageOf(search, bucket), isLocal)];
}

/** Where people log in, the line takes an API key from the environment. */
function curlTo(key: Key, query: object, isLocal: boolean): string {
  const address = shellWord(addressOf(key, { query }).href);
  return isLocal ? `curl ${address}` : `curl -H "Authorization: Bearer $TALLY_API_KEY" ${address}`;
}

/** Objects whose etag and size are those of another. That does not make them duplicates, nor others different. */
export function sameChoices(etag: string, size: number): Choices {
  return { query: `${clauseOf({ name: 'etag', operator: ':' }, [etag])} size=${size}` };
}
