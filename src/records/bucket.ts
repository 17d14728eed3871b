/**
 * The record of a bucket: where it is, how its events arrive, and what is known of both. Rooms that never import each other meet in
 * stored records like this one:
 *
 *   connecting stores it ──► the data path decides by it ──► jobs raise its floor, and keep what waits for a person ──► its status
 *
 * A record is a schema and pure functions on it. src/store/stored.ts reads records, and changes them by compare-and-swap.
 * What is absent is not known.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { RequestError } from '../base/request-error.ts';
import { usualIntervalSchema } from './usual-interval.ts';

/** How a bucket's events reach the bucket queue. */
export const bucketSources = ['notification', 'topic', 'eventbridge', 'routed'] as const;
export type BucketSource = (typeof bucketSources)[number];

/** Whether the source always reports lifecycle expirations. Audit trails never do, and a topic's configuration may leave them out. */
export function reportsExpirations(source: BucketSource): boolean {
  switch (source) {
    case 'notification':
    case 'eventbridge':
      return true;
    case 'topic':
    case 'routed':
      return false;
  }
}

/** Which further data documents get: none, that of a HEAD, or that of a HEAD and the tags. Each contains those before it. */
export const enrichModes = ['none', 'head', 'tags'] as const;
export type EnrichMode = (typeof enrichModes)[number];

/** Whether documents that were complete under the mode `before` lack something under the mode `after`. */
export function asksForMore(before: EnrichMode, after: EnrichMode): boolean {
  return enrichModes.indexOf(after) > enrichModes.indexOf(before);
}

/** Whether the name is that of a directory bucket of S3 Express One Zone: https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-bucket-naming-rules.html */
export function isDirectoryBucket(name: string): boolean {
  return name.endsWith('--x-s3');
}

/** Why Tally cannot follow one. */
export const DIRECTORY_BUCKET =
  'is a directory bucket (S3 Express One Zone), which sends no events and lists its keys in no order: Tally cannot follow it';

/** The part of an index or alias name that identifies the bucket: the bucket's name if OpenSearch allows it, else `h-` + 32 hex digits of its SHA-256. */
export function bucketSlug(bucket: string): string {
  const plain = /^[a-z0-9.-]{3,63}$/.test(bucket) && !bucket.startsWith('h-');
  return plain ? bucket : `h-${createHash('sha256').update(bucket).digest('hex').slice(0, 32)}`;
}

export const versioningStatuses = ['unknown', 'never', 'enabled', 'suspended'] as const;

/** The latest answer of GetBucketVersioning, and its time by S3's clock. The status is `unknown` until it could be read. Only with `never` does a delete event state its result. */
export const versioningSchema = z.object({
  status: z.enum(versioningStatuses),
  /** The answer's Date header minus the duration of the request; 0 when unknown. */
  observedAtMs: z.number(),
});
export type Versioning = z.infer<typeof versioningSchema>;

/** What the watch of the connections found: `paused` is a notification that was taken away on request; `unknown` could not be read. */
export const watchedStates = ['ok', 'degraded', 'broken', 'unknown', 'paused'] as const;
export type WatchedState = (typeof watchedStates)[number];

/** What the watch of a bucket's connection found last. */
export const connectionCheckSchema = z.object({
  state: z.enum(watchedStates),
  /** When it looked. */
  atMs: z.number(),
  /** Since when it has been in this state; for a paused notification, since when it is paused. */
  sinceMs: z.number(),
  /** The first of what it found. */
  findings: z.array(z.object({ code: z.string(), what: z.string() })),
  /** Since when events have been lost; absent: they arrive, as far as is known. */
  brokenSinceMs: z.number().optional(),
  /** The notification configuration, which Tally can read, sends every created and removed event to the bucket's topic or queue. */
  passesBoth: z.literal(true).optional(),
  /** What keeps the documents of the bucket from being enriched, and since when. */
  unread: z.object({ reason: z.string(), sinceMs: z.number() }).optional(),
});
export type ConnectionCheck = z.infer<typeof connectionCheckSchema>;

