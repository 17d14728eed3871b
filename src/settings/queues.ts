/** The settings of the SQS queues. */
import { z } from 'zod';
import { itemsOf } from './fields.ts';
import { queueUrl } from './urls.ts';

export const queueSettings = {
  TALLY_QUEUE_URL: z
    .string()
    .optional()
    .transform((text) => itemsOf(text ?? ''))
    .pipe(z.array(queueUrl).max(10, 'must name at most 10 queues'))
    .describe(
      'The URL of the bucket queue, which is the SQS queue that receives the events of all buckets. Up to ten URLs can be given, separated by commas. The role ingest needs at least one.',
    ),
  TALLY_WORK_QUEUE_URL: queueUrl
    .optional()
    .describe(
      'The URL of the work queue, an SQS queue for re-index tasks that nothing else uses. Without it re-index jobs stay queued and gaps stay open.',
    ),
  TALLY_DEAD_LETTER_QUEUE_URL: queueUrl
    .optional()
    .describe(
      'The URL of the dead-letter queue, to which Tally sends messages that can never succeed, together with the reason. By default it is the target of the redrive policy of the bucket queue that the message came from. Letters that SQS moves are found in all redrive targets.',
    ),
};

type QueueSettings = z.output<z.ZodObject<typeof queueSettings>>;

/** The mistakes in how the queue settings are combined. Messages that are not tasks are deleted from the work queue, so bucket events sent to it would be lost. */
export function queueMistakes({
  TALLY_WORK_QUEUE_URL: work,
  TALLY_QUEUE_URL: bucket,
  TALLY_DEAD_LETTER_QUEUE_URL: letters,
}: QueueSettings): readonly string[] {
  if (work === undefined || !(bucket.includes(work) || work === letters)) return [];
  return ['TALLY_WORK_QUEUE_URL: must be a separate queue, neither a bucket queue nor the dead-letter queue'];
}
