import { z } from 'zod';

/** An open circuit that a worker has seen, or a bucket queue from which no worker receives, as stored. */
export const circuitRecordSchema = z.object({
  level: z.enum(['cluster', 'index', 'endpoint', 'bucket', 'enrichment', 'queue']),
  /** The bucket, the region of an endpoint, or the URL of a queue. */
  name: z.string(),
  code: z.string(),
  reason: z.string(),
  /** When it opened, as far as the workers that stored it know. */
  sinceMs: z.number(),
  /** When a worker last saw it open. */
  seenAtMs: z.number(),
  /** Of a queue: the other bucket queues. */
  otherQueues: z.array(z.string()).optional(),
});
export type CircuitRecord = z.infer<typeof circuitRecordSchema>;
