/** Patterns of keys: `*` stands for any run of characters, `/` included, and `?` for one character. Nothing else is special. */
import { fold } from '../documents/fold.ts';

/** The parts of a pattern in order. Literals are folded. */
export type PatternPart = { readonly literal: string } | { readonly wild: '*' | '?' };

export interface Pattern {
  readonly parts: readonly PatternPart[];
  /** It has no slash, so that it may also begin after any slash of a key. */
  readonly anywhere: boolean;
}

/** The longest pattern and the most `*` of one: what a store needs for one key grows with both. */
const PATTERN_BYTES_MAX = 256;
const STARS_MAX = 8;
/** A store finds candidates by three characters in a row. Fewer would make it read every key. */
export const LITERAL_MIN = 3;

/** Whether an unquoted text is a pattern. */
export function isPattern(text: string): boolean {
  return /[*?]/.test(text);
}

/** Reads a pattern. `hasPrefix`: whether the search also asks for a prefix, so that short literals are allowed. Returns what is wrong with it otherwise. */
export function patternOf(text: string, hasPrefix: boolean): Pattern | { readonly mistake: string } {
  // a third of the bytes is the least number of UTF-16 units, so longer texts are not encoded
  if (text.length > PATTERN_BYTES_MAX || new TextEncoder().encode(text).length > PATTERN_BYTES_MAX) {
    return { mistake: `a pattern has at most ${PATTERN_BYTES_MAX} bytes` };
  }
  // the text is split before it is folded, because some characters fold to a star or a question mark
  const parts = text
    .split(/([*?])/)
    .filter((part) => part !== '')
    .map((part): PatternPart => (part === '*' || part === '?' ? { wild: part } : { literal: fold(part) }));
  if (parts.filter((part) => 'wild' in part && part.wild === '*').length > STARS_MAX) {
    return { mistake: `a pattern has at most ${STARS_MAX} times *` };
  }
  const literals = parts.flatMap((part) => ('literal' in part ? [part.literal] : []));
  if (!hasPrefix && !literals.some((literal) => isLongEnough(literal))) {
    return { mistake: `a pattern needs ${LITERAL_MIN} characters in a row that are neither * nor ?, or a prefix beside it` };
  }
  return { parts, anywhere: !literals.some((literal) => literal.includes('/')) };
}

/** Whether a folded text has the characters that a store needs to find it. */
export function isLongEnough(folded: string): boolean {
  return Array.from(folded.slice(0, 2 * LITERAL_MIN)).length >= LITERAL_MIN;
}
