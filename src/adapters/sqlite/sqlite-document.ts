import { z } from 'zod';
import { textsSchema, type ObjectDocument } from '../../domain/document.ts';

const text = z.string().exactOptional();
const texts = textsSchema.exactOptional();

const documentSchema = z.object({
  bucket: z.string(),
  key: z.string(),
  name: text,
  extension: text,
  size: z.number().exactOptional(),
  etag: text,
  version_id: text,
  last_modified: text,
  last_modified_exact: z.boolean().exactOptional(),
  storage_class: text,
  content_type: text,
  user_metadata: texts,
  tags: texts,
  expires_at: text,
  deleted: z.boolean(),
  deleted_at: text,
  clock: z.number(),
  settled: z.boolean(),
  source: z.enum(['native', 'eventbridge', 'routed', 'listing', 'check']),
  event_name: text,
  event_time: text,
  indexed_at: z.string(),
}) satisfies z.ZodType<ObjectDocument>;

const rowSchema = z.object({ document: z.string() });

/** The document of a row that holds it as JSON in the column `document`. */
export function documentOfRow(row: unknown): ObjectDocument {
  return documentSchema.parse(JSON.parse(rowSchema.parse(row).document));
}
