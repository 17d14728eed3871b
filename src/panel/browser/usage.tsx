/** Usage: a bucket by folder, storage class, extension or age, as areas and as a table, one level after another, and its growth. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useBuckets } from './all-buckets.ts';
import { call, type AnswerTo, type Problem } from './api.ts';
import { copiedUri } from './copied.ts';
import { Select } from './form.tsx';
import { useLoaded, usePages, type Pages } from './load.ts';
import { Busy, CopyButton, Failure, Link, Size, Text } from './parts.tsx';
import { go, hrefOf, type Choices } from './place.ts';
import { clauseOf, forLive, onlyValueIn, withClauses, withField, type FieldPlace } from './query-text.ts';
import { Overview, Results, Space } from './results.tsx';
import { mistakeOf } from './search-box.tsx';
import { choicesOf, groups, searchOf, usageLines, usageOf, type Group, type Search } from './search-place.ts';
import { useChart } from './series-charts.tsx';
import { session } from './session.ts';
import { Treemap } from './treemap.tsx';
import { useVirtualRows } from './virtual.ts';
import { countText, numberText, sizeText } from './words.ts';

type Usage = AnswerTo<'GET /v1/usage'>['items'][number];

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
  const buckets = useBuckets().value?.items.map(({ bucket }) => bucket) ?? [];
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
        <ul aria-label="Usage is that of one bucket: choose it">
          {buckets.map((name) => (
            <li key={name}>
              <Link page="usage" choices={inBucket(name)} isRow>
                <Text>{name}</Text>
              </Link>
            </li>
          ))}
        </ul>
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
const ROW_PX = 32;
/** On a telephone a row has two lines. */
const CARD_PX = 60;
const phone = matchMedia('(max-width: 640px)');

interface PlaceProps {
  readonly search: Search;
  readonly bucket: string;
  readonly prefix: string;
}

export function inFolder(search: Search, prefix: string): Search {
  return { ...search, query: withField(search.query, PREFIX, prefix === '' ? [] : [prefix]) };
}

