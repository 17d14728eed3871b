/** The settings of what Tally makes in AWS. */
import { z } from 'zod';
import { BUCKET_NAME } from '../domain/bucket-name.ts';
import { INSTALLATION } from '../domain/provisioning/names.ts';

export const connectionSettings = {
  TALLY_INSTALLATION: z
    .string()
    .trim()
    .regex(INSTALLATION, 'must be 8 hex digits')
    .optional()
    .describe(
      'The name of this installation: 8 hex digits, with which the names of everything begin that Tally makes in AWS. By default it is made once and stored in the index store. Each registry needs another one: parts with its name that carry the id of another registry are refused.',
    ),
  TALLY_CONNECT_ROLE_ARN: z
    .string()
    .trim()
    .regex(/^arn:aws[a-z0-9-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/, 'must be the ARN of a role')
    .optional()
    .describe(
      'The ARN of a role that is assumed to plan, apply, pause, clean and remove connections, and for nothing else. The role of the process then needs only to read. `tally iam-policy --for connecting` prints what the role needs. By default the credentials of the process are used.',
    ),
  TALLY_CONNECT_ROLE_EXTERNAL_ID: z
    .string()
    .trim()
    .regex(/^[\w+=,.@:/-]{2,1224}$/, 'must have 2 to 1224 letters, digits and +=,.@:/-_')
    .optional()
    .describe(
      'The external ID that the trust policy of TALLY_CONNECT_ROLE_ARN demands. It is not a secret. It has no effect without the role.',
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
