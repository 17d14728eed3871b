import { defined } from '../defined.ts';
import { asleep } from './claims.ts';
import { shownCounts, type ReconcileCounts, type ShownCounts } from './counts.ts';
import { hasEnded, type JobFault, type jobPhases, type JobRecord } from './job.ts';
import { stoppedAfter } from './parts.ts';

/**
 * The price of a request for S3 Standard in us-east-1, in US dollars (https://aws.amazon.com/s3/pricing/, read November
 * 2026). Other regions and storage classes differ by about ten per cent, so costs are estimates.
 */
const LIST_USD = 0.005 / 1_000;
const HEAD_USD = 0.0004 / 1_000;

/** A job as it is shown to users. */
export interface JobView extends Omit<JobRecord, 'parts' | 'dueAtMs' | 'lease' | 'fruitless' | 'waits' | 'counts'> {
  /** What it does, or did last: absent until it has begun. */
  readonly phase?: (typeof jobPhases)[number];
  /** Present once comparing began. */
  readonly counts?: ShownCounts;
  /** 0 to 1; absent while it is unknown, because the bucket has more objects than the index had documents when the job began. */
  readonly progress?: number;
  /** Objects listed per second of comparing, without pauses. */
  readonly objectsPerSecond?: number;
  /** Of a running job: keys up to this one, inclusive, are compared. Keys beyond it may be compared as well. */
  readonly cursor?: string;
  /** The estimated cost of the job's S3 requests so far, in US dollars. */
  readonly costUsd?: number;
  /** A fault of one of its parts, or of its start; it is tried again. */
  readonly lastFault?: JobFault;
}

/** The estimated cost of the requests, in US dollars. */
export function costUsd({ listRequests, headRequests }: Pick<ReconcileCounts, 'listRequests' | 'headRequests'>): number {
  return listRequests * LIST_USD + headRequests * HEAD_USD;
}

/** The job as it is shown to users. */
export function viewOf(job: JobRecord, nowMs: number): JobView {
  const { parts = [], waits, fruitless: _, counts, ...rest } = job;
  const shown = { ...asleep(rest), ...phaseShown(job) };
  const measures = job.comparingAtMs === undefined ? {} : measuresOf(job, counts, nowMs);
  if (hasEnded(job)) return { ...shown, ...measures };
  const fault = waits ?? parts.find((part) => part.fault !== undefined)?.fault;
  const cursor = stoppedAfter({ parts }) ?? '';
  const lastFault = fault && { code: fault.code, reason: fault.reason, ...defined({ after: fault.after }) };
  return { ...shown, ...measures, ...(cursor !== '' && { cursor }), ...defined({ lastFault }) };
}

function phaseShown({ startedAtMs, comparingAtMs }: JobRecord): Pick<JobView, 'phase'> {
  if (startedAtMs === undefined) return {};
  return { phase: comparingAtMs === undefined ? 'waiting' : 'comparing' };
}

function measuresOf(job: JobRecord, counts: ReconcileCounts | undefined, nowMs: number): Partial<JobView> {
  if (counts === undefined) return {};
  const progress = progressOf(job, counts);
  const objectsPerSecond = rateOf(job, counts, nowMs);
  return {
    counts: shownCounts(counts),
    ...defined({ progress, objectsPerSecond }),
    costUsd: costUsd(counts),
  };
}

/** A job that is still running never shows a progress of 1. */
const PROGRESS_MAX_RUNNING = 0.99;

/**
 * The share of the documents at the job's start that were scanned. The number of keys that the index lacks is unknown:
 * once more objects were listed than there were documents, there is no progress value.
 */
function progressOf({ state, documentsAtStart = 0 }: JobRecord, { listed, scanned }: ReconcileCounts): number | undefined {
  if (state === 'done') return 1;
  if (documentsAtStart === 0 || listed > documentsAtStart) return undefined;
  return Math.min(PROGRESS_MAX_RUNNING, scanned / documentsAtStart);
}

function rateOf(job: JobRecord, { listed }: ReconcileCounts, nowMs: number): number | undefined {
  if (job.comparingAtMs === undefined) return undefined;
  const untilMs = job.finishedAtMs ?? job.pausedAtMs ?? nowMs;
  const elapsedMs = untilMs - job.comparingAtMs - (job.pausedMs ?? 0);
  return elapsedMs > 0 ? (listed * 1_000) / elapsedMs : undefined;
}
