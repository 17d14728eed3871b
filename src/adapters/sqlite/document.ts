import { z } from 'zod';
import { objectDocumentSchema, type ObjectDocument } from '../../domain/documents/document.ts';
import { scannedDocumentSchema, type ScannedDocument } from '../../pipeline/ports/object-index.ts';

const rowSchema = z.object({ document: z.string() });

/** The document of a row, which is JSON in the column `document`. */
export function documentOfRow(row: unknown): ObjectDocument {
  return objectDocumentSchema.parse(JSON.parse(rowSchema.parse(row).document));
}

/** The fields of a row's document that a scan returns. */
export function scannedOfRow(row: unknown): ScannedDocument {
  return scannedDocumentSchema.parse(JSON.parse(rowSchema.parse(row).document));
}
