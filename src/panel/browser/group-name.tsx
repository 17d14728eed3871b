/** What groups of objects are called, and where their names lead. */
import type { AnswerTo } from './api.ts';
import { Link, Text } from './parts.tsx';
import { withClauses, withField } from './query-text.ts';
import { choicesOf, type GroupBy, type Search } from './search-place.ts';

export type Group = AnswerTo<'GET /v1/usage'>['by'][number]['groups'][number];

export const groupNames: Readonly<Record<GroupBy | 'bucket', string>> = {
  folder: 'Folder',
  class: 'Storage class',
  extension: 'Extension',
  size: 'Size',
  age: 'Age',
  bucket: 'Bucket',
};

export function inFolder(search: Search, prefix: string): Search {
  return { ...search, query: withField(search.query, { name: 'prefix', operator: ':' }, prefix === '' ? [] : [prefix]) };
}

/** The name of one folder, without those that it is in. Keys may have folders without a name. */
export function FolderName({ children }: { readonly children: string }) {
  return children === '/' ? <em>(no name)/</em> : <Text>{children}</Text>;
}

interface GroupNameProps {
  readonly group: Group;
  readonly search: Search;
  readonly prefix: string;
}

/** The name of a group, which leads into the folder, or to the objects of the group. */
export function GroupName({ group: { name, filter }, search, prefix }: GroupNameProps) {
  if (name === undefined) return <em>{search.by === 'folder' ? 'in this folder itself' : `no ${groupNames[search.by].toLowerCase()}`}</em>;
  if (search.by === 'folder') {
    return (
      <Link page="usage" choices={choicesOf(inFolder(search, name))} isRow>
        <FolderName>{name.slice(prefix.lastIndexOf('/') + 1)}</FolderName>
      </Link>
    );
  }
  const text = <Text>{groupText(search.by, name)}</Text>;
  if (filter === undefined) return text;
  return (
    <Link page="search" choices={choicesOf({ ...search, view: 'list', query: withClauses(search.query, filter) })} isRow>
      {text}
    </Link>
  );
}

/** A group in words: what is in it, without what is in the ones before. */
export function groupText(by: GroupBy | 'bucket', name: string): string {
  if (by === 'age') return ageTexts[name] ?? name;
  if (by !== 'size') return name;
  return name === 'larger' ? '10 GiB and more' : `below ${name.replace(/([KMG])$/, ' $1iB')}`;
}

const ageTexts: Readonly<Record<string, string>> = {
  '1d': 'less than a day',
  '7d': '1 to 7 days',
  '30d': '7 to 30 days',
  '90d': '30 to 90 days',
  '365d': '90 to 365 days',
  older: 'older than 365 days',
};
