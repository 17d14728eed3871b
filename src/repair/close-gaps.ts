/**
 * Repairs what is dirty. One round looks how the jobs of each bucket ended, closes the marks that they cover, and starts a job where one
 * is due:
 *
 *   mark ──due──► job ──► queued ──► waiting ──► comparing ──► done ──► covers the mark? ──yes──► closed
 *    ▲                                                                      │ no
 *    └──────────────────────────────────────────────────────────────────────┘
 *
 * Each decision is made on the mark as it is when it is changed or removed, so that no new report is missed. A crash does no
 * harm: a job that was started but not noted is found again as the bucket's latest job.
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
import { createRegionNotes, visitInTurn, type RegionNotes, type Turn } from '../observing/sweep.ts';
import type { Clock } from '../process/clock.ts';
import type { BucketListing, BucketLocation } from '../aws/storage.ts';
import { gapIdsOf, listAllEntries, listAllRecords, parseEntry, readRecord, refs, updateRecord } from '../store/stored.ts';
import { bucketRecordSchema, type BucketRecord } from '../records/bucket.ts';
import { withDeadline } from '../process/async.ts';

/** Starts a re-index on Tally's own initiative. Throws `job.conflict` (a RequestError) if another job occupies the bucket. */
export type StartJob = (
  request: {
    readonly bucket: string;
    readonly prefix: string;
    readonly mode: 'apply';
    readonly requestedBy: 'gap' | 'schedule';
    readonly tags?: boolean;
    readonly fill?: boolean;
  },
  signal?: AbortSignal,
) => Promise<JobRecord>;

interface CloseGapsDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly startJob: StartJob;
  readonly askToRepair: AskToRepair;
  /** Whether the circuit of the bucket or of its endpoint is open in this process. Default: of none. */
  readonly isFailing?: (bucket: BucketLocation) => boolean;
}

/** One round, as its visits see it. */
interface Round {
  readonly regions: RegionNotes;
  /** The latest apply job of each connected bucket; undefined: it has had none. */
  readonly latestJobs: ReadonlyMap<string, string | undefined>;
  /** Whether the bucket was put off in this round already. */
  readonly isPutOff: boolean;
  readonly signal: AbortSignal;
}

/** The requests to one bucket take up to 10 s, which must not add up: the promise is a job within ten minutes, however many buckets hang. */
const BUCKETS_AT_ONCE = 16;
/** How far the clock of a process may be ahead of S3's: that a job begins too early by so much costs little. */
const FAST_MAX_MS = 60_000;
/** Jobs that are remembered: those that marks name, and the latest of their buckets. */
const ENDED_MAX = 2_000;
/** How long one round asks buckets that have refused before, or whose region does not answer. The next round asks the others first. */
const ASKING_MAX_MS = 60_000;

/**
 * Creates the function that runs one round: for all buckets, or for one whose job has just begun or ended. A fault of one bucket is
 * reported, and the other buckets follow. Throws the store's fault.
 */
