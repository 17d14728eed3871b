import { z } from 'zod';
import { addCounts, addExamples, examplesSchema, noCounts, type DifferenceExamples, type ReconcileCounts } from './counts.ts';
import { compareKeys } from '../documents/key-order.ts';
import { hasEnded, jobFaultSchema, jobSchema, type JobRecord, type RangeRecord } from './job.ts';

/**
 * What S3 Standard charges in us-east-1 (https://aws.amazon.com/s3/pricing/, read November 2026), in US dollars a
 * request. Other regions and storage classes differ by some ten per cent: what is made of it is an estimate.
 */
const LIST_USD = 0.005 / 1_000;
const HEAD_USD = 0.0004 / 1_000;

/** What only the workers need. */
const internal = { cuts: true, rangesDone: true, listRequestsAtStart: true, taskAtMs: true, resends: true } as const;

/** A job as it is shown: `counts` and `examples` are there from its first range on, summed up while it runs. */
export const jobViewSchema = jobSchema.omit(internal).extend({
  /** 0 to 1; absent while nobody knows: the bucket holds more than the index did when the job began. */
  progress: z.number().optional(),
  /** Objects listed per second of comparing, pauses left out. */
  objectsPerSecond: z.number().optional(),
  examples: examplesSchema.optional(),
  ranges: z.object({ cut: z.number(), done: z.number(), leased: z.number() }),
  /** Keys up to this one, inclusive, are compared, while it runs; ranges beyond it may be as well. */
  cursor: z.string().optional(),
  /** What S3 charges for the job's requests so far: an estimate. */
  costUsd: z.number().optional(),
  /** The latest fault of one of its ranges, which is tried again. */
  lastFault: jobFaultSchema.optional(),
});
export type JobView = z.infer<typeof jobViewSchema>;

/** An estimate in US dollars, of requests alone. */
export function costUsd({ listRequests, headRequests }: Pick<ReconcileCounts, 'listRequests' | 'headRequests'>): number {
  return listRequests * LIST_USD + headRequests * HEAD_USD;
}

/** What a job's ranges add up to, with what the job itself asked of S3. */
export function sumOf(
  job: Pick<JobRecord, 'listRequestsAtStart' | 'brake'>,
  ranges: readonly Pick<RangeRecord, 'counts' | 'examples' | 'done'>[],
): { readonly counts: ReconcileCounts; readonly examples: DifferenceExamples; readonly rangesDone: number } {
  const counts = ranges.reduce((sum, range) => addCounts(sum, range.counts), noCounts);
  return {
    counts: addCounts(counts, { listRequests: job.listRequestsAtStart ?? 0, held: job.brake?.waiting ?? 0 }),
    examples: ranges.reduce<DifferenceExamples>((sum, { examples = {} }) => addExamples(sum, examples), {}),
    rangesDone: ranges.filter(({ done }) => done).length,
  };
}

/** The job as it is shown. `ranges`: its range records, in the order of their numbers; of one that has ended they are not needed, and its examples are not there. */
export function viewOf(job: JobRecord, ranges: readonly RangeRecord[], nowMs: number): JobView {
  const { cuts: _, rangesDone = 0, listRequestsAtStart: __, taskAtMs: ___, resends: ____, ...shown } = job;
  const cut = Math.max(job.rangesCut ?? 0, ranges.length);
  if (hasEnded(job)) return { ...shown, ...measuresOf(job, job.counts, nowMs), ranges: { cut, done: rangesDone, leased: 0 } };
  if (job.comparingAtMs === undefined) return { ...shown, ranges: { cut, done: 0, leased: 0 } };
  const { counts, examples, rangesDone: done } = sumOf(job, ranges);
  const leased = ranges.filter(({ lease }) => lease !== undefined && lease.untilMs > nowMs).length;
  const fault = ranges.find(({ error }) => error !== undefined)?.error;
  const cursor = ranges.length < cut ? '' : cursorOf(ranges);
  return {
    ...shown,
    counts,
    examples,
    ...measuresOf(job, counts, nowMs),
    ranges: { cut, done, leased },
    ...(cursor !== '' && { cursor }),
    ...(fault !== undefined && { lastFault: fault }),
  };
}

/** Where the first range in key order is that is not done; empty where nothing is. */
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
    ...(progress !== undefined && { progress }),
    ...(objectsPerSecond !== undefined && { objectsPerSecond }),
    costUsd: costUsd(counts),
  };
}

/** No job that still runs shows that it is ready. */
const PROGRESS_MAX_RUNNING = 0.99;

/**
 * The share of the documents at its start that were passed. Keys that the index does not know yet are of no known
 * number: once there are more of them than documents were, nothing is said.
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
