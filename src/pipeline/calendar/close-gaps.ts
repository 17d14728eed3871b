/**
 * Closes gaps. One round reads how their jobs ended and starts a job for the gaps that are due. Each decision is made on the
 * record as it is when it is changed, so that no new report is missed. A crash does no harm: a job that was started but not
 * noted is found again as the bucket's latest job.
 */
import { freshBudget, gapBudgetSchema, withEnded, withJob, type GapBudget, type Limits } from '../../domain/gaps/budget.ts';
import {
  closing,
  failedOf,
  gapAfterLook,
  gapAfterOther,
  gapDueAtMs,
  overBudget,
  refused,
  waiting,
  withClockReason,
} from '../../domain/gaps/closing.ts';
import { chooseJob, commonPrefix, jobsOf, prefixesOf, type Choice, type GapJobPlan } from '../../domain/gaps/plan.ts';
import { FaultError, faultOf, type Fault } from '../../domain/fault.ts';
import { gapSchema, type GapRecord } from '../../domain/gaps/gap.ts';
import { hasEnded, occupiesBucket, type JobRecord } from '../../domain/reindex/job.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { ObjectIndex, ObjectScan } from '../ports/object-index.ts';
import { createRegionNotes, visitInTurn, type RegionNotes, type Turn } from './bucket-turns.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import type { BucketListing, BucketLocation } from '../ports/storage.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { listAllIds, listAllRecords, parseEntry, readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';
import { bucketRecordSchema, type BucketRecord } from '../../domain/bucket.ts';
import { withDeadline } from '../serving/async.ts';
import type { WithPorts } from '../ports/ports.ts';

/** Starts a re-index on Tally's own initiative. Throws `job.conflict` (a RequestError) if another job occupies the bucket. */
export type StartJob = (
  request: {
    readonly bucket: string;
    readonly prefix: string;
    readonly mode: 'apply';
    readonly requestedBy: 'gap' | 'schedule';
    readonly gapIds: readonly string[];
    readonly tags?: boolean;
    readonly fill?: boolean;
    readonly holds?: boolean;
  },
  signal?: AbortSignal,
) => Promise<JobRecord>;

interface CloseGapsDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly scan: Pick<ObjectScan, 'countLive'>;
  readonly startJob: StartJob;
  readonly askToRepair: AskToRepair;
  /** LIST requests that closing the gaps of one bucket may take within a day. 0: gaps stay open. */
  readonly requestsPerDay: number;
  /** Whether the circuit of the bucket or of its endpoint is open in this process. Default: of none. */
  readonly isFailing?: (bucket: BucketLocation) => boolean;
}

/** One round, as its visits see it. */
interface Round {
  readonly regions: RegionNotes;
  /** The latest apply job of each bucket that has had one. */
  readonly latestJobs: ReadonlyMap<string, string>;
  /** Whether the bucket was put off in this round already. */
  readonly isPutOff: boolean;
  readonly signal: AbortSignal;
}

/** The requests to one bucket take up to 10 s, which must not add up: the promise is a job within ten minutes, however many buckets hang. */
const BUCKETS_AT_ONCE = 16;
/** Gaps of one bucket that one round plans, since each prefix is counted in the index. Later rounds plan the others. */
const DUE_MAX = 100;
/** When to look again at a budget of 0: a worker with another setting may have a budget. */
const NO_BUDGET_CHECK_MS = 300_000;
/** How long one round asks buckets that have refused before, or whose region does not answer. The next round asks the others first. */
const ASKING_MAX_MS = 60_000;
/** Closed gaps of single keys are removed after this time. There is one for each object that ever failed, unlike those of a whole bucket. */
const CLOSED_KEPT_MS = 7 * 86_400_000;

