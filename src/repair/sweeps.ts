/**
 * The calendar's sweeps, which visit every bucket to purge tombstones, observe unsettled documents again, or begin its scheduled
 * re-index; and the purge of audit records. src/serve/calendar.ts has their schedules. identity/purges.ts purges API keys, logins and
 * sessions.
 */
import { TOMBSTONE_LIFE_MS } from '../ordering/constants.ts';
import type { ObjectMaintenance, IndexWrite, ObjectIndex, AuditStore, WithPorts } from '../store/store.ts';
import { VISIT_MAX_MS, type Visit } from '../observing/sweep.ts';
import { sideBySide } from '../process/async.ts';
import type { Clock } from '../process/clock.ts';
import { createHash, randomUUID } from 'node:crypto';
import { compareEveryMs, type BucketRecord } from '../records/bucket.ts';
import { movedMarks } from '../records/position.ts';
import { hasEnded, type JobRecord } from '../records/job.ts';
import { RequestError } from '../base/request-error.ts';
import { readRecord, refs, updateRecord, newAuditRecord, storeAuditRecord } from '../store/stored.ts';
import type { ReindexJobs } from './job-requests.ts';
import { LRUCache } from 'lru-cache';
import { clockOfMs, type ObjectDocument } from '../ordering/document.ts';
import { isAnyHeld } from '../observing/gaps.ts';
import { jobAnswerOf, FaultError, type Fault, type FaultCode } from '../base/fault.ts';
import { hintOfTie } from '../ordering/hint.ts';
import type { ObserveAnswer, Observe } from '../observing/observer.ts';
import type { Actor } from '../base/actor.ts';

/** Limits purges to some 2,000 tombstones or audit records a second: more than are written, and a small load beside live events. */
const PAUSE_MS = 250;

/** One transaction of SQLite, which blocks all other work for about 10 ms; on OpenSearch one request, whose refresh ends it. */
const BATCH_TOMBSTONES = 500;

interface TombstoneParts extends WithPorts<'state' | 'clock'> {
  readonly objects: Pick<ObjectIndex, 'position'>;
  readonly maintenance: Pick<ObjectMaintenance, 'purge'>;
  /** By which a tombstone is old; the clock's, or an earlier time. */
  readonly purgeClock: Pick<Clock, 'nowMs'>;
}

/**
 * Purges one bucket's old tombstones, for at most five minutes: only up to a mark that is stored before, so that a follower of the
 * feed who stands before the mark learns that it must begin again.
 */
export async function visitTombstones(
  { state, objects, maintenance, clock, purgeClock }: TombstoneParts,
  { bucket }: Pick<BucketRecord, 'bucket'>,
  signal: AbortSignal,
): Promise<number> {
  const position = await objects.position(bucket, signal);
  const now = { position, atMs: clock.nowMs(), lifeMs: TOMBSTONE_LIFE_MS };
  const record = await updateRecord(state, refs.bucket(bucket), (current) => {
    if (current === undefined) return undefined;
    const purge = movedMarks(current.purge, now);
    return purge === current.purge ? current : { ...current, purge };
  });
  const upTo = record?.purge?.upTo;
  if (upTo === undefined) return 0;
  const deletedBeforeMs = purgeClock.nowMs() - TOMBSTONE_LIFE_MS;
  const untilMs = clock.monotonicMs() + VISIT_MAX_MS;
  let purged = 0;
  for (;;) {
    const count = await maintenance.purge(bucket, { deletedBeforeMs, upTo, limit: BATCH_TOMBSTONES }, signal);
    purged += count;
    if (count < BATCH_TOMBSTONES || clock.monotonicMs() >= untilMs) return purged;
    await clock.sleep(PAUSE_MS, signal);
  }
}

const DAY_MS = 86_400_000;
/** How many deletions one run makes: on SQLite half a million records, in five minutes. The next run, an hour later, continues. */
const BATCHES_MAX = 1_000;

