/** Connections: what Tally makes in AWS so that the events of a bucket reach the bucket queue. */
import { z } from 'zod';
import { bucketSources, enrichModes } from '../../records/bucket.ts';
import { connectionStates, type ConnectionRecord } from '../../connect/connection.rules.ts';
import { findingSeverities, severities, statusOf, type Finding } from '../../connect/finding.rules.ts';
import { acts, partKinds, touchedKinds, touchedText, type Plan } from '../../connect/plan.rules.ts';
import { shellWord } from '../../base/commands.ts';
import { AWS_REFUSALS, bucketName, must } from './fields.ts';
import type { Row, RowKey } from './row.ts';

const TOPIC_ARN = /^arn:aws[a-z0-9-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?$/;

const oneOf = (values: readonly string[]) => must(`must be one of ${values.join(', ')}`);

/** What a bucket is to have in AWS, in a query and in a body. */
export const requestFields = {
  source: z
    .enum(bucketSources, oneOf(bucketSources))
    .exactOptional()
    .describe('How its events are to reach the bucket queue. Default: as stored, else notification.'),
  topic_arn: z
    .string(must('must be the ARN of an SNS topic'))
    .regex(TOPIC_ARN, 'must be the ARN of an SNS topic')
    .exactOptional()
    .describe(
      'With the source topic: the SNS topic that receives the events of the bucket. With the source routed: your topic that a rule of EventBridge is to publish to, instead of one that Tally makes. Default: as stored.',
    ),
  enrich: z
    .enum(enrichModes, oneOf(enrichModes))
    .exactOptional()
    .describe('What is read of each object besides its events. Default: as stored, else none.'),
  bucket_account: z
    .string(must('must be 12 digits'))
    .regex(/^\d{12}$/, 'must be 12 digits')
    .exactOptional()
    .describe(
      'The account of the bucket: another one than that of the bucket queue only with the source topic. Default: as stored, else that of the bucket queue.',
    ),
};

export const flagText = z.enum(['true', 'false'], must('must be true or false')).exactOptional();

export const BY_HAND =
  'Whether a person has wired the bucket: Tally leaves the notification, or the rule with its transformer and the trail, to them, makes the subscription and the statement that it needs, and believes the first event that arrives by this source. Default: as stored, else false.';

const finding = z
  .object({
    code: z.string().describe('What kind of finding it is; it never changes its meaning.'),
    severity: z
      .enum(findingSeverities)
      .describe(
        '`broken`: events are lost. `degraded`: something is missing or not safe. `unknown`: it could not be read. `note`: nothing is wrong.',
      ),
    what: z.string().describe('What is wrong, with which thing.'),
    why: z.string().describe('Why it matters.'),
    fix: z.string().describe('A command or a statement to paste.'),
    blocks: z.boolean().describe('Whether no apply can heal it.'),
    remedy: z
      .enum(['plan', 'resume'])
      .optional()
      .describe('What does it besides the command: the plan of the bucket, or to resume its notification. Absent: a person.'),
  })
  .meta({ id: 'Finding', description: 'Something that a check of a connection found.' });

const change = z
  .object({
    part: z.enum(partKinds),
    action: z.enum(acts),
    name: z.string().describe('The ARN of what is written to, or the name of the bucket.'),
    before: z.unknown().optional().describe('The document that is there now. Absent: none.'),
    after: z.unknown().optional().describe('The document that is written.'),
  })
  .meta({ id: 'PlannedChange', description: 'One write of a plan.' });

const touched = z
  .object({
    kind: z.enum(touchedKinds),
    arn: z.string().describe('Of what belongs to others.'),
    text: z.string().describe('The same for people.'),
    before: z.unknown().optional().describe('What is there.'),
    after: z.unknown().optional().describe('What it becomes, or gets.'),
  })
  .meta({ id: 'Touched', description: 'What a plan touches of others.' });

export const plan = z
  .object({
    bucket: z.string(),
    region: z.string(),
    source: z.enum(bucketSources),
    topic_arn: z.string().optional(),
    enrich: z.enum(enrichModes),
    account: z.string().describe('The account of the queues.'),
    bucket_account: z.string().describe('The account that must own the bucket.'),
    installation: z.string().describe('The name of this installation, by which its parts are known.'),
    connected: z
      .boolean()
      .describe('Whether Tally has a record of the bucket. An apply needs one, which an operation that adds the bucket makes.'),
    state: z
      .enum(['none', ...connectionStates])
      .describe('What is stored of the connection. `none`: Tally has made nothing for the bucket.'),
    token: z.string().describe('Identifies the request together with everything in AWS that is not of Tally. An apply takes it.'),
    changes: z.array(change).readonly().describe('What an apply writes, in this order.'),
    foreign: z.array(touched).readonly().describe('What of others the changes touch. If there is any, an apply needs the token.'),
    findings: z.array(finding).readonly(),
  })
  .meta({ id: 'Plan', description: 'What an apply would write in AWS, and what stands in its way. Nothing was written.' });
export type PlanView = z.infer<typeof plan>;

/** What a removal has left in AWS. */
export const keptParts = z
  .array(z.object({ name: z.string(), reason: z.string() }))
  .readonly()
  .describe('Parts in AWS that Tally has left there, and why.');

export const connection = z
  .object({
    bucket: z.string(),
    state: z.enum(connectionStates),
    source: z.enum(bucketSources).optional(),
    waiting_for: z.string().optional().describe('While it is `applying`: what the next request waits for.'),
    retry_after_ms: z.int().min(0).optional().describe('While it is `applying`: when to send the request again.'),
    changed: z
      .boolean()
      .optional()
      .describe(
        'Once it is `applied`: whether this request, or an earlier one that did not come so far, made anything. False: everything was as it must be.',
      ),
    unproven: z
      .array(finding)
      .readonly()
      .optional()
      .describe('Once it is `applied`: what keeps its events from being known to arrive, although nothing is left to be made.'),
  })
  .meta({ id: 'Connection', description: 'How far the parts of a bucket in AWS are made.' });
export type ConnectionView = z.infer<typeof connection>;

const diagnosis = z
  .object({
    bucket: z.string(),
    status: z.enum(['ok', ...severities]).describe('The worst severity of the findings.'),
    findings: z.array(finding).readonly(),
  })
  .meta({ id: 'Diagnosis', description: 'What the checks of a connection found.' });
export type Diagnosis = z.infer<typeof diagnosis>;

export const SKIP_VALIDATION = z
  .boolean(must('must be true or false'))
  .exactOptional()
  .describe('Whether S3 is not to check the destinations of the other notifications, of which one is broken. Default: false.');

/** What a removal has left there, as commands say it. */
export function keptHints({ kept = [] }: { readonly kept?: z.infer<typeof keptParts> | undefined }): readonly string[] {
  return kept.map(({ name, reason }) => `Left in AWS: ${name}: ${reason}`);
}

type FindingView = PlanView['findings'][number];

/** A finding as people read it. */
export function findingText({ code, severity, what, why, fix }: FindingView): string {
  return `${severity}: ${what} (${code})\n  why  ${why}\n  do   ${fix}`;
}

/** What keeps the events of an applied bucket from being known to arrive. */
export function unprovenText({ unproven = [] }: ConnectionView): string {
  return unproven.map((each) => findingText(each)).join('\n');
}

const unprovenOf = ({ unproven = [] }: ConnectionView): readonly FindingView[] => unproven;

const params = z.object({ bucket: bucketName });
const PHOTOS = { params: { bucket: 'photos' } };
const AWS_ERRORS = [
  'connect.embedded',
  'connect.no-queue',
  'connect.other-account',
  'connect.partition',
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
  'connect.blocked',
  'connect.changed-meanwhile',
  'connect.destination',
  'connect.busy',
  'connect.removing',
] as const;

/** Of what makes the parts of a bucket. */
export const APPLY_ERRORS = [...AWS_ERRORS, ...WRITE_ERRORS, 'connect.plan-needed', 'connect.plan-outdated', 'connect.paused'] as const;

export const connectionRows = {
  'GET /v1/buckets/{bucket}/plan': {
    operation: 'planBucket',
    summary: 'Says what an apply would write in AWS for the bucket.',
    description: 'It only reads. The bucket need not be connected.',
    scope: 'admin',
    params,
    query: z.strictObject({ ...requestFields, wired_by_hand: flagText.describe(BY_HAND) }),
    answer: plan,
    status: 200,
    errors: AWS_ERRORS,
    example: { ...PHOTOS, query: { source: 'notification' } },
  },
  'PATCH /v1/buckets/{bucket}/notification': {
    operation: 'changeNotification',
    summary: 'Takes away the notification of the bucket for a moment, or makes it again.',
    description:
      'For the moment in which another notification is made that would overlap with it: nothing but this operation restores it. Events of the meantime are lost, so a re-index follows. While the answer has the state `applying`, send the request again.',
    scope: 'admin',
    params,
    body: z.strictObject(
      { paused: z.boolean(must('must be true or false')).describe('`true` takes the notification away, `false` makes it again.') },
      must('must be {"paused": true} or {"paused": false}'),
    ),
    answer: connection,
    status: 200,
    otherStatuses: { 202: 'It is not applied yet: send the request again.' },
    errors: [...AWS_ERRORS, ...WRITE_ERRORS, 'bucket.not-connected', 'audit.unavailable', 'connect.not-applied', 'connect.not-paused'],
    example: { ...PHOTOS, body: { paused: true } },
    cli: [
      {
        words: 'bucket pause <bucket>',
        summary: 'Takes away the notification of a bucket for a moment.',
        description:
          'For the moment in which another notification is made that would overlap with it. Events of the meantime are lost, so a re-index follows. Only `tally bucket resume NAME` restores it.',
        fixed: { paused: true },
        text: ({ bucket }: ConnectionView) => `The notification of ${bucket} is taken away, and no events arrive.`,
        hints: ({ bucket }: ConnectionView) => [`To restore it: \`tally bucket resume ${shellWord(bucket)}\``],
        examples: ['tally bucket pause photos'],
      },
      {
        words: 'bucket resume <bucket>',
        summary: 'Makes the notification of a bucket again that was taken away for a moment.',
        fixed: { paused: false },
        text: ({ bucket }: ConnectionView) => `The notification of ${bucket} is there again.`,
        hints: (done: ConnectionView) => (done.unproven === undefined ? [] : [unprovenText(done)]),
        findings: unprovenOf,
        examples: ['tally bucket resume photos'],
      },
    ],
  },
  'GET /v1/buckets/{bucket}/doctor': {
    operation: 'diagnoseBucket',
    summary: 'Checks the way of the events of the bucket in AWS.',
    description: 'It only reads. What may not be read is a finding of the severity `unknown`.',
    scope: 'admin',
    params,
    answer: diagnosis,
    status: 200,
    errors: ['bucket.not-connected', 'connect.embedded'],
    example: PHOTOS,
  },
} as const satisfies Record<RowKey, Row>;

/** Converts a plan to its form in the API. */
export function planView(
  { spec, changes, foreign, findings, token }: Plan,
  { connected, state }: Pick<PlanView, 'connected' | 'state'>,
): PlanView {
  return {
    bucket: spec.bucket,
    region: spec.region,
    source: spec.source,
    topic_arn: spec.topicArn,
    enrich: spec.enrich,
    account: spec.account,
    bucket_account: spec.bucketAccount,
    installation: spec.installation,
    connected,
    state,
    token,
    changes: changes.map(({ part, action, name, before, after }) => ({ part, action, name, before, after })),
    foreign: foreign.map((each) => ({ ...each, text: touchedText(each) })),
    findings,
  };
}

/** Converts a stored connection to its form in the API. */
export function connectionView({ bucket, state, source }: Pick<ConnectionRecord, 'bucket' | 'state' | 'source'>): ConnectionView {
  return { bucket, state, source };
}

/** The answer of a check. */
export function diagnosisView(bucket: string, findings: readonly Finding[]): Diagnosis {
  return { bucket, status: statusOf(findings), findings };
}
