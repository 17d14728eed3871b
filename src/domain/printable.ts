/** Control characters, line and paragraph separators, bidi marks, embeddings, overrides and isolates, and halves of surrogate pairs. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u{61c}\u{200e}\u{200f}\u{2028}-\u{202e}\u{2066}-\u{2069}]/gu;

/**
 * Untrusted text as one safe line for a log, a reason or a terminal. Characters that could move the cursor, end the line
 * or change the reading direction are shown as `\u{…}`. After `maxLength` UTF-16 units of the input (default: no limit)
 * the text is cut and ends in `…`.
 */
export function printable(text: string, maxLength = Number.POSITIVE_INFINITY): string {
  const cut = text.length > maxLength ? `${withoutHalfPair(text.slice(0, maxLength))}…` : text;
  return cut.replaceAll(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`);
}

/** Removes the half of a surrogate pair that a cut may have left at the end. */
function withoutHalfPair(text: string): string {
  return /[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text;
}
