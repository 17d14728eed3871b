/** The LIST requests that closing gaps costs each bucket: estimated and noted when a job starts, and corrected when it has ended. */
import { freshBudget, withEnded, withJob, type GapBudget, type Limits } from '../../domain/gaps/budget.ts';
import { prefixesOf } from '../../domain/gaps/plan.ts';
import type { GapRecord } from '../../domain/gaps/gap.ts';
import { hasEnded, type JobRecord } from '../../domain/reindex/job.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectScan } from '../ports/object-index.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';

/** Keys of one LIST page. */
const PAGE_KEYS = 1_000;

/** Creates the access to all budgets. Each function throws the store's fault. */
export function createGapBudgets({
  state,
  scan,
  requestsPerDay,
  clock,
}: {
  readonly state: StateStore;
  readonly scan: Pick<ObjectScan, 'countLive'>;
  readonly requestsPerDay: number;
  readonly clock: Pick<Clock, 'nowMs'>;
}) {
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