/** Creates the function that runs one round. A fault of one bucket is reported, and the other buckets follow. Throws the store's fault. */
export function createCloseGaps(dependencies: CloseGapsDependencies) {
  const { state, scan, startJob, askToRepair, clock, telemetry, requestsPerDay, isFailing = () => false } = dependencies;
  const limits = () => ({ nowMs: clock.nowMs(), requestsPerDay });
  const budgets = createGapBudgets({ state, scan, requestsPerDay, clock });
  const jobs = createJobReads(state);

  return async function closeGaps(signal: AbortSignal): Promise<void> {
    const connected = new Set((await listAllIds(state, 'bucket')).map((id) => id.slice(BUCKET_ID.length)));
    for (const budget of await listAllRecords(state, 'gap-budget', gapBudgetSchema)) {
      if (connected.has(budget.bucket)) await budgets.settle(budget);
      else await removeRecord(state, refs.gapBudget(budget.bucket).id);
    }
    const gaps = await listAllRecords(state, 'gap', gapSchema);
    await forgetOldKeys(state, gaps, clock.nowMs());
    const unclosed = gaps.filter((gap) => gap.state !== 'closed' || !connected.has(gap.bucket));
    const askUntilMs = clock.monotonicMs() + ASKING_MAX_MS;
    const regions = createRegionNotes();
    const latestJobs = await latestJobsOf(state, unclosed);
    jobs.beginRound();
    await visitInTurn(inTurn(Map.groupBy(unclosed, (gap) => gap.bucket)), BUCKETS_AT_ONCE, async ([bucket, ofBucket], isPutOff) => {
      signal.throwIfAborted();
      const isLate = clock.monotonicMs() >= askUntilMs;
      if ((isPutOff || askedAgainAtMs(ofBucket) > 0) && isLate) return 'done';
      try {
        if (connected.has(bucket)) return await closeOf(bucket, ofBucket, { regions, latestJobs, isPutOff, signal });
        await forget(state, bucket, ofBucket);
      } catch (error) {
        signal.throwIfAborted();
        telemetry.requestFailed('close the gaps of a bucket', error);
      }
      return 'done';
    });
  };

  async function closeOf(bucket: string, gaps: readonly GapRecord[], round: Round): Promise<Turn> {
    const { signal } = round;
    const jobId = round.latestJobs.get(bucket);
    const latest = jobId === undefined ? undefined : await jobs.read(jobId, signal);
    const looked: GapRecord[] = [];
    for (const gap of gaps) looked.push(await look(gap, latest));
    const open = looked.filter((gap) => gap.state === 'open' && gap.jobId === undefined);
    const due = dueOf(open, clock.nowMs());
    if (latest !== undefined && occupiesBucket(latest)) {
      if (latest.requestedBy === 'gap') await budgets.noteIfUnknown(latest, signal);
      for (const gap of due) await change(gap, (current) => waiting(current, `${latest.id} of this bucket runs first`));
      return 'done';
    }
    if (due.length === 0) return 'done';
    // the list is some time old: a gap may have been reported again since, or be closing by the job of another worker
    const current = await readAgain(state, open, signal);
    const still = dueOf(current, clock.nowMs());
    return still.length > 0 ? begin(bucket, { due: still, open: current }, round) : 'done';
  }

  /** The gap after a look at its own job, or, if it has none, at the bucket's latest job, which may close it too. */
  async function look(gap: GapRecord, latest: JobRecord | undefined): Promise<GapRecord> {
    const { jobId } = gap;
    let looked = gap;
    if (jobId !== undefined) {
      const job = await jobs.read(jobId);
      looked = await change(gap, (current) => (current.jobId === jobId ? gapAfterLook(current, job, clock.nowMs()) : current));
      if (looked.jobId !== undefined || looked.state === 'closed') return looked;
    }
    const other = latest?.id === jobId ? undefined : latest;
    return change(looked, (current) => afterOther(current, other, clock.nowMs()));
  }

  async function begin(
    bucket: string,
    gaps: { readonly due: readonly GapRecord[]; readonly open: readonly GapRecord[] },
    round: Round,
  ): Promise<Turn> {
    const { signal } = round;
    const asked = requestsPerDay > 0 ? await ask(bucket, gaps.due, round) : 'answers';
    if (asked !== 'answers') return asked;
    const costs = await budgets.costsOf(bucket, gaps.due, signal);
    const budget = await budgets.read(bucket, signal);
    const requestsOf = (prefix: string): number => costs.get(prefix) ?? Infinity;
    const choice = chooseJob(jobsOf({ ...gaps, requestsOf, requestsPerDay }), requestsOf, { budget, limits: limits() });
    if (choice.kind === 'start') await start(bucket, choice.plan, { requests: choice.requests, signal });
    else for (const gap of gaps.due) await change(gap, (current) => unaffordable(current, choice, limits()));
    return 'done';
  }

  /**
   * Asks the bucket before a job is begun. If it refuses, its due gaps wait and show why; no failure is counted. A bucket of which no
   * answer is to be expected comes after the others.
   */
  async function ask(bucket: string, due: readonly GapRecord[], { regions, isPutOff, signal }: Round): Promise<Turn | 'answers'> {
    const record = await readRecord(state, refs.bucket(bucket), signal);
    if (record === undefined) return 'answers';
    if (!isPutOff && (regions.hangs(record) || isFailing(record))) return 'later';
    const prefix = commonPrefix(due.map((gap) => gap.prefix ?? ''));
    const fault = await askToRepair(record, prefix, signal);
    regions.visited(record, fault?.code);
    if (fault === undefined) return 'answers';
    const reason = `the bucket cannot be re-indexed now: ${fault.code}: ${fault.reason}`;
    for (const gap of due) await change(gap, (current) => refused(current, reason, clock.nowMs()));
    return 'done';
  }

  async function start(
    bucket: string,
    { prefix, gaps }: GapJobPlan,
    { requests, signal }: { readonly requests: number; readonly signal: AbortSignal },
  ): Promise<void> {
    let job: JobRecord;
    try {
      job = await startJob({ bucket, prefix, mode: 'apply', requestedBy: 'gap', ...wishesOf(gaps) }, signal);
    } catch (error) {
      signal.throwIfAborted();
      // another job occupies the bucket since: the next round finds it
      if (error instanceof RequestError && error.code === 'job.conflict') return;
      const reason = error instanceof RequestError ? error.message : faultOf(error).reason;
      for (const gap of gaps.filter((each) => gapDueAtMs(each) <= clock.nowMs()))
        await change(gap, (current) => failedOf(current, `a re-index job could not be started: ${reason}`, clock.nowMs()));
      return;
    }
    await budgets.note(job, requests);
    for (const gap of gaps) await change(gap, (current) => (current.jobId === undefined ? closing(current, job) : current));
  }

  /**
   * Stores what `alter` returns for the current record, unless that is closed; reports whether the gap closed or a job failed to
   * close it. Where `alter` changes nothing of the gap as it was listed, nothing is read: gaps that only wait cost no request.
   */
  async function change(gap: GapRecord, alter: (gap: GapRecord) => GapRecord): Promise<GapRecord> {
    if (alter(gap) === gap) return gap;
    let before = gap;
    const after = await updateRecord(state, refs.gap(gap.id), (current) => {
      if (current === undefined || current.state === 'closed') return undefined;
      before = current;
      return alter(current);
    });
    if (after === undefined) return { ...gap, state: 'closed' };
    report(telemetry, before, after);
    return after;
  }
}

