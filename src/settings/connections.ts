/** The settings of what Tally makes in AWS. */
import { z } from 'zod';
import { BUCKET_NAME } from '../domain/bucket.ts';
import { INSTALLATION } from '../domain/provisioning/names.ts';

export const connectionSettings = {
  TALLY_INSTALLATION: z
    .string()
    .trim()
    .regex(INSTALLATION, 'must be 8 hex digits')
    .optional()
    .describe(
      'The name of this installation: 8 hex digits, with which the names of everything begin that Tally makes in AWS. By default it is made once and stored in the index store. Set it only to continue with the parts of an installation whose store was lost.',
    ),
  TALLY_TRAIL_ARN: z
    .string()
    .trim()
    .regex(/^arn:aws[a-z0-9-]*:cloudtrail:[a-z0-9-]+:\d{12}:trail\/[A-Za-z0-9._-]{3,128}$/, 'must be the ARN of a trail')
    .optional()
    .describe(
      'The ARN of the CloudTrail trail for buckets with the source routed. `tally bucket apply` adds the selector of a bucket to it, beside those that it has. Set it only for a trail that Tally may change.',
    ),
  TALLY_TRAIL_BUCKET: z
    .string()
    .trim()
    .regex(BUCKET_NAME, 'must be the name of a bucket')
    .optional()
    .describe(
      'The bucket of the logs of a trail that belongs to others. Tally reads which trails deliver to it and checks them, and says exactly which selector must be added, but never changes them. It has no effect if TALLY_TRAIL_ARN is set.',
    ),
};
