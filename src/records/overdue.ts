/** What a bucket should no longer hold by its own rules, as it was when the whole bucket was last compared. */
import { z } from 'zod';
import { countText, sizeText } from '../base/texts.ts';

export const overdueSchema = z.object({
  /** Of the lifecycle rule with the most objects that it should have expired three days before. Absent: there are none, or the rules may not be read. */
  expired: z.object({ rule: z.string(), objects: z.number(), bytes: z.number() }).optional(),
  /** Multipart uploads that are neither completed nor aborted. Absent: there are none, or they may not be listed. `isMore`: the first thousand are counted. */
  uploads: z.object({ count: z.number(), isMore: z.boolean(), oldestMs: z.number() }).optional(),
});
export type Overdue = z.infer<typeof overdueSchema>;

/** A part of a sentence. */
export function expiredText({ rule, objects, bytes }: NonNullable<Overdue['expired']>): string {
  return `${countText(objects, 'object')} (${sizeText(bytes) ?? ''}) should have expired more than 3 days ago by the lifecycle rule ${rule}`;
}
