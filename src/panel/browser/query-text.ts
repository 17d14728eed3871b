/** Reads fields from the search box's text and writes them into it, with the registry's own lexer. */
import { lexemesOf, type Lexeme } from '../../search/lexer.rules.ts';

function lexemesIn(text: string): readonly Lexeme[] {
  const lexemes = lexemesOf(text);
  return 'message' in lexemes ? [] : lexemes;
}

/** The only value that this text allows a field. Undefined: it allows several, or any. */
export function onlyValueIn(text: string, name: string): string | undefined {
  const found = lexemesIn(text).filter(({ field, negated }) => !negated && field?.name === name && field.operator === ':');
  const [value, second] = found[0]?.values ?? [];
  return found.length === 1 && second === undefined ? value?.text : undefined;
}

const isOfDeleted = ({ field }: Lexeme): boolean => field?.name === 'is' || field?.name === 'deleted';

/** Whether the text asks for deleted objects. */
export function asksForDeleted(text: string): boolean {
  return lexemesIn(text).some(isOfDeleted);
}

const isText = ({ field, negated }: Lexeme): boolean => field === undefined && !negated;

/** The text with its words as patterns that match within words: `*port-55*` finds report-55.pdf. */
export function withinWords(text: string): string {
  const isWord = ({ quoted, text: word }: Lexeme['values'][number]): boolean => !quoted && /^[^*?]{3,}$/.test(word);
  const words = lexemesIn(text).filter((lexeme) => isText(lexeme) && lexeme.values.every(isWord));
  // backwards, so that earlier positions stay valid
  return words.reduceRight(
    (before, { position, end, values }) =>
      before.slice(0, position) + values.map((value) => `*${value.text}*`).join(',') + before.slice(end),
    text,
  );
}

/** The text without its fields, which may be a key if nothing is found. */
export function textIn(text: string): string {
  const [only, second] = lexemesIn(text).filter((lexeme) => isText(lexeme));
  return only !== undefined && second === undefined && only.values.length === 1 ? (only.values[0]?.text ?? '') : kept(text, isText);
}

/** A field's clause, with the value in quotes if it contains special characters. In keys, `*` and `?` are ordinary. */
export function clauseOf(name: string, value: string, operator = ':'): string {
  const special = name === 'key' || name === 'prefix' ? /[\s,*?]|^"|^$/ : /[\s,]|^"|^$/;
  return `${name}${operator}${special.test(value) ? `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"` : value}`;
}

/** The text with more clauses. */
export function withClauses(text: string, ...clauses: readonly string[]): string {
  return [text, ...clauses]
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join(' ');
}

/** A search within a bucket's folder, or within the whole bucket. */
export function inFolder(bucket: string, prefix: string): string {
  return withClauses(clauseOf('bucket', bucket), prefix === '' ? '' : clauseOf('prefix', prefix));
}

function kept(text: string, isKept: (lexeme: Lexeme) => boolean): string {
  const clauses = lexemesIn(text).filter((lexeme) => isKept(lexeme));
  return withClauses('', ...clauses.map(({ position, end }) => text.slice(position, end)));
}

/** The text as a search for deleted objects, without words, which they don't have. The registry names other unsuitable fields. */
export function forDeleted(text: string): string {
  return asksForDeleted(text) ? text : withClauses(withinWords(text), 'is:deleted');
}

/** The text as a search for existing objects. A text with a mistake stays as it is. */
export function forLive(text: string): string {
  return 'message' in lexemesOf(text) ? text : kept(text, (lexeme) => !isOfDeleted(lexeme));
}
