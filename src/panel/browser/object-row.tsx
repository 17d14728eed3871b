/**
 * A row of the list of objects. Hundreds of them are drawn a second while it is scrolled: it has no component for each of its parts,
 * and few elements, which are those of another row before.
 */
import type { StoredObject } from '../../api/search.ts';
import { copiedKey, idOf } from './copied.ts';
import { copyLabel } from './copy-actions.tsx';
import { followBeside, followLink } from './parts.tsx';
import { hrefOf } from './place.ts';
import { opening, type Search } from './search-place.ts';
import { agoText, numberText, sizeText, timeText, visibleText } from './words.ts';

/** The row whose menu is open. */
export interface Copying {
  readonly of: StoredObject;
  readonly button: HTMLElement;
}

interface Shown {
  readonly search: Search;
  readonly isOneBucket: boolean;
  readonly isSelected: boolean;
  /** Its menu is open. */
  readonly isCopying: boolean;
  readonly nowMs: number;
  readonly inZone: 'utc' | 'local';
  readonly select: (ids: readonly string[], isSelected: boolean) => void;
  readonly openMenu: (copying: Copying) => void;
}

/** `slot`: which element shows it. */
export function objectRow(of: StoredObject, { row, slot }: { readonly row: number; readonly slot: number }, shown: Shown) {
  const { bucket, key, size, last_modified: modified, deleted, deleted_at: deletedAt } = of;
  const { search, isOneBucket, isSelected, isCopying, select, openMenu } = shown;
  const isOpen = search.open?.key === key && search.open.bucket === bucket;
  return (
    <tr key={slot} role="row" aria-rowindex={row + 2} class={isOpen ? 'open' : undefined}>
      <td role="cell" class="select">
        <input
          type="checkbox"
          aria-label="Select this row"
          checked={isSelected}
          onChange={(event) => select([idOf(of)], event.currentTarget.checked)}
        />
      </td>
      <th role="rowheader" scope="row" class="key">
        {keyLink(of, search)}
      </th>
      {!isOneBucket && (
        <td role="cell" class="bucket">
          <bdi class="text">{visibleText(bucket)}</bdi>
        </td>
      )}
      {!deleted && sizeCell(size)}
      {deleted ? timeCell('deleted_at', deletedAt, shown) : timeCell('last_modified', modified, shown)}
      <td role="cell" class="copies">
        <button
          type="button"
          class="plain outline small"
          aria-label={copyLabel(key)}
          aria-expanded={isCopying}
          onClick={(event) => openMenu({ of, button: event.currentTarget })}
        >
          ⋯
        </button>
      </td>
    </tr>
  );
}

/** Leads to the object beside the list, or, of a list within another page, to its page. */
function keyLink({ bucket, key }: StoredObject, search: Search) {
  const isBeside = search.view === 'list';
  const { text, isJson } = copiedKey(key);
  const whole = visibleText(key);
  return (
    <a
      href={isBeside ? hrefOf('search', opening(search, { bucket, key })) : hrefOf('object', { bucket, key })}
      onClick={isBeside ? followBeside : followLink}
      title={key.length > LONG_KEY ? whole : undefined}
      aria-label={whole}
      data-row
      data-copy={text}
      data-json={isJson}
    >
      {keyText(key)}
    </a>
  );
}

/** Longer keys are cut on most screens: a tooltip shows the whole key. */
const LONG_KEY = 80;
/** A key of this length has room in most tables. */
const SHORT_KEY = 40;
/** Of a name that is cut in its middle this much of its end stays: a number, a time, the extension. */
const TAIL = 16;

/** A key in one line: its folders, which are quiet, the beginning of its name, and the end of its name, which is not cut. */
function keyText(key: string) {
  const slash = key.lastIndexOf('/') + 1;
  const cut = slash === key.length ? 0 : slash;
  const name = key.slice(cut);
  const isLong = name.length > 2 * TAIL;
  const end = isLong && !FROM_THE_RIGHT.test(name) ? endOf(name) : 0;
  return [
    cut > 0 && (
      <bdi key="folder" class={key.length > SHORT_KEY ? 'text quiet cut' : 'text quiet'}>
        {visibleText(key.slice(0, cut))}
      </bdi>
    ),
    end > 0 && (
      <bdi key="head" class="text cut">
        {visibleText(name.slice(0, end))}
      </bdi>
    ),
    <bdi key="name" class={isLong && end === 0 ? 'text cut' : 'text'}>
      {visibleText(name.slice(end))}
    </bdi>,
  ];
}

/** Hebrew, Arabic and their neighbours: the two parts of such a name would stand in the wrong order. */
const FROM_THE_RIGHT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC]/;
const characters = new Intl.Segmenter();

/** Where the end of a name begins: within no character as a person sees it, such as an emoji of several parts. */
function endOf(name: string): number {
  const end = name.length - TAIL;
  return characters.segment(name).containing(end)?.index ?? end;
}

function sizeCell(bytes: number | undefined) {
  if (bytes === undefined) {
    return (
      <td role="cell" class="size quiet">
        unknown
      </td>
    );
  }
  const exact = `${numberText(bytes)} bytes`;
  return (
    <td role="cell" class="size" title={exact}>
      {sizeText(bytes)}
      {bytes >= 1_024 && <small class="exact"> ({exact})</small>}
    </td>
  );
}

function timeCell(name: string, at: string | null | undefined, { inZone, nowMs }: Pick<Shown, 'inZone' | 'nowMs'>) {
  if (at === undefined || at === null) return <td role="cell" class={name} />;
  return (
    <td role="cell" class={name}>
      <time dateTime={at} title={timeText(at, inZone)}>
        {agoText(at, nowMs)}
      </time>
    </td>
  );
}
