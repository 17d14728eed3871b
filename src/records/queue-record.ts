/** What Tally remembers about one queue, so that all workers together report a loss only once. */
import { createHash } from 'node:crypto';
import { z } from 'zod';

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