/** Logs that the gap closed, or that a job did not close it or could not begin. */
function report(telemetry: Telemetry, before: GapRecord, { bucket, kind, prefix, jobId, waits, state, failures = 0 }: GapRecord): void {
  if (state === 'closed') {
    telemetry.info('gap closed', { bucket, kind, prefix, jobId });
  }
  if (failures > (before.failures ?? 0)) {
    telemetry.warn('gap stays open', { bucket, kind, prefix, ...waits });
  }
}

/** Those of the open gaps that are still open without a job, as they are stored now. */
async function readAgain(state: StateStore, open: readonly GapRecord[], signal: AbortSignal): Promise<readonly GapRecord[]> {
  const current: GapRecord[] = [];
  for (const { id } of open) {
    const gap = await readRecord(state, refs.gap(id), signal);
    if (gap?.state === 'open' && gap.jobId === undefined) current.push(gap);
  }
  return current;
}

/**
 * Removes the gaps of a bucket that is no longer connected: no job can close them. A bucket that is connected at this moment stores its
 * gap before its record, and looks for the gap after it: so the gap is read before the record here, and removed only as it was read.
 */
async function forget(state: StateStore, bucket: string, gaps: readonly GapRecord[]): Promise<void> {
  for (const { id, kind } of gaps) {
    // deletions that wait for a person wait also where the bucket was disconnected and its documents stay
    const entry = kind === 'held-deletes' ? undefined : await state.get(id);
    const isGone = entry !== undefined && (await readRecord(state, refs.bucket(bucket))) === undefined;
    if (isGone) await state.remove(id, entry.version);
  }
}

