/** The objects that a search finds, in the order that was chosen. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { SortField } from '../../domain/search/conditions.ts';
import type { StoredObject } from '../../api/search.ts';
import { Agreement, isDoubtful, type AsOf } from './agreement.tsx';
import { call, type AnswerTo, type Problem } from './api.ts';
import { idOf } from './copied.ts';
import { CopyActs, SearchMenu, SelectionBar, useSelection, type Selection } from './copy-actions.tsx';
import { useLoaded, usePages, type Pages } from './load.ts';
import { Opened } from './menu.tsx';
import { objectRow, type Copying } from './object-row.tsx';
import { useObserved } from './observed.ts';
import { Busy, Failure, Link, Text } from './parts.tsx';
import { go, hrefOf } from './place.ts';
import { onlyValueIn, withField } from './query-text.ts';
import { Chips, isDeletedSearch, mistakeOf, without } from './search-box.tsx';
import { choicesOf, pageOf, requestOf, type Search } from './search-place.ts';
import { useVirtualRows } from './virtual.ts';
import { countText, numberText, zone } from './words.ts';
import { Field, Form } from './form.tsx';

const PAGE = 500;
/** As many rows as a list has; what is beyond is found by a jump. */
export const ROWS_MAX = 20_000;
/** The next page is read when so many rows are left below. */
const AHEAD = 250;

const ROW_PX = 32;
/** On a telephone a row has three lines: folders, name, and what it is. */
const CARD_PX = 76;
const phone = matchMedia('(max-width: 640px)');

type Answer = AnswerTo<'GET /v1/objects'>;
export type Found = Pages<StoredObject, Answer>;

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
  /** Called when the results are read, and again when they are there. */
  readonly onProblem: (problem: Problem | undefined, again: () => void, isThere: boolean) => void;
}

/** What a search finds, with all that belongs to it. */
export function Results({ search, label, onProblem }: ResultsProps) {
  const found = useObjects(search);
  const { problem, first, reload } = found;
  const id = useId();
  useEffect(() => onProblem(problem, reload, first !== undefined), [problem, first]);
  if (mistakeOf(problem) !== undefined) return null;
  return (
    <section aria-labelledby={id} class="results">
      <h2 id={id} class="unseen">
        {label}
      </h2>
      {first !== undefined && <Above search={search} first={first} atMs={found.atMs ?? Date.now()} />}
      {isDeletedSearch(search) && <p class="quiet">Deleted objects are shown for seven days after they were deleted.</p>}
      <Rows found={found} search={search} />
    </section>
  );
}

interface RowsProps {
  readonly found: Found;
  readonly search: Search;
}

function Rows({ found, search }: RowsProps) {
  const { problem, items = [], first, isLoading, more, reload } = found;
  if (problem !== undefined) return <Failure problem={problem} retry={reload} />;
  if (items.length > 0) return <ObjectTable found={found} objects={items} search={search} />;
  if (isLoading || more !== undefined) return <Busy />;
  return <NothingFound search={search} understood={first?.understood ?? []} asOf={first?.as_of ?? []} />;
}

/** The chips, the agreement and the number of all results, above another view of them. */
export function Overview({ search }: { readonly search: Search }) {
  const query = requestOf(search);
  const read = (signal: AbortSignal): Promise<Answer> =>
    call('GET /v1/objects', { query: { ...query, limit: 1, as_of: 'true', total: 'true' } }, signal);
  // what is wrong with the query is shown for the view below
  const { value, atMs } = useLoaded(`overview ${JSON.stringify(query)}`, read);
  return value === undefined ? null : <Above search={search} first={value} atMs={atMs ?? Date.now()} isList={false} />;
}

interface AboveProps {
  readonly search: Search;
  readonly first: Answer;
  readonly atMs: number;
  readonly isList?: boolean;
}

