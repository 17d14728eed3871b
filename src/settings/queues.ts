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
  TALLY_DEAD_LETTER_QUEUE_URL: queueUrl
    .optional()
    .describe(
      'The URL of the dead-letter queue, to which Tally sends messages that can never succeed, together with the reason. By default it is the target of the redrive policy of the bucket queue that the message came from. Letters that SQS moves are found in all redrive targets.',
    ),
};
