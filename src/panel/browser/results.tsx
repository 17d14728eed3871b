/** The objects that a search finds, in the order that was chosen. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId } from 'preact/hooks';
import type { SortField } from '../../domain/search/conditions.ts';
import type { StoredObject } from '../../api/search.ts';
import { call, type AnswerTo, type Problem } from './api.ts';
import { AsOfAll, AsOfLines } from './as-of.tsx';
import { idOf } from './copied.ts';
import { CopyCell, SearchActions, SelectCell, SelectionBar, useSelection, type Selection } from './copy-actions.tsx';
import { useLoaded, usePages, type Pages } from './load.ts';
import { NothingFound } from './nothing-found.tsx';
import { Link, Listed, Size, Text, Time } from './parts.tsx';
import { Chips, isDeletedSearch, mistakeOf } from './search-box.tsx';
import { choicesOf, requestOf, type Search } from './search-place.ts';
import { countText, numberText } from './words.ts';

/** Some screens; more by a click. */
const PAGE = 200;

type Answer = AnswerTo<'GET /v1/objects'>;
type Found = Pages<StoredObject, Answer>;

/** Reads what a search finds. The first page has the total, and how far the index can be relied on. */
function useObjects(search: Search): Found {
  const query = requestOf(search);
  const key = `search ${JSON.stringify(query)}`;
  return usePages<StoredObject, Answer>(key, (cursor, signal) => {
    const more = cursor === undefined ? { as_of: 'true' as const, total: 'true' as const } : { cursor };
    return call('GET /v1/objects', { query: { ...query, limit: PAGE, ...more } }, signal);
  });
}

interface ResultsProps {
  readonly search: Search;
  /** The heading. */
  readonly label: string;
  /** The folder whose objects these are: its marker is named. */
  readonly folder?: string;
  /** What is above the results is shown for a whole that these are a part of. */
  readonly isPart?: boolean;
  readonly onProblem: (problem: Problem | undefined, again: () => void) => void;
}

/** What a search finds, with all that belongs to it. */
export function Results({ search, label, folder, isPart, onProblem }: ResultsProps) {
  const found = useObjects(search);
  const { problem, first, reload } = found;
  const id = useId();
  useEffect(() => onProblem(problem, reload), [problem, first]);
  if (mistakeOf(problem) !== undefined) return null;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{label}</h2>
      {isDeletedSearch(search) && <p>Deleted objects are shown for seven days after they were deleted.</p>}
      {first !== undefined && isPart !== true && <Above search={search} first={first} atMs={found.atMs ?? Date.now()} />}
      <Rows found={found} search={search} folder={folder} />
      {first !== undefined && first.items.length > 0 && <SearchActions search={search} total={totalText(first.total)} />}
    </section>
  );
}

interface RowsProps {
  readonly found: Found;
  readonly search: Search;
  readonly folder: string | undefined;
}

function Rows({ found, search, folder }: RowsProps) {
  const { first } = found;
  return (
    <Listed pages={found} empty={<NothingFound search={search} understood={first?.understood ?? []} asOf={first?.as_of ?? []} />}>
      {(objects) => <ObjectTable objects={objects} search={search} folder={folder} />}
    </Listed>
  );
}

/** The chips, the agreement and the number of all results, above another view of them. */
export function Overview({ search }: { readonly search: Search }) {
  const query = requestOf(search);
  const read = (signal: AbortSignal): Promise<Answer> =>
    call('GET /v1/objects', { query: { ...query, limit: 1, as_of: 'true', total: 'true' } }, signal);
  // what is wrong with the query is shown for the view below
  const { value, atMs } = useLoaded(`overview ${JSON.stringify(query)}`, read);
  return value === undefined ? null : <Above search={search} first={value} atMs={atMs ?? Date.now()} />;
}