export function createCloseGaps(dependencies: CloseGapsDependencies) {
  const { state, startJob, askToRepair, clock, telemetry, isFailing = () => false } = dependencies;
  /** One that has ended never changes again, so it is read once. */
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
    const regions = createRegionNotes();
    const latestJobs = await latestJobsOf(state, only);
    await visitInTurn(inTurn(Map.groupBy(marks, ({ bucket }) => bucket)), BUCKETS_AT_ONCE, async ([bucket, ofBucket], isPutOff) => {
      signal.throwIfAborted();
      const isLate = clock.monotonicMs() >= askUntilMs;
      if ((isPutOff || askedAgainAtMs(ofBucket) > 0) && isLate) return 'done';
      try {
        if (latestJobs.has(bucket)) return await repair(bucket, ofBucket, { regions, latestJobs, isPutOff, signal });
        for (const { id } of ofBucket) await forget(state, bucket, id);
      } catch (error) {
        signal.throwIfAborted();
        telemetry.requestFailed('close the gaps of a bucket', error);
      }
      return 'done';
    });
  };

  async function repair(bucket: string, marks: readonly DirtyMark[], round: Round): Promise<Turn> {
    const { signal } = round;
    const jobId = round.latestJobs.get(bucket);
    const latest = jobId === undefined ? undefined : await readJob(jobId, signal);
    const looked: DirtyMark[] = [];
    for (const mark of marks) looked.push(...(await look(mark, latest)));
    if ((latest !== undefined && occupiesBucket(latest)) || firstDue(looked, clock.nowMs()) === undefined) return 'done';
    // the list is some time old: a mark may have been reported again since, or have got the job of another process
    const current = (await Promise.all(looked.map(({ id }) => readRecord(state, refs.gap(id), signal)))).filter(
      (mark) => mark !== undefined,
    );
    const due = firstDue(current, clock.nowMs());
    return due === undefined ? 'done' : begin(due, current, round);
  }

  /** The mark after a look at the jobs of its bucket; none, if it is closed. */
  async function look(mark: DirtyMark, latest: JobRecord | undefined): Promise<readonly DirtyMark[]> {
    const named = mark.jobId === undefined ? undefined : await readJob(mark.jobId);
    const alter = (current: DirtyMark, repaired: Look['repaired']): ReturnType<typeof afterLook> =>
      current.jobId === mark.jobId ? afterLook(current, { named, latest, nowMs: clock.nowMs(), repaired }) : current;
    // where the listed mark stays as it is, nothing is read: gaps that only wait cost no request
    if (alter(mark, undefined) === mark) return [mark];
    const repaired = (await readRecord(state, refs.bucket(mark.bucket)))?.repaired;
    const entry = await state.get(mark.id);
    if (entry === undefined) return [];
    const before = parseEntry(entry, markSchema);
    const after = alter(before, repaired);
    if (!('closedBy' in after)) return change(before, (current) => openOr(alter(current, repaired), current));
    // what was reported since keeps it open: the next round looks again
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

  /** Starts a job for the mark that is due. The marks of the keys that it compares beside that one get it too. */
  async function begin(due: DirtyMark, marks: readonly DirtyMark[], round: Round): Promise<Turn> {
    const { signal } = round;
    const { bucket, prefix = '' } = due;
    const asked = await ask(due, round);
    if (asked !== 'answers') return asked;
    const repaired = marks.filter((mark) => (mark.prefix ?? '').startsWith(prefix) && isPlanned(mark));
    // documents may lack both, because S3 refused what enrichment reads
    const tags = repaired.some(({ readTags }) => readTags === true) ? { tags: true, fill: true } : {};
    try {
      const job = await startJob({ bucket, prefix, mode: 'apply', requestedBy: 'gap', ...tags }, signal);
      for (const mark of repaired) await change(mark, (current) => (current.jobId === undefined ? withJob(current, job) : current));
    } catch (error) {
      signal.throwIfAborted();
      // another job occupies the bucket since: the next round finds it
      if (error instanceof RequestError && error.code === 'job.conflict') return 'done';
      const reason = error instanceof RequestError ? error.message : faultOf(error).reason;
      await change(due, (current) => failedOf(current, `a re-index job could not be started: ${reason}`, clock.nowMs()));
    }
    return 'done';
  }

  /**
   * Asks the bucket before a job is begun. If it refuses, the mark waits and shows why; no failure is counted. A bucket of which no answer is
   * to be expected comes after the others. S3's clock must agree that the mark is due: a process whose clock is fast would begin job after job.
   */
  async function ask(due: DirtyMark, { regions, isPutOff, signal }: Round): Promise<Turn | 'answers'> {
    const record = await readRecord(state, refs.bucket(due.bucket), signal);
    if (record === undefined) return 'answers';
    if (!isPutOff && (regions.hangs(record) || isFailing(record))) return 'later';
    const answer = await askToRepair(record, due.prefix ?? '', signal);
    const fault = 'code' in answer ? answer : undefined;
    regions.visited(record, fault?.code);
    if ('atMs' in answer) return dueAtMs(due, answer.atMs) <= answer.atMs + FAST_MAX_MS ? 'answers' : 'done';
    const { code, reason: what } = answer;
    const reason = `the bucket cannot be re-indexed now: ${code}: ${what}`;
    await change(due, (current) => refusedOf(current, reason, clock.nowMs()));
    return 'done';
  }

  /** Stores what `alter` returns for the current mark; none, if it is gone. Reports that a job failed to repair it or could not begin. */
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
 * The mark to repair now: the bucket's, since its job covers those of keys as well, or that of the key which has waited longest. None while
 * no mark is due.
 */
function firstDue(marks: readonly DirtyMark[], nowMs: number): DirtyMark | undefined {
  const due = marks.filter((mark) => dueAtMs(mark, nowMs) <= nowMs);
  return due.find(({ prefix }) => prefix === undefined) ?? due.toSorted((a, b) => dueAtMs(a, nowMs) - dueAtMs(b, nowMs))[0];
}

/** A mark that closes meanwhile is closed in the next round. */
function openOr(after: ReturnType<typeof afterLook>, before: DirtyMark): DirtyMark {
  return 'closedBy' in after ? before : after;
}

/**
 * Removes the mark of a bucket that is no longer connected: no job can close it. A bucket that is connected at this moment stores its
 * mark before its record, and looks for the mark after it: so the mark is read before the record here, and removed only as it was read.
 */
async function forget(state: StateStore, bucket: string, id: string): Promise<void> {
  const entry = await state.get(id);
  const isGone = entry !== undefined && (await readRecord(state, refs.bucket(bucket))) === undefined;
  if (isGone) await state.remove(id, entry.version);
}

/** The latest apply job of each connected bucket, or of one. A bucket with a record that this version cannot read is connected as well. */
async function latestJobsOf(state: StateStore, only?: string): Promise<Round['latestJobs']> {
  const { length } = refs.bucket('').id;
  const buckets = only === undefined ? await listAllEntries(state, 'bucket') : [(await state.get(refs.bucket(only).id)) ?? []].flat();
  return new Map(buckets.map(({ id, record }) => [id.slice(length), bucketRecordSchema.safeParse(record).data?.applyJobId]));
}

/** When to ask a bucket again that refuses; 0 if it does not refuse. */
function askedAgainAtMs(marks: readonly DirtyMark[]): number {
  return Math.max(...marks.map(({ refusedSinceMs, waits }) => (refusedSinceMs === undefined ? 0 : (waits?.untilMs ?? 0))));
}

/** Buckets that answer come first; of the others, those that have waited longest. An outage of many buckets must not delay the others. */
function inTurn(buckets: ReadonlyMap<string, readonly DirtyMark[]>): readonly (readonly [string, readonly DirtyMark[]])[] {
  return [...buckets].toSorted(([, a], [, b]) => askedAgainAtMs(a) - askedAgainAtMs(b));
}

// ── whether a bucket can be re-indexed now ─────────────────────────────────────────────────────────────────────────

/** What does not answer within this time refuses: one bucket must not delay the gaps of the others. */
const ANSWER_MAX_MS = 10_000;

/** Resolves with the fault that keeps a re-index under the prefix from beginning, or with the time by S3's clock. Rejects with the signal's reason. */
export type AskToRepair = (bucket: BucketRecord, prefix: string, signal: AbortSignal) => Promise<Fault | { readonly atMs: number }>;

interface AskDependencies {
  readonly listing: BucketListing;
  readonly objects: Pick<ObjectIndex, 'probeBucket'>;
  readonly clock: Clock;
}

/**
 * Creates the question whether a bucket can be re-indexed now: to S3 for one key of its listing, and to its index for a write
 * that stores nothing. A job that begins and cannot do anything would occupy the bucket and fail again and again.
 */
export function createAskToRepair({ listing, objects, clock }: AskDependencies): AskToRepair {
  return async function askToRepair(bucket, prefix, signal) {
    const late = (): Error => new FaultError('s3.unavailable', `${bucket.bucket}: no answer within ${ANSWER_MAX_MS / 1_000} s`);
    const ask = async (either: AbortSignal): Promise<{ readonly atMs: number }> => {
      // one request: that it is answered suffices, whether the page has a key or not
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
  };
}
