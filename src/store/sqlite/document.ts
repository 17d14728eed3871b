import { z } from 'zod';
import { objectDocumentSchema, type ObjectDocument } from '../../ordering/document.ts';
import { scannedDocumentSchema, type ScannedDocument } from '../object-index.ts';

const rowSchema = z.object({ document: z.string() });

/** A row by its bucket (?1) and key (?2): a search of the index for a live object, and one for a tombstone. IN (0, 1) would take twice as long. */
function byKeySql(columns: string): string {
  return [0, 1]
    .map((deleted) => `SELECT ${columns} FROM objects WHERE bucket = ?1 AND deleted = ${deleted} AND key = ?2`)
    .join(' UNION ALL ');
}

export const DOCUMENT_BY_KEY = byKeySql('document');
export const HELD_BY_KEY = byKeySql('id, clock, deleted');

/** The document of a row, which is JSON in the column `document`. */
export function documentOfRow(row: unknown): ObjectDocument {
  return objectDocumentSchema.parse(JSON.parse(rowSchema.parse(row).document));
}

/** The fields of a row's document that a scan returns. */
export function scannedOfRow(row: unknown): ScannedDocument {
  return scannedDocumentSchema.parse(JSON.parse(rowSchema.parse(row).document));
}
