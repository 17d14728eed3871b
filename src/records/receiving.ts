/** What processes store about receiving: each about itself for all others, and what all remember about a queue or about a topic's probe. */
import { z } from 'zod';
import { createHash } from 'node:crypto';

/** Something that keeps events of some buckets from the index. */
const troubleSchema = z.object({
  /** `hidden`: messages that a process put back wait for their next receive. `queue`: a queue cannot be received from. For the others see circuits.ts. */
  level: z.enum(['cluster', 'index', 'endpoint', 'bucket', 'enrichment', 'queue', 'hidden']),
  /** The bucket, the region of an endpoint, or the URL of a queue; empty for the cluster. */
  name: z.string(),
  code: z.string(),
  reason: z.string(),
  sinceMs: z.number(),
  /** Of enrichment: an object for which S3 refused it. */
  key: z.string().exactOptional(),
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

/** What one process stores about itself: what keeps events from the index, and from which queues it receives. */
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

/** What Tally remembers about one queue, so that all workers together report a loss only once. */
export const queueRecordSchema = z.object({
  queueUrl: z.string(),
  /** Of a bucket queue: when a worker last received from it, with or without messages. Stored at most once a minute. */
  receivedAtMs: z.number().optional(),
  /** Of a bucket queue: when gaps were last opened because its messages may have expired. */
  expiredAtMs: z.number().optional(),
  /** Of a dead-letter queue: when its letters were last read, and how many it held then. */
  readAtMs: z.number().optional(),
  letters: z.number().optional(),
  /** Of a dead-letter queue: the letters there that SQS moved and whose gaps are stored, at most as many as one reading shows. */
  moved: z.array(z.string()).optional(),
  /** Of a dead-letter queue: when gaps of all its buckets were last opened, because of letters that name no bucket or cannot be read. */
  allAtMs: z.number().optional(),
});
export type QueueRecord = z.infer<typeof queueRecordSchema>;

/** The id of a queue's record. A URL may be longer than an id. */
export function queueRecordId(queueUrl: string): string {
  return `queue:${createHash('sha256').update(queueUrl).digest('hex').slice(0, 32)}`;
}

/** What Tally remembers about the last probe through one of its topics (src/connect/probe.ts). */
export const probeRecordSchema = z.object({
  topicArn: z.string(),
  /** When the last one was published. */
  sentAtMs: z.number(),
  /** Whether it has reached the bucket queue. */
  hasArrived: z.boolean(),
  /** Whether the one before it never did. */
  isLost: z.boolean(),
});
export type ProbeRecord = z.infer<typeof probeRecordSchema>;
