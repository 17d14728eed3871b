/** A bucket by folder, storage class, extension or age: objects and bytes of each group, one level after another. */
import { useEffect, useId } from 'preact/hooks';
import { call, type AnswerTo, type Problem } from './api.ts';
import { copiedUri } from './copied.ts';
import { usePages, type Pages } from './load.ts';
import { CopyButton, Link, Listed, Size, Text } from './parts.tsx';
import { clauseOf, forLive, onlyValueIn, withClauses, withField, type FieldPlace } from './query-text.ts';
import { Overview, Results } from './results.tsx';
import { mistakeOf } from './search-box.tsx';
import { choicesOf, groups, usageLines, usageOf, type Group, type Search } from './search-place.ts';
import { session } from './session.ts';
import { countText, numberText } from './words.ts';

type Usage = AnswerTo<'GET /v1/usage'>['items'][number];

/** As many as an answer has; more by a click. */
const PAGE = 1_000;
/** Folders are counted down to this level. */
const LEVELS = 8;
/** A query has at most 64 values; other clauses need some of them. */
const LEFT_OUT_MAX = 48;
/** The longest query, in characters. */
const QUERY_MAX = 4_096;

const BUCKET: FieldPlace = { name: 'bucket', operator: ':' };
const PREFIX: FieldPlace = { name: 'prefix', operator: ':' };

interface FoldersProps {
  readonly search: Search;
  readonly buckets: readonly string[];
  readonly onProblem: (problem: Problem | undefined, again: () => void) => void;
}

export function Folders({ search, buckets, onProblem }: FoldersProps) {
  const bucket = onlyValueIn(search.query, 'bucket');
  if (bucket === undefined) return <ChooseBucket search={search} buckets={buckets} />;
  const prefix = onlyValueIn(search.query, 'prefix') ?? '';
  return (
    <>
      <Breadcrumbs search={search} bucket={bucket} prefix={prefix} />
      <Grouping search={search} />
      <Level search={search} place={{ bucket, prefix }} onProblem={onProblem} />
    </>
  );
}

function ChooseBucket({ search, buckets }: { readonly search: Search; readonly buckets: readonly string[] }) {
  return (
    <section aria-labelledby="results-heading">
      <h2 id="results-heading">Folders</h2>
      <p>Folders are those of one bucket. Choose it:</p>
      <ul>
        {buckets.map((name) => (
          <li key={name}>
            <Link page="search" choices={choicesOf({ ...search, query: withField(search.query, BUCKET, [name]) })} isRow>
              <Text>{name}</Text>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface PlaceProps {
  readonly search: Search;
  readonly bucket: string;
  readonly prefix: string;
}

function inFolder(search: Search, prefix: string): Search {
  return { ...search, query: withField(search.query, PREFIX, prefix === '' ? [] : [prefix]) };
}

/** The name of one folder, without those that it is in. Keys may have folders without a name. */
function FolderName({ children }: { readonly children: string }) {
  return children === '/' ? <em>(no name)/</em> : <Text>{children}</Text>;
}

function Breadcrumbs({ search, bucket, prefix }: PlaceProps) {
  const names = prefix.match(/[^/]*\/|[^/]+$/g) ?? [];
  return (
    <nav aria-label="Folders above">
      <ol class="breadcrumbs">
        <li>
          <Link page="search" choices={choicesOf(inFolder(search, ''))} isCurrent={names.length === 0}>
            <Text>{bucket}</Text>
          </Link>
        </li>
        {names.map((name, index) => (
          <li key={index}>
            <Link
              page="search"
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
            <Link page="search" choices={choicesOf({ ...search, by })} isCurrent={by === search.by}>
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
          <Link page="search" choices={choicesOf(inFolder(search, above))}>
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
  const id = useId();
  useEffect(() => onProblem(problem, reload), [problem, items.length]);
  if (mistakeOf(problem) !== undefined) return null;
  const isWhole = more === undefined && !isLoading;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{by === 'folder' ? 'Folders' : groupNames[by]}</h2>
      {problem === undefined && <Overview search={search} />}
      <Listed pages={found} empty={<p class="empty">No object in the index matches here.</p>}>
        {(groupsFound) => <GroupTable groups={groupsFound} search={search} bucket={bucket} prefix={prefix} />}
      </Listed>
      {isWhole && problem === undefined && <Direct search={search} prefix={prefix} groups={items} onProblem={onProblem} />}
    </section>
  );
}

interface GroupTableProps extends PlaceProps {
  readonly groups: readonly Usage[];
}

function GroupTable({ groups: found, search, bucket, prefix }: GroupTableProps) {
  const most = Math.max(1, ...found.map(({ bytes }) => bytes));
  const objects = found.reduce((sum, each) => sum + each.objects, 0);
  const bytes = found.reduce((sum, each) => sum + each.bytes, 0);
  const [command, curl] = usageLines(search, bucket, session.read()?.kind === 'local');
  return (
    <>
      <p>
        {countText(objects, 'object')}, <Size bytes={bytes} />
      </p>
      <div class="scrolled" role="region" aria-label="Objects and bytes" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col" class="key">
                {groupNames[search.by]}
              </th>
              <th scope="col">Objects</th>
              <th scope="col">Bytes</th>
              <th scope="col">Copy</th>
            </tr>
          </thead>
          <tbody>
            {found.map((group) => (
              <tr key={group.name ?? ''}>
                <th scope="row" class="key">
                  <GroupName group={group} search={search} prefix={prefix} />
                </th>
                <td>{numberText(group.objects)}</td>
                <td>
                  <Size bytes={group.bytes} />
                  <Bar share={group.bytes / most} />
                </td>
                <td class="copies">
                  {search.by === 'folder' && <CopyButton copied={copiedUri(bucket, group.name ?? prefix)}>URI</CopyButton>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="actions">
        <CopyButton copied={{ text: command, isJson: false }}>Copy sums as command</CopyButton>
        <CopyButton copied={{ text: curl, isJson: false }}>Copy sums as curl</CopyButton>
      </p>
    </>
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
      <Link page="search" choices={choicesOf(inFolder(search, name))} isRow>
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
