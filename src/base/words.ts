/** A key's folded form and its words. Both stores use this code, for keys and queries, so that they find the same objects. */
import { RequestError } from './request-error.ts';

/**
 * Marks beyond a character's thirtieth, which no language has (UAX #15, Stream-Safe Text Format). They are dropped before
 * normalisation, which sorts marks in quadratic time. Katakana's half-width sound marks are letters until they are normalised.
 */
const SURPLUS_MARKS = /(?<=[\p{M}\u{ff9e}\u{ff9f}]{30})[\p{M}\u{ff9e}\u{ff9f}]+/gu;
const MARKS = /\p{M}+/gu;
/** Most keys are ASCII, which has no accents and needs no normalisation. */
const ASCII = /^[\0-\x7f]*$/;

/** Whether the text consists of ASCII characters. */
export function isAscii(text: string): boolean {
  return ASCII.test(text);
}

/** The text in NFKC, in linear time. */
function normalised(text: string): string {
  return text.replaceAll(SURPLUS_MARKS, '').normalize('NFKC');
}

/**
 * The folded form of a text, used to compare keys regardless of case and accents: NFKC, lower case, without accents; ß as ss, and a
 * final sigma like any other. Folding it again changes nothing.
 */
export function fold(text: string): string {
  return isAscii(text) ? text.toLowerCase() : foldNormalised(normalised(text));
}

/** The fold of a text that is in NFKC already. */
function foldNormalised(text: string): string {
  return text.toLowerCase().normalize('NFD').replaceAll(MARKS, '').normalize('NFC').replaceAll('ß', 'ss').replaceAll('ς', 'σ');
}

/** Longer words are cut to this many code points: searches need no more, and a term must stay far below OpenSearch's 32,766 bytes. */
const WORD_LENGTH_MAX = 64;

/**
 * Borders inside a run of letters and digits: lower→UPPER and letter↔digit. The pattern looks for the digit first, because looking
 * back over the marks at each mark would take quadratic time.
 */
const BORDER = /(?<=\p{Ll})(?=\p{Lu})|(?=\p{N})(?<=\p{L}\p{M}*)|(?<=\p{N})(?=\p{L})/u;
const SEPARATORS = /[^\p{L}\p{M}\p{N}]+/u;
const BEGINS_WITH_DIGIT = /^\p{N}/u;
const ZEROS = /^0+(?=\p{N})/u;

/** The kinds of ASCII characters, by code. */
const SEPARATOR = 0;
const LOWER = 1;
const UPPER = 2;
const DIGIT = 3;
/** The code of 0. */
const ZERO = 0x30;
const kinds = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (/[a-z]/.test(character)) return LOWER;
  if (/[A-Z]/.test(character)) return UPPER;
  return /[0-9]/.test(character) ? DIGIT : SEPARATOR;
});

/** The folded pieces of an unbroken run of letters and digits: `iPhone15` is i, phone and 15. */
type Run = readonly string[];

/**
 * The words by which a key is found. A key is split at every character that is not a letter or digit; the runs in between are split
 * at lower→UPPER and letter↔digit borders. The words are these pieces, digits also without leading zeros, and for a run of several
 * pieces also each unbroken stretch of letters in it, and the whole run. They are folded and unique. Their total length, and the
 * time, are linear in the key's length.
 */
export function wordsOf(text: string): readonly string[] {
  return isAscii(text) ? asciiWords(text, text.toLowerCase()) : unicodeWords(text);
}

/** The words of a key, and its folded form. */
export function wordsAndFold(text: string): { readonly words: readonly string[]; readonly folded: string } {
  if (!isAscii(text)) return { words: unicodeWords(text), folded: fold(text) };
  const folded = text.toLowerCase();
  return { words: asciiWords(text, folded), folded };
}

/** The same words for ASCII, as most keys are, without Unicode's tables and without lists of pieces. */
function asciiWords(text: string, folded: string): readonly string[] {
  const words: string[] = [];
  const source = { text, folded };
  for (let at = 0; at < text.length; at += 1) {
    if (kindAt(text, at) === SEPARATOR) continue;
    const begin = at;
    while (kindAt(text, at) !== SEPARATOR) at += 1;
    addAsciiRun(words, source, begin, at);
  }
  return uniqueOf(words);
}

/** Adds the words of one run. */
function addAsciiRun(words: string[], source: { readonly text: string; readonly folded: string }, begin: number, end: number): void {
  let piece = begin;
  let letters = begin;
  for (let at = begin + 1; at <= end; at += 1) {
    const before = kindAt(source.text, at - 1);
    const kind = kindAt(source.text, at);
    if (!isBorder(before, kind)) continue;
    words.push(source.folded.slice(piece, Math.min(at, piece + WORD_LENGTH_MAX)));
    if (before === DIGIT) {
      addWithoutZeros(words, source.folded, piece, at);
      letters = at;
    } else if (letters < piece && (kind === DIGIT || kind === SEPARATOR)) {
      words.push(source.folded.slice(letters, Math.min(at, letters + WORD_LENGTH_MAX)));
    }
    if (at === end && begin < piece) words.push(source.folded.slice(begin, Math.min(end, begin + WORD_LENGTH_MAX)));
    piece = at;
  }
}

