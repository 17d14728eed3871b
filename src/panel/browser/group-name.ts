/** What groups of objects are called. */
type GroupBy = 'folder' | 'class' | 'extension' | 'size' | 'age' | 'bucket';

export const groupNames: Readonly<Record<GroupBy, string>> = {
  folder: 'Folder',
  class: 'Storage class',
  extension: 'Extension',
  size: 'Size',
  age: 'Age',
  bucket: 'Bucket',
};

/** A group in words: what is in it, without what is in the ones before. */
export function groupText(by: GroupBy, name: string): string {
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
