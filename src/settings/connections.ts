/** The settings of what Tally makes in AWS. */
import { z } from 'zod';
import { BUCKET_NAME } from '../domain/bucket-name.ts';
import { INSTALLATION } from '../domain/provisioning/names.ts';
import { itemsOf } from './fields.ts';

const ROLE_ARN = /^arn:aws[a-z0-9-]*:iam::\d{12}:role\/[\w+=.@/-]{1,512}$/;
/** More accounts than that are a matter of several installations. */
const ROLES_MAX = 20;

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
    .optional()
    .transform((text) => itemsOf(text ?? ''))
    .pipe(z.array(z.string().regex(ROLE_ARN, 'must be the ARN of a role, or several of different accounts, separated by commas')))
    .refine((arns) => new Set(arns.map((arn) => arn.split(':')[4])).size === arns.length, 'must name one role for each account')
    .refine((arns) => arns.length <= ROLES_MAX, `must name ${ROLES_MAX} roles at most`)
    .describe(
      'The ARNs of roles, one for each AWS account, separated by commas; 20 at most. What is in an account is planned, applied, paused, cleaned and removed by its role. A bucket of another account than the queues needs a role there, by which the doctor and the watch read too. In the account of the queues a role is for changes only, so that the role of the process needs only to read, and by default the credentials of the process are used. `tally iam-policy` prints what each role needs.',
    ),
  TALLY_CONNECT_ROLE_EXTERNAL_ID: z
    .string()
    .trim()
    .regex(/^[\w+=,.@:/-]{2,1224}$/, 'must have 2 to 1224 letters, digits and +=,.@:/-_')
    .optional()
    .describe(
      'The external ID that the trust policies of the roles of TALLY_CONNECT_ROLE_ARN demand. It is not a secret. It has no effect without a role.',
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