/** Purges audit records past their retention. Throws the store's fault. */
export async function purgeAudit(
  { audit, clock, telemetry }: WithPorts<'clock' | 'telemetry'> & { readonly audit: Pick<AuditStore, 'purge'> },
  retentionDays: number,
  signal: AbortSignal,
): Promise<void> {
  const beforeMs = clock.nowMs() - retentionDays * DAY_MS;
  for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
    if ((await audit.purge(beforeMs, signal)) === 'none') return;
    if (batch === 0) telemetry.info('audit records past their retention are deleted', { before: new Date(beforeMs).toISOString() });
    await clock.sleep(PAUSE_MS, signal);
  }
}

// ── the scheduled comparison of every bucket, whatever its source, because events may be lost unnoticed. It also shows that the index is
// right. Each bucket has one in each interval, by default a week (a day for a webhook), at its own time:
//
//   (new) ──► waits for its time in the interval ──► due ──job begun──► waits an interval
//                                                     ▲                    │
//                                                     └──── the job failed ┘ six hours later

interface CompareParts extends WithPorts<'state' | 'clock'> {
  readonly startJob: ReindexJobs['start'];
  /** From one compare of a bucket to the next; 0: never. */
  readonly intervalMs: number;
}

/** Begins a bucket's scheduled comparison if it is due. A bucket that a job occupies is visited again later. */
export async function visitCompare(
  { state, startJob, clock, intervalMs: usualMs }: CompareParts,
  record: BucketRecord,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { bucket, enrich, scheduled } = record;
  const intervalMs = compareEveryMs(record, usualMs);
  const look = { nowMs: clock.nowMs(), intervalMs };
  // if the record shows that nothing is due, nothing more is read
  if (intervalMs === 0 || !mayCompareBeDue(record, look)) return undefined;
  const last = scheduled && (await readRecord(state, refs.job(scheduled.jobId), signal));
  if (!isCompareDue(record, last, look)) return undefined;
  try {
    // the job's deletions are limited, whatever gaps it closes
    const tags = enrich === 'tags' ? { tags: true } : {};
    const { id: jobId } = await startJob({ bucket, prefix: '', mode: 'apply', requestedBy: 'schedule', ...tags }, signal);
    const begun = { jobId, atMs: clock.nowMs() };
    await updateRecord(state, refs.bucket(bucket), (current) => current && { ...current, scheduled: begun });
    return 0;
  } catch (error) {
    if (error instanceof RequestError && error.code === 'job.conflict') return undefined;
    throw error;
  }
}

/** After a failure: four attempts a day, with enough time in between for an operator to notice and correct the cause. */
const RETRY_MS = 21_600_000;

type Compared = Pick<BucketRecord, 'bucket' | 'createdAtMs' | 'scheduled' | 'lastComparedAtMs'>;

interface CompareLook {
  readonly nowMs: number;
  readonly intervalMs: number;
}

/** Whether a job may be due, by the bucket's record alone. */
export function mayCompareBeDue(bucket: Compared, look: CompareLook): boolean {
  const { scheduled, lastComparedAtMs = 0 } = bucket;
  const mayHaveFailed = scheduled !== undefined && lastComparedAtMs < scheduled.atMs && look.nowMs >= scheduled.atMs + RETRY_MS;
  return mayHaveFailed || isCompareDue(bucket, undefined, look);
}

/** Whether a job is due. `job`: the schedule's last one, if it still exists. */
export function isCompareDue(
  { bucket, createdAtMs, scheduled }: Compared,
  job: JobRecord | undefined,
  { nowMs, intervalMs }: CompareLook,
): boolean {
  // a paused job waits for an operator; a cancelled one was not wanted, so the next begins an interval later
  if (job !== undefined && !hasEnded(job)) return false;
  if (job?.state === 'failed' && nowMs >= (job.finishedAtMs ?? job.createdAtMs) + RETRY_MS) return true;
  const dueAtMs = scheduled === undefined ? createdAtMs + offsetMs(bucket, intervalMs) : scheduled.atMs + intervalMs;
  // a time further ahead than this was set by a wrong clock, or under a longer interval
  return dueAtMs <= nowMs || dueAtMs > nowMs + 2 * intervalMs;
}

/** The bucket's time in the interval, derived from its name, so that buckets connected on the same day are not all listed in the same hour each week. */
function offsetMs(bucket: string, intervalMs: number): number {
  return Math.floor((createHash('sha256').update(bucket).digest().readUInt32BE(0) / 2 ** 32) * intervalMs);
}

