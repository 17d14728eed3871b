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

function kept(text: string, isKept: (lexeme: Lexeme) => boolean): string {
  const clauses = lexemesIn(text).filter((lexeme) => isKept(lexeme));
  return withClauses('', ...clauses.map(({ position, end }) => text.slice(position, end)));
}

/** What deleted objects can be searched by, besides texts in quotes and patterns. */
const ofDeleted: ReadonlySet<string> = new Set(['bucket', 'key', 'prefix', 'is', 'deleted']);

/** The text for a search of deleted objects: without the clauses that these do not have. */
export function forDeleted(text: string): string {
  const clauses = kept(text, ({ field, values }) =>
    field === undefined ? values.every((value) => value.quoted || /[*?]/.test(value.text)) : ofDeleted.has(field.name),
  );
  return asksForDeleted(clauses) ? clauses : withClauses(clauses, 'is:deleted');
}

/** The text for a search of objects that exist. One with a mistake stays as it is. */
export function forLive(text: string): string {
  return 'message' in lexemesOf(text) ? text : kept(text, (lexeme) => !isOfDeleted(lexeme));
}
