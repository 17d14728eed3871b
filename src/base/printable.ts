/**
 * Control characters (C0 and C1), line and paragraph separators, halves of surrogate pairs, and everything that is invisible:
 * bidi marks, embeddings, overrides and isolates, zero-width spaces and joiners, fillers, tags. Variation selectors are not
 * included: they are invisible too, but they only choose how the character before them is drawn.
 */
export const UNPRINTABLE = /[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]--\p{Variation_Selector}]/gv;

/**
 * Turns untrusted text into one safe line for a log, a reason or a terminal. Characters that are invisible or that could move
 * the cursor, end the line or change the reading direction are shown as `\u{…}`. A text of more than `maxLength` UTF-16 units
 * (default: no limit) is cut there and ends in `…`.
 */
export function printable(text: string, maxLength = Number.POSITIVE_INFINITY): string {
  const cut = text.length > maxLength ? `${withoutHalfPair(text.slice(0, maxLength))}…` : text;
  return cut.replaceAll(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`);
}

/** Removes the half of a surrogate pair that a cut may have left at the end. */
function withoutHalfPair(text: string): string {
  return /[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text;
}
