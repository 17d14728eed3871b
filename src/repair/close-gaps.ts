/**
 * Repairs dirty buckets. A round looks at how each bucket's jobs ended, closes the marks that they cover, and starts a job where one
 * is due:
 *
 *   mark ──due──► job ──► queued ──► waiting ──► comparing ──► done ──► covers the mark? ──yes──► closed
 *    ▲                                                                      │ no
 *    └──────────────────────────────────────────────────────────────────────┘
 *
 * Each decision is made about the mark as it is when it is changed or removed, so no new report is missed. A crash does no harm: a
 * job that was started but not noted on the mark is found again as the bucket's latest job.
 */
import { LRUCache } from 'lru-cache';
import { FaultError, faultOf, type Fault } from '../base/fault.ts';
import {
  afterLook,
  dueAtMs,
  failedOf,
  isPlanned,
  markSchema,
  refusedOf,
  whyOf,
  withClosed,
  withJob,
  type DirtyMark,
  type Look,
} from '../records/dirty.ts';
import { hasEnded, occupiesBucket, type JobRecord } from '../records/job.ts';
import { omit } from '../base/defined.ts';
import { RequestError } from '../base/request-error.ts';
import type { ObjectIndex, StateStore, WithPorts } from '../store/store.ts';
import type { Clock } from '../process/clock.ts';
import type { BucketListing } from '../aws/storage.ts';
import type { ReindexJobs } from './job-requests.ts';
import { gapIdsOf, listAllEntries, listAllRecords, parseEntry, readRecord, refs, updateRecord } from '../store/stored.ts';
import { bucketRecordSchema, type BucketRecord } from '../records/bucket.ts';
import { sideBySide, withDeadline } from '../process/async.ts';

interface CloseGapsDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly startJob: ReindexJobs['start'];
  readonly askToRepair: AskToRepair;
}

/** Asking one bucket takes up to 10 s, which must not add up: a job must begin within ten minutes, even while hundreds of buckets hang. */
const BUCKETS_AT_ONCE = 16;
/** How far a process's clock may be ahead of S3's: beginning a job that much too early costs little. */
const FAST_MAX_MS = 60_000;
/** How many ended jobs are remembered: those that marks name, and their buckets' latest ones. */
const ENDED_MAX = 2_000;
/** For how long a round asks buckets that refused before. */
const ASKING_MAX_MS = 60_000;

/**
 * Creates the function that runs one round: for all buckets, or for one whose job has just begun or ended. A bucket's fault is
 * reported, and the other buckets are still visited. Throws the store's fault.
 */
