/** What one process knows about itself, as it stores it for all: what keeps events from the index there, and from where it receives. */
import { z } from 'zod';

/** What keeps events of some buckets from the index. */
const troubleSchema = z.object({
  /** `hidden`: messages that a process put back wait for their next receive. Of the others see circuits.ts. */
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

/** The messages of a bucket that the process has put back because they could not be served. */
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
  /** Stored again every 15 s, so that a record that stays the same for a minute is of a process that has ended. */
  seenAtMs: z.number(),
  /** The URLs of the bucket queues that it receives from. */
  receives: z.array(z.string()),
  troubles: z.array(troubleSchema),
  hidden: z.array(hiddenSchema),
});
export type ProcessRecord = z.infer<typeof processRecordSchema>;