const eventQueueSchema = z.object({
  queueUrl: z.string(),
  /** When the last event came from it. */
  atMs: z.number(),
  /** How long events had waited in it by then; absent: not long enough to tell. */
  waitedMs: z.number().optional(),
});
export type EventQueue = z.infer<typeof eventQueueSchema>;

/** Deletions that jobs held back, and that wait for a person, by the prefix of the job (src/records/waiting-deletes.ts). */
export const waitingDeletesSchema = z.array(
  z.object({
    prefix: z.string(),
    /** Absent: a job of these keys was stopped before it held any back, and none has counted them since. */
    count: z.number().positive().optional(),
    /** The job that counted them, and its beginning. Absent: they are those of many jobs, and a job of the whole bucket counts them again. */
    jobId: z.string().optional(),
    order: z.number(),
    sinceMs: z.number(),
    /** When a person declined them: they wait all the same, and the status says so again once another job has counted them. */
    declinedAtMs: z.number().optional(),
  }),
);
export type WaitingDeletes = z.infer<typeof waitingDeletesSchema>;

/** A connected bucket, as stored. Decisions use a copy that was read by id at most C = 10 s ago. */
export const bucketRecordSchema = z.object({
  bucket: z.string(),
  region: z.string(),
  source: z.enum(bucketSources),
  topicArn: z.string().optional(),
  /** The account that owns it, if it is known: S3 then refuses every request once the name belongs to another one. */
  account: z.string().optional(),
  versioning: versioningSchema,
  enrich: z.enum(enrichModes),
  /** Rule 8: exact events at or below this clock (microseconds) resolve instead of writing directly. 0 until the first reconcile begins. */
  floor: z.number(),
  /** The place of the job that began last among all beginnings of the bucket (src/records/job.ts); absent: none has begun. */
  lastBeginOrder: z.number().optional(),
  /** The apply job that occupies the bucket, or did last: it counts only while that job is queued or running (src/repair/job-requests.ts). */
  applyJobId: z.string().optional(),
  createdAtMs: z.number(),
  createdBy: z.string(),
  /** When region and versioning were last read. */
  checkedAtMs: z.number(),
  /** How far S3's clock was ahead of that of the process that read them; negative: behind. Absent: not known. */
  s3AheadMs: z.number().optional(),
  lastEventAtMs: z.number().optional(),
  /** How often its events come. Absent: none has arrived yet. */
  rhythm: usualIntervalSchema.optional(),
  /** The bucket queues that its events came from. */
  eventQueues: z.array(eventQueueSchema).optional(),
  /** The index that holds its documents, so that another one in its place is noticed. Absent: none was noted yet. */
  indexId: z.string().optional(),
  /** Since when its events are known to arrive by its present connection (src/events/proof.ts). */
  provenAtMs: z.number().optional(),
  /** What has arrived by its present connection while that was not proven yet. */
  arrived: z.array(z.enum(['created', 'removed', 'other'])).optional(),
  /** When its connection was changed last, and since when events of its form come by its present way only. What was sent before proves nothing. */
  waySinceMs: z.number().optional(),
  /** When a compare of the whole bucket ended last: a report, or an apply job that held no deletion back and waited for late events. */
  lastComparedAtMs: z.number().optional(),
  /** Documents that the index refused in the last apply job over the whole bucket. */
  refused: z.object({ jobId: z.string(), count: z.number(), atMs: z.number() }).optional(),
  /** Documents that lack their enrichment after the last job over the whole bucket that was to fill it in. */
  unenriched: z.object({ jobId: z.string(), count: z.number(), atMs: z.number() }).optional(),
  /** Deletions that jobs held back, and that a person has not allowed. */
  waiting: waitingDeletesSchema.optional(),
  /** The last scheduled compare that was begun (src/repair/sweeps.ts). */
  sweep: z.object({ jobId: z.string(), atMs: z.number() }).optional(),
  /** The last repair of the whole bucket that Tally began by itself: when it ended, and how long it compared. */
  repaired: z.object({ atMs: z.number(), comparingMs: z.number() }).optional(),
  /** What the watch of its connection found last. */
  connectionCheck: connectionCheckSchema.optional(),
  /** Only for buckets whose source does not report expirations: when the lifecycle rules were last read and the objects that they expire were last checked. */
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

/** Event times may be whole seconds, cut off. */
const TIME_STEP_MS = 1_000;

/** The latest moment at which the event can have happened. A dead letter that was sent back has a new time of sending, but not a new time of its event. */
export function happenedByMs({
  sentAtMs,
  eventTimeMs = sentAtMs,
}: {
  readonly sentAtMs: number;
  readonly eventTimeMs: number | undefined;
}): number {
  return Math.min(sentAtMs, eventTimeMs + TIME_STEP_MS);
}

/** How long it counts that events of a bucket came from a queue. */
const EVENT_QUEUE_LIFE_MS = 30 * 86_400_000;

/** The queues of a bucket's events after an event from this one, without those that are too old to count. */
export function withEventQueue(known: BucketRecord['eventQueues'], latest: EventQueue): NonNullable<BucketRecord['eventQueues']> {
  const others = (known ?? []).filter(({ queueUrl, atMs }) => queueUrl !== latest.queueUrl && latest.atMs - atMs <= EVENT_QUEUE_LIFE_MS);
  const before = known?.find(({ queueUrl }) => queueUrl === latest.queueUrl)?.atMs ?? 0;
  return [...others, { ...latest, atMs: Math.max(latest.atMs, before) }];
}

/**
 * Whether events of the bucket may come from one of these queues. Only a bucket whose recent events came from `others`, and
 * from none of these queues, is certain not to: where the events of a quiet bucket would come from is not known.
 */
export function mayBeFedBy(
  { eventQueues = [] }: Pick<BucketRecord, 'eventQueues'>,
  at: { readonly queueUrls: readonly string[]; readonly others: readonly string[]; readonly nowMs: number },
): boolean {
  const recent = eventQueues.filter(({ atMs }) => at.nowMs - atMs <= EVENT_QUEUE_LIFE_MS).map(({ queueUrl }) => queueUrl);
  return recent.some((url) => at.queueUrls.includes(url)) || !recent.some((url) => at.others.includes(url));
}

/** The topic that a request names or a record keeps. Throws `request.invalid` where there is none, or one that nothing can be published to. */
export function usableTopic(topicArn: string | undefined): string {
  if (topicArn?.endsWith('.fifo') === false) return topicArn;
  throw new RequestError(
    'request.invalid',
    topicArn === undefined
      ? 'topic_arn: must be given for the source topic: the ARN of the SNS topic that receives the events of the bucket'
      : 'topic_arn: S3 and EventBridge publish to standard topics only, not to FIFO topics',
  );
}

/** Throws `request.invalid` for a topic that a request names beside a source that has a topic of Tally's: nothing would lead to it. */
export function refuseTopic(source: BucketSource, topicArn: string | undefined): void {
  if (topicArn === undefined || source === 'topic' || source === 'routed') return;
  const detail = `topic_arn: with the source ${source} Tally makes the topic. For yours name the source too: "topic" if S3 publishes to it, "routed" if a rule of EventBridge does`;
  throw new RequestError('request.invalid', detail);
}

/** Events that arrived for a bucket that is not connected. They are counted and shown, but never indexed. */
export const unconnectedSchema = z.object({
  bucket: z.string(),
  count: z.number(),
  firstSeenMs: z.number(),
  lastSeenMs: z.number(),
});
export type UnconnectedRecord = z.infer<typeof unconnectedSchema>;
