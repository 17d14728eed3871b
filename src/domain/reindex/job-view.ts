import { defined } from '../defined.ts';
import {
  addCounts,
  addExamples,
  noCounts,
  shownCounts,
  type DifferenceExamples,
  type ReconcileCounts,
  type ShownCounts,
} from './counts.ts';
import { compareKeys } from '../documents/key-order.ts';
import { asleep } from './claims.ts';
import { hasEnded, type JobFault, type JobRecord, type RangeRecord } from './job.ts';

/**
 * The price of a request for S3 Standard in us-east-1, in US dollars (https://aws.amazon.com/s3/pricing/, read November
 * 2026). Other regions and storage classes differ by about ten per cent, so costs are estimates.
 */
const LIST_USD = 0.005 / 1_000;
const HEAD_USD = 0.0004 / 1_000;

/** A job as it is shown to users. `counts` and `examples` are present once comparing began; while the job runs they are sums over its ranges. */
export interface JobView extends Omit<
  JobRecord,
  'cuts' | 'rangesDone' | 'listRequestsAtStart' | 'dueAtMs' | 'lease' | 'fruitless' | 'waits' | 'counts'
> {
  readonly counts?: ShownCounts;
  /** 0 to 1; absent while it is unknown, because the bucket has more objects than the index had documents when the job began. */
  readonly progress?: number;
  /** Objects listed per second of comparing, without pauses. */
  readonly objectsPerSecond?: number;
  readonly examples?: DifferenceExamples;
  readonly ranges: { readonly cut: number; readonly done: number; readonly leased: number };
  /** Of a running job: keys up to this one, inclusive, are compared. Ranges beyond it may be compared as well. */
  readonly cursor?: string;
  /** The estimated cost of the job's S3 requests so far, in US dollars. */
  readonly costUsd?: number;
  /** A fault of one of its ranges, or of its start; it is tried again. */
  readonly lastFault?: JobFault;
}

/** The estimated cost of the requests, in US dollars. */
export function costUsd({ listRequests, headRequests }: Pick<ReconcileCounts, 'listRequests' | 'headRequests'>): number {
  return listRequests * LIST_USD + headRequests * HEAD_USD;
}

/** The sums over a job's ranges, including the LIST requests of the job itself. */
export function sumOf(
  job: Pick<JobRecord, 'listRequestsAtStart'>,
  ranges: readonly Pick<RangeRecord, 'counts' | 'examples' | 'done'>[],
): { readonly counts: ReconcileCounts; readonly examples: DifferenceExamples; readonly rangesDone: number } {
  const counts = ranges.reduce((sum, range) => addCounts(sum, range.counts), noCounts);
  return {
    counts: addCounts(counts, { listRequests: job.listRequestsAtStart ?? 0 }),
    examples: ranges.reduce<DifferenceExamples>((sum, { examples = {} }) => addExamples(sum, examples), {}),
    rangesDone: ranges.filter(({ done }) => done).length,
  };
}

/** The job as it is shown to users. `ranges`: its range records, in the order of their numbers. For an ended job they are not needed, and the view has no examples. */
export function viewOf(job: JobRecord, ranges: readonly RangeRecord[], nowMs: number): JobView {
  const { cuts: _, rangesDone = 0, listRequestsAtStart: __, waits, fruitless: ___, counts: ended, ...rest } = job;
  const shown = asleep(rest);
  const cut = Math.max(job.rangesCut ?? 0, ranges.length);
  if (hasEnded(job)) return { ...shown, ...measuresOf(job, ended, nowMs), ranges: { cut, done: rangesDone, leased: 0 } };
  if (job.comparingAtMs === undefined) return { ...shown, ranges: { cut, done: 0, leased: 0 }, ...startFault(waits) };
  const { counts, examples, rangesDone: done } = sumOf(job, ranges);
  const leased = ranges.filter(({ lease }) => lease !== undefined).length;
  const fault = ranges.find(({ error }) => error !== undefined)?.error;
  const cursor = ranges.length < cut ? '' : cursorOf(ranges);
  return {
    ...shown,
    examples,
    ...measuresOf(job, counts, nowMs),
    ranges: { cut, done, leased },
    ...(cursor !== '' && { cursor }),
    ...(fault !== undefined && { lastFault: fault }),
  };
}

function startFault(waits: JobRecord['waits']): Pick<JobView, 'lastFault'> {
  return waits === undefined ? {} : { lastFault: { code: waits.code, reason: waits.reason } };
}

/** The cursor of the first range, in key order, that is not done; empty when every range is done or nothing was compared. */
function cursorOf(ranges: readonly RangeRecord[]): string {
  const open = ranges.filter(({ done }) => !done);
  const [first] = open.toSorted((a, b) => compareKeys(a.from, b.from));
  return first?.cursor ?? '';
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
