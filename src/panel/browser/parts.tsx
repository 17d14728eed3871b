/** Small parts of every page. Every text from outside passes through Text. */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { pagesIn } from '../../base/doc-pages.ts';
import { printable, countText, momentOfText, sizeText } from '../../base/texts.ts';
import type { Problem } from './api.ts';
import type { Loaded } from './load.ts';
import { observed, useObserved } from './observed.ts';
import { hrefOf, place, type Choices, type PageName } from './place.ts';
import { may } from './session.ts';
import { keyParts, visibleText } from './words.ts';

/**
 * A text from outside, with its invisible characters made visible. It always runs from left to right, whatever its script, so that a
 * key reads the same everywhere.
 */
export function Text({ children }: { readonly children: string }) {
  return (
    <bdi dir="ltr" class="text">
      {visibleText(children)}
    </bdi>
  );
}

/** Folders up to this length fit beside any name. */
const SHORT_FOLDER = 12;

/** A key: its folder, whose beginning is cut if there is no room, and its name, which is never cut. */
export function Key({ children: key }: { readonly children: string }) {
  const [folder, name] = keyParts(key);
  return (
    <span class="key" title={visibleText(key)}>
      {folder !== '' && (
        <span class={folder.length > SHORT_FOLDER ? 'folder long' : 'folder'}>
          <Text>{folder}</Text>
        </span>
      )}
      <Text>{name}</Text>
    </span>
  );
}

/** A text from the registry, in which names of documentation pages become links. */
export function Advice({ children }: { readonly children: string }) {
  return pagesIn(children).map(({ text, isPage }, index) =>
    isPage ? (
      <DocsLink key={index} address={text}>
        the documentation
      </DocsLink>
    ) : (
      <Text key={index}>{text}</Text>
    ),
  );
}

/** A link to a page of the documentation. */
function DocsLink({ address, children }: { readonly address: string; readonly children: string }) {
  return (
    <a href={address} target="_blank" rel="noopener">
      {children}
    </a>
  );
}

interface LinkProps {
  readonly page: PageName;
  readonly choices?: Readonly<Record<string, string | undefined>>;
  readonly children: ComponentChildren;
  /** What a screen reader says. Default: the shown text. */
  readonly label?: string;
  readonly isCurrent?: boolean;
}

/** A link to a place. */
export function Link({ page, choices, children, label, isCurrent }: LinkProps) {
  return (
    <a href={hrefOf(page, choices)} aria-label={label} aria-current={isCurrent === true ? 'page' : undefined}>
      {children}
    </a>
  );
}

/** Leads to the page that adds a bucket. */
export function AddLink({ bucket }: { readonly bucket: string }) {
  if (!may('POST /v1/buckets')) return null;
  return (
    <Link page="add" choices={{ bucket }}>
      Add it
    </Link>
  );
}

interface TabsProps {
  readonly label: string;
  readonly of: readonly (readonly [text: string, page: PageName, choices: Choices, isCurrent: boolean])[];
}

