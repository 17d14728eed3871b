/** Splits a query's text into clauses: where each begins, its field, and its values. Never throws. */
import { isFieldName } from './fields.rules.ts';

/** A comparison, or `:` for a field with values. */
export type Operator = ':' | '>' | '>=' | '<' | '<=' | '=';

export interface Value {
  readonly text: string;
  /** It was in quotes, so none of its characters is special. */
  readonly quoted: boolean;
  /** It is a pattern, even without `*` and `?`. */
  readonly isPattern?: boolean;
  readonly position: number;
}

/** A clause as written. Positions count UTF-16 units from 0; `end` is exclusive. */
export interface Lexeme {
  readonly position: number;
  readonly end: number;
  readonly negated: boolean;
  readonly field?: { readonly name: string; readonly operator: Operator };
  readonly values: readonly Value[];
}

/** What is wrong, and where. */
export interface Mistake {
  readonly position: number;
  /** The mistake is in this parameter, not in the text. */
  readonly parameter?: string;
  readonly message: string;
}

const SPACES = /\s*/y;
/** A name before a colon or a comparison. */
const FIELD = /(\p{L}[\p{L}\p{N}_-]*)(:|>=|<=|>|<|=)/uy;
/** The same with spaces around a comparison, if the name is a field's. */
const SPACED = /(\p{L}[\p{L}\p{N}_-]*)\s*(>=|<=|>|<|=)\s*/uy;
const PLAIN = /[^\s,]+/y;

/** A text's clauses, or its first mistake. */
export function lexemesOf(text: string): readonly Lexeme[] | Mistake {
  const lexemes: Lexeme[] = [];
  for (let at = afterSpaces(text, 0); at < text.length;) {
    const lexeme = lexemeAt(text, at);
    if ('message' in lexeme) return lexeme;
    lexemes.push(lexeme);
    at = afterSpaces(text, lexeme.end);
  }
  return lexemes;
}

function afterSpaces(text: string, at: number): number {
  return at + (matchAt(SPACES, text, at)?.[0].length ?? 0);
}

/** What a sticky pattern matches at a position. */
function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function lexemeAt(text: string, position: number): Lexeme | Mistake {
  // a minus sign alone, or before a space, negates nothing
  const negated = text[position] === '-' && /\S/.test(text[position + 1] ?? '');
  const begin = negated ? position + 1 : position;
  const found = fieldAt(text, begin);
  const values = valuesAt(text, found?.end ?? begin);
  if ('message' in values) return values;
  return { position, end: values.end, negated, ...(found !== undefined && { field: found.field }), values: values.values };
}

function fieldAt(text: string, at: number): { readonly field: NonNullable<Lexeme['field']>; readonly end: number } | undefined {
  const spaced = matchAt(SPACED, text, at);
  const [whole = '', name = '', operator] = (isFieldName(spaced?.[1] ?? '') ? spaced : matchAt(FIELD, text, at)) ?? [];
  // `year=2026` occurs in many keys
  if (!isOperator(operator) || (operator === '=' && !isFieldName(name))) return undefined;
  return { field: { name, operator }, end: at + whole.length };
}

function isOperator(text: string | undefined): text is Operator {
  return text !== undefined && [':', '>', '>=', '<', '<=', '='].includes(text);
}

function valuesAt(text: string, begin: number): { readonly values: readonly Value[]; readonly end: number } | Mistake {
  const values: Value[] = [];
  for (let at = begin; ;) {
    const value = valueAt(text, at);
    if ('message' in value) return value;
    values.push(value);
    if (text[value.end] !== ',') return { values, end: value.end };
    at = value.end + 1;
  }
}

function valueAt(text: string, position: number): (Value & { readonly end: number }) | Mistake {
  if (text[position] === '"') return quotedAt(text, position);
  const plain = matchAt(PLAIN, text, position)?.[0];
  if (plain === undefined) return { position, message: 'a value is missing here' };
  return { text: plain, quoted: false, position, end: position + plain.length };
}

/** A text in quotes, in which quotes are escaped. */
const QUOTED = /"((?:[^"\\]|\\["\\]|\\(?!["\\]))*)"/y;
const ESCAPE = /\\(["\\])/g;

/** Reads a text in quotes, in which `\"` is a quote and `\\` a backslash. */
function quotedAt(text: string, position: number): (Value & { readonly end: number }) | Mistake {
  const [whole, content = ''] = matchAt(QUOTED, text, position) ?? [];
  if (whole === undefined) return { position, message: 'the quote is not closed' };
  const end = position + whole.length;
  if (/^[^\s,]/.test(text.slice(end, end + 1))) return { position: end, message: 'a space must follow the closing quote' };
  return { text: content.replaceAll(ESCAPE, '$1'), quoted: true, position, end };
}
