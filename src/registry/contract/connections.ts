/** Connections: what Tally creates in AWS so that a bucket's events reach the bucket queue. */
import { z } from 'zod';
import { bucketSources, connectionStates, enrichModes, type BucketRecord } from '../../records/bucket.ts';
import { findingSchema, severities, statusOf, type Finding } from '../../connect/finding.rules.ts';
import { plannedChangeSchema, touchedKinds, touchedText, type Plan } from '../../connect/plan.rules.ts';
import { shellWord } from '../../base/commands.ts';
import { AWS_REFUSALS, bucketName, flag, must, oneOf, yesNo } from './fields.ts';
import type { Row, RowKey } from './row.ts';

const TOPIC_ARN = /^arn:aws[a-z0-9-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?$/;

/** What a bucket should have in AWS, in a query and in a body. */
export const requestFields = {
  source: oneOf(bucketSources).exactOptional().describe('How its events reach the bucket queue. Default: as stored, else notification.'),
  topic_arn: z
    .string(must('must be the ARN of an SNS topic'))
    .regex(TOPIC_ARN, 'must be the ARN of an SNS topic')
    .exactOptional()
    .describe(
      "With the source topic: the SNS topic that receives the bucket's events. With the source routed: your own topic for the EventBridge rule to publish to, instead of Tally's. Default: as stored.",
    ),
  enrich: oneOf(enrichModes)
    .exactOptional()
    .describe('What Tally reads about each object in addition to its events. Default: as stored, else none.'),
  bucket_account: z
    .string(must('must be 12 digits'))
    .regex(/^\d{12}$/, 'must be 12 digits')
    .exactOptional()
    .describe(
      "The bucket's account. It can differ from the bucket queue's account only with the source topic. Default: as stored, else the bucket queue's account.",
    ),
};

export const BY_HAND =
  'Whether a person wires the bucket: Tally leaves the notification, or the rule with its transformer and the trail, to them, and creates only the subscription and the policy statement that it needs. Default: as stored, else false.';

const touched = z
  .object({
    kind: z.enum(touchedKinds),
    arn: z.string().describe('The ARN of the resource.'),
    text: z.string().describe('The same, for people to read.'),
    before: z.unknown().optional().describe('The current state.'),
    after: z.unknown().optional().describe('The new state, or what is added.'),
  })
  .meta({ id: 'Touched', description: 'A resource of another owner that a plan touches.' });

export const plan = z
  .object({
    bucket: z.string(),
    region: z.string(),
    source: z.enum(bucketSources),
    topic_arn: z.string().optional(),
    enrich: z.enum(enrichModes),
    account: z.string().describe("The queues' account."),
    bucket_account: z.string().describe('The account that must own the bucket.'),
    installation: z.string().describe('The name of this installation, which identifies its parts.'),
    connected: z.boolean().describe('Whether Tally has a record of the bucket. An apply needs one; adding the bucket creates it.'),
    state: z
      .enum(['none', ...connectionStates])
      .describe('The stored state of the connection. `none`: Tally has created nothing for the bucket.'),
    token: z.string().describe("Identifies the request together with everything in AWS that is not Tally's. Pass it to an apply."),
    changes: z.array(plannedChangeSchema).readonly().describe('What an apply writes, in this order.'),
    foreign: z
      .array(touched)
      .readonly()
      .describe("Other owners' resources that the changes touch. If there are any, an apply needs the token."),
    findings: z.array(findingSchema).readonly(),
  })
  .meta({ id: 'Plan', description: 'What an apply would write in AWS, and what blocks it. Nothing has been written.' });
export type PlanView = z.infer<typeof plan>;

/** What a removal left in AWS. */
export const keptParts = z
  .array(z.object({ name: z.string(), reason: z.string() }))
  .readonly()
  .describe('Parts that Tally left in AWS, and why.');

export const connection = z
  .object({
    bucket: z.string(),
    state: z.enum(connectionStates),
    source: z.enum(bucketSources).optional(),
    waiting_for: z.string().optional().describe('While `applying`: what the next request waits for.'),
    retry_after_ms: z.int().min(0).optional().describe('While `applying`: when to send the request again.'),
    changed: z
      .boolean()
      .optional()
      .describe(
        'Once `applied`: whether this request, or an earlier unfinished one, changed anything. False: everything was already in place.',
      ),
  })
  .meta({ id: 'Connection', description: "How far the bucket's parts in AWS exist." });
export type ConnectionView = z.infer<typeof connection>;

const diagnosis = z
  .object({
    bucket: z.string(),
    status: z.enum(['ok', ...severities]).describe('The worst severity of the findings.'),
    findings: z.array(findingSchema).readonly(),
  })
  .meta({ id: 'Diagnosis', description: 'What the connection checks found.' });
export type Diagnosis = z.infer<typeof diagnosis>;

/** What a removal left there, as commands report it. */
export function keptHints({ kept = [] }: { readonly kept?: z.infer<typeof keptParts> | undefined }): readonly string[] {
  return kept.map(({ name, reason }) => `Left in AWS: ${name}: ${reason}`);
}

/** A finding as people read it. */
export function findingText({ code, severity, what, why, fix }: Finding): string {
  return `${severity}: ${what} (${code})\n  why  ${why}\n  do   ${fix}`;
}

const params = z.object({ bucket: bucketName });
const PHOTOS = { params: { bucket: 'photos' } };
const AWS_ERRORS = [
  'connect.embedded',
  'connect.blocked',
  'connect.queue-missing',
  ...AWS_REFUSALS,
  'bucket.missing',
  's3.unavailable',
  's3.throttled',
  's3.credentials',
] as const;
const WRITE_ERRORS = [
  'connect.overlap',
  'connect.unknown-configuration',
  'connect.changed-meanwhile',
  'connect.destination',
  'connect.busy',
  'connect.removing',
] as const;

/** The errors of whatever makes a bucket's parts. */
export const APPLY_ERRORS = [...AWS_ERRORS, ...WRITE_ERRORS, 'connect.plan-needed', 'connect.plan-outdated', 'connect.paused'] as const;

export const connectionRows = {
  'GET /v1/buckets/{bucket}/plan': {
    operation: 'planBucket',
    summary: 'Shows what an apply would write in AWS for the bucket.',
    description: 'This only reads. The bucket need not be connected.',
    scope: 'admin',
    params,
    query: z.strictObject({ ...requestFields, wired_by_hand: flag.exactOptional().describe(BY_HAND) }),
    answer: plan,
    errors: AWS_ERRORS,
    example: { ...PHOTOS, query: { source: 'notification' } },
  },
  'PATCH /v1/buckets/{bucket}/notification': {
    operation: 'changeNotification',
    summary: "Removes the bucket's notification temporarily, or restores it.",
    description:
      'Use this while an overlapping notification must exist for a short time. Events in the meantime are lost, so a re-index follows. Only this operation restores the notification. While the response has the state `applying`, send the request again.',
    scope: 'admin',
    params,
    body: z.strictObject(
      { paused: yesNo.describe('`true` removes the notification, `false` restores it.') },
      must('must be {"paused": true} or {"paused": false}'),
    ),
    answer: connection,
    errors: [...AWS_ERRORS, ...WRITE_ERRORS, 'bucket.not-connected', 'audit.unavailable'],
    example: { ...PHOTOS, body: { paused: true } },
    cli: [
      {
        words: 'bucket pause <bucket>',
        summary: "Removes a bucket's notification temporarily.",
        description:
          'Use this while an overlapping notification must exist for a short time. Events in the meantime are lost, so a re-index follows. Only `tally bucket resume NAME` restores the notification.',
        fixed: { paused: true },
        text: ({ bucket }: ConnectionView) => `Notification removed from ${bucket}. Its events do not arrive.`,
        hints: ({ bucket }: ConnectionView) => [`To restore it: \`tally bucket resume ${shellWord(bucket)}\``],
        examples: ['tally bucket pause photos'],
      },
      {
        words: 'bucket resume <bucket>',
        summary: "Restores a bucket's notification.",
        fixed: { paused: false },
        text: ({ bucket }: ConnectionView) => `Notification restored on ${bucket}.`,
        examples: ['tally bucket resume photos'],
      },
    ],
  },
  'GET /v1/buckets/{bucket}/doctor': {
    operation: 'diagnoseBucket',
    summary: "Checks the path of the bucket's events in AWS.",
    description: 'This only reads. Anything that it may not read becomes a finding with the severity `unknown`.',
    scope: 'admin',
    params,
    answer: diagnosis,
    errors: ['bucket.not-connected', 'connect.embedded'],
    example: PHOTOS,
    cli: {
      words: 'doctor <bucket>',
      description: 'This only reads. Each finding has a command or a statement to paste. The exit code is 1 if there are findings.',
      text: ({ bucket, status, findings }: Diagnosis) => [`${bucket}: ${status}`, ...findings.map(findingText)].join('\n'),
      fails: ({ status }: Diagnosis) => status !== 'ok',
      examples: ['tally doctor photos'],
    },
  },
} as const satisfies Record<RowKey, Row>;

/** Converts a plan, and what is stored of the bucket, to their form in the API. */
export function planView({ spec, changes, foreign, findings, token }: Plan, record: BucketRecord | undefined): PlanView {
  return {
    bucket: spec.bucket,
    region: spec.region,
    source: spec.source,
    topic_arn: spec.topicArn,
    enrich: spec.enrich,
    account: spec.account,
    bucket_account: spec.bucketAccount,
    installation: spec.installation,
    connected: record !== undefined,
    state: record?.connection?.state ?? 'none',
    token,
    changes: changes.map(({ part, action, name, before, after }) => ({ part, action, name, before, after })),
    foreign: foreign.map((each) => ({ ...each, text: touchedText(each) })),
    findings,
  };
}

/** The answer of a check. */
export function diagnosisView(bucket: string, findings: readonly Finding[]): Diagnosis {
  return { bucket, status: statusOf(findings), findings };
}