/** The name of one folder, without those that it is in. Keys may have folders without a name. */
export function FolderName({ children }: { readonly children: string }) {
  return children === '/' ? <em>(no name)/</em> : <Text>{children}</Text>;
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

const groupNames: Readonly<Record<Group, string>> = {
  folder: 'Folder',
  class: 'Storage class',
  extension: 'Extension',
  age: 'Age',
};

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

function GroupList({ search, place: { bucket, prefix }, onProblem }: LevelProps) {
  const { by } = search;
  const request = usageOf(search, bucket);
  const found: Pages<Usage> = usePages<Usage>(`usage ${JSON.stringify(request)}`, (cursor, signal) =>
    call('GET /v1/usage', { query: { ...request, limit: PAGE, ...(cursor !== undefined && { cursor }) } }, signal),
  );
  const { problem, items = [], reload, more, isLoading } = found;
  const isFull = items.length >= GROUPS_MAX;
  useEffect(() => onProblem(problem, reload), [problem, items.length]);
  // what is sorted is all of it
  useEffect(() => {
    if (!isLoading && !isFull) more?.();
  }, [items.length, isLoading]);
  if (problem !== undefined) return mistakeOf(problem) === undefined ? <Failure problem={problem} retry={reload} /> : null;
  const isWhole = more === undefined && !isLoading;
  return (
    <>
      <Overview search={search} />
      {items.length === 0 && isWhole && <p class="empty">No object in the index matches here.</p>}
      {items.length > 0 && (
        <>
          {by === 'folder' && <Treemap groups={items} search={search} prefix={prefix} />}
          <GroupTable groups={items} search={search} bucket={bucket} prefix={prefix} />
        </>
      )}
      {isLoading && <Busy />}
      {isFull && more !== undefined && <p class="quiet">The first {numberText(items.length)} are summed here.</p>}
      {by === 'folder' && isWhole && <Shares search={search} bucket={bucket} />}
      {by === 'folder' && prefix === '' && <Growth bucket={bucket} />}
      {isWhole && <Direct search={search} prefix={prefix} groups={items} onProblem={onProblem} />}
    </>
  );
}

interface GroupTableProps extends PlaceProps {
  readonly groups: readonly Usage[];
}

type Column = 'name' | 'objects' | 'bytes';

function sortedBy(groups: readonly Usage[], column: Column): readonly Usage[] {
  if (column === 'name') return groups;
  return groups.toSorted((a, b) => b[column] - a[column]);
}

function GroupTable({ groups: found, search, bucket, prefix }: GroupTableProps) {
  const [column, setColumn] = useState<Column>(search.by === 'age' ? 'name' : 'bytes');
  const groups = useMemo(() => sortedBy(found, column), [found, column]);
  const sums = useMemo(
    () => ({
      most: Math.max(1, ...found.slice(0, PAGE).map(({ bytes }) => bytes)),
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
                  <GroupRow key={group.name ?? ''} group={group} most={sums.most} search={search} bucket={bucket} prefix={prefix} />
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
      <h3>{groupNames[search.by]}</h3>
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

const GROWTH_DAYS = 90;

/** The bytes of the bucket day by day. */
function Growth({ bucket }: { readonly bucket: string }) {
  const Chart = useChart();
  const query = { bucket, days: GROWTH_DAYS };
  const { value } = useLoaded(`growth ${bucket}`, (signal) => call('GET /v1/usage/growth', { query }, signal));
  const days = value?.items[0]?.days;
  const drawn = useMemo(
    () => ({
      atMs: days?.map(({ day }) => new Date(`${day}T00:00:00Z`).getTime()) ?? [],
      lines: [{ label: 'bytes', look: 'accent' as const, values: days?.map(({ bytes }) => bytes) ?? [] }],
    }),
    [days],
  );
  if (Chart === undefined || drawn.atMs.length < 2) return null;
  return (
    <section aria-label="Growth">
      <Chart title="Growth of the bucket" source="Summed once a day by Tally itself" {...drawn} show={sizeText} />
    </section>
  );
}

interface GroupNameProps {
  readonly group: Usage;
  readonly search: Search;
  readonly prefix: string;
}

/** The name of a group, which leads into the folder, or to the objects of the group. */
function GroupName({ group: { name }, search, prefix }: GroupNameProps) {
  if (name === undefined) return <em>{search.by === 'folder' ? 'in this folder itself' : `no ${groupNames[search.by].toLowerCase()}`}</em>;
  if (search.by === 'folder') {
    return (
      <Link page="usage" choices={choicesOf(inFolder(search, name))} isRow>
        <FolderName>{name.slice(prefix.length)}</FolderName>
      </Link>
    );
  }
  const clauses = clausesOf(search.by, name);
  return (
    <Link page="search" choices={choicesOf({ ...search, view: 'list', query: withClauses(search.query, ...clauses) })} isRow>
      <Text>{search.by === 'age' ? (ages[name]?.text ?? name) : name}</Text>
    </Link>
  );
}

/** What is in each age, without what is younger. */
const ages: Readonly<Record<string, { readonly text: string; readonly clauses: readonly string[] }>> = {
  '1d': { text: 'less than a day', clauses: ['modified<1d'] },
  '7d': { text: '1 to 7 days', clauses: ['modified>=1d', 'modified<7d'] },
  '30d': { text: '7 to 30 days', clauses: ['modified>=7d', 'modified<30d'] },
  '90d': { text: '30 to 90 days', clauses: ['modified>=30d', 'modified<90d'] },
  '365d': { text: '90 to 365 days', clauses: ['modified>=90d', 'modified<365d'] },
  older: { text: 'older than 365 days', clauses: ['modified>=365d'] },
};

function clausesOf(by: Exclude<Group, 'folder'>, name: string): readonly string[] {
  if (by === 'age') return ages[name]?.clauses ?? [];
  return [clauseOf({ name: by === 'class' ? 'class' : 'ext', operator: ':' }, [name])];
}

interface DirectProps {
  readonly search: Search;
  readonly prefix: string;
  readonly groups: readonly Usage[];
  readonly onProblem: FoldersProps['onProblem'];
}

/** The objects of the folder itself: everything below it except its folders. Its marker is one of them. */
function Direct({ search, prefix, groups: found, onProblem }: DirectProps) {
  const own = found.find(({ name }) => name === undefined);
  if (own === undefined || search.by !== 'folder') return null;
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
