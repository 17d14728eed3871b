/** The search box's fields, and the closest field to an unknown name. */

import { isBucketName } from '../base/bucket-name.ts';
import type { Test } from '../store/conditions.rules.ts';
import type { Value } from './lexer.rules.ts';
import { isPattern } from '../store/pattern.rules.ts';
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

/** Other names for fields, from the API and from other programs. */
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

/** Words further apart are different words. */
const DISTANCE_MAX = 2;
/** Longer names resemble no field. */
const NAME_LENGTH_MAX = 32;

/** The field that an unknown name probably means; undefined if none is close. */
export function nearestField(name: string): FieldName | undefined {
  const lower = name.toLowerCase();
  if (lower.length > NAME_LENGTH_MAX) return undefined;
  const other = otherNames.get(lower) ?? fieldNames.find((field) => field === lower);
  if (other !== undefined) return other;
  const nearest = fieldNames
    .map((field) => ({ field, apart: distanceOf(lower, field) }))
    // in a short name, two letters are most of it
    .filter(({ field, apart }) => apart <= Math.min(DISTANCE_MAX, Math.ceil(field.length / 3)))
    .toSorted((a, b) => a.apart - b.apart);
  return nearest[0]?.field;
}

/** The number of insertions, deletions and replacements between two texts. */
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

type Made = Test | { readonly mistake: string };

/** One value's test, or what is wrong with the value. */
export function fieldTest(name: FieldName, { text, quoted }: Pick<Value, 'text' | 'quoted'>): Made {
  if (text === '' && name !== 'prefix') return { mistake: 'a value is missing here' };
  if (quoted || !isPattern(text)) return exactTest(name, text);
  if (name === 'type' && FAMILY.test(text)) return { kind: name, value: text.slice(0, -1), family: true };
  return { mistake: `this does not accept a pattern: ${insteadOfPattern(name, text)}` };
}

function exactTest(name: FieldName, text: string): Made {
  switch (name) {
    case 'bucket':
      return isBucketName(text) ? { kind: name, value: text } : { mistake: 'this is not a valid bucket name' };
    case 'key':
    case 'prefix':
      return { kind: name, value: text };
    case 'etag':
      return { kind: name, value: text.replace(/^"(.*)"$/, '$1') };
    case 'class':
      return { kind: name, value: text.toUpperCase() };
    case 'ext':
      return extensionTest(text);
    case 'type':
      return { kind: name, value: text, family: false };
    case 'tag':
    case 'meta':
      return pairTest(name, text);
    case 'size':
    case 'modified':
    case 'deleted':
    case 'is':
      return { mistake: `${name} has no values after a colon` };
  }
}

/** Documents have the last extension of a name and the last two, each with at most 32 characters. */
const EXTENSION = /^[^./]{1,32}(?:\.[^./]{1,32})?$/u;

/** The test of an extension, with or without the dot before it. */
function extensionTest(text: string): Made {
  const value = text.toLowerCase().replace(/^\./, '');
  return EXTENSION.test(value) ? { kind: 'extension', value } : { mistake: 'an extension has one or two parts, such as gz or tar.gz' };
}

/** All content types of one family. */
const FAMILY = /^[^*?/]+\/\*$/;

/** The test of NAME or NAME=VALUE, split at the first `=`. A name's own `=` is written %3D. */
function pairTest(kind: 'tag' | 'meta', text: string): Made {
  const [, written = '', value] = /^([^=]*)(?:=(.*))?$/s.exec(text) ?? [];
  if (written === '') return { mistake: 'write NAME for any value, or NAME=VALUE' };
  const name = written.replaceAll(/%3d/gi, '=').replaceAll('%25', '%');
  // S3 stores the names of user metadata in lower case
  return { kind, name: kind === 'meta' ? name.toLowerCase() : name, ...(value !== undefined && { value }) };
}

/** What to write instead of a pattern. */
function insteadOfPattern(name: FieldName, text: string): string {
  const literal = `${name}:"${text}" for the text itself`;
  switch (name) {
    case 'key':
    case 'prefix':
      return `write ${text} alone, or ${literal}`;
    case 'ext':
      return `write ${text.startsWith('*') ? '' : '*.'}${text} alone`;
    case 'tag':
    case 'meta':
      return `write ${name}:NAME for any value, or ${literal}`;
    case 'type':
      return 'write one type or a family: image/png or image/*';
    case 'bucket':
    case 'class':
    case 'etag':
    case 'size':
    case 'modified':
    case 'deleted':
    case 'is':
      return 'write the whole value, and separate several with commas';
  }
}
