import { z } from 'zod';

/** An open circuit that a worker has seen, as stored. */
export const circuitRecordSchema = z.object({
  level: z.enum(['cluster', 'index', 'endpoint', 'bucket', 'enrichment']),
  /** The bucket, or the region of an endpoint. */
  name: z.string(),
  code: z.string(),
  reason: z.string(),
  /** When it opened, as far as the workers that stored it know. */
  sinceMs: z.number(),
  /** When a worker last saw it open. */
  seenAtMs: z.number(),
});
export type CircuitRecord = z.infer<typeof circuitRecordSchema>;
