/** A row of the list of objects, without a component for each of its parts: hundreds of rows are drawn a second while it is scrolled. */
import type { StoredObject } from '../../api/search.ts';
import { copiedKey, idOf } from './copied.ts';
import { copyLabel } from './copy-actions.tsx';
import { followBeside, followLink, Text } from './parts.tsx';
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
  readonly isMarker: boolean;
  readonly isOneBucket: boolean;
  readonly isSelected: boolean;
  readonly inZone: 'utc' | 'local';
  readonly select: (ids: readonly string[], isSelected: boolean) => void;
  readonly openMenu: (copying: Copying) => void;
}

export function objectRow(of: StoredObject, index: number, shown: Shown) {
  const { bucket, key, size, last_modified: modified, deleted, deleted_at: deletedAt } = of;
  const { search, isMarker, isOneBucket, isSelected, inZone, select, openMenu } = shown;
  const isOpen = search.open?.key === key && search.open.bucket === bucket;
  return (
    <tr key={index} aria-rowindex={index + 2} class={isOpen ? 'open' : undefined}>
      <td class="select">
        <input
          type="checkbox"
          aria-label="Select this row"
          checked={isSelected}
          onChange={(event) => select([idOf(of)], event.currentTarget.checked)}
        />
      </td>
      <th scope="row" class="key">
        {keyLink(of, search)}
        {isMarker && <small class="quiet"> (the marker of this folder)</small>}
      </th>
      {!isOneBucket && <td class="bucket">{Text({ children: bucket })}</td>}
      {deleted ? timeCell('deleted_at', deletedAt, inZone) : [sizeCell(size), timeCell('last_modified', modified, inZone)]}
      <td class="copies">
        <button
          type="button"
          class="plain outline small"
          aria-label={copyLabel(key)}
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
  return (
    <a
      href={isBeside ? hrefOf('search', opening(search, { bucket, key })) : hrefOf('object', { bucket, key })}
      onClick={isBeside ? followBeside : followLink}
      title={key.length > LONG_KEY ? visibleText(key.slice(-LONG_KEY)) : undefined}
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

/** A key in one line, its folders quieter than its name. */
function keyText(key: string) {
  const cut = key.lastIndexOf('/') + 1;
  if (cut === 0 || cut === key.length) return Text({ children: key });
  return [Text({ children: key.slice(0, cut) }), Text({ children: key.slice(cut) })];
}

function sizeCell(bytes: number | undefined) {
  if (bytes === undefined) return <td class="size quiet">unknown</td>;
  return (
    <td class="size">
      <span class="size" title={`${numberText(bytes)} bytes`}>
        {sizeText(bytes)}
        {bytes >= 1_024 && <small class="exact"> ({numberText(bytes)} bytes)</small>}
      </span>
    </td>
  );
}

function timeCell(name: string, at: string | null | undefined, inZone: 'utc' | 'local') {
  if (at === undefined || at === null) return <td class={name} />;
  return (
    <td class={name}>
      <time dateTime={at} title={timeText(at, inZone)}>
        {agoText(at, Date.now())}
      </time>
    </td>
  );
}