/** The latest apply job of each bucket, by one list. */
async function latestJobsOf(state: StateStore, gaps: readonly GapRecord[]): Promise<ReadonlyMap<string, string>> {
  const buckets = gaps.length === 0 ? [] : await listAllRecords(state, 'bucket', bucketRecordSchema);
  return new Map(buckets.flatMap(({ bucket, applyJobId }) => (applyJobId === undefined ? [] : [[bucket, applyJobId]])));
}

/** The gap that names no job, after a look at the clocks and at the latest job of its bucket. */
function afterOther(gap: GapRecord, job: JobRecord | undefined, nowMs: number): GapRecord {
  if (gap.jobId !== undefined) return gap;
  const reasoned = withClockReason(gap, nowMs);
  return job === undefined ? reasoned : gapAfterOther(reasoned, job, nowMs);
}

interface JobReads {
  beginRound(): void;
  read(jobId: string, signal?: AbortSignal): Promise<JobRecord | undefined>;
}

/**
 * Reads jobs. One that has ended never changes again, so it is read once and remembered until a round that does not ask for it:
 * what is remembered are the jobs that open gaps name, and the latest jobs of their buckets.
 */
function createJobReads(state: StateStore): JobReads {
  let before: ReadonlyMap<string, JobRecord> = new Map();
  let ended = new Map<string, JobRecord>();
  return {
    beginRound() {
      before = ended;
      ended = new Map();
    },
    async read(jobId, signal) {
      const job = ended.get(jobId) ?? before.get(jobId) ?? (await readRecord(state, refs.job(jobId), signal));
      if (job !== undefined && hasEnded(job)) ended.set(jobId, job);
      return job;
    },
  };
}

const BUCKET_ID = refs.bucket('').id;

/** The gaps to plan now: those that are due, and with them those that wait for the budget, so that none is always overtaken. */
function dueOf(open: readonly GapRecord[], nowMs: number): readonly GapRecord[] {
  const isDue = (gap: GapRecord): boolean => gapDueAtMs(gap) <= nowMs;
  if (!open.some(isDue)) return [];
  return open.filter((gap) => gap.overBudget === true || isDue(gap)).slice(0, DUE_MAX);
}

/** The gap for which the budget allows no job now. */
function unaffordable(gap: GapRecord, choice: Exclude<Choice, { readonly kind: 'start' }>, { nowMs, requestsPerDay }: Limits): GapRecord {
  if (choice.kind === 'never') {
    const reason = 'gaps stay open while TALLY_GAPS_LIST_REQUESTS_PER_DAY is 0: re-index the bucket';
    return { ...waiting(gap, reason), notBeforeMs: nowMs + NO_BUDGET_CHECK_MS };
  }
  const reason = `the jobs of its bucket have used the ${requestsPerDay} LIST requests of the day (TALLY_GAPS_LIST_REQUESTS_PER_DAY)`;
  return overBudget(gap, reason, { fromMs: choice.fromMs, nowMs });
}

/** Removes gaps of single keys that were closed long ago. */
async function forgetOldKeys(state: StateStore, gaps: readonly GapRecord[], nowMs: number): Promise<void> {
  const oldMs = nowMs - CLOSED_KEPT_MS;
  for (const { id } of gaps.filter((gap) => isClosedKey(gap, oldMs))) {
    const entry = await state.get(id);
    const isStill = entry !== undefined && isClosedKey(parseEntry(entry, gapSchema), oldMs);
    // a conflict means that it was opened again
    if (isStill) await state.remove(id, entry.version);
  }
}

function isClosedKey({ state, folded, prefix, closedAtMs = 0 }: GapRecord, oldMs: number): boolean {
  return state === 'closed' && folded === true && prefix !== undefined && closedAtMs < oldMs;
}

/**
 * What the job of these gaps does beside comparing. It holds deletions back beyond its deletion limit, since no person waits for it: the
 * rest is repaired all the same.
 */
function wishesOf(gaps: readonly GapRecord[]) {
  return {
    gapIds: gaps.map(({ id }) => id),
    holds: true,
    // documents may lack both, because S3 refused what enrichment reads
    ...(gaps.some(({ tags }) => tags === true) && { tags: true, fill: true }),
  };
}

