/** Converts a stored job to its form in the API. */
import type { BucketRecord } from '../../records/bucket.ts';
import { defined } from '../../base/defined.ts';
import { noCounts, shownCounts, type ReconcileCounts } from '../../records/comparison.ts';
import { hasEnded, type JobFault, type JobRecord } from '../../records/job.ts';
import { timeOf, timeOfMaybe } from './fields.ts';
import type { Job, JobCounts } from './job.ts';

/**
 * The price of a request for S3 Standard in us-east-1, in US dollars (https://aws.amazon.com/s3/pricing/, read November
 * 2026). Other regions and storage classes differ by about ten per cent, so costs are estimates.
 */
const LIST_USD = 0.005 / 1_000;
const HEAD_USD = 0.0004 / 1_000;

/** The job as people see it. `waiting`: its bucket's deletions that wait for a person. */
export function jobView(job: JobRecord, { nowMs, waiting = [] }: { readonly nowMs: number } & Pick<BucketRecord, 'waiting'>): Job {
  const { startedAtMs, comparingAtMs } = job;
  return {
    id: job.id,
    bucket: job.bucket,
    prefix: job.prefix,
    mode: job.mode,
    requested_by: job.requestedBy,
    state: job.state,
    created_at: timeOf(job.createdAtMs),
    started_at: timeOfMaybe(startedAtMs),
    finished_at: timeOfMaybe(job.finishedAtMs),
    fill: job.fill,
    now: job.now,
    phase: startedAtMs === undefined ? undefined : comparingAtMs === undefined ? 'waiting' : 'comparing',
    waits_until: timeOfMaybe(job.waitUntilMs),
    covers_before: timeOfMaybe(job.coversBeforeMs),
    paused_ms: job.pausedMs,
    waiting: waitingOf(job, waiting),
    comparing_at: timeOfMaybe(comparingAtMs),
    examples: job.examples,
    overdue: job.overdue,
    error: job.error,
    last_fault: hasEnded(job) ? undefined : lastFaultOf(job),
    ...(comparingAtMs !== undefined && job.counts !== undefined && measuresOf(job, job.counts, nowMs)),
  };
}

/** Absent while the job runs, because it may hold back more. */
function waitingOf({ id, state }: JobRecord, all: NonNullable<BucketRecord['waiting']>): Job['waiting'] {
  const found = all.find(({ jobId }) => jobId === id);
  if (found?.count === undefined || state === 'queued' || state === 'running') return undefined;
  return { deletions: found.count, declined_at: timeOfMaybe(found.declinedAtMs) };
}

/** What prevents a job from continuing. */
function lastFaultOf({ parts = [], waits }: JobRecord): Job['last_fault'] {
  const fault: JobFault | undefined = waits ?? parts.find((part) => part.fault !== undefined)?.fault;
  return fault && { code: fault.code, reason: fault.reason, ...defined({ after: fault.after }) };
}

function measuresOf(job: JobRecord, counts: ReconcileCounts, nowMs: number): Partial<Job> {
  return {
    counts: countsView(counts),
    progress: progressOf(job, counts),
    objects_per_s: rateOf(job, counts, nowMs),
    cost_usd: counts.list_requests * LIST_USD + counts.head_requests * HEAD_USD,
  };
}

/** A running job never shows a progress of 1. */
const PROGRESS_MAX_RUNNING = 0.99;

/**
 * The scanned share of the documents at the job's start. How many keys the index lacks is unknown, so there is no value once more objects
 * were listed than there were documents.
 */
function progressOf({ state, documentsAtStart = 0 }: JobRecord, { listed, scanned }: ReconcileCounts): number | undefined {
  if (state === 'done') return 1;
  if (documentsAtStart === 0 || listed > documentsAtStart) return undefined;
  return Math.min(PROGRESS_MAX_RUNNING, scanned / documentsAtStart);
}

function rateOf(
  { comparingAtMs = 0, finishedAtMs, pausedAtMs, pausedMs = 0 }: JobRecord,
  { listed }: ReconcileCounts,
  nowMs: number,
): number | undefined {
  const elapsedMs = (finishedAtMs ?? pausedAtMs ?? nowMs) - comparingAtMs - pausedMs;
  return elapsedMs > 0 ? (listed * 1_000) / elapsedMs : undefined;
}

function countsView(counts: ReconcileCounts): JobCounts {
  const { differed: _, ...shown } = shownCounts(counts);
  return { ...shown, equal: shown.equal + shown.incomplete };
}

/** The counts of a job that has compared nothing yet. */
export const zeroCounts: JobCounts = countsView(noCounts);
