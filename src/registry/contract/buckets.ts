/** Buckets: connecting, listing and disconnecting them. */
import { readsAll, type Readable } from '../../store/readable.rules.ts';
import { z } from 'zod';
import type { BucketRecord, UnconnectedRecord } from '../../records/bucket.ts';
import { commandOfAct, type BucketStatus } from '../../records/bucket-status.ts';
import {
  activity,
  bucket,
  bucketColumns,
  bucketHints,
  shownBucket,
  unconnectedBucket,
  type Bucket,
  type ShownBucket,
  type UnconnectedBucket,
} from './bucket.ts';
import { ageOfText } from '../../base/texts.ts';
import { columnsOf } from './command.ts';
import { APPLY_ERRORS, BY_HAND, connection, keptHints, keptParts, requestFields } from './connections.ts';
import { AWS_REFUSALS, bodyOf, bucketName, flag, pageOf, textOf, timeOf, timeOfMaybe, yesNo, paging } from './fields.ts';
import type { Row, RowKey } from './row.ts';

const webhook = z.object({
  url: z.string().describe('Where the store posts events. Replace HOST with the receiver as the store sees it.'),
  token: z.string().describe('The secret that the store must send. Tally cannot show it again.'),
});

const addedBucket = bucket.extend({
  webhook: webhook.optional().describe('With the source webhook, if this request made the first token.'),
  connection: connection.optional().describe('How far its parts in AWS exist. Absent: the embedded storage needs none.'),
  changed: z
    .boolean()
    .describe('Whether this request connected the bucket or changed its connection. `connection` says whether it changed AWS.'),
  job_id: z.string().optional().describe('The first re-index, if this request started it.'),
  advice: z
    .string()
    .optional()
    .describe('What to do next, if `enrich` asks for more than before: the command that completes existing documents.'),
});
export type AddedBucket = z.infer<typeof addedBucket>;

export const addBucketBody = bodyOf({
  bucket: bucketName,
  ...requestFields,
  reindex: yesNo
    .exactOptional()
    .describe(
      "Whether to index the bucket's existing objects. Default: true. If false, the new bucket's gap stays open until you request a re-index.",
    ),
  plan: textOf(64, 1)
    .exactOptional()
    .describe("The `token` of a plan. Without it, Tally connects the bucket only if that touches no one else's resources."),
  switch_on_eventbridge: yesNo
    .exactOptional()
    .describe("Whether to agree, without a plan, that all of the bucket's events will also go to EventBridge. Default: false."),
  wired_by_hand: yesNo.exactOptional().describe(BY_HAND),
}).describe('The bucket. If it is already connected, omitted fields stay as they are.');
export type AddBucketRequest = z.output<typeof addBucketBody>;

const removedBucket = z.object({
  bucket: z.string(),
  kept: keptParts,
});

const params = z.object({ bucket: bucketName });

/** A webhook as commands show it. */
export const webhookFields = { url: 'url', token: 'token' } as const;

/** How a store sends its token, which differs from store to store. */
export function webhookHints(): readonly string[] {
  return [
    'Tally cannot show the token again. Give it to the store as a bearer token or password, or append /TOKEN to the URL if the store can set only a URL.',
  ];
}

