/** What can be done with rows: copied one by one, as lines of those that are selected, or all that match. */
import { useRef, useState } from 'preact/hooks';
import { CSV_HEADING, csvLine } from '../../domain/documents/csv.ts';
import { printable } from '../../domain/printable.ts';
import type { StoredObject } from '../../api/search.ts';
import { call, problemFrom } from './api.ts';
import { copiedCommand, copiedKey, copiedLines, copiedUri, idOf, type Copied } from './copied.ts';
import { Menu } from './menu.tsx';
import { announce, copy, CopyButton } from './parts.tsx';
import { commandOf, curlOf, requestOf, type Search } from './search-place.ts';
import { session } from './session.ts';
import { numberText } from './words.ts';

/** A name that is heard at once. */
const NAME_LENGTH_MAX = 100;

type Named = Pick<StoredObject, 'bucket' | 'key'>;

/** Copies what a row is about. */
export function CopyMenu({ of }: { readonly of: Named }) {
  return (
    <Menu label={copyLabel(of.key)} look="plain outline small" shown="⋯">
      <CopyActs of={of} />
    </Menu>
  );
}

/** What a screen reader says of the button that opens the menu. */
export function copyLabel(key: string): string {
  return `Copy ${printable(key, NAME_LENGTH_MAX)}`;
}

/** What the menu of a row has. */
export function CopyActs({ of: { bucket, key } }: { readonly of: Named }) {
  return (
    <>
      <button type="button" onClick={() => void copy(copiedKey(key))}>
        Copy key
      </button>
      <button type="button" onClick={() => void copy(copiedUri(bucket, key))}>
        Copy URI
      </button>
      <button type="button" onClick={() => void copy(copiedCommand(bucket, key))}>
        Copy aws command
      </button>
    </>
  );
}

export interface Selection {
  readonly isEmpty: boolean;
  readonly has: (id: string) => boolean;
  readonly toggle: (ids: readonly string[], isSelected: boolean) => void;
  readonly clear: () => void;
}

/** The rows that a person selected. They stay selected when rows are added. */
export function useSelection(): Selection {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  return {
    isEmpty: selected.size === 0,
    has: (id) => selected.has(id),
    toggle: (ids, isSelected) =>
      setSelected((before) => (isSelected ? new Set([...before, ...ids]) : new Set(before).difference(new Set(ids)))),
    clear: () => setSelected(new Set()),
  };
}

/** The box that selects a row. */
export function SelectCell({ of, selection }: { readonly of: Named; readonly selection: Selection }) {
  const id = idOf(of);
  return (
    <td class="select">
      <input
        type="checkbox"
        aria-label="Select this row"
        checked={selection.has(id)}
        onChange={(event) => selection.toggle([id], event.currentTarget.checked)}
      />
    </td>
  );
}

/** Copies the selected rows as lines. */
export function SelectionBar({ rows, selection }: { readonly rows: readonly Named[]; readonly selection: Selection }) {
  // a list has thousands of rows, and is drawn with each frame while it is scrolled
  const selected = selection.isEmpty ? [] : rows.filter((row) => selection.has(idOf(row)));
  if (selected.length === 0) return null;
  const lines = (copied: (row: Named) => Copied): Copied => copiedLines(selected.map(copied));
  return (
    <p class="actions selected">
      <strong>{numberText(selected.length)} selected</strong>
      <CopyButton copied={lines(({ key }) => copiedKey(key))}>Copy keys</CopyButton>
      <CopyButton copied={lines(({ bucket, key }) => copiedUri(bucket, key))}>Copy URIs</CopyButton>
      <CopyButton copied={lines(({ bucket, key }) => copiedCommand(bucket, key))}>Copy aws commands</CopyButton>
      <button type="button" class="outline small" onClick={selection.clear}>
        Clear
      </button>
    </p>
  );
}

/** More rows are for a program: the page holds them in memory until they are saved. */
const DOWNLOAD_MAX = 100_000;
/** The longest page. */
const DOWNLOAD_PAGE = 1_000;

/** The same search for a terminal, and everything that matches. */
export function SearchMenu({ search, total }: { readonly search: Search; readonly total: string }) {
  const isLocal = session.read()?.kind === 'local';
  const [rows, download, stop] = useDownload(search);
  if (rows !== undefined) {
    return (
      <button type="button" class="outline small" onClick={stop}>
        {`Stop the download at ${numberText(rows)} rows`}
      </button>
    );
  }
  return (
    <Menu label="Export and copy this search" shown="Export">
      <button type="button" onClick={download}>
        {`Download all ${total} as CSV`}
      </button>
      <button type="button" onClick={() => void copy({ text: commandOf(search), isJson: false })}>
        Copy as command
      </button>
      <button type="button" onClick={() => void copy({ text: curlOf(search, isLocal), isJson: false })}>
        Copy as curl
      </button>
      <button
        type="button"
        onClick={() =>
          void copy({ text: commandOf(search, '--csv'), isJson: false, note: 'The command is copied. It prints all rows as CSV.' })
        }
      >
        {`Copy command for all ${total}`}
      </button>
    </Menu>
  );
}

/** Reads everything that matches, page by page, and saves it as CSV. Returns how many rows there are while it does so. */
function useDownload(search: Search): readonly [rows: number | undefined, download: () => void, stop: () => void] {
  const [rows, setRows] = useState<number>();
  const end = useRef<AbortController | undefined>(undefined);
  async function download(): Promise<void> {
    const ending = new AbortController();
    end.current = ending;
    setRows(0);
    try {
      const { lines, isAll } = await linesOf(search, setRows, ending.signal);
      save(lines);
      const count = numberText(lines.length - 1);
      announce(isAll ? `Saved rows: ${count}.` : `Saved the first ${count} rows. The command prints all of them.`);
    } catch (error) {
      announce(ending.signal.aborted ? 'The download was stopped.' : `The download failed: ${problemFrom(error).message}`);
    } finally {
      setRows(undefined);
    }
  }
  return [rows, () => void download(), () => end.current?.abort()];
}

async function linesOf(
  search: Search,
  report: (rows: number) => void,
  signal: AbortSignal,
): Promise<{ readonly lines: readonly string[]; readonly isAll: boolean }> {
  const lines = [CSV_HEADING];
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    if (lines.length > DOWNLOAD_MAX) return { lines, isAll: false };
    const query = { ...requestOf(search), limit: DOWNLOAD_PAGE, ...(cursor !== undefined && { cursor }) };
    const page = await call('GET /v1/objects', { query }, signal);
    for (const item of page.items) lines.push(csvLine(item, false));
    report(lines.length - 1);
    cursor = page.next;
  }
  return { lines, isAll: true };
}

function save(lines: readonly string[]): void {
  const address = URL.createObjectURL(new Blob([lines.map((line) => `${line}\n`).join('')], { type: 'text/csv' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = 'tally-search.csv';
  link.click();
  URL.revokeObjectURL(address);
}
