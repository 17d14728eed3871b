/** The search box's fields, and the test of each value. */

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
