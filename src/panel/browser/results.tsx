/** The objects that a search finds, in the order that was chosen. */
import type { ComponentChildren } from 'preact';
import type { StoredObject } from '../../api/search.ts';
import type { SortField } from '../../domain/search/conditions.ts';
import { useBuckets } from './all-buckets.ts';
import { call, type AnswerTo } from './api.ts';
import { usePages, type Pages } from './load.ts';
import { Busy, CopyButton, Failure, Key, Link, More, Size, Text, Time } from './parts.tsx';
import { asksForDeleted, onlyValueIn } from './query-text.ts';
import { choicesOf, commandOf, requestOf, type Search } from './search-place.ts';
import { countText, numberText, visibleText } from './words.ts';

const PAGE = 200;

type Answer = AnswerTo<'GET /v1/objects'>;
export type Found = Pages<StoredObject, Answer>;

/** Reads what a search finds. The first page has the total, and how far the index can be relied on. `isWanted`: the search has no mistake. */
export function useObjects(search: Search, isWanted: boolean): Found {
  const query = requestOf(search);
  return usePages<StoredObject, Answer>(
    `search ${JSON.stringify(query)}`,
    (cursor, signal) => {
      const more = cursor === undefined ? { as_of: 'true' as const, total: 'true' as const } : { cursor };
      return call('GET /v1/objects', { query: { ...query, limit: PAGE, ...more } }, signal);
    },
    isWanted,
  );
}

interface ResultsProps {
  readonly search: Search;
  readonly found: Found;
}

/** What a search finds, with all that belongs to it. */
export function Results({ search, found }: ResultsProps) {
  const { problem, first, reload } = found;
  const isDeleted = asksForDeleted(search.query);
  return (
    <section aria-label={isDeleted ? 'Deleted objects' : 'Objects'} class="results">
      {first !== undefined && <Summary search={search} first={first} />}
      {isDeleted && <p class="quiet">Deleted objects are shown for seven days after they were deleted.</p>}
      {problem === undefined ? <Rows search={search} found={found} /> : <Failure problem={problem} retry={reload} />}
    </section>
  );
}

function Rows({ search, found: { items = [], first, isLoading, more } }: ResultsProps) {
  const table = items.length > 0 && <ObjectTable search={search} objects={items} />;
  if (isLoading) {
    return (
      <>
        {table}
        <Busy />
      </>
    );
  }
  if (first !== undefined && items.length === 0 && more === undefined) return <NothingFound search={search} first={first} />;
  return (
    <>
      {table}
      {more !== undefined && <More more={more} />}
    </>
  );
}

/** One line: how much was found, how far it can be relied on, and what can be done with all of it. */
function Summary({ search, first: { as_of: of = [], total, items } }: { readonly search: Search; readonly first: Answer }) {
  return (
    <div class="summary">
      {total !== undefined && total.value > 0 && (
        <strong role="status">{total.exact ? countText(total.value, 'object') : `more than ${numberText(total.value)} objects`}</strong>
      )}
      <Agreement of={of} />
      {items.length > 0 && (
        <CopyButton copied={{ text: commandOf(search), isJson: false }}>Copy the command that prints all as CSV</CopyButton>
      )}
    </div>
  );
}

type AsOf = Pick<NonNullable<Answer['as_of']>[number], 'bucket' | 'status'>;

const isDoubtful = ({ status }: AsOf): boolean => status.state !== 'ok';

/** Whether the buckets of the search agree with their index; of a search that names none, all buckets. */
function Agreement({ of }: { readonly of: readonly AsOf[] }) {
  const { value } = useBuckets();
  const all: readonly AsOf[] = of.length > 0 ? of : (value?.items ?? []);
  const [one, another] = all.filter(isDoubtful);
  if (all.length === 0) return null;
  if (one === undefined) return <span class="quiet dot good">{all.length === 1 ? 'The index agrees' : 'All buckets agree'}</span>;
  if (another !== undefined) {
    return (
      <Link page="buckets">
        {numberText(all.filter(isDoubtful).length)} of {countText(all.length, 'bucket')} may differ
      </Link>
    );
  }
  return (
    <span class="dot notable">
      <Link page="bucket" choices={{ bucket: one.bucket }}>
        <Text>{one.bucket}</Text>
      </Link>{' '}
      may differ: <Text>{one.status.sentence}</Text>
    </span>
  );
}

