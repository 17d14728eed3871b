/** Functions that the dialects share: they read fields of unchecked JSON (an unreadable field is absent), and keys as stores spell them. */
import { printable } from '../base/texts.ts';

/** A fault's reason repeats at most this many characters of a message. */
const QUOTE_LENGTH_MAX = 60;
/** S3's limit for a version id; etags and sequencers are far shorter. A keyword field of the index cannot hold much longer values. */
const ID_LENGTH_MAX = 1_024;

/** An object of parsed JSON. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value of parsed JSON is an object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value at a path of object fields; undefined if there is none. */
export function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const field of path) {
    if (!isJsonObject(current)) return undefined;
    current = current[field];
  }
  return current;
}

/** Whether a field has no value. The empty string counts as none, because it is what an input transformer sends for a path that it does not find. */
export function isBlank(value: unknown): value is undefined | null | '' {
  return value === undefined || value === null || value === '';
}

/** The text in a field, whatever its length; the empty string if it is not a text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** An identifier made by S3 (etag, version id, sequencer); undefined if the field is not a text, is empty, too long, or not well-formed Unicode. */
export function idOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= ID_LENGTH_MAX && value.isWellFormed() ? value : undefined;
}

const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** An ISO 8601 time as ms since the epoch; undefined if the value is not such a time or lies outside the years 1970 to 9999. */
export function timeOf(value: unknown): number | undefined {
  if (typeof value !== 'string' || !ISO_TIME.test(value)) return undefined;
  const timeMs = Date.parse(value);
  return timeMs >= 0 && timeMs < Date.UTC(10_000, 0) ? timeMs : undefined;
}

/** A piece of a message for a fault's reason: shortened, on one line, in quotes. */
export function quoted(value: unknown): string {
  return typeof value === 'string' ? `"${printable(value, QUOTE_LENGTH_MAX)}"` : kindOf(value);
}

/** The type of a value of parsed JSON, in words. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return value === null ? 'null' : 'absent';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** S3's limit for a key, in UTF-8 bytes. */
const KEY_BYTES_MAX = 1_024;

/** Whether S3 could hold an object under this key: 1 to 1,024 bytes of well-formed Unicode. */
export function isValidKey(text: string): boolean {
  if (text === '' || text.length > KEY_BYTES_MAX || !text.isWellFormed()) return false;
  // a UTF-16 unit takes at most 3 UTF-8 bytes, so most keys are short enough without counting
  return text.length * 3 <= KEY_BYTES_MAX || Buffer.byteLength(text) <= KEY_BYTES_MAX;
}

/**
 * How a store spells the keys in its events: form-url-encoded UTF-8, as in S3's notifications; raw, as everywhere else in AWS; or
 * in one of the two ways, without our knowing which.
 */
export type Spelling = 'form' | 'raw' | 'either';

/** Who writes the records of a message, as far as it tells how keys are spelled: AWS, another store, which may name itself, or nobody whose word counts. */
export type Writer = 'aws' | 'store' | 'anyone';

/** The keys that a text may mean: one, or two if it is not known how the store spells keys; none if the text is not a valid key. */
export interface Keys {
  readonly keys: readonly string[];
  /** False if the record may mean another key. */
  readonly isCertain: boolean;
}

/** Reads a key as its store spells it. A key with malformed escapes is taken literally and marked uncertain. */
export function keysOf(text: string, spelling: Spelling): Keys {
  const decoded = spelling === 'raw' ? text : decodeFormKey(text);
  const isCertain = decoded !== undefined && (spelling !== 'either' || decoded === text);
  const keys = isCertain || decoded === undefined || spelling === 'form' ? [decoded ?? text] : [decoded, text];
  return { keys: keys.filter(isValidKey), isCertain };
}

/** Decodes form-url-encoded UTF-8, where `+` is a space; undefined if an escape is malformed or not UTF-8. */
export function decodeFormKey(text: string): string | undefined {
  if (!text.includes('%')) return text.includes('+') ? text.replaceAll('+', ' ') : text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