export function createCloseGaps(dependencies: CloseGapsDependencies) {
  const { state, startJob, clock, telemetry } = dependencies;
  /** Ended jobs, which never change again and so are read only once. */
  const ended = new LRUCache<string, JobRecord>({ max: ENDED_MAX });

  async function readJob(jobId: string, signal?: AbortSignal): Promise<JobRecord | undefined> {
    const job = ended.get(jobId) ?? (await readRecord(state, refs.job(jobId), signal));
    if (job !== undefined && hasEnded(job)) ended.set(jobId, omit(job, 'examples'));
    return job;
  }

  return async function closeGaps(signal: AbortSignal, only?: string): Promise<void> {
    const marks = await listAllRecords(state, 'gap', markSchema, { prefix: gapIdsOf(only) });
    if (marks.length === 0) return;
    const askUntilMs = clock.monotonicMs() + ASKING_MAX_MS;
    const latestJobs = await latestJobsOf(state, only);
    await sideBySide(inTurn(Map.groupBy(marks, ({ bucket }) => bucket)), BUCKETS_AT_ONCE, async ([bucket, ofBucket]) => {
      signal.throwIfAborted();
      if (askedAgainAtMs(ofBucket) > 0 && clock.monotonicMs() >= askUntilMs) return;
      try {
        if (latestJobs.has(bucket)) await repair(ofBucket, latestJobs.get(bucket), signal);
        else for (const { id } of ofBucket) await forget(state, bucket, id);
      } catch (error) {
        signal.throwIfAborted();
        telemetry.requestFailed('close the gaps of a bucket', error);
      }
    });
  };

  /** `jobId`: the latest apply job of the marks' bucket; undefined if it has had none. */
  async function repair(marks: readonly DirtyMark[], jobId: string | undefined, signal: AbortSignal): Promise<void> {
    const latest = jobId === undefined ? undefined : await readJob(jobId, signal);
    const looked: DirtyMark[] = [];
    for (const mark of marks) looked.push(...(await look(mark, latest)));
    if ((latest !== undefined && occupiesBucket(latest)) || firstDue(looked, clock.nowMs()) === undefined) return;
    // the list may be outdated: since then, a mark may have been reported again, or another process may have started its job
    const current = (await Promise.all(looked.map(({ id }) => readRecord(state, refs.gap(id), signal)))).filter(
      (mark) => mark !== undefined,
    );
    const due = firstDue(current, clock.nowMs());
    if (due !== undefined) await begin(due, current, signal);
  }

  /** Returns the mark after a look at its bucket's jobs; none if it was closed. */
  async function look(mark: DirtyMark, latest: JobRecord | undefined): Promise<readonly DirtyMark[]> {
    const named = mark.jobId === undefined ? undefined : await readJob(mark.jobId);
    const alter = (current: DirtyMark, repaired: Look['repaired']): ReturnType<typeof afterLook> =>
      current.jobId === mark.jobId ? afterLook(current, { named, latest, nowMs: clock.nowMs(), repaired }) : current;
    // if the listed mark would not change, nothing is read, so gaps that only wait cost no request
    if (alter(mark, undefined) === mark) return [mark];
    const repaired = (await readRecord(state, refs.bucket(mark.bucket)))?.repaired;
    const entry = await state.get(mark.id);
    if (entry === undefined) return [];
    const before = parseEntry(entry, markSchema);
    const after = alter(before, repaired);
    if (!('closedBy' in after)) return change(before, (current) => openOr(alter(current, repaired), current));
    // a report since then keeps it open, and the next round looks again
    if ((await state.remove(mark.id, entry.version)) === 'conflict') return [];
    const { bucket, prefix } = before;
    let isNoted = true;
    await updateRecord(state, refs.gapHistory(bucket), (history) => {
      const next = withClosed(history, before, { jobId: after.closedBy, nowMs: clock.nowMs() });
      isNoted = next === history;
      return next;
    });
    if (!isNoted) telemetry.info('gap closed', { bucket, prefix, jobId: after.closedBy });
    return [];
  }

  /** Starts a job for the mark that is due, which also becomes the job of all other planned marks whose keys it compares. */
  async function begin(due: DirtyMark, marks: readonly DirtyMark[], signal: AbortSignal): Promise<void> {
    const { bucket, prefix = '' } = due;
    if (!(await mayBegin(due, signal))) return;
    const repaired = marks.filter((mark) => (mark.prefix ?? '').startsWith(prefix) && isPlanned(mark));
    // documents may lack tags and metadata, because S3 refused enrichment's requests
    const tags = repaired.some(({ readTags }) => readTags === true) ? { tags: true, fill: true } : {};
    try {
      const job = await startJob({ bucket, prefix, mode: 'apply', requestedBy: 'gap', ...tags }, signal);
      for (const mark of repaired) await change(mark, (current) => (current.jobId === undefined ? withJob(current, job) : current));
    } catch (error) {
      signal.throwIfAborted();
      // by now another job occupies the bucket; the next round finds it
      if (error instanceof RequestError && error.code === 'job.conflict') return;
      const reason = error instanceof RequestError ? error.message : faultOf(error).reason;
      await change(due, (current) => failedOf(current, `a re-index job could not be started: ${reason}`, clock.nowMs()));
    }
  }

  /**
   * Asks the bucket before beginning a job. If it refuses, the mark waits and shows why; this counts as no failure. S3's clock must agree
   * that the mark is due, or a process with a fast clock would begin job after job.
   */
  async function mayBegin(due: DirtyMark, signal: AbortSignal): Promise<boolean> {
    const record = await readRecord(state, refs.bucket(due.bucket), signal);
    if (record === undefined) return true;
    const answer = await dependencies.askToRepair(record, due.prefix ?? '', signal);
    if ('atMs' in answer) return dueAtMs(due, answer.atMs) <= answer.atMs + FAST_MAX_MS;
    const { code, reason: what } = answer;
    const reason = `the bucket cannot be re-indexed now: ${code}: ${what}`;
    await change(due, (current) => refusedOf(current, reason, clock.nowMs()));
    return false;
  }

  /** Stores what `alter` makes of the current mark; returns none if the mark is gone. Reports if a job failed to repair it, or could not begin. */
  async function change(mark: DirtyMark, alter: (mark: DirtyMark) => DirtyMark): Promise<readonly DirtyMark[]> {
    let failures = 0;
    const after = await updateRecord(state, refs.gap(mark.id), (current) => {
      failures = current?.failures ?? 0;
      return current && alter(current);
    });
    const { bucket, prefix } = mark;
    if (after !== undefined && after.failures > failures)
      telemetry.warn('gap stays open', { bucket, prefix, why: whyOf(after), ...after.waits });
    return after === undefined ? [] : [after];
  }
}

