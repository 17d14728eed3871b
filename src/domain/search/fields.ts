/** The fields of the one box, and which one an unknown name may have meant. */

export const fieldNames = [
  'bucket',
  'prefix',
  'ext',
  'type',
  'class',
  'tag',
  'meta',
  'key',
  'etag',
  'size',
  'modified',
  'deleted',
  'is',
] as const;
export type FieldName = (typeof fieldNames)[number];

/** Fields that are compared with a value; the others have values after a colon. */
const compared: ReadonlySet<FieldName> = new Set(['size', 'modified', 'deleted']);

export function isFieldName(text: string): text is FieldName {
  return fieldNames.some((name) => name === text);
}

export function isCompared(name: string): boolean {
  return isFieldName(name) && compared.has(name);
}

/** Other words for fields, as the API and other programs name them. */
const otherNames: ReadonlyMap<string, FieldName> = new Map([
  ['extension', 'ext'],
  ['extensions', 'ext'],
  ['filetype', 'ext'],
  ['content_type', 'type'],
  ['content-type', 'type'],
  ['mime', 'type'],
  ['storage_class', 'class'],
  ['storage-class', 'class'],
  ['storage', 'class'],
  ['metadata', 'meta'],
  ['user_metadata', 'meta'],
  ['last_modified', 'modified'],
  ['date', 'modified'],
  ['newer', 'modified'],
  ['older', 'modified'],
  ['age', 'modified'],
  ['folder', 'prefix'],
  ['path', 'prefix'],
  ['dir', 'prefix'],
  ['in', 'prefix'],
  ['name', 'key'],
  ['md5', 'etag'],
  ['bytes', 'size'],
  ['length', 'size'],
] satisfies [string, FieldName][]);

/** More letters apart is another word. */
const DISTANCE_MAX = 2;
/** Longer names are not compared: no field has them. */
const NAME_LENGTH_MAX = 32;

/** The field that an unknown name probably means; undefined if it resembles none. */
export function nearestField(name: string): FieldName | undefined {
  const lower = name.toLowerCase();
  if (lower.length > NAME_LENGTH_MAX) return undefined;
  const other = otherNames.get(lower) ?? fieldNames.find((field) => field === lower);
  if (other !== undefined) return other;
  const nearest = fieldNames
    .map((field) => ({ field, apart: distanceOf(lower, field) }))
    // of a short name, two letters are most of it
    .filter(({ field, apart }) => apart <= Math.min(DISTANCE_MAX, Math.ceil(field.length / 3)))
    .toSorted((a, b) => a.apart - b.apart);
  return nearest[0]?.field;
}

/** The insertions, deletions and replacements that make one text the other. */
function distanceOf(a: string, b: string): number {
  let before = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let row = 1; row <= a.length; row += 1) {
    const line = [row];
    for (let at = 1; at <= b.length; at += 1) {
      const replaced = (before[at - 1] ?? 0) + (a[row - 1] === b[at - 1] ? 0 : 1);
      line.push(Math.min(replaced, (before[at] ?? 0) + 1, (line[at - 1] ?? 0) + 1));
    }
    before = line;
  }
  return before[b.length] ?? 0;
}
