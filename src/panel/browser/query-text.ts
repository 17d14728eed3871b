/** The text of the one box: fields are read from it and written into it. Its clauses are those that the registry reads. */
import { lexemesOf, type Lexeme, type Operator } from '../../domain/search/lexer.ts';

/** A field with its operator: `size` with `>=` is another place in a form than `size` with `<=`. */
export interface FieldPlace {
  readonly name: string;
  readonly operator: Operator;
}

function lexemesIn(text: string): readonly Lexeme[] {
  const lexemes = lexemesOf(text);
  return 'message' in lexemes ? [] : lexemes;
}

/** Whether the text can be split into clauses; not, for example, while a quote is open. */
export function isReadable(text: string): boolean {
  return !('message' in lexemesOf(text));
}

function isOf({ field, negated }: Lexeme, { name, operator }: FieldPlace): boolean {
  return !negated && field?.name === name && field.operator === operator;
}

/** The value of the first clause of this field, as a form shows it. Empty: there is none. */
export function valueIn(text: string, place: FieldPlace): string {
  const found = lexemesIn(text).find((lexeme) => isOf(lexeme, place));
  return found === undefined ? '' : found.values.map((value) => value.text).join(',');
}

/** The only value that a field may have by this text. Undefined: it may have several, or any. */
export function onlyValueIn(text: string, name: string): string | undefined {
  const found = lexemesIn(text).filter((lexeme) => isOf(lexeme, { name, operator: ':' }));
  const [value, second] = found[0]?.values ?? [];
  return found.length === 1 && second === undefined ? value?.text : undefined;
}

/** Whether the text asks for deleted objects. */
export function asksForDeleted(text: string): boolean {
  return lexemesIn(text).some(({ field }) => field?.name === 'is' || field?.name === 'deleted');
}

/** Whether there are clauses besides those of these fields. */
export function hasOthers(text: string, names: readonly string[]): boolean {
  return lexemesIn(text).some(({ field, negated }) => negated || field === undefined || !names.includes(field.name));
}

/** A value as it can stand in a query: in quotes where a part of it would be special. */
export function quoted(value: string, special = /[\s,]|^"/): string {
  return value !== '' && !special.test(value) ? value : `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

/** One clause of a field. In keys, `*` and `?` are characters. */
export function clauseOf({ name, operator }: FieldPlace, values: readonly string[]): string {
  const special = name === 'key' || name === 'prefix' ? /[\s,*?]|^"/ : undefined;
  return `${name}${operator}${values.map((value) => quoted(value, special)).join(',')}`;
}

/** The text with this field set to these values in the place of the clause that it had; without values it has none. */
export function withField(text: string, place: FieldPlace, values: readonly string[]): string {
  const found = lexemesIn(text).find((lexeme) => isOf(lexeme, place));
  const clause = values.length === 0 ? '' : clauseOf(place, values);
  if (found === undefined) return joined([text, clause]);
  return joined([text.slice(0, found.position), clause, text.slice(found.end)]);
}

/** The text without what stands at a position. */
export function withoutPart(text: string, position: number, length: number): string {
  return joined([text.slice(0, position), text.slice(position + length)]);
}

/** The text with further clauses. */
export function withClauses(text: string, ...clauses: readonly string[]): string {
  return joined([text, ...clauses]);
}

/** What deleted objects can be searched by. */
const ofDeleted: ReadonlySet<string> = new Set(['bucket', 'key', 'prefix', 'is', 'deleted']);

function isOfDeleted({ field, values }: Lexeme): boolean {
  if (field !== undefined) return ofDeleted.has(field.name);
  return values.every((value) => value.quoted || /[*?]/.test(value.text));
}

/** The text for a search of deleted objects: without the clauses that these do not have. */
export function forDeleted(text: string): string {
  const kept = lexemesIn(text).filter((lexeme) => isOfDeleted(lexeme));
  const clauses = joined(kept.map(({ position, end }) => text.slice(position, end)));
  return asksForDeleted(clauses) ? clauses : joined([clauses, 'is:deleted']);
}

/** The text for a search of objects that exist. */
export function forLive(text: string): string {
  const kept = lexemesIn(text).filter(({ field }) => field?.name !== 'is' && field?.name !== 'deleted');
  return isReadable(text) ? joined(kept.map(({ position, end }) => text.slice(position, end))) : text;
}

function joined(parts: readonly string[]): string {
  return parts
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join(' ');
}
