/** Usage: a bucket by folder, storage class, extension or age, as areas and as a table, one level after another. */
import { useCallback, useEffect, useState } from 'preact/hooks';
import { useBuckets } from './all-buckets.ts';
import { call, type Problem } from './api.ts';
import { Select } from './form.tsx';
import { FolderName, groupNames, inFolder, type Usage, GroupName } from './group-name.tsx';
import { GroupTable, sortedBy } from './group-table.tsx';
import { usePages, type Pages, useLoaded } from './load.ts';
import { Busy, Failure, Link, Shown, Text, Size } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';
import { clauseOf, forLive, onlyValueIn, withClauses, type FieldPlace } from './query-text.ts';
import { Overview, Results } from './results.tsx';
import { mistakeOf } from './search-box.tsx';
import { choicesOf, groups, searchOf, usageOf, type Search } from './search-place.ts';
import { Treemap } from './treemap.tsx';
import { countText, numberText } from './words.ts';

/** As many as an answer has. */
const PAGE = 1_000;
/** Folders are counted down to this level. */
const LEVELS = 8;
/** A query has at most 64 values; other clauses need some of them. */
const LEFT_OUT_MAX = 48;
/** The longest query, in characters. */
const QUERY_MAX = 4_096;

const PREFIX: FieldPlace = { name: 'prefix', operator: ':' };

interface FoldersProps {
  readonly search: Search;
  readonly onProblem: (problem: Problem | undefined, again: () => void) => void;
}

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

/** The usage of one bucket, or of a folder of it. */
export function BucketUsage({ search, bucket }: { readonly search: Search; readonly bucket: string }) {
  const prefix = onlyValueIn(search.query, 'prefix') ?? '';
  const [mistake, setMistake] = useState<Problem>();
  const onProblem = useCallback((problem: Problem | undefined) => setMistake(mistakeOf(problem)), []);
  return (
    <>
      <div class="heading">
        <Breadcrumbs search={search} bucket={bucket} prefix={prefix} />
        <Grouping search={search} />
      </div>
      {mistake !== undefined && <Failure problem={mistake} />}
      <Level search={search} place={{ bucket, prefix }} onProblem={onProblem} />
    </>
  );
}

