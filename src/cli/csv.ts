/** Results as CSV (RFC 4180, lines end with a line feed). Tags and user metadata are JSON. */
import { printable } from '../base/texts.ts';
import type { ObjectDocument } from '../ordering/document.ts';

const COLUMNS = [
  'bucket',
  'key',
  'size',
  'last_modified',
  'storage_class',
  'etag',
  'content_type',
  'version_id',
  'deleted_at',
  'tags',
  'user_metadata',
] as const satisfies readonly (keyof ObjectDocument)[];

export const CSV_HEADING = COLUMNS.join(',');

/** Spreadsheets compute a cell that begins with one of these; some also accept the wide forms. */
const FORMULA = /^[=+\-@\uff1d\uff0b\uff0d\uff20]/;

/** One result as a line. Characters on which a terminal would act are escaped, and a cell that a spreadsheet would compute gets an apostrophe in front. */
export function csvLine(document: ObjectDocument): string {
  return COLUMNS.map((column) => cellOf(document[column])).join(',');
}

function cellOf(value: string | number | Readonly<Record<string, string>> | undefined): string {
  if (value === undefined) return '';
  const plain = typeof value === 'object' ? JSON.stringify(value) : String(value);
  const text = typeof value === 'number' ? plain : safe(plain);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function safe(text: string): string {
  const shown = printable(text);
  return FORMULA.test(shown) ? `'${shown}` : shown;
}