/** When to ask a bucket again that refuses; 0 if it does not refuse. */
function askedAgainAtMs(gaps: readonly GapRecord[]): number {
  return Math.max(...gaps.map(({ refusedSinceMs, notBeforeMs = 0 }) => (refusedSinceMs === undefined ? 0 : notBeforeMs)));
}

/** Buckets that answer come first; of the others, those that have waited longest. An outage of many buckets must not delay the others. */
function inTurn(buckets: ReadonlyMap<string, readonly GapRecord[]>): readonly (readonly [string, readonly GapRecord[]])[] {
  return [...buckets].toSorted(([, a], [, b]) => askedAgainAtMs(a) - askedAgainAtMs(b));
}

// ── the LIST requests that closing gaps costs: estimated when a job starts, corrected when it has ended ────────────

/** Keys of one LIST page. */
const PAGE_KEYS = 1_000;

/** Creates the access to all budgets. Each function throws the store's fault. */
export function createGapBudgets({
  state,
  scan,
  requestsPerDay,
  clock,
}: WithPorts<'state' | 'clock'> & { readonly scan: Pick<ObjectScan, 'countLive'>; readonly requestsPerDay: number }) {
  const limits = (): Limits => ({ nowMs: clock.nowMs(), requestsPerDay });

  /** Estimates the LIST requests from the documents in the index. One page is read in any case. */
  async function requestsOf(bucket: string, prefix: string, signal: AbortSignal): Promise<number> {
    return 1 + Math.ceil((await scan.countLive(bucket, prefix, signal)) / PAGE_KEYS);
  }

  async function read(bucket: string, signal: AbortSignal): Promise<GapBudget> {
    return (await readRecord(state, refs.gapBudget(bucket), signal)) ?? freshBudget(bucket);
  }

  /** Notes a job that was started, with its estimated requests. */
  async function note({ id, bucket, createdAtMs }: JobRecord, requests: number): Promise<void> {
    const entry = { jobId: id, atMs: createdAtMs, requests };
    await updateRecord(state, refs.gapBudget(bucket), (budget) => withJob(budget ?? freshBudget(bucket), entry, limits()));
  }

  return {
    read,
    note,
    /** Notes a running job whose worker may have died before it did so. */
    async noteIfUnknown(job: JobRecord, signal: AbortSignal): Promise<void> {
      const { running } = await read(job.bucket, signal);
      if (running.some(({ jobId }) => jobId === job.id)) return;
      await note(job, await requestsOf(job.bucket, job.prefix, signal));
    },
    /** Estimated LIST requests by prefix: of the whole bucket, of each gap's prefix and of their common prefix. */
    async costsOf(bucket: string, due: readonly GapRecord[], signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
      const { parts, common } = prefixesOf(due.filter(({ prefix = '' }) => prefix !== ''));
      const costs = new Map<string, number>();
      for (const prefix of new Set(['', common, ...parts])) costs.set(prefix, await requestsOf(bucket, prefix, signal));
      return costs;
    },
    /** Replaces the estimates of jobs that have ended by their real requests. */
    async settle(budget: GapBudget): Promise<void> {
      for (const { jobId, requests: expected } of budget.running) {
        const job = await readRecord(state, refs.job(jobId));
        if (job !== undefined && !hasEnded(job)) continue;
        const ended = { jobId, requests: job?.counts?.listRequests ?? expected };
        const ref = refs.gapBudget(budget.bucket);
        await updateRecord(state, ref, (current) => (current === undefined ? undefined : withEnded(current, ended, limits())));
      }
    },
  };
}

// ── whether a bucket can be re-indexed now ─────────────────────────────────────────────────────────────────────────

/** What does not answer within this time refuses: one bucket must not delay the gaps of the others. */
const ANSWER_MAX_MS = 10_000;

/** Resolves with the fault that keeps a re-index under the prefix from beginning, or undefined. Rejects with the signal's reason. */
export type AskToRepair = (bucket: BucketRecord, prefix: string, signal: AbortSignal) => Promise<Fault | undefined>;

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
    const ask = async (either: AbortSignal): Promise<void> => {
      // one request: that it is answered suffices, whether the page has a key or not
      await listing.page(bucket, { prefix, after: '', limit: 1, from: 'start' }, either);
      await objects.probeBucket(bucket.bucket, either);
    };
    try {
      await withDeadline(clock, { maxMs: ANSWER_MAX_MS, late }, ask, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return faultOf(error);
    }
  };
}
