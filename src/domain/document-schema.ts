import { z } from 'zod';
import type { ObjectDocument } from './document.ts';

const text = z.string().exactOptional();
const texts = z.record(z.string(), z.string()).exactOptional();

/** A document as stores keep it and the control plane answers it. */
export const objectDocumentSchema = z.object({
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
