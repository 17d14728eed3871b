/** What a search is: all of it is in the address, and from there become the request and the command. */
import { shellWord } from '../../base/commands.ts';
import type { SortField, SortOrder } from '../../store/conditions.rules.ts';
import type { RequestTo } from './api.ts';
import { hrefOf, type Choices } from './place.ts';
import { asksForDeleted, clauseOf } from './query-text.ts';

const sorts = ['key', 'size', 'last_modified', 'deleted_at'] as const satisfies readonly SortField[];

export interface Search {
  /** The text of the box. */
  readonly query: string;
  readonly sort: SortField;
  readonly order: SortOrder;
}

type ObjectsQuery = NonNullable<RequestTo<'GET /v1/objects'>['query']>;

/** The search that an address asks for. Links to what is in one bucket name it apart. */
export function searchOf({ query, bucket = '', sort, order }: Choices): Search {
  return {
    query: query ?? (bucket === '' ? '' : clauseOf('bucket', bucket)),
    sort: sorts.find((each) => each === sort) ?? 'key',
    order: order === 'desc' ? 'desc' : 'asc',
  };
}

/** The choices of an address for this search; what is usual is left out. */
export function choicesOf(search: Search): Choices {
  return Object.fromEntries(Object.entries(requestOf(search)).map(([name, value]) => [name, String(value)]));
}

/** Deleted objects have other times, and no size. */
function sortable({ query, sort, order }: Search): Pick<Search, 'sort' | 'order'> {
  const isPossible = sort === 'key' || asksForDeleted(query) === (sort === 'deleted_at');
  return isPossible ? { sort, order } : { sort: 'key', order: 'asc' };
}

/** The address of a search. */
export function searchHref(search: Search): string {
  return hrefOf('search', choicesOf(search));
}

/** The filters of a request, without what belongs to its pages. */
export function requestOf(search: Search): ObjectsQuery {
  const { query } = search;
  const { sort, order } = sortable(search);
  return {
    ...(query !== '' && { query }),
    ...(sort !== 'key' && { sort }),
    ...(order !== 'asc' && { order }),
  };
}

/** The command that prints all that the search finds. */
export function commandOf(search: Search): string {
  const options = Object.entries(requestOf(search)).map(([name, value]) => `--${name} ${shellWord(String(value))}`);
  return ['tally', 'search', ...options, '--csv'].join(' ');
}
