/** What Tally remembers about the last probe through one of its topics (src/connect/probe.ts). */
import { z } from 'zod';

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
