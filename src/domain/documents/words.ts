/** The words of a key. They are made here for both stores, so that both find the same objects. */

/** Longer words are cut to this many code points: searches need no more, and a term must stay far below OpenSearch's 32,766 bytes. */
const WORD_LENGTH_MAX = 64;

/**
 * Borders inside a run of letters and digits: lower→UPPER and letter↔digit. The pattern looks for the digit first: a look
 * back over the marks at each of them would take a time that grows with the square of their number.
 */
const BORDER = /(?<=\p{Ll})(?=\p{Lu})|(?=\p{N})(?<=\p{L}\p{M}*)|(?<=\p{N})(?=\p{L})/u;
/**
 * Marks beyond the thirtieth of one character, which no language has (UAX #15, Stream-Safe Text Format). They are dropped
 * before normalisation, which sorts them in a time that grows with the square of their number. The half-width sound marks
 * of katakana are letters until they are normalised.
 */
const SURPLUS_MARKS = /(?<=[\p{M}\u{ff9e}\u{ff9f}]{30})[\p{M}\u{ff9e}\u{ff9f}]+/gu;
const SEPARATORS = /[^\p{L}\p{M}\p{N}]+/u;
/** The same rules for ASCII text, in a seventh of the time; most keys are ASCII. */
const ASCII = /^[\0-\x7f]*$/;
const ASCII_RUN = /[A-Z]*[a-z]+|[A-Z]+|[0-9]+/g;

/**
 * Splits text at every character that is not a letter or digit and at lower→UPPER and letter↔digit borders, then folds
 * each word: NFKC, lower case, accents removed. The words are unique and in order of appearance.
 */
export function wordsOf(text: string): readonly string[] {
  return [...new Set(orderedWords(text))];
}

/** A query's words: all must match, the last one as a prefix. */
export interface QueryWords {
  readonly whole: readonly string[];
  readonly prefix: string;
}

/** Parses `q`; null when it contains no word (then nothing can match). */
export function queryWordsOf(q: string): QueryWords | null {
  const words = orderedWords(q);
  const prefix = words.at(-1);
  return prefix === undefined ? null : { whole: [...new Set(words.slice(0, -1))], prefix };
}

function orderedWords(text: string): string[] {
  // ASCII text has no accents and needs no normalisation
  if (ASCII.test(text)) return (text.match(ASCII_RUN) ?? []).map((run) => run.toLowerCase().slice(0, WORD_LENGTH_MAX));
  return text
    .replaceAll(SURPLUS_MARKS, '')
    .normalize('NFKC')
    .split(SEPARATORS)
    .flatMap((run) => run.split(BORDER))
    .map(fold)
    .filter((word) => word !== '');
}

function fold(word: string): string {
  const folded = word.toLowerCase().normalize('NFD').replaceAll(/\p{M}/gu, '').normalize('NFC');
  // cut by code points, because half of a surrogate pair cannot be encoded as UTF-8
  return folded.length <= WORD_LENGTH_MAX ? folded : Array.from(folded).slice(0, WORD_LENGTH_MAX).join('');
}
