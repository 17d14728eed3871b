/** Controls, line and paragraph separators, bidi marks, embeddings, overrides and isolates, and halves of surrogate pairs. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u{61c}\u{200e}\u{200f}\u{2028}-\u{202e}\u{2066}-\u{2069}]/gu;

/**
 * Text from outside as one harmless line for a log, a reason or a terminal: what could move a cursor, end a line or turn
 * the reading direction is shown as `\u{…}`. At most `maxLength` UTF-16 units of the input are shown, then `…`; no limit
 * by default.
 */
export function printable(text: string, maxLength = Number.POSITIVE_INFINITY): string {
  const cut = text.length > maxLength ? `${withoutHalfPair(text.slice(0, maxLength))}…` : text;
  return cut.replaceAll(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`);
}

/** A cut may have fallen inside a surrogate pair. */
function withoutHalfPair(text: string): string {
  return /[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text;
}
