/**
 * The folded form of a text, used to compare keys regardless of case and accents. Both stores use it, for keys and queries,
 * so that they find the same objects.
 */

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
export function normalised(text: string): string {
  return text.replaceAll(SURPLUS_MARKS, '').normalize('NFKC');
}

/** The folded form: NFKC, lower case, without accents; ß as ss, and a final sigma like any other. Folding it again changes nothing. */
export function fold(text: string): string {
  return isAscii(text) ? text.toLowerCase() : foldNormalised(normalised(text));
}

/** The fold of a text that is in NFKC already. */
export function foldNormalised(text: string): string {
  return text.toLowerCase().normalize('NFD').replaceAll(MARKS, '').normalize('NFC').replaceAll('ß', 'ss').replaceAll('ς', 'σ');
}
