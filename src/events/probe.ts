/** A probe: a message that Tally publishes through its own topic. Its arrival proves that the topic delivers to the queue, policies and KMS keys included. */
import { z } from 'zod';
import type { JsonObject } from './fields.ts';

const probeSchema = z.object({ topicArn: z.string(), sentAtMs: z.number() });
export type Probe = z.infer<typeof probeSchema>;

/** The message of a probe. */
export function probeText(probe: Probe): string {
  return JSON.stringify({ tallyProbe: probe });
}

/** The probe that a body contains; undefined if it contains none. */
export function probeIn({ tallyProbe }: JsonObject): Probe | undefined {
  return tallyProbe === undefined ? undefined : probeSchema.safeParse(tallyProbe).data;
}
