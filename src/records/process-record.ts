/** What one process stores about itself for all others: what keeps events from the index, and from which queues it receives. */
import { z } from 'zod';

/** Something that keeps events of some buckets from the index. */
const troubleSchema = z.object({
  /** `hidden`: messages that a process put back wait for their next receive. `queue`: a queue cannot be received from. For the others see circuits.ts. */
  level: z.enum(['cluster', 'index', 'endpoint', 'bucket', 'enrichment', 'queue', 'hidden']),
  /** The bucket, the region of an endpoint, or the URL of a queue; empty for the cluster. */
  name: z.string(),
  code: z.string(),
  reason: z.string(),
  sinceMs: z.number(),
  /** Of a queue: the other bucket queues. */
  otherQueues: z.array(z.string()).optional(),
});
export type Trouble = z.infer<typeof troubleSchema>;

/** How soon a message that is visible again is received and settled, by any process. */
export const SETTLED_MS = 30_000;

/** A bucket's messages that the process has put back because they could not be served. */
const hiddenSchema = z.object({
  bucket: z.string(),
  code: z.string(),
  sinceMs: z.number(),
  /** How long after the record was stored the last of them is received again. */
  leftMs: z.number(),
});
export type Hidden = z.infer<typeof hiddenSchema>;

export const processRecordSchema = z.object({
  worker: z.string(),
  /** Stored again every 15 s, so if a record stays the same for a minute, its process has ended. */
  seenAtMs: z.number(),
  /** The URLs of the bucket queues from which it receives. */
  receives: z.array(z.string()),
  troubles: z.array(troubleSchema),
  hidden: z.array(hiddenSchema),
});
export type ProcessRecord = z.infer<typeof processRecordSchema>;
