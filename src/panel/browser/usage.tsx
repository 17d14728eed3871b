/** Usage: objects and bytes of a bucket by folder, one level after another, or by class, extension, size or age. */
import { useBuckets } from './all-buckets.ts';
import { call } from './api.ts';
import { Select } from './form.tsx';
import { FolderName, groupNames, inFolder, type Group, GroupName } from './group-name.tsx';
import { useLoaded } from './load.ts';
import { CopyButton, Link, Shown, Size, Table, Text } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';
import { onlyValueIn } from './query-text.ts';
import { choicesOf, groups, searchOf, usageLines, usageOf, type Search } from './search-place.ts';
import { session } from './session.ts';
import { countText, numberText } from './words.ts';

export function UsagePage({ choices }: { readonly choices: Choices }) {
  const search: Search = { ...searchOf(choices), view: 'folders' };
  const listed = useBuckets();
  const buckets = listed.value?.items.map(({ bucket }) => bucket) ?? [];
  const bucket = onlyValueIn(search.query, 'bucket');
  const names = bucket === undefined || buckets.includes(bucket) ? buckets : [bucket, ...buckets];
  const inBucket = (name: string): Choices => choicesOf({ ...search, by: 'folder', query: `bucket:${name}` });
  return (
    <>
      <div class="heading">
        <h1>Usage</h1>
        <div class="filters">
          <Select
            label="Bucket"
            value={bucket ?? ''}
            choices={[...(bucket === undefined ? [['', 'choose one…'] as const] : []), ...names.map((name) => [name, name] as const)]}
            onChange={(name) => go(hrefOf('usage', inBucket(name)))}
          />
        </div>
      </div>
      {bucket === undefined ? (
        <Shown loaded={listed}>
          {() => (
            <ul aria-label="Usage is that of one bucket: choose it">
              {buckets.map((name) => (
                <li key={name}>
                  <Link page="usage" choices={inBucket(name)} isRow>
                    <Text>{name}</Text>
                  </Link>
                </li>
              ))}
            </ul>
          )}
        </Shown>
      ) : (
        <BucketUsage search={search} bucket={bucket} />
      )}
    </>
  );
}

interface PlaceProps {
  readonly search: Search;
  readonly bucket: string;
  readonly prefix: string;
}

/** As the index knows folders. */
const LEVELS = 8;

/** The usage of one bucket, or of a folder of it. */
export function BucketUsage({ search, bucket }: Omit<PlaceProps, 'prefix'>) {
  const prefix = onlyValueIn(search.query, 'prefix') ?? '';
  const request = usageOf(search, bucket);
  const isTooDeep = search.by === 'folder' && prefix.split('/').length > LEVELS;
  const loaded = useLoaded(`usage ${JSON.stringify(request)}`, (signal) => call('GET /v1/usage', { query: request }, signal), {
    isWanted: !isTooDeep,
  });
  return (
    <>
      <div class="heading">
        <Breadcrumbs search={search} bucket={bucket} prefix={prefix} />
        <Grouping search={search} />
        <Link page="search" choices={choicesOf({ ...search, view: 'list' })}>
          List the objects
        </Link>
      </div>
      {isTooDeep ? (
        <p>Folders are counted down to {LEVELS} levels.</p>
      ) : (
        <Shown loaded={loaded}>
          {({ objects, bytes, by: [grouping] }) => (
            <>
              <Summary search={search} bucket={bucket} objects={objects} bytes={bytes} />
              {objects === 0 ? (
                <p class="empty">No object in the index matches here.</p>
              ) : (
                <Groups groups={grouping?.groups ?? []} search={search} prefix={prefix} />
              )}
              {grouping?.others !== undefined && (
                <p class="quiet">
                  Smaller groups together: {countText(grouping.others.objects, 'object')}, <Size bytes={grouping.others.bytes} />.
                </p>
              )}
            </>
          )}
        </Shown>
      )}
    </>
  );
}

function Breadcrumbs({ search, bucket, prefix }: PlaceProps) {
  const names = prefix.match(/[^/]*\/|[^/]+$/g) ?? [];
  return (
    <nav aria-label="Folders above">
      <ol class="breadcrumbs">
        <li>
          <Link page="usage" choices={choicesOf(inFolder(search, ''))} isCurrent={names.length === 0}>
            <Text>{bucket}</Text>
          </Link>
        </li>
        {names.map((name, index) => (
          <li key={index}>
            <Link
              page="usage"
              choices={choicesOf(inFolder(search, names.slice(0, index + 1).join('')))}
              isCurrent={index === names.length - 1}
            >
              <FolderName>{name}</FolderName>
            </Link>
          </li>
        ))}
      </ol>
    </nav>
  );
}

function Grouping({ search }: { readonly search: Search }) {
  return (
    <nav aria-label="Group by">
      <ul class="switch">
        {groups.map((by) => (
          <li key={by}>
            <Link page="usage" choices={choicesOf({ ...search, by })} isCurrent={by === search.by}>
              {groupNames[by]}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

interface SummaryProps extends Omit<PlaceProps, 'prefix'> {
  readonly objects: number;
  readonly bytes: number;
}

function Summary({ search, bucket, objects, bytes }: SummaryProps) {
  const [command, curl] = usageLines(search, bucket, session.read()?.kind === 'local');
  return (
    <div class="summary">
      <strong>
        {countText(objects, 'object')}, <Size bytes={bytes} />
      </strong>
      <CopyButton copied={{ text: command, isJson: false }}>Copy sums as command</CopyButton>
      <CopyButton copied={{ text: curl, isJson: false }}>Copy sums as curl</CopyButton>
    </div>
  );
}

interface GroupsProps extends Omit<PlaceProps, 'bucket'> {
  readonly groups: readonly Group[];
}

/** The largest first; sizes and ages in their own order. */
function Groups({ groups: found, search, prefix }: GroupsProps) {
  const most = found.reduce((sum, { bytes }) => Math.max(sum, bytes), 1);
  const isOrdered = search.by === 'age' || search.by === 'size';
  return (
    <Table
      label="Objects and bytes"
      columns={[
        [groupNames[search.by], (group) => <GroupName group={group} search={search} prefix={prefix} />, 'row'],
        ['Objects', ({ objects }) => numberText(objects)],
        ['Bytes', ({ bytes }) => <Size bytes={bytes} />],
        ['Share', ({ bytes }) => bar(bytes / most)],
      ]}
      rows={isOrdered ? found : found.toSorted((a, b) => b.bytes - a.bytes)}
      keyOf={({ name }) => name ?? ''}
    />
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
