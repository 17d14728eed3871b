/** The tests of fields with values after a colon, and of the parameters of the API that mean the same. */
import { isBucketName } from '../bucket-name.ts';
import type { Test } from './conditions.ts';
import type { FieldName } from './fields.ts';

type Made = Test | { readonly mistake: string };

/** The test of one value. Returns what is wrong with the value otherwise. */
export function fieldTest(name: FieldName, text: string): Made {
  if (text === '' && name !== 'prefix') return { mistake: `${name}: needs a value` };
  switch (name) {
    case 'bucket':
      return isBucketName(text) ? { kind: name, value: text } : { mistake: 'this cannot be the name of a bucket' };
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
      return typeTest(text);
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
export function extensionTest(text: string): Made {
  const value = text.toLowerCase().replace(/^\./, '');
  if (/[*?]/.test(value)) return { mistake: `an extension is not a pattern: write ${text.startsWith('*') ? '' : '*.'}${text} alone` };
  return EXTENSION.test(value) ? { kind: 'extension', value } : { mistake: 'an extension has one or two parts, such as gz or tar.gz' };
}

/** The test of a content type: one type exactly, or `image/*` for all that begin so. */
export function typeTest(text: string): Made {
  if (!text.includes('*')) return { kind: 'type', value: text, family: false };
  return /^[^*/]+\/\*$/.test(text)
    ? { kind: 'type', value: text.slice(0, -1), family: true }
    : { mistake: 'a content type is one type or a family: image/png or image/*' };
}

/** The test of NAME=VALUE, which is split at the first `=`; one in the name is written %3D. */
export function pairTest(kind: 'tag' | 'meta', text: string): Made {
  const equals = text.indexOf('=');
  if (equals <= 0) return { mistake: `${kind} needs NAME=VALUE` };
  const name = text.slice(0, equals).replaceAll(/%3d/gi, '=').replaceAll('%25', '%');
  // S3 stores the names of user metadata in lower case
  return { kind, name: kind === 'meta' ? name.toLowerCase() : name, value: text.slice(equals + 1) };
}