/** As many groups as are summed and sorted here. */
const GROUPS_MAX = 50_000;
interface PlaceProps {
  readonly search: Search;
  readonly bucket: string;
  readonly prefix: string;
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

interface LevelProps {
  readonly search: Search;
  readonly place: { readonly bucket: string; readonly prefix: string };
  readonly onProblem: FoldersProps['onProblem'];
}

/** The groups of one folder, or why there are none, with the plain list. */
function Level({ search, place, onProblem }: LevelProps) {
  const { prefix } = place;
  if (prefix !== '' && !prefix.endsWith('/')) {
    const above = prefix.slice(0, prefix.lastIndexOf('/') + 1);
    return (
      <>
        <p>
          <Text>{prefix}</Text> is the beginning of names and not a folder, so that its objects are listed.{' '}
          <Link page="usage" choices={choicesOf(inFolder(search, above))}>
            Show the folder that it is in
          </Link>
        </p>
        <Results search={search} label="Objects" onProblem={onProblem} />
      </>
    );
  }
  if (search.by === 'folder' && prefix.split('/').length > LEVELS) {
    return (
      <>
        <p>Folders are counted down to {LEVELS} levels. Everything below this folder is listed.</p>
        <Results search={search} label="Objects" folder={prefix} onProblem={onProblem} />
      </>
    );
  }
  return <GroupList search={search} place={place} onProblem={onProblem} />;
}

/** The groups, all of them: what is sorted is the whole. */
function useGroups(search: Search, bucket: string): Pages<Usage> & { readonly isFull: boolean } {
  const request = usageOf(search, bucket);
  const found: Pages<Usage> = usePages<Usage>(`usage ${JSON.stringify(request)}`, (cursor, signal) =>
    call('GET /v1/usage', { query: { ...request, limit: PAGE, ...(cursor !== undefined && { cursor }) } }, signal),
  );
  const { items = [], more, isLoading } = found;
  const isFull = items.length >= GROUPS_MAX && more !== undefined;
  useEffect(() => {
    if (!isLoading && !isFull) more?.();
  }, [items.length, isLoading]);
  return { ...found, isFull };
}

function GroupList({ search, place: { bucket, prefix }, onProblem }: LevelProps) {
  const found = useGroups(search, bucket);
  const { problem, items = [], reload, more, isLoading, isFull } = found;
  useEffect(() => onProblem(problem, reload), [problem, items.length]);
  if (mistakeOf(problem) !== undefined) return null;
  if (problem !== undefined) return <Failure problem={problem} retry={reload} />;
  const isWhole = more === undefined && !isLoading;
  return (
    <>
      <Overview search={search} />
      {(items.length > 0 || isWhole) && <Sums items={items} search={search} bucket={bucket} prefix={prefix} />}
      <Rest isLoading={isLoading} full={isFull ? items.length : undefined} />
      {isWhole && search.by === 'folder' && (
        <BelowFolders items={items} search={search} bucket={bucket} prefix={prefix} onProblem={onProblem} />
      )}
    </>
  );
}

/** What is below a list that is not whole. `full`: it has this many, and more are not read. */
function Rest({ isLoading, full }: { readonly isLoading: boolean; readonly full: number | undefined }) {
  if (isLoading) return <Busy />;
  return full === undefined ? null : <p class="quiet">The first {numberText(full)} are summed here.</p>;
}

interface SumsProps extends PlaceProps {
  readonly items: readonly Usage[];
}

function Sums({ items, search, bucket, prefix }: SumsProps) {
  if (items.length === 0) return <p class="empty">No object in the index matches here.</p>;
  return (
    <>
      {search.by === 'folder' && <Treemap areas={items} search={search} prefix={prefix} />}
      <GroupTable groups={items} search={search} bucket={bucket} prefix={prefix} />
    </>
  );
}

function BelowFolders({ items, search, bucket, prefix, onProblem }: SumsProps & Pick<LevelProps, 'onProblem'>) {
  if (search.by !== 'folder') return null;
  return (
    <>
      <Shares search={search} bucket={bucket} />
      {/* the last, because it may have thousands of rows */}
      <Direct search={search} prefix={prefix} found={items} onProblem={onProblem} />
    </>
  );
}

interface DirectProps {
  readonly search: Search;
  readonly prefix: string;
  readonly found: readonly Usage[];
  readonly onProblem: FoldersProps['onProblem'];
}

/** The objects of the folder itself: everything below it except its folders. Its marker is one of them. */
function Direct({ search, prefix, found, onProblem }: DirectProps) {
  const own = found.find(({ name }) => name === undefined);
  if (own === undefined) return null;
  const folders = found.flatMap(({ name }) => name ?? []);
  const leftOut = folders.length === 0 ? [] : [`-${clauseOf(PREFIX, folders)}`];
  const query = withClauses(forLive(search.query), ...leftOut);
  if (folders.length > LEFT_OUT_MAX || query.length > QUERY_MAX) {
    return (
      <p>
        The folder itself has {countText(own.objects, 'object')} beside {countText(folders.length, 'folder')}.{' '}
        <Link page="search" choices={choicesOf({ ...search, view: 'list' })}>
          List everything below it
        </Link>
      </p>
    );
  }
  return <Results search={{ ...search, query }} label="Objects of this folder" folder={prefix} isPart onProblem={onProblem} />;
}

/** How the bytes of a bucket divide into classes and ages . */

/** How the bytes divide into classes and ages. */
function Shares({ search, bucket }: { readonly search: Search; readonly bucket: string }) {
  return (
    <div class="charts">
      {(['class', 'age'] as const).map((by) => (
        <Share key={by} search={{ ...search, by }} bucket={bucket} />
      ))}
    </div>
  );
}

/** As many parts of a bar as can be told apart. */
const SHADES = 6;

function Share({ search, bucket }: { readonly search: Search & { readonly by: 'class' | 'age' }; readonly bucket: string }) {
  const request = usageOf(search, bucket);
  const { value } = useLoaded(`usage of all ${JSON.stringify(request)}`, (signal) => call('GET /v1/usage', { query: request }, signal));
  if (value === undefined || value.items.length === 0) return null;
  const shown = (search.by === 'age' ? value.items : sortedBy(value.items, 'bytes')).slice(0, SHADES);
  return (
    <section aria-label={groupNames[search.by]}>
      <h2>{groupNames[search.by]}</h2>
      <div class="parts" aria-hidden="true">
        {shown.map(({ name, bytes }, place) => (
          <span key={name ?? ''} class={`shade-${place}`} style={{ flexGrow: bytes }} />
        ))}
      </div>
      <ul class="legend">
        {shown.map((group, place) => (
          <li key={group.name ?? ''}>
            <span class={`swatch shade-${place}`} aria-hidden="true" />
            <GroupName group={group} search={search} prefix="" /> <Size bytes={group.bytes} />
          </li>
        ))}
      </ul>
    </section>
  );
}
