/** Object keys: which texts are valid keys, and how each wrapper encodes them. */

/** S3's limit for a key, in UTF-8 bytes. */
const KEY_BYTES_MAX = 1_024;

/** A key as a wrapper wrote it. `uncertain`: its escapes were malformed, so `key` is the undecoded text and may not be the object's key. */
export interface WrittenKey {
  readonly key: string;
  readonly uncertain: boolean;
}

/** Whether S3 could hold an object under this key: 1 to 1,024 bytes of well-formed Unicode. */
export function isKey(text: string): boolean {
  if (text === '' || text.length > KEY_BYTES_MAX || !text.isWellFormed()) return false;
  // a UTF-16 unit takes at most 3 UTF-8 bytes, so most keys are short enough without counting
  return text.length * 3 <= KEY_BYTES_MAX || Buffer.byteLength(text) <= KEY_BYTES_MAX;
}

/** A key of S3's EventBridge events, audit-trail events and synthetic records, which never encode it. */
export function rawKey(text: string): WrittenKey {
  return { key: text, uncertain: false };
}

/**
 * A key of S3's notifications, and of listings requested with EncodingType=url: form-url-encoded UTF-8, where `+` is a
 * space. If an escape is malformed or not UTF-8, the whole key stays undecoded and `uncertain`.
 */
export function decodeFormKey(text: string): WrittenKey {
  if (!text.includes('%')) return { key: text.includes('+') ? text.replaceAll('+', ' ') : text, uncertain: false };
  try {
    return { key: decodeURIComponent(text.replaceAll('+', ' ')), uncertain: false };
  } catch {
    return { key: text, uncertain: true };
  }
}
