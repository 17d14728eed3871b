/**
 * A bucket's record: where it is, how its events arrive, and what is known about both. Rooms that never import each other meet in
 * stored records like this one:
 *
 *   connecting stores it ──► the data path decides by it ──► jobs raise its floor, and keep what waits for a person ──► its status
 *
 * A record is a schema with pure functions. src/store/stored.ts reads records, and changes them by compare-and-swap. Absent fields are
 * unknown.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { overdueSchema } from './comparison.ts';
import { purgeMarksSchema } from './position.ts';
import { RequestError } from '../base/request-error.ts';

/** How a bucket's events reach the bucket queue. */
export const bucketSources = ['notification', 'topic', 'eventbridge', 'routed', 'webhook'] as const;
export type BucketSource = (typeof bucketSources)[number];

/** Whether the source always reports lifecycle expirations. Audit trails never do, and the configuration of a topic or of a store may leave them out. */
export function reportsExpirations(source: BucketSource): boolean {
  switch (source) {
    case 'notification':
    case 'eventbridge':
      return true;
    case 'topic':
    case 'routed':
    case 'webhook':
      return false;
  }
}

const DAY_MS = 86_400_000;

/** From one scheduled comparison of the bucket to the next; 0: none is scheduled. Stores that post events lose some of them, and nothing shows it. */
export function compareEveryMs({ source }: Pick<BucketRecord, 'source'>, intervalMs: number): number {
  return source === 'webhook' ? Math.min(DAY_MS, intervalMs) : intervalMs;
}

/** What documents get in addition: nothing, a HEAD's fields, or a HEAD's fields and the tags. Each mode includes those before it. */
export const enrichModes = ['none', 'head', 'tags'] as const;
export type EnrichMode = (typeof enrichModes)[number];

/** Whether documents that were complete in the mode `before` lack something in the mode `after`. */
export function asksForMore(before: EnrichMode, after: EnrichMode): boolean {
  return enrichModes.indexOf(after) > enrichModes.indexOf(before);
}

/** Whether the name is that of a directory bucket of S3 Express One Zone: https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-bucket-naming-rules.html */
export function isDirectoryBucket(name: string): boolean {
  return name.endsWith('--x-s3');
}

/** Why Tally cannot follow a directory bucket. */
export const DIRECTORY_BUCKET =
  'is a directory bucket (S3 Express One Zone), which sends no events and lists its keys in no order: Tally cannot follow it';

/** The part of an index or alias name that identifies the bucket: its name if OpenSearch allows it, otherwise `h-` + 32 hex digits of its SHA-256. */
export function bucketSlug(bucket: string): string {
  const plain = /^[a-z0-9.-]{3,63}$/.test(bucket) && !bucket.startsWith('h-');
  return plain ? bucket : `h-${createHash('sha256').update(bucket).digest('hex').slice(0, 32)}`;
}

export const versioningStatuses = ['unknown', 'never', 'enabled', 'suspended'] as const;

/** GetBucketVersioning's latest answer, and its time by S3's clock. The status is `unknown` until it could be read. A delete event states its result only if it is `never`. */
export const versioningSchema = z.object({
  status: z.enum(versioningStatuses),
  /** The answer's Date header minus the request's duration; 0 if unknown. */
  observedAtMs: z.number(),
});
export type Versioning = z.infer<typeof versioningSchema>;

/** What a bucket is to have in AWS. The account is that of the queues and of all parts, and the region that of the bucket. */
const connectionSpecSchema = z.object({
  bucket: z.string(),
  region: z.string(),
  partition: z.string(),
  account: z.string(),
  /** The account that must own the bucket: another one only with the source `topic`. */
  bucketAccount: z.string(),
  installation: z.string(),
  registry: z.string(),
  source: z.enum(bucketSources),
  /** A topic of others: with the source `topic`, and with `routed` if the rule is to send to it instead of to Tally's. */
  topicArn: z.string().exactOptional(),
  enrich: z.enum(enrichModes),
  queueArn: z.string(),
  /** Absent: the bucket queue has no redrive policy. */
  deadLetterArn: z.string().exactOptional(),
  /** A person has wired it: the notification, or the rule with its transformer and the trail, are theirs. */
  byHand: z.boolean().exactOptional(),
  /** With the source `routed`: the trail that Tally may write to. */
  trailArn: z.string().exactOptional(),
  /** Else the bucket of the logs of a trail that Tally does not write to. */
  trailBucket: z.string().exactOptional(),
});
export type ConnectionSpec = Readonly<z.infer<typeof connectionSpecSchema>>;

/** The spec alone, of what holds one. */
export function specOf(from: ConnectionSpec): ConnectionSpec {
  return connectionSpecSchema.parse(from);
}

/** `applied` ⇄ `paused`; `removing` ends with the bucket's record. */
export const connectionStates = ['applying', 'applied', 'paused', 'removing'] as const;

