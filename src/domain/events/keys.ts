/** Object keys: which texts can be one, and how each wrapper encodes them. */

/** S3's limit for a key, in UTF-8 bytes. */
const KEY_BYTES_MAX = 1_024;

/** A key as a wrapper told it. `uncertain`: its escapes were malformed, so it is what was written rather than what was meant. */
export interface ToldKey {
  readonly key: string;
  readonly uncertain: boolean;
}

/** Whether S3 could hold an object under this key: 1 to 1,024 bytes of well-formed Unicode. */
export function isKey(text: string): boolean {
  if (text === '' || text.length > KEY_BYTES_MAX || !text.isWellFormed()) return false;
  // 3 UTF-8 bytes per UTF-16 unit at most: the common short key needs no counting
  return text.length * 3 <= KEY_BYTES_MAX || Buffer.byteLength(text) <= KEY_BYTES_MAX;
}

/** A key of S3's EventBridge events, audit-trail events and synthetic records: never encoded. */
export function rawKey(text: string): ToldKey {
  return { key: text, uncertain: false };
}

/**
 * A key of S3's notifications and of listings asked with EncodingType=url: form-url-encoded UTF-8, where `+` is a space.
 * Malformed escapes (or escapes that are no UTF-8) leave the whole key as it stands, `uncertain`.
 */
export function decodeFormKey(text: string): ToldKey {
  if (!text.includes('%')) return { key: text.replaceAll('+', ' '), uncertain: false };
  try {
    return { key: decodeURIComponent(text.replaceAll('+', ' ')), uncertain: false };
  } catch {
    return { key: text, uncertain: true };
  }
}