// ── documents that have been unsettled for long are observed again (rule 4), because the message that should have settled them was lost,
// or an observation was too early to be final ─────────────────────────────────────────────────────────────────────────────

/** A settle is due 43 s after its event, so a document that is unsettled for this long has usually lost its message. If that is only deferred, observing the key twice does no harm. */
const UNSETTLED_AGE_MS = 600_000;
const PAGE_DOCUMENTS = 100;
/** How many observations a run makes for one bucket. At 60 ms each and eight at once, they take less than 10 s of the five minutes between runs. */
const OBSERVATIONS_MAX = 1_000;
/** How long a visit may take when S3 is slow. A run has four minutes for all buckets. */
const UNSETTLED_VISIT_MAX_MS = 60_000;
/** For how many buckets the position is remembered. A forgotten bucket starts from its first key. */
const POSITIONS_MAX = 1_000;

/** Decides, by one request for all, which buckets to visit. If it fails, all are visited. */
export async function unsettledDue(
  { maintenance, clock }: WithPorts<'clock'> & { readonly maintenance: Pick<ObjectMaintenance, 'unsettledBuckets'> },
  signal: AbortSignal,
): Promise<(bucket: Pick<BucketRecord, 'bucket'>) => boolean> {
  const found = await maintenance.unsettledBuckets(clockOfMs(clock.nowMs() - UNSETTLED_AGE_MS), signal).catch(() => {
    signal.throwIfAborted();
    // if a bucket's own request fails too, its visit reports that
    return undefined;
  });
  return ({ bucket }) => found?.has(bucket) ?? true;
}

/**
 * Creates the visit of one bucket, with at most 1,000 observations in at most a minute; this process's next visit continues after them.
 * Nothing is observed while deletions of the bucket wait for a person.
 */
export function createVisitUnsettled({
  state,
  maintenance,
  observe,
  clock,
}: WithPorts<'state' | 'clock'> & {
  readonly maintenance: Pick<ObjectMaintenance, 'unsettled'>;
  readonly observe: Observe;
}): Visit {
  /** The key after which a visit stopped at its limit, so that objects that can be read slowly or never do not keep others from being observed. */
  const positions = new LRUCache<string, string>({ max: POSITIONS_MAX });

  async function pageOf({ bucket }: BucketRecord, page: Parameters<typeof maintenance.unsettled>[1], signal: AbortSignal) {
    const documents = await maintenance.unsettled(bucket, page, signal);
    // a person may have to decide about these documents; re-indexes compare the others
    return documents.length > 0 && (await isAnyHeld(state, { bucket })) ? [] : documents;
  }

  return async function visitUnsettled(bucket, signal) {
    const clockBelow = clockOfMs(clock.nowMs() - UNSETTLED_AGE_MS);
    const untilMs = clock.monotonicMs() + UNSETTLED_VISIT_MAX_MS;
    const isOver = (): boolean => signal.aborted || clock.monotonicMs() >= untilMs;
    let after = positions.get(bucket.bucket) ?? '';
    positions.delete(bucket.bucket);
    let observed = 0;
    while (observed < OBSERVATIONS_MAX && !isOver()) {
      const documents = await pageOf(bucket, { clockBelow, after, limit: PAGE_DOCUMENTS }, signal);
      const count = await observeAgain(observe, bucket, documents, isOver);
      observed += count;
      if (count === documents.length && documents.length < PAGE_DOCUMENTS) return observed;
      after = documents[count - 1]?.key ?? after;
    }
    positions.set(bucket.bucket, after);
    signal.throwIfAborted();
    return observed;
  };
}

/** Twice as many as HEADs run at the same time, because the others wait for their writes. After a fault, or at the end of a visit, only these have to end. */
const OBSERVATIONS_AT_ONCE = 16;

/**
 * Observes documents' keys again, through the live path's observer, as observe hints at the documents' own clocks (rules 4 and 12): a HEAD
 * for each, whose answer is written unless something newer is stored by then. All documents are in memory, so pass only a page. Ends early
 * once `isOver` returns true; resolves with how many documents were observed, from the first one on. A fault of one object is left to the
 * next sweep; throws a fault of the bucket or of all buckets.
 */