/** Links, one of which leads to the current page. */
export function Tabs({ label, of }: TabsProps) {
  return (
    <nav aria-label={label}>
      <ul class="tabs">
        {of.map(([text, page, choices, isCurrent]) => (
          <li key={text}>
            <Link page={page} choices={choices} isCurrent={isCurrent}>
              {text}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** How long ago a time was, or how far ahead it is. A tooltip shows the time with its zone. */
export function Time({ at }: { readonly at: string | null | undefined }) {
  if (at === undefined || at === null) return <span class="quiet">never</span>;
  const text = momentOfText(at, Date.now()) ?? '';
  return (
    <time dateTime={at} title={at}>
      {text.startsWith('in ') ? text : `${text} ago`}
    </time>
  );
}

/** A size, with the exact number of bytes in its tooltip and for screen readers. */
export function Size({ bytes }: { readonly bytes: number | undefined }) {
  if (bytes === undefined) return <span class="quiet">–</span>;
  return (
    <span class="size" title={countText(bytes, 'byte')}>
      {sizeText(bytes)} {bytes >= 1_024 && <span class="unseen">({countText(bytes, 'byte')})</span>}
    </span>
  );
}

/** What a screen reader says next. */
const announced = observed('');
let announcedTimer: ReturnType<typeof setTimeout> | undefined;
/** Long enough to read two lines. */
const ANNOUNCED_MS = 10_000;

export function announce(text: string): void {
  announced.set('');
  announced.set(text);
  clearTimeout(announcedTimer);
  announcedTimer = setTimeout(() => announced.set(''), ANNOUNCED_MS);
}

/** The one place that announces. */
export function Announcements() {
  return (
    <p role="status" class="announcement">
      {useObserved(announced)}
    </p>
  );
}

/** Copies a text. If the clipboard isn't available, it shows the text to copy by hand. */
export function CopyButton({ copied, children }: { readonly copied: string; readonly children: string }) {
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(copied);
      announce('Copied.');
    } catch {
      announce(`The browser does not permit copying. Select it here: ${printable(copied)}`);
    }
  }
  return (
    <button type="button" class="outline small" onClick={() => void copy()}>
      {children}
    </button>
  );
}

/** Not an error to someone who followed a link: they can add the bucket. */
export const NOT_CONNECTED = 'bucket.not-connected';

/** An error in the registry's words. Only the frame reports that the session has ended or that the registry is unreachable. */
export function Failure({ problem: { message, code, more }, retry }: { readonly problem: Problem; readonly retry?: () => void }) {
  if (code === 'authentication.failed') return null;
  const { bucket } = place.read().choices;
  if (code === NOT_CONNECTED && bucket !== undefined) {
    return (
      <p class="empty">
        The bucket <Text>{bucket}</Text> is not connected, so nothing of it is indexed. <AddLink bucket={bucket} />
      </p>
    );
  }
  return (
    <div role="alert" class="failure">
      <p>
        Error: <Text>{message}</Text>
        {message.endsWith('.') ? '' : '.'}{' '}
        <small>({more.explainedAt === undefined ? code : <DocsLink address={more.explainedAt}>{code}</DocsLink>})</small>
      </p>
      {more.advice !== undefined && (
        <p>
          <Advice>{more.advice}</Advice>
        </p>
      )}
      {more.jobId !== undefined && (
        <p>
          <Link page="job" choices={{ id: more.jobId }}>
            Show the job
          </Link>
        </p>
      )}
      {retry !== undefined && (
        <button type="button" class="outline small" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Says that something is being read, and after a few seconds that the answer is late: the index store may hang for longer than people wait. */
export function Busy({ children = 'Loading…' }: { readonly children?: string | undefined }) {
  return (
    <p aria-busy="true" class="quiet busy">
      {children}
      <span class="late"> This is taking longer than usual. The index store or AWS may not be answering.</span>
    </p>
  );
}

/** A heading's link, which sorts by its column, and how the rows are sorted by it now. */
export interface Sorting {
  readonly href: string;
  readonly now: 'ascending' | 'descending' | undefined;
}

/** A table's column: its heading, and what it shows of a row. The look `row` marks the row's name; the others are style sheet classes. */
export type Column<Row> = readonly [
  head: string,
  cell: (row: Row) => ComponentChildren,
  look?: 'row' | 'number' | 'less' | undefined,
  sorting?: Sorting,
];

interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Identifies a row among the others. */
  readonly keyOf: (row: Row) => string | number;
  /** Shown instead of a table without rows. */
  readonly empty?: ComponentChildren;
  /** Columns that people compare stay side by side, even on a phone. */
  readonly look?: 'compared' | 'scrolled';
}

/** A wide table scrolls sideways within the page. On a phone, each row becomes a card whose cells are labelled. */
export function Table<Row>({ label, columns, rows, keyOf, empty, look: whole = 'scrolled' }: TableProps<Row>) {
  if (rows.length === 0 && empty !== undefined) return empty === '' ? null : <div class="empty">{empty}</div>;
  return (
    <div class={whole} role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(([head, , look, sorting]) => (
              <th scope="col" key={head} class={look === 'number' ? look : undefined} aria-sort={sorting?.now}>
                {sorting === undefined ? head : <a href={sorting.href}>{head}</a>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(([head, cell, look]) =>
                look === 'row' ? (
                  <th scope="row" key={head}>
                    {cell(row)}
                  </th>
                ) : (
                  <td class={look} data-label={head} key={head}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A name and its value. */
export type Detail = readonly [name: string, value: ComponentChildren];

/** Names and values; absent values are left out. */
export function Details({ of }: { readonly of: readonly Detail[] }) {
  return (
    <dl>
      {of
        .filter(([, value]) => value !== undefined && value !== null && value !== false && value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Content that is rendered, and read if need be, only once it is unfolded. */
export function Fold({ summary, children }: { readonly summary: ComponentChildren; readonly children: () => ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && children()}
    </details>
  );
}

interface DialogProps {
  readonly title: string;
  /** The person cannot close it; a login does. */
  readonly isKept?: boolean;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A dialog that keeps the focus until it is closed, by Escape too. */
export function Dialog({ title, isKept, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  // before the dialog is removed: effects that run after the paint would find the focus already lost
  useLayoutEffect(() => {
    const { current } = element;
    const opener = document.activeElement;
    current?.showModal();
    return () => {
      current?.close();
      const next = opener?.isConnected === true ? opener : document.querySelector('#content');
      if (next instanceof HTMLElement) next.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      closedby={isKept === true ? 'none' : 'closerequest'}
      // a removed dialog's event comes after that
      onClose={() => element.current !== null && onClose()}
    >
      <article>
        <header>
          <h2 id={id}>
            <Text>{title}</Text>
          </h2>
        </header>
        {children}
      </article>
    </dialog>
  );
}

interface ShownProps<Value> {
  readonly loaded: Loaded<Value>;
  /** Read repeatedly. */
  readonly isLive?: boolean;
  readonly busy?: string;
  readonly children: (value: Value) => ComponentChildren;
}

/** Shows a value once it has been read; before that, that it is loading, or why it cannot be read. */
export function Shown<Value>({ loaded: { value, problem, atMs, reload }, isLive, busy, children }: ShownProps<Value>) {
  if (value === undefined) return problem === undefined ? <Busy>{busy}</Busy> : <Failure problem={problem} retry={reload} />;
  return (
    <>
      {children(value)}
      {isLive === true && (
        <p class="quiet">
          {`as of ${new Date(atMs ?? 0).toISOString().slice(11, 19)} UTC`}
          {problem !== undefined && (
            <>
              ; the latest attempt failed: <Text>{problem.message}</Text>
            </>
          )}
        </p>
      )}
    </>
  );
}

interface ListedProps<Row> extends Omit<TableProps<Row>, 'rows'> {
  readonly loaded: Loaded<{ readonly items: readonly Row[]; readonly next?: string | undefined }>;
  /** The next page's address. Absent: only the first page is shown. */
  readonly hrefOfNext?: (cursor: string) => string;
}

/** One page of a table. */
export function Listed<Row>({ loaded, hrefOfNext, ...table }: ListedProps<Row>) {
  return (
    <Shown loaded={loaded}>
      {({ items, next }) => (
        <>
          <Table {...table} rows={items} />
          {next !== undefined && (
            <p>{hrefOfNext === undefined ? `The first ${countText(items.length)} are shown.` : <a href={hrefOfNext(next)}>More</a>}</p>
          )}
        </>
      )}
    </Shown>
  );
}