interface TableProps {
  readonly search: Search;
  readonly objects: readonly StoredObject[];
}

function ObjectTable({ search, objects }: TableProps) {
  const isDeleted = asksForDeleted(search.query);
  const isOneBucket = onlyValueIn(search.query, 'bucket') !== undefined;
  return (
    <div role="region" aria-label="Objects found">
      <table class="found">
        <thead>
          <tr>
            <SortHead search={search} field="key">
              Key
            </SortHead>
            {!isOneBucket && <th scope="col">Bucket</th>}
            {!isDeleted && (
              <SortHead search={search} field="size" look="number">
                Size
              </SortHead>
            )}
            <SortHead search={search} field={isDeleted ? 'deleted_at' : 'last_modified'}>
              {isDeleted ? 'Deleted' : 'Modified'}
            </SortHead>
          </tr>
        </thead>
        <tbody>
          {objects.map((object) => (
            <ObjectRow key={`${object.bucket} ${object.key}`} of={object} search={search} isOneBucket={isOneBucket} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  readonly of: StoredObject;
  readonly search: Search;
  readonly isOneBucket: boolean;
}

function ObjectRow({ of, search, isOneBucket }: RowProps) {
  const { bucket, key, size, last_modified: modified, deleted, deleted_at: deletedAt } = of;
  const isOpen = search.open?.key === key && search.open.bucket === bucket;
  return (
    <tr class={isOpen ? 'open' : undefined}>
      <th scope="row">
        <Link page="search" choices={choicesOf({ ...search, open: { bucket, key } })} label={visibleText(key)} isRow isBeside>
          <Key>{key}</Key>
        </Link>
      </th>
      {!isOneBucket && (
        <td>
          <Text>{bucket}</Text>
        </td>
      )}
      {!deleted && (
        <td class="number">
          <Size bytes={size} />
        </td>
      )}
      <td>
        <Time at={deleted ? deletedAt : modified} />
      </td>
    </tr>
  );
}

interface HeadProps {
  readonly search: Search;
  readonly field: SortField;
  readonly look?: 'number';
  readonly children: ComponentChildren;
}

/** A heading that sorts by its column, and the other way round when it does already. */
function SortHead({ search, field, look, children }: HeadProps) {
  const isSorted = search.sort === field;
  const isUp = search.order === 'asc';
  // of sizes and times the largest and latest are asked for first
  const isDown = isSorted ? isUp : field !== 'key';
  return (
    <th scope="col" class={look} aria-sort={isSorted ? (isUp ? 'ascending' : 'descending') : undefined}>
      <Link
        page="search"
        choices={choicesOf({
          ...search,
          sort: field,
          order: isDown ? 'desc' : 'asc',
          open: undefined,
        })}
      >
        {children}
        {isSorted && <span aria-hidden="true"> {isUp ? '↑' : '↓'}</span>}
      </Link>
    </th>
  );
}

/** What is shown in place of an empty list: what the index may lack, and the way to the question for one key. */
function NothingFound({ search: { query }, first }: { readonly search: Search; readonly first: Answer }) {
  const doubtful = (first.as_of ?? []).filter(isDoubtful);
  return (
    <div class="empty">
      <p>{query === '' ? 'The index holds no object that you may read.' : 'No object in the index matches.'}</p>
      {doubtful.map(({ bucket, status }) => (
        <p class="advice" key={bucket}>
          The index of{' '}
          <Link page="bucket" choices={{ bucket }}>
            <Text>{bucket}</Text>
          </Link>{' '}
          may lack changes: <Text>{status.sentence}</Text>.
        </p>
      ))}
      {query !== '' && <WhyNotHere query={query} understood={first.understood ?? []} />}
    </div>
  );
}

function WhyNotHere({ query, understood }: { readonly query: string; readonly understood: NonNullable<Answer['understood']> }) {
  const [named, path] = understood.find(({ field }) => field === 'object')?.values ?? [];
  const bucket = onlyValueIn(query, 'bucket') ?? named;
  const key = onlyValueIn(query, 'key') ?? path;
  if (bucket === undefined || key === undefined) {
    return <p>To learn why an object is not here, paste its s3:// address into the box.</p>;
  }
  return (
    <Link page="object" choices={{ bucket, key }}>
      Ask S3 and the index why it is not here
    </Link>
  );
}
