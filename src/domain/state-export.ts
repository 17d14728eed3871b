/**
 * The export of what a store holds and nothing else can give back: a file of JSON lines. The first line is a header, the last one
 * counts the records, so that a file that was cut off is recognised, and every line between them is one record.
 */
import { z } from 'zod';
import { jsonOf } from './json.ts';
import type { StateKind } from './state-kind.ts';

/**
 * The exported kinds, in the order of the file. All others follow from the buckets and from what runs (jobs, gaps, leases), or live
 * for minutes or days; sessions are left out as well, because people log in again. The lists of the users' keys come last: a list that names a key without a record
 * does no harm, and a key that its list lacks would not be shown to its owner.
 */
export const exportedKinds = [
  'bucket',
  'installation',
  'connection',
  'growth',
  'user',
  'appointment',
  'access',
  'api-key',
  'user-keys',
] as const satisfies readonly StateKind[];
export type ExportedKind = (typeof exportedKinds)[number];

export const exportedRecordSchema = z.strictObject({
  id: z.string().min(1),
  kind: z.enum(exportedKinds),
  record: z.record(z.string(), z.unknown()),
});
export type ExportedRecord = z.infer<typeof exportedRecordSchema>;

/** The form of the file. A later form has another number. */
const FORM = 1;
const headerSchema = z.looseObject({ tally_state: z.literal(FORM) });
const endSchema = z.strictObject({ end: z.literal(true), records: z.int().min(0) });

/** The first line of the file. */
export function exportHeader(version: string, exportedAtMs: number): string {
  return JSON.stringify({ tally_state: FORM, version, exported_at: new Date(exportedAtMs).toISOString() });
}

/** The last line of the file. */
export function exportEnd(records: number): string {
  return JSON.stringify({ end: true, records });
}

type ParsedExport = { readonly ok: true; readonly records: readonly ExportedRecord[] } | { readonly ok: false; readonly mistake: string };

/** Parses the text of a whole file. A mistake names the line, and repeats nothing of it, because it may have hashes. */
export function parseExport(text: string): ParsedExport {
  const lines = text.replace(/\n$/, '').split('\n');
  if (!headerSchema.safeParse(jsonOf(lines[0] ?? '')).success) return wrong('it is not an export of `tally state export`');
  const end = endSchema.safeParse(jsonOf(lines.at(-1) ?? ''));
  if (!end.success || end.data.records !== lines.length - 2) return wrong('it was cut off: its last line does not count its records');
  const records: ExportedRecord[] = [];
  const ids = new Set<string>();
  for (const [at, line] of lines.slice(1, -1).entries()) {
    const parsed = exportedRecordSchema.safeParse(jsonOf(line));
    if (!parsed.success) return wrong(`line ${at + 2} is not a record`);
    if (ids.has(parsed.data.id)) return wrong(`line ${at + 2} has the id of an earlier line`);
    ids.add(parsed.data.id);
    records.push(parsed.data);
  }
  return { ok: true, records };
}

function wrong(mistake: string): ParsedExport {
  return { ok: false, mistake };
}