export const bucketRows = {
  'GET /v1/buckets': {
    operation: 'listBuckets',
    summary: 'Lists the connected buckets, and unconnected ones whose events arrive.',
    scope: 'read',
    query: z.strictObject(paging),
    answer: pageOf(shownBucket).extend({
      unconnected: z
        .array(unconnectedBucket)
        .readonly()
        .describe('Unconnected buckets whose events arrive: at most 1,000, and only on the first page.'),
      activity: activity.optional().describe('Only on the first page, and for administrators.'),
    }),
    tool: {
      name: 'list_buckets',
      title: 'List buckets',
      description:
        'Lists the connected buckets that you can read, each with how far its index can be relied on, and unconnected buckets whose events arrive. Objects in other buckets are never found.',
    },
    example: { query: { limit: 100 } },
    cli: {
      words: 'bucket list',
      columns: bucketColumns,
      also: {
        unconnected: columnsOf<UnconnectedBucket>({
          'NOT CONNECTED': 'bucket',
          EVENTS: 'count',
          FIRST: (seen, nowMs) => ageOfText(seen.first_seen_at, nowMs),
          LAST: (seen, nowMs) => ageOfText(seen.last_seen_at, nowMs),
        }),
      },
      none: 'No bucket is connected. To connect one: `tally bucket add NAME`',
      hints: bucketHints,
      examples: ['tally bucket list'],
    },
  },
  'POST /v1/buckets': {
    operation: 'addBucket',
    summary: 'Connects a bucket, or changes its connection.',
    description:
      'Tally creates what the bucket needs in AWS, for at most 20 s per request: while `connection` has the state `applying`, send the request again after its `retry_after_ms`. You can repeat the request after any failure; it writes nothing that already exists. If Tally refuses the request, it stores nothing. The request also starts a first re-index, which indexes existing objects. If the bucket is already connected, the request applies the given changes and reads region and versioning again, but starts no re-index. A change of source or topic opens a gap, and the earlier parts stay until the new ones are proven.',
    scope: 'admin',
    body: addBucketBody,
    answer: addedBucket,
    status: 201,
    errors: ['object.denied', 'state.conflict', 'audit.unavailable', ...APPLY_ERRORS],
    example: { body: { bucket: 'photos', source: 'notification' } },
  },
  'POST /v1/buckets/{bucket}/token': {
    operation: 'rotateToken',
    summary: "Creates a token for a bucket's webhook.",
    description:
      'The previous token stays valid, so that the store can keep posting until you give it the new one; older ones end. If a token has leaked, rotate twice.',
    scope: 'admin',
    params,
    answer: webhook.extend({ bucket: z.string() }),
    status: 201,
    errors: ['bucket.not-connected', 'connect.blocked', 'audit.unavailable'],
    example: { params: { bucket: 'photos' } },
    cli: {
      words: 'bucket rotate-token <bucket>',
      columns: columnsOf<z.infer<typeof webhook>>(webhookFields),
      hints: webhookHints,
      examples: ['tally bucket rotate-token photos'],
    },
  },
  'GET /v1/buckets/{bucket}': {
    operation: 'getBucket',
    summary: 'Shows one connected bucket.',
    scope: 'read',
    params,
    answer: shownBucket,
    tool: {
      name: 'index_agreement',
      title: 'Check the agreement of an index',
      description:
        "Says how far a bucket's index can be relied on: as of when it agrees with S3, how far events are behind, and which parts may lack changes.",
    },
    errors: ['bucket.not-connected'],
    example: { params: { bucket: 'photos' } },
  },
  'DELETE /v1/buckets/{bucket}': {
    operation: 'removeBucket',
    summary: 'Disconnects a bucket and deletes its documents from the index.',
    description:
      'Tally first removes what it created in AWS for the bucket. It never touches the bucket itself or its objects. It cancels a running re-index of the bucket. You can repeat the request after any failure.',
    scope: 'admin',
    params,
    query: z.strictObject({
      keep_aws: flag.exactOptional().describe('Whether to keep what Tally created in AWS. Default: false.'),
    }),
    answer: removedBucket,
    errors: ['bucket.not-connected', ...AWS_REFUSALS, 'connect.busy', 'connect.removing', 'connect.changed-meanwhile', 'audit.unavailable'],
    example: { params: { bucket: 'photos' } },
    cli: {
      words: 'bucket remove <bucket>',
      confirm: ({ bucket: name, keep_aws: keepsAws }) =>
        `This deletes all documents of ${String(name)} from the index${keepsAws === 'true' ? '' : ', and removes what Tally created for it in AWS'}`,
      text: ({ bucket: name }: { readonly bucket: string }) => `${name} is disconnected, and its documents are deleted from the index.`,
      hints: keptHints,
      examples: ['tally bucket remove photos --yes'],
    },
  },
} as const satisfies Record<RowKey, Row>;

export type BucketsRequest = z.output<(typeof bucketRows)['GET /v1/buckets']['query']>;

/** Converts a stored bucket to its form in the API. */
export function bucketView(record: BucketRecord, status: BucketStatus): Bucket {
  const { versioning, lifecycle, connectionCheck } = record;
  return {
    bucket: record.bucket,
    region: record.region,
    source: record.source,
    topic_arn: record.topicArn,
    account: record.account,
    versioning: { status: versioning.status },
    enrich: record.enrich,
    status: statusView(status, record.bucket),
    gaps: status.gaps,
    created_at: timeOf(record.createdAtMs),
    created_by: record.createdBy,
    checked_at: timeOf(record.checkedAtMs),
    last_event_at: timeOfMaybe(record.lastEventAtMs),
    last_compared_at: timeOfMaybe(record.lastComparedAtMs),
    wiring: connectionCheck && {
      state: connectionCheck.state,
      since: timeOf(connectionCheck.sinceMs),
      checked_at: timeOf(connectionCheck.atMs),
      findings: connectionCheck.findings,
    },
    lifecycle: lifecycle && { checked_at: timeOf(lifecycle.checkedAtMs), rules: lifecycle.rules, expiring: lifecycle.expiring },
  };
}

/**
 * A bucket as readers, who aren't administrators, see it: how far its index can be relied on. The times of the last event and of the last
 * full comparison concern keys of the whole bucket.
 */
export function readerView(record: BucketRecord, status: BucketStatus, readable: Readable): ShownBucket {
  const { bucket: name, last_event_at, last_compared_at, status: shown, gaps } = bucketView(record, status);
  const { act: _, ...sentence } = shown;
  const ofWhole = readsAll(readable, { bucket: name, prefix: '' }) ? { last_event_at, last_compared_at } : {};
  return { bucket: name, status: sentence, gaps, ...ofWhole };
}

/** What to do about documents from before the bucket had this enrichment. */
export function fillAdvice({ bucket: name, enrich }: Pick<BucketRecord, 'bucket' | 'enrich'>): string {
  return `existing documents lack what enrich ${enrich} asks for; to add it, run \`tally reindex ${name} --fill\``;
}

/** Converts a status to its form in the API. */
export function statusView(
  { state, severity, sentence, sinceMs, act, jobId, differing }: Omit<BucketStatus, 'gaps'>,
  name: string,
): Bucket['status'] {
  return {
    state,
    severity,
    sentence,
    since: timeOfMaybe(sinceMs),
    act: act && { kind: act, command: commandOfAct(act, name, jobId), job_id: jobId },
    differing,
  };
}

/** Converts an unconnected bucket's record to its form in the API. */
export function unconnectedView({ bucket: name, count: events, firstSeenMs, lastSeenMs }: UnconnectedRecord): UnconnectedBucket {
  return { bucket: name, count: events, first_seen_at: timeOf(firstSeenMs), last_seen_at: timeOf(lastSeenMs) };
}
