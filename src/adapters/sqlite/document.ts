import { z } from 'zod';
import { objectDocumentSchema, type ObjectDocument } from '../../domain/documents/document.ts';
import type { ScannedDocument } from '../../pipeline/ports/object-index.ts';

const rowSchema = z.object({ document: z.string() });

/** The document of a row that holds it as JSON in the column `document`. */
export function documentOfRow(row: unknown): ObjectDocument {
  return objectDocumentSchema.parse(JSON.parse(rowSchema.parse(row).document));
}

const scannedSchema = objectDocumentSchema.pick({
  key: true,
  size: true,
  etag: true,
  last_modified: true,
  last_modified_exact: true,
  storage_class: true,
  clock: true,
  settled: true,
}) satisfies z.ZodType<ScannedDocument>;

/** What a scan tells of the document of such a row. */
export function scannedOfRow(row: unknown): ScannedDocument {
  return scannedSchema.parse(JSON.parse(rowSchema.parse(row).document));
}