/** The parts in AWS that Tally makes for the bucket: the spec that they are made for, and how far they are. */
const connectionSchema = connectionSpecSchema.extend({
  state: z.enum(connectionStates),
  /** What it was before a change, as far as its parts may be left in AWS. */
  earlier: z.array(connectionSpecSchema).optional(),
  /** What Tally made, or is about to make, where neither name nor tag says it: subscriptions to topics that were named, and trails that got the bucket in a selector. */
  made: z.array(z.string()),
  /** When it came into its state, or AWS was last changed: events may be missing until some minutes later. */
  changedAtMs: z.number(),
});
export type Connection = z.infer<typeof connectionSchema>;

/** What the watch of connections found. `unknown`: the connection could not be read. */
export const watchedStates = ['ok', 'degraded', 'broken', 'unknown'] as const;
export type WatchedState = (typeof watchedStates)[number];

/** What the watch of a bucket's connection found last. */
export const connectionCheckSchema = z.object({
  state: z.enum(watchedStates),
  /** When it looked. */
  atMs: z.number(),
  /** Since when the connection has been in this state. */
  sinceMs: z.number(),
  /** The first of its findings. */
  findings: z.array(z.object({ code: z.string(), what: z.string() })),
  /** Since when events have been lost; absent if they arrive, as far as is known. */
  brokenSinceMs: z.number().optional(),
  /** Tally has verified that the notification configuration sends every created and removed event to the bucket's topic or queue. */
  passesBoth: z.literal(true).optional(),
  /** What prevents the enrichment of the bucket's documents, and since when. `key`: the object for which S3 refused it. */
  unread: z.object({ reason: z.string(), sinceMs: z.number(), key: z.string() }).optional(),
});
export type ConnectionCheck = z.infer<typeof connectionCheckSchema>;

const eventQueueSchema = z.object({
  queueUrl: z.string(),
  /** When the last event came from it. */
  atMs: z.number(),
  /** How long events had waited in it by then; absent if not noticeably long. */
  waitedMs: z.number().optional(),
  /** When the oldest of the events that came in the minute before was sent, by SQS's clock. */
  sentFromMs: z.number().optional(),
});
export type EventQueue = z.infer<typeof eventQueueSchema>;

/** Deletions that jobs held back and that wait for a person, by the job's prefix (src/records/waiting-deletes.ts). */
export const waitingDeletesSchema = z.array(
  z.object({
    prefix: z.string(),
    /** Absent if a job of these keys was stopped before it held any back, and none has counted them since. */
    count: z.number().positive().optional(),
    /** The job that counted them; absent if many did, so that a job of the whole bucket must count them again. */
    jobId: z.string().optional(),
    /** The place of that job's beginning. */
    order: z.number(),
    sinceMs: z.number(),
    /** When a person declined them. They still wait, and the status asks again once another job has counted them. */
    declinedAtMs: z.number().optional(),
  }),
);
export type WaitingDeletes = z.infer<typeof waitingDeletesSchema>;

/** A connected bucket, as stored. Decisions use a copy that was read by id at most C ago. */
export const bucketRecordSchema = z.object({
  bucket: z.string(),
  region: z.string(),
  source: z.enum(bucketSources),
  topicArn: z.string().optional(),
  /** The account that owns it, if known. S3 then refuses every request if the name comes to belong to another account. */
  account: z.string().optional(),
  versioning: versioningSchema,
  enrich: z.enum(enrichModes),
  /** Rule 8: exact events at or below this clock (microseconds) resolve instead of writing directly. 0 until the first reconcile begins. */
  floor: z.number(),
  /** The place, among all beginnings of the bucket's jobs, of the last one (src/records/job.ts); absent if none has begun. */
  lastBeginOrder: z.number().optional(),
  /** The apply job that occupies the bucket, or was the last to do so: a job occupies it only while queued or running (src/repair/job-requests.ts). */
  applyJobId: z.string().optional(),
  createdAtMs: z.number(),
  createdBy: z.string(),
  /** When region and versioning were last read. */
  checkedAtMs: z.number(),
  /** How far S3's clock was ahead of the reading process's clock; negative: behind. */
  s3AheadMs: z.number().optional(),
  lastEventAtMs: z.number().optional(),
  /** The bucket queues from which its events came. */
  eventQueues: z.array(eventQueueSchema).optional(),
  /** The index that holds its documents, so that a replacement is noticed. Absent if none was noted yet. */
  indexId: z.string().optional(),
  /** Since when its events are known to arrive through its present connection (src/events/proof.ts). */
  provenAtMs: z.number().optional(),
  /** What has arrived through its present connection while that is not proven yet. */
  arrived: z.array(z.enum(['created', 'removed', 'other'])).optional(),
  /** Since when its present connection exists. Events sent before prove nothing about it. */
  waySinceMs: z.number().optional(),
  /** When the last comparison of the whole bucket ended: a report, or an apply job that waited for late events and held no deletions back. */
  lastComparedAtMs: z.number().optional(),
  /** Documents that the index refused in the last apply job over the whole bucket. */
  refused: z.object({ jobId: z.string(), count: z.number(), atMs: z.number() }).optional(),
  /** Documents that still lacked their enrichment after the last job over the whole bucket that was to fill it in. */
  unenriched: z.object({ jobId: z.string(), count: z.number(), atMs: z.number() }).optional(),
  /** Deletions that jobs held back, and that a person has not allowed. */
  waiting: waitingDeletesSchema.optional(),
  /** What is stored of the tokens of its webhook, the newest last (src/connect/sources/webhook.ts). */
  webhookTokens: z.array(z.object({ hash: z.string(), createdAtMs: z.number() })).optional(),
  /** What it should no longer hold, by its last comparison. */
  overdue: overdueSchema.optional(),
  /** How far the tombstones of its index may be purged. */
  purge: purgeMarksSchema.optional(),
  /** The scheduled comparison that began last (src/repair/sweeps.ts). */
  scheduled: z.object({ jobId: z.string(), atMs: z.number() }).optional(),
  /** The last repair of the whole bucket that Tally began by itself: when it ended, and how long it compared. */
  repaired: z.object({ atMs: z.number(), comparingMs: z.number() }).optional(),
  /** Its parts in AWS. Absent: Tally has made none. */
  connection: connectionSchema.optional(),
  /** What the watch found last, since the last change. */
  connectionCheck: connectionCheckSchema.optional(),
  /** Only if the bucket's source does not report expirations: the last check of its lifecycle rules and of the objects that they expire. */
  lifecycle: z
    .object({
      checkedAtMs: z.number(),
      /** `unknown`: the permission to read them is missing. */
      rules: z.enum(['known', 'unknown']),
      /** Number of enabled rules that expire current objects. */
      expiring: z.number(),
    })
    .optional(),
});
export type BucketRecord = z.infer<typeof bucketRecordSchema>;

