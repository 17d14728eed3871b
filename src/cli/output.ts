/** How commands print: tables and fields for people, JSON for programs. Text from outside reaches a terminal only escaped. */
import { z } from 'zod';
import type { Column, Columns, RowCommand } from '../registry/contract/command.ts';
import { printable, UNPRINTABLE } from '../base/texts.ts';

/** Returns JSON with every character escaped that {@link printable} escapes, on several lines unless `compact`. */
export function jsonText(value: unknown, layout: 'pretty' | 'compact' = 'pretty'): string {
  const text = JSON.stringify(value, undefined, layout === 'pretty' ? 2 : 0);
  // apart from the layout's line ends, only strings can contain them, so the JSON means the same
  return text.replaceAll(UNPRINTABLE, (character) => (character === '\n' ? character : escapesOf(character)));
}

function escapesOf(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

export type Cell = string | number | undefined;

/** Formats a table with aligned columns and headings in capitals. An absent cell is `-`. */
export function tableText(headings: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const lines = [headings.map((heading) => heading.toUpperCase()), ...rows.map((row) => row.map(cellText))];
  const widths = headings.map((_, column) => lines.reduce((widest, line) => Math.max(widest, widthOf(line[column] ?? '')), 0));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Formats one `name  value` line for each field that has a value. */
export function fieldsText(fields: Readonly<Record<string, Cell>>): string {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined);
  const width = known.reduce((widest, [name]) => Math.max(widest, name.length), 0);
  return known.map(([name, value]) => `${name.padEnd(width)}  ${cellText(value)}`).join('\n');
}

/** Escapes control characters in each line of a text. */
export function linesText(text: string): string {
  return text
    .split('\n')
    .map((line) => printable(line))
    .join('\n');
}

function cellText(cell: Cell): string {
  return cell === undefined ? '-' : printable(String(cell));
}

/** A cell's width in code points. Wide characters are rare in keys, and a slightly misaligned table does no harm. */
function widthOf(text: string): number {
  return Array.from(text).length;
}

/** The fields of any value; none if it has none. */
export const recordIn = z.record(z.string(), z.unknown()).catch({});

/** An answer in its command's columns, and below it its fields in theirs. */
export function answerText({ columns = {}, also = {} }: Pick<RowCommand, 'columns' | 'also'>, answer: unknown, nowMs: number): string {
  const fields = recordIn.parse(answer);
  const more = Object.entries(also).map(([name, ofField]) => (name in fields ? blockText(ofField, fields[name], nowMs) : ''));
  return joinedText([blockText(columns, fields['items'] ?? answer, nowMs), ...more]);
}

/** The non-empty blocks, with an empty line between them. */
export function joinedText(blocks: readonly string[]): string {
  return blocks.filter((block) => block !== '').join('\n\n');
}

/** Items as a table; anything else as one line for each field. */
function blockText(columns: Columns, shown: unknown, nowMs: number): string {
  if (!Array.isArray(shown)) return fieldsText(cellsOf(columns, shown, nowMs));
  const rows = shown.map((item) => cellsOf(columns, item, nowMs));
  return rows[0] === undefined ? '' : tableText(Object.keys(rows[0]), rows.map(Object.values));
}

function cellsOf(columns: Columns, item: unknown, nowMs: number): Readonly<Record<string, Cell>> {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, cellOf(column, item, nowMs)]));
}

function cellOf(column: Column, item: unknown, nowMs: number): Cell {
  if (typeof column === 'function') return column(item, nowMs);
  const value = recordIn.parse(item)[column];
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}
