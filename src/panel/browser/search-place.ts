/** A search as its address holds it, from which its request and its command are made. */
import { shellWord } from '../../base/commands.ts';
import type { SortField, SortOrder } from '../../store/conditions.rules.ts';
import type { RequestTo } from './api.ts';
import { hrefOf, type Choices } from './place.ts';
import { asksForDeleted, clauseOf } from './query-text.ts';

const sorts = ['key', 'size', 'last_modified', 'deleted_at'] as const satisfies readonly SortField[];

export interface Search {
  /** The box's text. */
  readonly query: string;
  readonly sort: SortField;
  readonly order: SortOrder;
}

type ObjectsQuery = NonNullable<RequestTo<'GET /v1/objects'>['query']>;

/** An address's search. Links to a bucket's contents name the bucket in a separate parameter. */
export function searchOf({ query, bucket = '', sort, order }: Choices): Search {
  return {
    query: query ?? (bucket === '' ? '' : clauseOf('bucket', bucket)),
    sort: sorts.find((each) => each === sort) ?? 'key',
    order: order === 'desc' ? 'desc' : 'asc',
  };
}

/** The address's choices for this search, without defaults. */
export function choicesOf(search: Search): Choices {
  return Object.fromEntries(Object.entries(requestOf(search)).map(([name, value]) => [name, String(value)]));
}

/** Deleted objects have a different time and no size. */
function sortable({ query, sort, order }: Search): Pick<Search, 'sort' | 'order'> {
  const isPossible = sort === 'key' || asksForDeleted(query) === (sort === 'deleted_at');
  return isPossible ? { sort, order } : { sort: 'key', order: 'asc' };
}

/** A search's address. */
export function searchHref(search: Search): string {
  return hrefOf('search', choicesOf(search));
}

/** The request's filters, without those of its pages. */
export function requestOf(search: Search): ObjectsQuery {
  const { query } = search;
  const { sort, order } = sortable(search);
  return {
    ...(query !== '' && { query }),
    ...(sort !== 'key' && { sort }),
    ...(order !== 'asc' && { order }),
  };
}

/** The command that prints all the results. */
export function commandOf(search: Search): string {
  const options = Object.entries(requestOf(search)).map(([name, value]) => `--${name} ${shellWord(String(value))}`);
  return ['tally', 'search', ...options, '--csv'].join(' ');
}