/** One line: what was understood, how much was found, how far it can be relied on, and what can be done with all of it. */
function Above({ search, first, atMs, isList = true }: AboveProps) {
  const { as_of: of = [], total, understood = [] } = first;
  return (
    <div class="summary">
      <Chips search={search} understood={understood} />
      <Total of={total} />
      <Agreement of={of} atMs={atMs} />
      {isList && <ListActs search={search} first={first} />}
    </div>
  );
}

function Total({ of: total }: { readonly of: Answer['total'] }) {
  if (total === undefined || total.value === 0) return null;
  return <strong role="status">{total.exact ? countText(total.value, 'object') : `more than ${numberText(total.value)} objects`}</strong>;
}

function ListActs({ search, first: { items, total } }: Pick<AboveProps, 'search' | 'first'>) {
  return (
    <>
      {search.sort === 'key' && !isDeletedSearch(search) && <JumpTo search={search} />}
      {items.length > 0 && <SearchMenu search={search} total={totalText(total)} />}
    </>
  );
}

/** Leads to any key, however many rows are before it. */
function JumpTo({ search }: { readonly search: Search }) {
  return (
    <form
      class="jump"
      onSubmit={(event) => {
        event.preventDefault();
        const [key] = new FormData(event.currentTarget).values();
        if (typeof key === 'string' && key !== '') go(hrefOf('search', choicesOf(jumpedTo(search, key))));
      }}
    >
      <input name="key" aria-label="Jump to a key" placeholder="Jump to a key…" autocomplete="off" spellcheck={false} />
    </form>
  );
}

function totalText(total: Answer['total']): string {
  if (total === undefined) return '';
  return total.exact ? numberText(total.value) : `${numberText(total.value)}+`;
}

interface TableProps {
  readonly found: Found;
  readonly objects: readonly StoredObject[];
  readonly search: Search;
}

function ObjectTable({ found, objects, search }: TableProps) {
  const selection = useSelection();
  const [copying, setCopying] = useState<Copying>();
  const { more, isLoading } = found;
  const isFull = objects.length >= ROWS_MAX;
  const isOneBucket = onlyValueIn(search.query, 'bucket') !== undefined;
  const body = { objects, search, isOneBucket, selection, copying: copying?.of, openMenu: setCopying };
  return (
    <>
      <SelectionBar rows={objects} selection={selection} />
      <div role="region" aria-label="Objects found">
        <table role="table" class={`virtual${isOneBucket ? ' of-one' : ''}`} aria-rowcount={more === undefined ? objects.length + 1 : -1}>
          <Heads objects={objects} search={search} selection={selection} isOneBucket={isOneBucket} />
          <Body {...body} more={isLoading || isFull ? undefined : more} />
        </table>
      </div>
      {copying !== undefined && (
        <Opened
          key={idOf(copying.of)}
          beside={{ current: copying.button }}
          onDone={() => setCopying(undefined)}
          onClose={() => setCopying(undefined)}
        >
          <CopyActs of={copying.of} />
        </Opened>
      )}
      {isLoading && <Busy />}
      {isFull && more !== undefined && <Beyond search={search} last={objects.at(-1)} />}
    </>
  );
}

interface BodyProps extends Omit<TableProps, 'found'> {
  readonly isOneBucket: boolean;
  readonly selection: Selection;
  /** The object whose menu is open. */
  readonly copying: StoredObject | undefined;
  readonly openMenu: (copying: Copying) => void;
  /** Reads the next page. */
  readonly more: (() => void) | undefined;
}

