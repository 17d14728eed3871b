/** A search's results, in the chosen order. */
import type { StoredObject } from '../../registry/contract/search.ts';
import type { SortField } from '../../store/conditions.rules.ts';
import { countText } from '../../base/texts.ts';
import type { AnswerTo } from './api.ts';
import { Status, useBuckets } from './bucket-act.tsx';
import { useAnswer, type Loaded } from './load.ts';
import { ObjectView } from './object.tsx';
import { type Column, CopyButton, Key, Link, Listed, Size, type Sorting, Text, Time } from './parts.tsx';
import { asksForDeleted, onlyValueIn, textIn, withinWords } from './query-text.ts';
import { hrefOf } from './place.ts';
import { choicesOf, commandOf, requestOf, searchHref, type Search } from './search-place.ts';
import { visibleText } from './words.ts';

const PAGE = 200;
/** More buckets than a person would try one by one. */
const ASKED_MAX = 20;

type Answer = AnswerTo<'GET /v1/objects'>;
export type Found = Loaded<Answer>;

/** Reads a page of results. The first also has the total, and how far the index can be relied on. `isWanted`: the query has no mistake. */
export function useObjects(search: Search, cursor: string | undefined, isWanted: boolean): Found {
  const of = cursor === undefined ? ({ as_of: 'true', total: 'true' } as const) : { cursor };
  return useAnswer('GET /v1/objects', { query: { ...requestOf(search), limit: PAGE, ...of } }, { isWanted });
}

/** One line: the number of results, how far to rely on them, and what can be done with all of them. */
function Summary({ search, found: { as_of: of = [], total, items } }: { readonly search: Search; readonly found: Answer }) {
  return (
    <div class="summary">
      {total !== undefined && total.value > 0 && (
        <strong role="status">{total.exact ? countText(total.value, 'object') : `More than ${countText(total.value)} objects`}</strong>
      )}
      <Agreement of={of} />
      {items.length > 0 && <CopyButton copied={commandOf(search)}>Copy the command that prints all as CSV</CopyButton>}
    </div>
  );
}

type AsOf = Pick<NonNullable<Answer['as_of']>[number], 'bucket' | 'status'>;

const isDoubtful = ({ status }: AsOf): boolean => status.state !== 'ok';

/** Whether the searched buckets agree with their index. A search that names no bucket searches all. */
function Agreement({ of }: { readonly of: readonly AsOf[] }) {
  const { value } = useBuckets();
  const all: readonly AsOf[] = of.length > 0 ? of : (value?.items ?? []);
  const doubtful = all.filter(isDoubtful);
  const [one] = doubtful;
  if (all.length === 0) return null;
  if (one === undefined) return <span class="quiet dot good">{all.length === 1 ? 'The index agrees' : 'All buckets agree'}</span>;
  return all.length === 1 ? (
    <Status of={one} />
  ) : (
    <Link page="buckets">
      {countText(doubtful.length)} of {countText(all.length, 'bucket')} may differ
    </Link>
  );
}

interface ResultsProps {
  readonly search: Search;
  readonly found: Found;
}

/** A search's results with everything around them. */
export function Results({ search, found }: ResultsProps) {
  const isDeleted = asksForDeleted(search.query);
  const isOneBucket = onlyValueIn(search.query, 'bucket') !== undefined;
  const linkTo = ({ bucket, key }: StoredObject) => (
    <Link page="object" choices={{ bucket, key }} label={visibleText(key)}>
      <Key>{key}</Key>
    </Link>
  );
  const columns: readonly (Column<StoredObject> | false)[] = [
    ['Key', linkTo, 'row', sortingBy(search, 'key')],
    !isOneBucket && ['Bucket', ({ bucket }) => <Text>{bucket}</Text>],
    !isDeleted && ['Size', ({ size }) => <Size bytes={size} />, 'number', sortingBy(search, 'size')],
    !isDeleted && ['Modified', ({ last_modified: at }) => <Time at={at} />, undefined, sortingBy(search, 'last_modified')],
    isDeleted && ['Deleted', ({ deleted_at: at }) => <Time at={at} />, undefined, sortingBy(search, 'deleted_at')],
  ];
  return (
    <section aria-label={isDeleted ? 'Deleted objects' : 'Objects'} class="results">
      {found.value !== undefined && <Summary search={search} found={found.value} />}
      {isDeleted && <p class="quiet">Deleted objects are shown for at least seven days.</p>}
      <Listed
        loaded={found}
        hrefOfNext={(cursor) => hrefOf('search', { ...choicesOf(search), cursor })}
        label="Objects found"
        columns={columns.filter((column) => column !== false)}
        keyOf={({ bucket, key }) => `${bucket} ${key}`}
        empty={<NothingFound search={search} understood={found.value?.understood ?? []} />}
      />
    </section>
  );
}

/** A heading's link, which sorts by its column, or reverses the order. */
function sortingBy(search: Search, field: SortField): Sorting {
  const isSorted = search.sort === field;
  const isUp = search.order === 'asc';
  // for sizes and times, people want the largest and latest first
  const isDown = isSorted ? isUp : field !== 'key';
  return {
    href: searchHref({ ...search, sort: field, order: isDown ? 'desc' : 'asc' }),
    now: isSorted ? (isUp ? 'ascending' : 'descending') : undefined,
  };
}

interface NothingProps {
  readonly search: Search;
  /** How the registry understood the query. */
  readonly understood: NonNullable<Answer['understood']>;
}

/** Shown if nothing was found: what else to search for, and why one object isn't found. */
function NothingFound({ search: { query }, understood }: NothingProps) {
  const [named, path] = understood.find(({ field }) => field === 'object')?.values ?? [];
  const bucket = onlyValueIn(query, 'bucket') ?? named;
  const key = onlyValueIn(query, 'key') ?? path;
  const inside = withinWords(query);
  return (
    <>
      <p>{query === '' ? 'The index holds no object that you may read.' : 'No object in the index matches.'}</p>
      {inside !== query && (
        <p>
          Words are found by their beginning. Within words, too:{' '}
          <Link page="search" choices={{ query: inside }}>
            <Text>{inside}</Text>
          </Link>
        </p>
      )}
      {bucket === undefined || key === undefined ? (
        <WhichBucket named={bucket} name={key ?? textIn(query)} />
      ) : (
        <ObjectView bucket={bucket} name={key} />
      )}
    </>
  );
}

/** Links that explain why this key isn't found, in the named bucket or in each. */
function WhichBucket({ named, name }: { readonly named: string | undefined; readonly name: string }) {
  const { value } = useBuckets();
  const buckets = named === undefined ? (value?.items ?? []).map(({ bucket }) => bucket) : [named];
  if (name === '' || buckets.length === 0) return null;
  return (
    <p class="actions">
      <span>
        If <Text>{name}</Text> is a whole key, ask S3 why it is not here, in
      </span>
      {buckets.slice(0, ASKED_MAX).map((bucket) => (
        <Link key={bucket} page="object" choices={{ bucket, key: name }}>
          <Text>{bucket}</Text>
        </Link>
      ))}
    </p>
  );
}