export async function observeAgain(
  observe: Observe,
  bucket: BucketRecord,
  documents: readonly ObjectDocument[],
  isOver: () => boolean = () => false,
): Promise<number> {
  let observed = 0;
  let fault: Fault | undefined;
  await sideBySide(documents, OBSERVATIONS_AT_ONCE, async (document) => {
    if (fault !== undefined || isOver()) return;
    observed += 1;
    const answer = await observeDocument(observe, bucket, document);
    if (answer.kind === 'fault' && endsVisit(answer.fault.code)) ({ fault } = answer);
  });
  if (fault !== undefined) throw new FaultError(fault.code, fault.reason);
  return observed;
}

function observeDocument(observe: Observe, bucket: BucketRecord, document: ObjectDocument): Promise<ObserveAnswer> {
  const { key, clock, deleted, event_name, event_time } = document;
  return observe({
    bucket,
    key,
    // T is the document's clock, so the write at D − M is as new as this HEAD, and settled if that is late enough
    hint: hintOfTie(clock),
    cause: {
      ...(event_name !== undefined && { eventName: event_name }),
      ...(event_time !== undefined && { eventTimeMs: Date.parse(event_time) }),
    },
    source: 'check',
    // observing a tombstone again cannot delete anything
    reportsDeletion: deleted,
  });
}

/** Whether the bucket's other objects would fail as well. */
function endsVisit(code: FaultCode): boolean {
  switch (jobAnswerOf(code)) {
    case 'stop':
    case 'wait':
    case 'fail':
      return true;
    case 'skip':
    case 'retry':
      return false;
  }
}

// ── the audit of what sweeps delete from the index: after each bulk request, one record with the keys whose live documents it replaced by
// tombstones. Observations of tombstones, and live events' tombstones, do not count ────────────────────────────────────────

/** How many keys a record names: more than a bulk request's 200 actions. With the longest keys they are 1 MiB; for any others only the number is recorded. */
const KEYS_MAX = 1_000;

interface SweepDeletesDependencies extends WithPorts<'audit' | 'clock' | 'telemetry'> {
  readonly objects: ObjectIndex;
  /** This process. */
  readonly actor: Actor;
}

interface SweepDeletes {
  /** The index for the sweeps' writer. If a record cannot be stored, that is logged, and the writes are answered nevertheless. */
  readonly objects: ObjectIndex;
  /** Wraps the sweeps' observer. */
  readonly watching: (observe: Observe) => Observe;
}

/** Creates both. The observer must write through this index. */
export function createSweepDeletes({ objects, audit, clock, telemetry, actor }: SweepDeletesDependencies): SweepDeletes {
  /** The keys with live documents that sweeps are observing, with the number of observations: at most as many as run at the same time. */
  const observing = new Map<string, number>();

  async function record(deleted: readonly IndexWrite[]): Promise<void> {
    const keys = deleted.slice(0, KEYS_MAX).map(({ document: { bucket, key } }) => ({ bucket, key }));
    const facts = { event: 'SweepDelete', outcome: 'done', actor, requestId: randomUUID(), atMs: clock.nowMs() } as const;
    await storeAuditRecord({ audit, telemetry }, newAuditRecord({ ...facts, parameters: { deleted: deleted.length, keys } }));
  }

  return {
    objects: {
      ...objects,
      async write(writes, signal) {
        const answers = await objects.write(writes, signal);
        const deleted = writes.filter(
          ({ document }, at) => document.deleted && answers[at]?.kind === 'written' && observing.has(idOf(document.bucket, document.key)),
        );
        if (deleted.length > 0) await record(deleted);
        return answers;
      },
    },
    watching: (observe) => async (request) => {
      // an observation of a tombstone deletes nothing
      if (request.reportsDeletion === true) return observe(request);
      const id = idOf(request.bucket.bucket, request.key);
      observing.set(id, (observing.get(id) ?? 0) + 1);
      try {
        return await observe(request);
      } finally {
        const others = (observing.get(id) ?? 1) - 1;
        if (others === 0) observing.delete(id);
        else observing.set(id, others);
      }
    },
  };
}

function idOf(bucket: string, key: string): string {
  return `${bucket}/${key}`;
}