/** The rows that are near what is seen. Nothing else is drawn while the list is scrolled. */
function Body({ objects, search, isOneBucket, selection, copying, openMenu, more }: BodyProps) {
  const inZone = useObserved(zone);
  const body = useRef<HTMLTableSectionElement>(null);
  const { items, abovePx, belowPx } = useVirtualRows({ count: objects.length, rowPx: phone.matches ? CARD_PX : ROW_PX, body });
  const [lastDrawn = 0] = items.at(-1) ?? [];
  useEffect(() => {
    if (lastDrawn > objects.length - AHEAD) more?.();
  }, [lastDrawn, objects.length, more === undefined]);
  const shown = { search, isOneBucket, inZone, nowMs: Date.now(), select: selection.toggle, openMenu };
  return (
    <tbody role="rowgroup" ref={body}>
      <Space px={abovePx} />
      {items.map(([row, slot]) => {
        const object = objects[row];
        if (object === undefined) return null;
        const isSelected = !selection.isEmpty && selection.has(idOf(object));
        return objectRow(object, { row, slot }, { ...shown, isSelected, isCopying: object === copying });
      })}
      <Space px={belowPx} />
    </tbody>
  );
}

/** What stands for rows that are not drawn. */
function Space({ px }: { readonly px: number }) {
  return px <= 0 ? null : <tr aria-hidden="true" class="space" style={{ height: `${px}px` }} />;
}

/** The search from a key on. */
function jumpedTo(search: Search, key: string): Search {
  return { ...search, query: withField(search.query, { name: 'key', operator: '>=' }, [key]), open: undefined };
}

/** After the last row of a list that is full. */
function Beyond({ search, last }: { readonly search: Search; readonly last: StoredObject | undefined }) {
  if (last === undefined) return null;
  return (
    <p class="quiet">
      A list ends after {numberText(ROWS_MAX)} rows.{' '}
      {search.sort === 'key' && search.order === 'asc' && (
        <Link page="search" choices={choicesOf(jumpedTo(search, last.key))}>
          Continue from the last key
        </Link>
      )}
    </p>
  );
}

interface HeadsProps {
  readonly objects: readonly StoredObject[];
  readonly search: Search;
  readonly selection: Selection;
  readonly isOneBucket: boolean;
}

