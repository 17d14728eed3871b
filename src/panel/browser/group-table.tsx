/** Groups of objects with their sums, sorted: only the rows near what is seen are drawn. */
import { useMemo, useRef, useState } from 'preact/hooks';
import { copiedUri } from './copied.ts';
import { GroupName, groupNames, type Usage } from './group-name.tsx';
import { CopyButton, Size } from './parts.tsx';
import { Space } from './results.tsx';
import { usageLines, type Search } from './search-place.ts';
import { session } from './session.ts';
import { useVirtualRows } from './virtual.ts';
import { countText, numberText } from './words.ts';

const ROW_PX = 32;
/** On a telephone a row has two lines. */
const CARD_PX = 60;
const phone = matchMedia('(max-width: 640px)');

interface PlaceProps {
  readonly search: Search;
  readonly bucket: string;
  readonly prefix: string;
}

interface GroupTableProps extends PlaceProps {
  readonly groups: readonly Usage[];
}

type Column = 'name' | 'objects' | 'bytes';

export function sortedBy(groups: readonly Usage[], column: Column): readonly Usage[] {
  if (column === 'name') return groups;
  return groups.toSorted((a, b) => b[column] - a[column]);
}

export function GroupTable({ groups: found, search, bucket, prefix }: GroupTableProps) {
  const [column, setColumn] = useState<Column>(search.by === 'age' ? 'name' : 'bytes');
  const groups = useMemo(() => sortedBy(found, column), [found, column]);
  const sums = useMemo(
    () => ({
      most: found.reduce((most, { bytes }) => Math.max(most, bytes), 1),
      objects: found.reduce((sum, each) => sum + each.objects, 0),
      bytes: found.reduce((sum, each) => sum + each.bytes, 0),
    }),
    [found],
  );
  const [command, curl] = usageLines(search, bucket, session.read()?.kind === 'local');
  const heads: readonly (readonly [Column, string])[] = [
    ['name', groupNames[search.by]],
    ['objects', 'Objects'],
    ['bytes', 'Bytes'],
  ];
  return (
    <>
      <div class="summary">
        <strong>
          {countText(sums.objects, 'object')}, <Size bytes={sums.bytes} />
        </strong>
        <CopyButton copied={{ text: command, isJson: false }}>Copy sums as command</CopyButton>
        <CopyButton copied={{ text: curl, isJson: false }}>Copy sums as curl</CopyButton>
      </div>
      <div role="region" aria-label="Objects and bytes">
        <table role="table" class="virtual usage" aria-rowcount={groups.length + 1}>
          <thead role="rowgroup">
            <tr role="row">
              {heads.map(([name, text]) => (
                <th role="columnheader" key={name} scope="col" class={name === 'name' ? 'key' : name} aria-sort={sortOf(name, column)}>
                  <button type="button" class="plain outline small" onClick={() => setColumn(name)}>
                    {text}
                    {name === column && <span aria-hidden="true"> {name === 'name' ? '↑' : '↓'}</span>}
                  </button>
                </th>
              ))}
              <th role="columnheader" scope="col" class="share">
                <span class="unseen">Share</span>
              </th>
              <th role="columnheader" scope="col" class="copies">
                <span class="unseen">Copy</span>
              </th>
            </tr>
          </thead>
          <Body groups={groups} most={sums.most} search={search} bucket={bucket} prefix={prefix} />
        </table>
      </div>
    </>
  );
}

function sortOf(name: Column, column: Column): 'ascending' | 'descending' | undefined {
  if (name !== column) return undefined;
  return name === 'name' ? 'ascending' : 'descending';
}

interface BodyProps extends GroupTableProps {
  /** The bytes of the largest group. */
  readonly most: number;
}

/** The rows that are near what is seen. Nothing else is drawn while the list is scrolled. */
function Body({ groups, most, search, bucket, prefix }: BodyProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  const { items, abovePx, belowPx } = useVirtualRows({ count: groups.length, rowPx: phone.matches ? CARD_PX : ROW_PX, body });
  return (
    <tbody role="rowgroup" ref={body}>
      <Space px={abovePx} />
      {items.map(([row, slot]) => {
        const group = groups[row];
        if (group === undefined) return null;
        return (
          <tr key={slot} role="row" aria-rowindex={row + 2}>
            <th role="rowheader" scope="row" class="key">
              {GroupName({ group, search, prefix })}
            </th>
            <td role="cell" class="objects">
              {numberText(group.objects)}
            </td>
            <td role="cell" class="bytes">
              {Size({ bytes: group.bytes })}
            </td>
            <td role="cell" class="share">
              {bar(group.bytes / most)}
            </td>
            <td role="cell" class="copies">
              {search.by === 'folder' && CopyButton({ copied: copiedUri(bucket, group.name ?? prefix), children: 'URI' })}
            </td>
          </tr>
        );
      })}
      <Space px={belowPx} />
    </tbody>
  );
}

/** How much a group has of the largest one. The number beside it says the same in words. */
function bar(share: number) {
  return (
    <div class="bar" aria-hidden="true">
      <div style={{ width: `${Math.round(share * 100)}%` }} />
    </div>
  );
}
