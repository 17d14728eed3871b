/** The objects that a search finds, in the order that was chosen. */
import type { StoredObject } from '../../registry/contract/search.ts';
import type { SortField } from '../../store/conditions.rules.ts';
import { countText } from '../../base/texts.ts';
import type { AnswerTo } from './api.ts';
import { Status, useBuckets } from './bucket-act.tsx';
import { usePages, type Pages } from './load.ts';
import { type Column, CopyButton, Key, Link, Listed, Size, type Sorting, Text, Time } from './parts.tsx';
import { asksForDeleted, onlyValueIn } from './query-text.ts';
import { choicesOf, commandOf, type OpenObject, requestOf, type Search } from './search-place.ts';
import { visibleText } from './words.ts';

const PAGE = 200;

type Answer = AnswerTo<'GET /v1/objects'>;
export type Found = Pages<StoredObject, Answer>;

/** Reads what a search finds. The first page has the total, and how far the index can be relied on. `isWanted`: the search has no mistake. */
export function useObjects(search: Search, isWanted: boolean): Found {
  const first = { as_of: 'true', total: 'true' } as const;
  return usePages('GET /v1/objects', { query: { ...requestOf(search), limit: PAGE } }, { first, isWanted });
}

interface ResultsProps {
  readonly search: Search;
  readonly found: Found;
}

/** What a search finds, with all that belongs to it. */
export function Results({ search, found }: ResultsProps) {
  const { first } = found;
  const isDeleted = asksForDeleted(search.query);
  return (
    <section aria-label={isDeleted ? 'Deleted objects' : 'Objects'} class="results">
      {first !== undefined && <Summary search={search} first={first} />}
      {isDeleted && <p class="quiet">Deleted objects are shown for seven days after they were deleted.</p>}
      <Objects search={search} found={found} />
    </section>
  );
}

/** One line: how much was found, how far it can be relied on, and what can be done with all of it. */
function Summary({ search, first: { as_of: of = [], total, items } }: { readonly search: Search; readonly first: Answer }) {
  return (
    <div class="summary">
      {total !== undefined && total.value > 0 && (
        <strong role="status">{total.exact ? countText(total.value, 'object') : `more than ${countText(total.value)} objects`}</strong>
      )}
      <Agreement of={of} />
      {items.length > 0 && <CopyButton copied={commandOf(search)}>Copy the command that prints all as CSV</CopyButton>}
    </div>
  );
}

type AsOf = Pick<NonNullable<Answer['as_of']>[number], 'bucket' | 'status'>;

const isDoubtful = ({ status }: AsOf): boolean => status.state !== 'ok';

/** Whether the buckets of the search agree with their index; of a search that names none, all buckets. */
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

function Objects({ search, found }: ResultsProps) {
  const isDeleted = asksForDeleted(search.query);
  const isOneBucket = onlyValueIn(search.query, 'bucket') !== undefined;
  const keyOf = (of: OpenObject): string => JSON.stringify([of.bucket, of.key]);
  const { open } = search;
  const linkTo = ({ bucket, key }: StoredObject) => (
    <Link
      page="search"
      choices={choicesOf({ ...search, open: { bucket, key } })}
      label={visibleText(key)}
      isCurrent={open !== undefined && keyOf(open) === keyOf({ bucket, key })}
    >
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
    <Listed
      pages={found}
      label="Objects found"
      columns={columns.filter((column) => column !== false)}
      keyOf={keyOf}
      empty={<NothingFound search={search} understood={found.first?.understood ?? []} />}
    />
  );
}

/** How a heading sorts by its column, and the other way round when it does already. */
function sortingBy(search: Search, field: SortField): Sorting {
  const isSorted = search.sort === field;
  const isUp = search.order === 'asc';
  // of sizes and times the largest and latest are asked for first
  const isDown = isSorted ? isUp : field !== 'key';
  return {
    choices: choicesOf({ ...search, sort: field, order: isDown ? 'desc' : 'asc', open: undefined }),
    now: isSorted ? (isUp ? 'ascending' : 'descending') : undefined,
  };
}

interface NothingProps {
  readonly search: Search;
  /** How the registry has read the query. */
  readonly understood: NonNullable<Answer['understood']>;
}

/** What is shown in place of an empty list: the way to the question for one key. */
function NothingFound({ search: { query }, understood }: NothingProps) {
  const [named, path] = understood.find(({ field }) => field === 'object')?.values ?? [];
  const bucket = onlyValueIn(query, 'bucket') ?? named;
  const key = onlyValueIn(query, 'key') ?? path;
  return (
    <>
      <p>{query === '' ? 'The index holds no object that you may read.' : 'No object in the index matches.'}</p>
      {bucket === undefined || key === undefined ? (
        query !== '' && <p>To learn why an object is not here, paste its s3:// address into the box.</p>
      ) : (
        <Link page="object" choices={{ bucket, key }}>
          Ask S3 and the index why it is not here
        </Link>
      )}
    </>
  );
}