function Heads({ objects, search, selection, isOneBucket }: HeadsProps) {
  return (
    <thead role="rowgroup">
      <tr role="row">
        <td role="cell" class="select">
          <input
            type="checkbox"
            aria-label={`Select all ${objects.length} that are shown`}
            checked={objects.every((each) => selection.has(idOf(each)))}
            onChange={(event) => selection.toggle(objects.map(idOf), event.currentTarget.checked)}
          />
        </td>
        <SortHead search={search} field="key">
          Key
        </SortHead>
        {!isOneBucket && (
          <th role="columnheader" scope="col" class="bucket">
            Bucket
          </th>
        )}
        {isDeletedSearch(search) ? (
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
        <th role="columnheader" scope="col" class="copies">
          <span class="unseen">Copy</span>
        </th>
      </tr>
    </thead>
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
  // of sizes and times the largest and latest are asked for first
  const isDown = isSorted ? search.order === 'asc' : field !== 'key';
  const sorted = search.order === 'asc' ? 'ascending' : 'descending';
  return (
    <th role="columnheader" scope="col" class={field === 'key' ? 'key' : field} aria-sort={isSorted ? sorted : undefined}>
      <Link page={pageOf(search)} choices={choicesOf({ ...search, sort: field, order: isDown ? 'desc' : 'asc', open: undefined })}>
        {children}
        {isSorted && <span aria-hidden="true"> {search.order === 'asc' ? '↑' : '↓'}</span>}
      </Link>
    </th>
  );
}

/** What is shown in place of an empty list: what each clause leaves out, what the bucket lacks, and the question for one key. */

type Clause = NonNullable<AnswerTo<'GET /v1/objects'>['understood']>[number];

/** Each is a search; more clauses than these are rarely written. */
const CLAUSES_MAX = 8;
/** A larger number does not change what a person does next. */
const COUNT_MAX = 1_000;

interface NothingFoundProps {
  readonly search: Search;
  readonly understood: readonly Clause[];
  readonly asOf: readonly AsOf[];
}

function NothingFound({ search, understood, asOf }: NothingFoundProps) {
  const doubtful = asOf.filter((each) => isDoubtful(each));
  return (
    <div class="empty">
      <p>No object in the index matches.</p>
      {understood.length > 0 && <Without search={search} understood={understood.slice(0, CLAUSES_MAX)} />}
      {doubtful.map(({ bucket, status }) => (
        <p class="advice" key={bucket}>
          The index of <Text>{bucket}</Text> is not complete for certain: <Text>{status.sentence}</Text>.{' '}
          <Link page="gaps" choices={{ bucket }}>
            Gaps of this bucket
          </Link>
          {' · '}
          <Link page="jobs" choices={{ bucket }}>
            Its re-index jobs
          </Link>
        </p>
      ))}
      <WhyNotHere search={search} understood={understood} />
    </div>
  );
}

interface Left {
  readonly clause: Clause;
  /** How many objects match without it; undefined: that cannot be counted. */
  readonly count: number | undefined;
}

/** How many objects match without each clause. One after another, because a search waits for those before it. */
function Without({ search, understood }: { readonly search: Search; readonly understood: readonly Clause[] }) {
  async function read(signal: AbortSignal): Promise<readonly Left[]> {
    const counted: Left[] = [];
    for (const clause of understood) counted.push({ clause, count: await countOf(without(search, clause), signal) });
    return counted;
  }
  const { value } = useLoaded(`without ${JSON.stringify(requestOf(search))}`, read);
  if (value === undefined) return <Busy>Counting without each filter…</Busy>;
  // what finds nothing either is no way on
  const found = value.filter(({ count }) => count !== undefined && count > 0);
  if (found.length === 0) return <p>Nor does any without one of the filters.</p>;
  return (
    <ul aria-label="Without one of the filters">
      {found.map(({ clause, count }) => (
        <li key={clause.position}>
          <Link page="search" choices={choicesOf(without(search, clause))} isRow>
            Without <Text>{clause.text}</Text>: {countShown(count)}
          </Link>
        </li>
      ))}
    </ul>
  );
}

async function countOf(search: Search, signal: AbortSignal): Promise<number | undefined> {
  try {
    const { total } = await call('GET /v1/objects', { query: { ...requestOf(search), limit: 1, total: 'true' } }, signal);
    return total?.value;
  } catch (error) {
    if (signal.aborted) throw error;
    // a pattern, for example, may not be possible without the prefix beside it
    return undefined;
  }
}

function countShown(count = 0): string {
  return count > COUNT_MAX ? `more than ${numberText(COUNT_MAX)}` : numberText(count);
}

/** The key that a person probably means. */
function meantOf({ query }: Search, understood: readonly Clause[]): readonly [bucket: string, key: string] {
  const object = understood.find(({ field }) => field === 'object');
  if (object !== undefined) return [object.values[0] ?? '', object.values[1] ?? ''];
  const text = understood.filter(({ field, negated }) => !negated && ['words', 'contains'].includes(field));
  const key = onlyValueIn(query, 'key') ?? onlyValueIn(query, 'prefix') ?? text.map(({ values }) => values.join(' ')).join(' ');
  return [onlyValueIn(query, 'bucket') ?? '', key];
}

/** Leads to the page of the object, which asks the index and S3. */
function WhyNotHere({ search, understood }: { readonly search: Search; readonly understood: readonly Clause[] }) {
  const [meantBucket, meantKey] = meantOf(search, understood);
  const [bucket, setBucket] = useState(meantBucket);
  const [key, setKey] = useState(meantKey);
  return (
    <details>
      <summary>Why is it not here?</summary>
      <Form submit="Ask S3 and the index" onSubmit={async () => go(hrefOf('object', { bucket, key }))}>
        <Field label="Bucket" value={bucket} onChange={setBucket} isRequired />
        <Field label="Key" value={key} onChange={setKey} isRequired />
      </Form>
    </details>
  );
}
