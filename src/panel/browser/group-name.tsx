/** What groups of objects are called, and where their names lead. */
import { ageClauses } from '../../domain/search/facets.ts';
import type { AnswerTo } from './api.ts';
import { Link, Text } from './parts.tsx';
import { clauseOf, withClauses, withField } from './query-text.ts';
import { choicesOf, type Group, type Search } from './search-place.ts';

export type Usage = AnswerTo<'GET /v1/usage'>['items'][number];

export const groupNames: Readonly<Record<Group, string>> = {
  folder: 'Folder',
  class: 'Storage class',
  extension: 'Extension',
  age: 'Age',
};

export function inFolder(search: Search, prefix: string): Search {
  return { ...search, query: withField(search.query, { name: 'prefix', operator: ':' }, prefix === '' ? [] : [prefix]) };
}

/** The name of one folder, without those that it is in. Keys may have folders without a name. */
export function FolderName({ children }: { readonly children: string }) {
  return children === '/' ? <em>(no name)/</em> : <Text>{children}</Text>;
}

interface GroupNameProps {
  readonly group: Usage;
  readonly search: Search;
  readonly prefix: string;
}

/** The name of a group, which leads into the folder, or to the objects of the group. */
export function GroupName({ group: { name }, search, prefix }: GroupNameProps) {
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
      <Text>{search.by === 'age' ? (ageTexts[name] ?? name) : name}</Text>
    </Link>
  );
}

function clausesOf(by: Exclude<Group, 'folder'>, name: string): readonly string[] {
  if (by === 'age') return ageClauses(name, Date.now());
  return [clauseOf({ name: by === 'class' ? 'class' : 'ext', operator: ':' }, [name])];
}

/** The ages by which objects are grouped, in words: what is in each, without what is younger. */
export const ageTexts: Readonly<Record<string, string>> = {
  '1d': 'less than a day',
  '7d': '1 to 7 days',
  '30d': '7 to 30 days',
  '90d': '30 to 90 days',
  '365d': '90 to 365 days',
  older: 'older than 365 days',
};