function Above({ search, first, atMs }: { readonly search: Search; readonly first: Answer; readonly atMs: number }) {
  const { as_of: of = [], total, understood = [] } = first;
  return (
    <>
      <Chips search={search} understood={understood} />
      {of.length > 0 ? <AsOfLines of={of} atMs={atMs} /> : <AsOfAll key={String(atMs)} />}
      {total !== undefined && total.value > 0 && (
        <p role="status">
          <strong>{total.exact ? countText(total.value, 'object') : `more than ${numberText(total.value)} objects`}</strong>
        </p>
      )}
    </>
  );
}

function totalText(total: Answer['total']): string {
  if (total === undefined) return '';
  return total.exact ? numberText(total.value) : `${numberText(total.value)}+`;
}

interface TableProps {
  readonly objects: readonly StoredObject[];
  readonly search: Search;
  readonly folder: string | undefined;
}

function ObjectTable({ objects, search, folder }: TableProps) {
  const selection = useSelection();
  const isDeleted = isDeletedSearch(search);
  return (
    <>
      <SelectionBar rows={objects} selection={selection} />
      <div class="scrolled" role="region" aria-label="Objects found" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <SelectAll objects={objects} selection={selection} />
              <SortHead search={search} field="key">
                Key
              </SortHead>
              <th scope="col">Bucket</th>
              {isDeleted ? (
                <SortHead search={search} field="deleted_at">
                  Deleted
                </SortHead>
              ) : (
                <>
                  <SortHead search={search} field="size">
                    Size
                  </SortHead>
                  <SortHead search={search} field="last_modified">
                    Modified
                  </SortHead>
                </>
              )}
              <th scope="col">Copy</th>
            </tr>
          </thead>
          <tbody>
            {objects.map((object) => (
              <ObjectRow key={idOf(object)} of={object} isMarker={object.key === folder} selection={selection} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function SelectAll({ objects, selection }: { readonly objects: readonly StoredObject[]; readonly selection: Selection }) {
  return (
    <td>
      <input
        type="checkbox"
        aria-label={`Select all ${objects.length} that are shown`}
        checked={objects.every((each) => selection.has(idOf(each)))}
        onChange={(event) => {
          for (const each of objects) selection.toggle(idOf(each), event.currentTarget.checked);
        }}
      />
    </td>
  );
}

interface HeadProps {
  readonly search: Search;
  readonly field: SortField;
  readonly children: ComponentChildren;
}

/** A heading that sorts by its column, and the other way round when it does already. */
function SortHead({ search, field, children }: HeadProps) {
  const isSorted = search.sort === field;
  const order = isSorted && search.order === 'asc' ? 'desc' : 'asc';
  const sorted = search.order === 'asc' ? 'ascending' : 'descending';
  return (
    <th scope="col" class={field === 'key' ? 'key' : undefined} aria-sort={isSorted ? sorted : undefined}>
      <Link page="search" choices={choicesOf({ ...search, sort: field, order })}>
        {children}
        {isSorted && <span aria-hidden="true"> {search.order === 'asc' ? '↑' : '↓'}</span>}
      </Link>
    </th>
  );
}

interface RowProps {
  readonly of: StoredObject;
  readonly isMarker: boolean;
  readonly selection: Selection;
}

function ObjectRow({ of, isMarker, selection }: RowProps) {
  const { bucket, key, size, last_modified: modified, deleted, deleted_at: deletedAt } = of;
  return (
    <tr>
      <SelectCell of={of} selection={selection} />
      <th scope="row" class="key">
        <Link page="object" choices={{ bucket, key }} isRow>
          <Text>{key}</Text>
        </Link>
        {isMarker && <small class="quiet"> (the marker of this folder)</small>}
      </th>
      <td>
        <Text>{bucket}</Text>
      </td>
      {deleted ? (
        <td>
          <Time at={deletedAt} />
        </td>
      ) : (
        <>
          <td>
            <Size bytes={size} />
          </td>
          <td>
            <Time at={modified} />
          </td>
        </>
      )}
      <CopyCell of={of} />
    </tr>
  );
}
