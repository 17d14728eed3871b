import { z } from 'zod';
import type { ObjectDocument } from '../../domain/document.ts';
import { objectDocumentSchema } from '../../domain/document-schema.ts';

const rowSchema = z.object({ document: z.string() });

/** The document of a row that holds it as JSON in the column `document`. */
export function documentOfRow(row: unknown): ObjectDocument {
  return objectDocumentSchema.parse(JSON.parse(rowSchema.parse(row).document));
}
