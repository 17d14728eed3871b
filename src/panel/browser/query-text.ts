/** The text of the one box: fields are read from it and written into it. Its clauses are those that the registry reads. */
import { lexemesOf, type Lexeme } from '../../search/lexer.rules.ts';

function lexemesIn(text: string): readonly Lexeme[] {
  const lexemes = lexemesOf(text);
  return 'message' in lexemes ? [] : lexemes;
}

/** The only value that a field may have by this text. Undefined: it may have several, or any. */
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

/** The text for a search in which the words may also be within others: `*port-55*` finds report-55.pdf. */
export function withinWords(text: string): string {
  const isWord = ({ quoted, text: word }: Lexeme['values'][number]): boolean => !quoted && /^[^*?]{3,}$/.test(word);
  const words = lexemesIn(text).filter((lexeme) => isText(lexeme) && lexeme.values.every(isWord));
  // from the last one on, so that the places before it stay
  return words.reduceRight(
    (before, { position, end, values }) =>
      before.slice(0, position) + values.map((value) => `*${value.text}*`).join(',') + before.slice(end),
    text,
  );
}

/** The text without its fields: a key, perhaps, if nothing is found. */
export function textIn(text: string): string {
  const [only, second] = lexemesIn(text).filter((lexeme) => isText(lexeme));
  return only !== undefined && second === undefined && only.values.length === 1 ? (only.values[0]?.text ?? '') : kept(text, isText);
}

/** One clause of a field, with the value in quotes where a part of it would be special. In keys, `*` and `?` are characters. */
export function clauseOf(name: string, value: string, operator = ':'): string {
  const special = name === 'key' || name === 'prefix' ? /[\s,*?]|^"|^$/ : /[\s,]|^"|^$/;
  return `${name}${operator}${special.test(value) ? `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"` : value}`;
}

/** The text with further clauses. */
export function withClauses(text: string, ...clauses: readonly string[]): string {
  return [text, ...clauses]
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join(' ');
}

/** A search for what is in a folder of a bucket; without a prefix in all of it. */
export function inFolder(bucket: string, prefix: string): string {
  return withClauses(clauseOf('bucket', bucket), prefix === '' ? '' : clauseOf('prefix', prefix));
}

function kept(text: string, isKept: (lexeme: Lexeme) => boolean): string {
  const clauses = lexemesIn(text).filter((lexeme) => isKept(lexeme));
  return withClauses('', ...clauses.map(({ position, end }) => text.slice(position, end)));
}

/** The text for a search of deleted objects, which have no words. What else they do not have, the registry names. */
export function forDeleted(text: string): string {
  return asksForDeleted(text) ? text : withClauses(withinWords(text), 'is:deleted');
}

/** The text for a search of objects that exist. One with a mistake stays as it is. */
export function forLive(text: string): string {
  return 'message' in lexemesOf(text) ? text : kept(text, (lexeme) => !isOfDeleted(lexeme));
}