/**
 * The mark to repair now: the bucket's own, because its job also covers those of keys, or else the one that has been due longest.
 * Undefined while no mark is due.
 */
function firstDue(marks: readonly DirtyMark[], nowMs: number): DirtyMark | undefined {
  const due = marks.filter((mark) => dueAtMs(mark, nowMs) <= nowMs);
  return due.find(({ prefix }) => prefix === undefined) ?? due.toSorted((a, b) => dueAtMs(a, nowMs) - dueAtMs(b, nowMs))[0];
}

/** If the mark could now be closed, the next round closes it. */
function openOr(after: ReturnType<typeof afterLook>, before: DirtyMark): DirtyMark {
  return 'closedBy' in after ? before : after;
}

/**
 * Removes the mark of a bucket that is no longer connected, because no job can close it. Connecting a bucket stores its mark before its
 * record, and looks for the mark afterwards. So here the mark is read before the record, and removed only if it is unchanged.
 */
async function forget(state: StateStore, bucket: string, id: string): Promise<void> {
  const entry = await state.get(id);
  const isGone = entry !== undefined && (await readRecord(state, refs.bucket(bucket))) === undefined;
  if (isGone) await state.remove(id, entry.version);
}

/** The latest apply job of each connected bucket, or of one. A bucket whose record this version cannot read counts as connected. */
async function latestJobsOf(state: StateStore, only?: string): Promise<ReadonlyMap<string, string | undefined>> {
  const { length } = refs.bucket('').id;
  const buckets = only === undefined ? await listAllEntries(state, 'bucket') : [(await state.get(refs.bucket(only).id)) ?? []].flat();
  return new Map(buckets.map(({ id, record }) => [id.slice(length), bucketRecordSchema.safeParse(record).data?.applyJobId]));
}

/** When to ask a refusing bucket again; 0 if it does not refuse. */
function askedAgainAtMs(marks: readonly DirtyMark[]): number {
  return Math.max(...marks.map(({ refusedSinceMs, waits }) => (refusedSinceMs === undefined ? 0 : (waits?.untilMs ?? 0))));
}

/** Buckets that answer come first, then those that have waited longest, so that an outage of many buckets does not delay the others. */
function inTurn(buckets: ReadonlyMap<string, readonly DirtyMark[]>): readonly (readonly [string, readonly DirtyMark[]])[] {
  return [...buckets].toSorted(([, a], [, b]) => askedAgainAtMs(a) - askedAgainAtMs(b));
}

// ── whether a bucket can be re-indexed now ─────────────────────────────────────────────────────────────────────────

/** A bucket that does not answer within this time counts as refusing, so that it does not delay other buckets' gaps. */
const ANSWER_MAX_MS = 10_000;

/** Resolves with the fault that prevents a re-index under the prefix, or with the time by S3's clock. Rejects with the signal's reason. */
export type AskToRepair = (bucket: BucketRecord, prefix: string, signal: AbortSignal) => Promise<Fault | { readonly atMs: number }>;

interface AskDependencies {
  readonly listing: BucketListing;
  readonly objects: Pick<ObjectIndex, 'probeBucket'>;
  readonly clock: Clock;
}

/**
 * Asks whether a bucket can be re-indexed now: S3 for one key of its listing, and its index for a write that stores nothing. A job that
 * begins and can do nothing would occupy the bucket and fail again and again.
 */
export async function askToRepair(
  { listing, objects, clock }: AskDependencies,
  ...[bucket, prefix, signal]: Parameters<AskToRepair>
): ReturnType<AskToRepair> {
  const late = (): Error => new FaultError('s3.unavailable', `${bucket.bucket}: no answer within ${ANSWER_MAX_MS / 1_000} s`);
  const ask = async (either: AbortSignal): Promise<{ readonly atMs: number }> => {
    // one request; any answer suffices, whether the page has a key or not
    const { observedAtMs, answeredAtMs = observedAtMs } = await listing.page(
      bucket,
      { prefix, after: '', limit: 1, followMsMax: 0 },
      either,
    );
    await objects.probeBucket(bucket.bucket, either);
    return { atMs: answeredAtMs };
  };
  try {
    return await withDeadline(clock, { maxMs: ANSWER_MAX_MS, late }, ask, signal);
  } catch (error) {
    signal.throwIfAborted();
    return faultOf(error);
  }
}
