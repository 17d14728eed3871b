/** A bucket's usage: objects and bytes by folder, one level at a time. */
import { countText } from '../../base/texts.ts';
import { call, type AnswerTo } from './api.ts';
import { useLoaded } from './load.ts';
import { type Column, Link, Shown, Size, Table, Text } from './parts.tsx';
import type { Choices } from './place.ts';
import { inFolder } from './query-text.ts';

type Usage = AnswerTo<'GET /v1/usage'>;
type Group = Usage['by'][number]['groups'][number];

/** The number of folder levels that the index stores. */
const LEVELS = 8;
/** More folders than a person reads. */
const FOLDERS_MAX = 200;

const isTooDeep = (prefix: string): boolean => prefix.split('/').length > LEVELS;

interface Folder {
  /** The folder to show: the address's, or the first below it that offers a choice. */
  readonly prefix: string;
  readonly usage: Usage;
}

/** Reads a folder, passing through those that contain nothing but one folder. */
async function readFolder(bucket: string, first: string, signal: AbortSignal): Promise<Folder> {
  for (let prefix = first; ;) {
    const usage = await call('GET /v1/usage', { query: { bucket, prefix, by: 'folder', limit: FOLDERS_MAX } }, signal);
    const [group, ...others] = usage.by[0]?.groups ?? [];
    const only = others.length === 0 ? group?.name : undefined;
    if (only === undefined || only === prefix || isTooDeep(only)) return { prefix, usage };
    prefix = only;
  }
}

/** A tab of the bucket's page. */
export function BucketUsage({ choices: { bucket = '', prefix: asked = '' } }: { readonly choices: Choices }) {
  const loaded = useLoaded(`usage ${JSON.stringify([bucket, asked])}`, (signal) => readFolder(bucket, asked, signal));
  const prefix = loaded.value?.prefix ?? asked;
  return (
    <>
      <div class="heading">
        <Breadcrumbs bucket={bucket} prefix={prefix} />
        <Link page="search" choices={{ query: inFolder(bucket, prefix) }}>
          List the objects
        </Link>
      </div>
      <Shown loaded={loaded} busy="Adding up…">
        {({ usage }) => (
          <>
            <p>
              <strong>
                {countText(usage.objects, 'object')}, <Size bytes={usage.bytes} />
              </strong>
            </p>
            <Folders of={usage.by[0]} bucket={bucket} prefix={prefix} />
          </>
        )}
      </Shown>
    </>
  );
}

interface PlaceProps {
  readonly bucket: string;
  readonly prefix: string;
}

function Breadcrumbs({ bucket, prefix }: PlaceProps) {
  const names = prefix.match(/[^/]*\/|[^/]+$/g) ?? [];
  return (
    <nav aria-label="Folders above">
      <ol class="breadcrumbs">
        {[bucket, ...names].map((name, index) => (
          <li key={index}>
            <Link page="bucket" choices={{ bucket, prefix: names.slice(0, index).join('') }} isCurrent={index === names.length}>
              <FolderName>{name}</FolderName>
            </Link>
          </li>
        ))}
      </ol>
    </nav>
  );
}

/** A folder's own name, without its parents. In keys, a folder's name may be empty. */
function FolderName({ children }: { readonly children: string }) {
  return children === '/' ? <em>(no name)/</em> : <Text>{children}</Text>;
}

/** Largest first. */
function Folders({ of, bucket, prefix }: PlaceProps & { readonly of: Usage['by'][number] | undefined }) {
  const { groups = [], others } = of ?? {};
  const most = groups.reduce((sum, { bytes }) => Math.max(sum, bytes), 1);
  const columns: readonly Column<Group>[] = [
    ['Folder', ({ name }) => <FolderLink bucket={bucket} prefix={prefix} name={name} />, 'row'],
    ['Objects', ({ objects }) => countText(objects), 'number'],
    ['Bytes', ({ bytes }) => <Size bytes={bytes} />, 'number'],
    // the number beside it says the same in words
    ['Share', ({ bytes }) => <progress aria-hidden="true" value={bytes} max={most} />],
  ];
  return (
    <>
      <Table
        label="Objects and bytes"
        columns={columns}
        rows={groups.toSorted((a, b) => b.bytes - a.bytes)}
        keyOf={({ name }) => name ?? ''}
        empty=""
      />
      {others !== undefined && (
        <p class="quiet">
          Smaller folders together: {countText(others.objects, 'object')}, <Size bytes={others.bytes} />.
        </p>
      )}
    </>
  );
}

/** Leads into the folder, or to its objects if the index stores no deeper levels. */
function FolderLink({ bucket, prefix, name }: PlaceProps & { readonly name: string | undefined }) {
  if (name === undefined) return <em>in this folder itself</em>;
  const isLast = isTooDeep(name);
  return (
    <Link page={isLast ? 'search' : 'bucket'} choices={isLast ? { query: inFolder(bucket, name) } : { bucket, prefix: name }}>
      <FolderName>{name.slice(prefix.lastIndexOf('/') + 1)}</FolderName>
    </Link>
  );
}
