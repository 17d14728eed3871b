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
  const body = useRef<HTMLTableSectionElement>(null);
  const { items, abovePx, belowPx } = useVirtualRows({ count: groups.length, rowPx: phone.matches ? CARD_PX : ROW_PX, body });
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
        <table class="virtual usage" aria-rowcount={groups.length + 1}>
          <thead>
            <tr>
              {heads.map(([name, text]) => (
                <th key={name} scope="col" class={name === 'name' ? 'key' : name} aria-sort={sortOf(name, column)}>
                  <button type="button" class="plain outline small" onClick={() => setColumn(name)}>
                    {text}
                    {name === column && <span aria-hidden="true"> {name === 'name' ? '↑' : '↓'}</span>}
                  </button>
                </th>
              ))}
              <th scope="col" class="share">
                <span class="unseen">Share</span>
              </th>
              <th scope="col" class="copies">
                <span class="unseen">Copy</span>
              </th>
            </tr>
          </thead>
          <tbody ref={body}>
            <Space px={abovePx} />
            {items.map(({ index }) => {
              const group = groups[index];
              return (
                group !== undefined && (
                  <GroupRow key={index} group={group} most={sums.most} search={search} bucket={bucket} prefix={prefix} />
                )
              );
            })}
            <Space px={belowPx} />
          </tbody>
        </table>
      </div>
    </>
  );
}

function sortOf(name: Column, column: Column): 'ascending' | 'descending' | undefined {
  if (name !== column) return undefined;
  return name === 'name' ? 'ascending' : 'descending';
}

interface RowProps extends PlaceProps {
  readonly group: Usage;
  readonly most: number;
}

function GroupRow({ group, most, search, bucket, prefix }: RowProps) {
  return (
    <tr>
      <th scope="row" class="key">
        <GroupName group={group} search={search} prefix={prefix} />
      </th>
      <td class="objects">{numberText(group.objects)}</td>
      <td class="bytes">
        <Size bytes={group.bytes} />
      </td>
      <td class="share">
        <Bar share={group.bytes / most} />
      </td>
      <td class="copies">{search.by === 'folder' && <CopyButton copied={copiedUri(bucket, group.name ?? prefix)}>URI</CopyButton>}</td>
    </tr>
  );
}

/** How much a group has of the largest one. The number beside it says the same in words. */
function Bar({ share }: { readonly share: number }) {
  return (
    <div class="bar" aria-hidden="true">
      <div style={{ width: `${Math.round(share * 100)}%` }} />
    </div>
  );
}