/** Event times may be truncated to whole seconds. */
export const TIME_STEP_MS = 1_000;

/** The latest moment at which the event can have happened. A dead letter that was sent back has a new time of sending, but its event's old time. */
export function happenedByMs({
  sentAtMs,
  eventTimeMs = sentAtMs,
}: {
  readonly sentAtMs: number;
  readonly eventTimeMs: number | undefined;
}): number {
  return Math.min(sentAtMs, eventTimeMs + TIME_STEP_MS);
}

/** How long Tally assumes that a bucket's events still come from a queue. */
const EVENT_QUEUE_LIFE_MS = 30 * 86_400_000;

/** A bucket's queues after an event from this one, without those that are too old to count. */
export function withEventQueue(known: BucketRecord['eventQueues'], latest: EventQueue): NonNullable<BucketRecord['eventQueues']> {
  const others = (known ?? []).filter(({ queueUrl, atMs }) => queueUrl !== latest.queueUrl && latest.atMs - atMs <= EVENT_QUEUE_LIFE_MS);
  const before = known?.find(({ queueUrl }) => queueUrl === latest.queueUrl)?.atMs ?? 0;
  return [...others, { ...latest, atMs: Math.max(latest.atMs, before) }];
}

/**
 * Whether the bucket's events may come from one of these queues. That is certainly not so only if its recent events came from `others`
 * and from none of these: for a quiet bucket, it is unknown where events would come from.
 */
export function mayBeFedBy(
  { eventQueues = [] }: Pick<BucketRecord, 'eventQueues'>,
  at: { readonly queueUrls: readonly string[]; readonly others: readonly string[]; readonly nowMs: number },
): boolean {
  const recent = eventQueues.filter(({ atMs }) => at.nowMs - atMs <= EVENT_QUEUE_LIFE_MS).map(({ queueUrl }) => queueUrl);
  return recent.some((url) => at.queueUrls.includes(url)) || !recent.some((url) => at.others.includes(url));
}

/** The topic that a request names or a record keeps. Throws `request.invalid` if there is none, or it is one to which S3 cannot publish. */
export function usableTopic(topicArn: string | undefined): string {
  if (topicArn?.endsWith('.fifo') === false) return topicArn;
  throw new RequestError(
    'request.invalid',
    topicArn === undefined
      ? "topic_arn: the source topic needs the ARN of the SNS topic that receives the bucket's events"
      : 'topic_arn: S3 and EventBridge publish to standard topics only, not to FIFO topics',
  );
}

/** Throws `request.invalid` if a request names a topic although its source uses Tally's: nothing would publish to it. */
export function refuseTopic(source: BucketSource, topicArn: string | undefined): void {
  if (topicArn === undefined || source === 'topic' || source === 'routed') return;
  const detail = `topic_arn: with the source ${source}, Tally creates the topic. To use yours, name the source too: "topic" if S3 publishes to it, "routed" if an EventBridge rule does`;
  throw new RequestError('request.invalid', detail);
}

/** Events that arrived for an unconnected bucket. They are counted and shown, but never indexed. */
export const unconnectedSchema = z.object({
  bucket: z.string(),
  count: z.number(),
  firstSeenMs: z.number(),
  lastSeenMs: z.number(),
});
export type UnconnectedRecord = z.infer<typeof unconnectedSchema>;
