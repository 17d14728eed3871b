/** What closing gaps costs each bucket: estimated before a job begins, noted once it has, and put right when it has ended. */
import { freshBudget, withEnded, withJob, type GapBudget, type Limits } from '../../domain/gaps/budget.ts';
import { prefixesOf } from '../../domain/gaps/plan.ts';
import type { GapRecord } from '../../domain/gaps/gap.ts';
import { hasEnded, type JobRecord } from '../../domain/reindex/job.ts';
import type { ObjectScan } from '../ports/object-index.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';

/** Keys of one LIST page. */
const PAGE_KEYS = 1_000;

interface BudgetDependencies {
  readonly state: StateStore;
  readonly scan: Pick<ObjectScan, 'countLive'>;
  readonly limits: () => Limits;
}

/** Creates the access to all budgets. Each part throws the store's fault. */
export function createGapBudgets({ state, scan, limits }: BudgetDependencies) {
  /** What the index knows is listed; the first page is read in any case. */
  async function requestsOf(bucket: string, prefix: string, signal: AbortSignal): Promise<number> {
    return 1 + Math.ceil((await scan.countLive(bucket, prefix, signal)) / PAGE_KEYS);
  }

  async function read(bucket: string, signal: AbortSignal): Promise<GapBudget> {
    return (await readRecord(state, refs.gapBudget(bucket), signal)) ?? freshBudget(bucket);
  }

  /** A job that was begun. */
  async function note({ id, bucket, createdAtMs }: JobRecord, requests: number): Promise<void> {
    const entry = { jobId: id, atMs: createdAtMs, requests };
    await updateRecord(state, refs.gapBudget(bucket), (budget) => withJob(budget ?? freshBudget(bucket), entry));
  }

  return {
    read,
    note,
    /** Of a job that was begun by a worker which may have died before it noted that. */
    async noteIfUnknown(job: JobRecord, signal: AbortSignal): Promise<void> {
      const { running } = await read(job.bucket, signal);
      if (running.some(({ jobId }) => jobId === job.id)) return;
      await note(job, await requestsOf(job.bucket, job.prefix, signal));
    },
    /** LIST requests by prefix: of the whole bucket, of the gaps' prefixes and of what these have in common. */
    async costsOf(bucket: string, due: readonly GapRecord[], signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
      const { parts, common } = prefixesOf(due.filter(({ prefix = '' }) => prefix !== ''));
      const costs = new Map<string, number>();
      for (const prefix of new Set(['', common, ...parts])) costs.set(prefix, await requestsOf(bucket, prefix, signal));
      return costs;
    },
    /** What ended jobs really cost takes the place of what was expected of them. */
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
