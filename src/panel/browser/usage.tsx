/** What a bucket uses: objects and bytes by folder, one level after another, or by class, extension, size or age. */
import { call, type AnswerTo } from './api.ts';
import { groupNames, groups, groupText, type GroupBy } from './group-name.ts';
import { useLoaded } from './load.ts';
import { Link, Shown, Size, Table, Tabs, Text } from './parts.tsx';
import type { Choices } from './place.ts';
import { clauseOf, withClauses } from './query-text.ts';
import { countText, numberText } from './words.ts';

type Usage = AnswerTo<'GET /v1/usage'>;
type Group = Usage['by'][number]['groups'][number];

/** As the index knows folders. */
const LEVELS = 8;
/** A person reads no more groups. */
const GROUPS_MAX = 200;

const isTooDeep = (prefix: string): boolean => prefix.split('/').length > LEVELS;

interface Folder {
  /** The folder that is shown: that of the address, or the first below it in which there is a choice. */
  readonly prefix: string;
  readonly usage: Usage;
}

/** Reads a folder. One whose only content is another folder is passed through. */
async function readUsage(bucket: string, by: GroupBy, first: string, signal: AbortSignal): Promise<Folder> {
  for (let prefix = first; ;) {
    const usage = await call('GET /v1/usage', { query: { bucket, prefix, by, limit: GROUPS_MAX } }, signal);
    const [group, ...others] = usage.by[0]?.groups ?? [];
    const only = by === 'folder' && others.length === 0 ? group?.name : undefined;
    if (only === undefined || only === prefix || isTooDeep(only)) return { prefix, usage };
    prefix = only;
  }
}

/** A tab of the page of a bucket. */
export function BucketUsage({ choices }: { readonly choices: Choices }) {
  const { bucket = '', prefix: asked = '' } = choices;
  const by = groups.find((each) => each === choices['by']) ?? 'folder';
  const loaded = useLoaded(`usage ${JSON.stringify([bucket, asked, by])}`, (signal) => readUsage(bucket, by, asked, signal));
  const prefix = loaded.value?.prefix ?? asked;
  const query = withClauses(clauseOf('bucket', bucket), prefix === '' ? '' : clauseOf('prefix', prefix));
  return (
    <>
      <div class="heading">
        <Breadcrumbs bucket={bucket} prefix={prefix} by={by} />
        <Tabs
          label="Group by"
          of={groups.map((each) => [groupNames[each], 'bucket', { bucket, prefix, by: each === 'folder' ? '' : each }, each === by])}
        />
        <Link page="search" choices={{ query }}>
          List the objects
        </Link>
      </div>
      <Shown loaded={loaded} busy="Adding up…">
        {({
          usage: {
            objects,
            bytes,
            by: [grouping],
          },
        }) => (
          <>
            <p>
              <strong>
                {countText(objects, 'object')}, <Size bytes={bytes} />
              </strong>
            </p>
            {objects === 0 ? (
              <p class="empty">The index has no object here.</p>
            ) : (
              <Groups groups={grouping?.groups ?? []} by={by} bucket={bucket} prefix={prefix} query={query} />
            )}
            {grouping?.others !== undefined && (
              <p class="quiet">
                Smaller groups together: {countText(grouping.others.objects, 'object')}, <Size bytes={grouping.others.bytes} />.
              </p>
            )}
          </>
        )}
      </Shown>
    </>
  );
}

interface PlaceProps {
  readonly bucket: string;
  readonly prefix: string;
  readonly by: GroupBy;
}

function Breadcrumbs({ bucket, prefix, by }: PlaceProps) {
  const names = prefix.match(/[^/]*\/|[^/]+$/g) ?? [];
  const to = (index: number): Choices => ({ bucket, prefix: names.slice(0, index).join(''), by: by === 'folder' ? '' : by });
  return (
    <nav aria-label="Folders above">
      <ol class="breadcrumbs">
        {[bucket, ...names].map((name, index) => (
          <li key={index}>
            <Link page="bucket" choices={to(index)} isCurrent={index === names.length}>
              <FolderName>{name}</FolderName>
            </Link>
          </li>
        ))}
      </ol>
    </nav>
  );
}

/** The name of one folder, without those that it is in. Keys may have folders without a name. */
function FolderName({ children }: { readonly children: string }) {
  return children === '/' ? <em>(no name)/</em> : <Text>{children}</Text>;
}

interface GroupsProps extends PlaceProps {
  readonly groups: readonly Group[];
  /** Finds the objects that are grouped. */
  readonly query: string;
}

/** The largest first; sizes and ages in their own order. */
function Groups({ groups: found, query, ...at }: GroupsProps) {
  const { by } = at;
  const most = found.reduce((sum, { bytes }) => Math.max(sum, bytes), 1);
  const isOrdered = by === 'age' || by === 'size';
  return (
    <Table
      label="Objects and bytes"
      columns={[
        [groupNames[by], (group) => <GroupName of={group} query={query} at={at} />, 'row'],
        ['Objects', ({ objects }) => numberText(objects), 'number'],
        ['Bytes', ({ bytes }) => <Size bytes={bytes} />, 'number'],
        // the number beside it says the same
        ['Share', ({ bytes }) => <progress aria-hidden="true" value={bytes} max={most} />],
      ]}
      rows={isOrdered ? found : found.toSorted((a, b) => b.bytes - a.bytes)}
      keyOf={({ name }) => name ?? ''}
    />
  );
}

interface NameProps {
  readonly of: Group;
  readonly query: string;
  readonly at: PlaceProps;
}

/** The name of a group, which leads into the folder, or to the objects of the group. */
function GroupName({ of: { name, filter }, query, at: { bucket, prefix, by } }: NameProps) {
  if (name === undefined) return <em>{by === 'folder' ? 'in this folder itself' : `no ${groupNames[by].toLowerCase()}`}</em>;
  if (by === 'folder' && !isTooDeep(name)) {
    return (
      <Link page="bucket" choices={{ bucket, prefix: name }} isRow>
        <FolderName>{name.slice(prefix.lastIndexOf('/') + 1)}</FolderName>
      </Link>
    );
  }
  const text = <Text>{by === 'folder' ? name.slice(prefix.lastIndexOf('/') + 1) : groupText(by, name)}</Text>;
  if (filter === undefined) return text;
  return (
    <Link page="search" choices={{ query: withClauses(query, filter) }} isRow>
      {text}
    </Link>
  );
}
