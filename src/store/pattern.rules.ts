/** Key patterns: `*` matches any run of characters, `/` included, and `?` matches one character. Nothing else is special. */
import { fold } from '../base/words.ts';

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
/** The most `?` of a pattern: after a `*`, the automaton of OpenSearch doubles with each. It refuses twelve. */
const QUESTIONS_MAX = 8;
/** A store finds candidates by three characters in a row. Fewer would make it read every key. */
const LITERAL_MIN = 3;
/** The longest folded text that OpenSearch is certain to compile: of a thousand equal characters it refuses the automaton. */
const TEXT_MAX = 256;

type Mistaken = { readonly mistake: string };

/** The folded form of a text that keys must contain. Returns what is wrong with it otherwise. */
export function containedText(text: string): { readonly text: string } | Mistaken {
  const folded = fold(text);
  if (!isLongEnough(folded)) return { mistake: `a text needs at least ${LITERAL_MIN} characters` };
  if (folded.length > TEXT_MAX && Array.from(folded).length > TEXT_MAX) return { mistake: `a text has at most ${TEXT_MAX} characters` };
  return { text: folded };
}

/** Whether an unquoted text is a pattern. */
export function isPattern(text: string): boolean {
  return /[*?]/.test(text);
}

/** Reads a pattern. `hasPrefix`: whether the search also asks for a prefix, so that short literals are allowed. Returns what is wrong with it otherwise. */
export function patternOf(text: string, hasPrefix: boolean): Pattern | Mistaken {
  // a third of the bytes is the least number of UTF-16 units, so longer texts are not encoded
  if (text.length > PATTERN_BYTES_MAX || new TextEncoder().encode(text).length > PATTERN_BYTES_MAX) {
    return { mistake: `a pattern has at most ${PATTERN_BYTES_MAX} bytes` };
  }
  // the text is split before it is folded, because some characters fold to a star or a question mark
  const parts = text
    .split(/([*?])/)
    .filter((part) => part !== '')
    .map((part): PatternPart => (part === '*' || part === '?' ? { wild: part } : { literal: fold(part) }));
  if (countOf(parts, '*') > STARS_MAX) return { mistake: `a pattern has at most ${STARS_MAX} times *` };
  if (countOf(parts, '?') > QUESTIONS_MAX) return { mistake: `a pattern has at most ${QUESTIONS_MAX} times ?` };
  const literals = parts.flatMap((part) => ('literal' in part ? [part.literal] : []));
  if (!hasPrefix && !literals.some((literal) => isLongEnough(literal))) {
    return { mistake: `a pattern needs ${LITERAL_MIN} characters in a row that are neither * nor ?, or a prefix beside it` };
  }
  return { parts, anywhere: !literals.some((literal) => literal.includes('/')) };
}

function countOf(parts: readonly PatternPart[], wild: '*' | '?'): number {
  return parts.filter((part) => 'wild' in part && part.wild === wild).length;
}

/** Whether a folded text has the characters that a store needs to find it. */
function isLongEnough(folded: string): boolean {
  return Array.from(folded.slice(0, 2 * LITERAL_MIN)).length >= LITERAL_MIN;
}
