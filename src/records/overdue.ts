/** What a bucket should no longer hold by its own rules, as it was when the whole bucket was last compared. */
import { z } from 'zod';
import { countText, sizeText } from '../base/texts.ts';

const count = z.int().min(0);

export const overdueSchema = z
  .object({
    expired: z
      .object({ rule: z.string(), objects: count, bytes: z.number().min(0) })
      .optional()
      .describe('What the lifecycle rule that has left the most should have expired more than three days ago.'),
    uploads: z
      .object({
        count,
        is_more: z.boolean().describe('Only the first thousand are counted.'),
        oldest_at: z.string().meta({ format: 'date-time' }),
      })
      .optional()
      .describe('Multipart uploads that were neither completed nor aborted.'),
  })
  .describe(
    'What the bucket should no longer hold, where Tally may read its lifecycle rules and list its uploads. Only for jobs that compared the whole bucket.',
  );
export type Overdue = z.infer<typeof overdueSchema>;

/** A part of a sentence. */
export function expiredText({ rule, objects, bytes }: NonNullable<Overdue['expired']>): string {
  return `${countText(objects, 'object')} (${sizeText(bytes) ?? ''}) should have expired more than 3 days ago by the lifecycle rule ${rule}`;
}