function addWithoutZeros(words: string[], folded: string, begin: number, end: number): void {
  let from = begin;
  while (from < end - 1 && folded.charCodeAt(from) === ZERO) from += 1;
  if (from > begin) words.push(folded.slice(from, Math.min(end, from + WORD_LENGTH_MAX)));
}

/** The kind of the character at a place. Beyond the end there are separators. */
function kindAt(text: string, at: number): number {
  // charCodeAt returns NaN there, and one lookup with NaN would make all lookups slow
  return at < text.length ? (kinds[text.charCodeAt(at)] ?? SEPARATOR) : SEPARATOR;
}

/** Whether a piece begins or ends between characters of these kinds. */
function isBorder(before: number, kind: number): boolean {
  return before !== kind && !(before === UPPER && kind === LOWER);
}

/** Up to this many words, which is as many as most keys have, a linear search is faster than a set. */
const FEW = 24;

function uniqueOf(words: readonly string[]): readonly string[] {
  return words.length > FEW ? [...new Set(words)] : words.filter((word, at) => words.indexOf(word) === at);
}

function unicodeWords(text: string): readonly string[] {
  const words: string[] = [];
  for (const run of runsOf(text)) addRun(words, run);
  return uniqueOf(words);
}

function addRun(words: string[], run: Run): void {
  let letters: string[] = [];
  for (const [at, piece] of run.entries()) {
    words.push(cut(piece));
    if (isDigits(piece)) {
      words.push(cut(piece.replace(ZEROS, '')));
      letters = [];
    } else {
      letters.push(piece);
      const next = run[at + 1];
      if (next === undefined || isDigits(next)) words.push(cut(letters.join('')));
    }
  }
  words.push(cut(run.join('')));
}

function isDigits(piece: string): boolean {
  return BEGINS_WITH_DIGIT.test(piece);
}

/** One way in which a run of a query can occur: all words of `whole`, and a word that begins with `prefix`. */
export interface WordForm {
  readonly whole: readonly string[];
  readonly prefix?: string;
}

/** A query's words. For each entry, one of its forms must occur: the run's pieces, or the whole run as one word. */
export type QueryWords = readonly (readonly WordForm[])[];

/** How many runs a query may have: each becomes up to ten clauses of a request, and OpenSearch accepts 1,024. */
const QUERY_RUNS_MAX = 64;
/** If a run has more pieces, only the whole run is searched for, for the same reason. */
const PIECES_MAX = 8;

/**
 * Parses a query's words; null if it contains none, so that nothing can match. The last one may be the beginning of a word, unless
 * `whole` is true. Throws `request.invalid` for more than 64.
 */
export function queryWordsOf(q: string, whole = false): QueryWords | null {
  const runs = runsOf(q);
  const last = runs.pop();
  if (last === undefined) return null;
  const unique = new Map(runs.map((run) => [run.join(' '), run]));
  if (unique.size >= QUERY_RUNS_MAX) throw new RequestError('request.invalid', `a query has at most ${QUERY_RUNS_MAX} words`);
  return [...[...unique.values()].map(wholeForms), whole ? wholeForms(last) : prefixForms(last)];
}

/** Whether a key's words match a query. */
export function hasWords(words: readonly string[], query: QueryWords): boolean {
  return query.every((forms) => forms.some((form) => hasForm(words, form)));
}

function hasForm(words: readonly string[], { whole, prefix }: WordForm): boolean {
  if (!whole.every((word) => words.includes(word))) return false;
  return prefix === undefined || words.some((word) => word.startsWith(prefix));
}

function wholeForms(run: Run): readonly WordForm[] {
  const joined = { whole: [cut(run.join(''))] };
  return run.length === 1 || run.length > PIECES_MAX ? [joined] : [{ whole: piecesOf(run) }, joined];
}

function prefixForms(run: Run): readonly WordForm[] {
  const joined = { whole: [], prefix: cut(run.join('')) };
  if (run.length === 1 || run.length > PIECES_MAX) return [joined];
  return [{ whole: piecesOf(run.slice(0, -1)), prefix: cut(run.at(-1) ?? '') }, joined];
}

function piecesOf(run: Run): readonly string[] {
  return [...new Set(run.map(cut))];
}

function runsOf(text: string): Run[] {
  return normalised(text)
    .split(SEPARATORS)
    .map((run) =>
      run
        .split(BORDER)
        .map(foldNormalised)
        .filter((piece) => piece !== ''),
    )
    .filter((run) => run.length > 0);
}

/** Cut by code points, because half of a surrogate pair cannot be encoded as UTF-8. */
function cut(word: string): string {
  return word.length <= WORD_LENGTH_MAX
    ? word
    : Array.from(word.slice(0, 2 * WORD_LENGTH_MAX))
        .slice(0, WORD_LENGTH_MAX)
        .join('');
}
