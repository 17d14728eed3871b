/**
 * What must be true in every year: each reported change is repaired in time, no gap is closed without a job that covers it, and
 * no job stands still.
 *
 * **How long a change may wait for its repair**, counted from its report, or from the gap's lastSeen where a fast clock stored one
 * that is ahead. Derived from docs/operate/reindex-gaps.md:
 *
 * | what | time |
 * |---|---|
 * | any gap | 10 min until its job starts (60 s of quiet at best), and the job |
 * | `bulk-delete` gap that is covered | a day instead of 10 min |
 * | over the budget | until what other jobs used is paid for to within a day: a day at most, or as many days as oversized jobs have used budgets. Older gaps of the same bucket come first |
 * | a job that a person paused or cancelled, or that failed | up to 6 h until the next attempt, and the budget that the job had reserved |
 * | stored times | as far as the clock of any process is wrong |
 *
 * The time does not pass while the bucket or S3 refuses, nor while a person must decide: about deletions that are held back, about a
 * bucket that was added with --no-reindex, and about a bucket that is not connected.
 */
import type { GapRecord, GapReport } from '../../../../src/domain/gaps/gap.ts';
import { gapId, isTimedByAws } from '../../../../src/domain/gaps/gap.ts';
import { lastBeginOf } from '../../../../src/domain/reindex/covers.ts';
import type { JobRecord } from '../../../../src/domain/reindex/job.ts';
import { readRecord, refs } from '../../../../src/pipeline/records/stored.ts';
import { DAY_MS, HOUR_MS, SKEWS_MS, type World } from './world.ts';

/** The simulation looks at idle gaps every twenty minutes to two hours only, and jobs take minutes; another job may be running first. */
const SLACK_MS = 4 * HOUR_MS;
const OPEN_MS = 10 * 60_000;
/** What an attempt that failed may add. */
const ATTEMPT_MS = 6 * HOUR_MS;
/** What the clocks of processes may add: times that the fastest stored, as the slowest reads them. */
const CLOCK_MS = Math.max(...SKEWS_MS) - Math.min(...SKEWS_MS);
/** A job that nobody disturbs ends within this time, even if its workers are killed several times. */
const JOB_MS = HOUR_MS / 2;

/** What the budget may add in a bucket: at first, and after each attempt that used some of it. */
const BUDGET_MS: Readonly<Record<string, { readonly first: number; readonly again: number }>> = {
  ample: { first: 0, again: 0 },
  // two gaps at most come first, each of which may have to wait for a day
  tight: { first: 3 * DAY_MS, again: DAY_MS },
  // the whole bucket costs the budgets of 2.5 days, one part those of 1.2
  large: { first: 3.7 * DAY_MS, again: 2.5 * DAY_MS },
};

/** A change that was reported and must be repaired. */
interface Duty {
  readonly bucket: string;
  readonly gapId: string;
  readonly prefix: string;
  readonly kind: GapRecord['kind'];
  readonly seenAtMs: number;
  /** The latest beginning of a job before it was noticed. */
  readonly afterBeginOrder: number;
  readonly isCovered: boolean;
  readonly tags: boolean;
  readonly keys: readonly string[];
  /** Its time counts from here. */
  sinceMs: number;
  allowanceMs: number;
}

interface Covering {
  readonly prefix: string;
  readonly coversBeforeMs: number;
  readonly beginOrder: number;
  readonly tags: boolean;
}

export interface Ledger {
  readonly violations: readonly string[];
  /** How many changes were reported, and how many gaps closed. */
  readonly counts: { reported: number; closed: number; jobs: number };
  /** The latest beginning of a job of the bucket, to be asked when a change is noticed. */
  begun(bucket: string): Promise<number>;
  /** This report was made, after this beginning was read; `keys`: those that it is about. */
  reported(report: GapReport, afterBeginOrder: number, keys: readonly string[]): Promise<void>;
  /** Something was done to the bucket that may cost its gaps an attempt. */
  disturbed(bucket: string): void;
  /** The bucket is no longer connected, or is connected again. */
  reset(bucket: string): void;
  gapClosed(gap: GapRecord): void;
  /** Looks at everything; to be called after each step. */
  check(): Promise<void>;
}

/** Creates the ledger of a world, which exists by the first call. */
export function createLedger(worldOf: () => World): Ledger {
  let duties: Duty[] = [];
  const violations: string[] = [];
  const counts = { reported: 0, closed: 0, jobs: 0 };
  const coverings = new Map<string, Covering[]>();
  const noted = new Set<string>();
  const closed: GapRecord[] = [];
  /** Since when the job of each bucket has been able to run. */
  const runningSince = new Map<string, { readonly jobId: string; readonly atMs: number }>();

  function violated(what: string): void {
    if (violations.length < 20) violations.push(`${new Date(worldOf().clock.nowMs()).toISOString()}: ${what}`);
  }

  function isCovering(covering: Covering, duty: Pick<Duty, 'kind' | 'prefix' | 'seenAtMs' | 'afterBeginOrder' | 'tags'>): boolean {
    const isLater = isTimedByAws(duty.kind) || covering.beginOrder > duty.afterBeginOrder;
    return isLater && covering.coversBeforeMs > duty.seenAtMs && duty.prefix.startsWith(covering.prefix) && (!duty.tags || covering.tags);
  }

  /** A job that is done has repaired what it covers, but for the deletions that its deletion limit held back, which a gap of their own stands for. */
  async function noteDone(job: JobRecord): Promise<void> {
    if (noted.has(job.id)) return;
    noted.add(job.id);
    counts.jobs += 1;
    if (job.mode !== 'apply' || job.now === true || job.coversBeforeMs === undefined) return;
    const { prefix, coversBeforeMs, beginOrder = 0 } = job;
    const covering = { prefix, coversBeforeMs, beginOrder, tags: job.tags === true };
    coverings.set(job.bucket, [...(coverings.get(job.bucket) ?? []).slice(-9), covering]);
    const repaired = duties.filter((duty) => duty.bucket === job.bucket && isCovering(covering, duty));
    if (repaired.length === 0) return;
    duties = duties.filter((duty) => !repaired.includes(duty));
    if ((job.counts?.held ?? 0) > 0) return checkHeld(job);
    const found = await worldOf().found(job.bucket);
    for (const { keys } of repaired) for (const key of keys) compareKey(job, key, found);
  }

  async function checkHeld({ id, bucket }: JobRecord): Promise<void> {
    const isShown = (await worldOf().gaps()).some((gap) => gap.bucket === bucket && gap.kind === 'held-deletes' && gap.state !== 'closed');
    if (!isShown) violated(`${id} of ${bucket} held deletions back, and no open gap says so`);
  }

  function compareKey(job: JobRecord, key: string, found: ReadonlySet<string>): void {
    const object = worldOf().s3s.get(job.bucket)?.objects.get(key);
    if (object === undefined && found.has(key)) violated(`${key} of ${job.bucket} is gone, and found after ${job.id}`);
    if (object !== undefined && (object.lastModifiedMs ?? 0) < (job.coversBeforeMs ?? 0) && !found.has(key))
      violated(`${key} of ${job.bucket} exists, and is not found after ${job.id}`);
  }

  async function checkClosed(): Promise<void> {
    for (const gap of closed.splice(0)) {
      counts.closed += 1;
      const job = gap.jobId === undefined ? undefined : await readRecord(worldOf().state, refs.job(gap.jobId));
      if (job?.state === 'done') await noteDone(job);
      const covering = (coverings.get(gap.bucket) ?? []).find((each) =>
        isCovering(each, {
          kind: gap.kind,
          prefix: gap.prefix ?? '',
          seenAtMs: gap.lastSeenMs,
          afterBeginOrder: gap.afterBeginOrder ?? 0,
          tags: gap.tags === true,
        }),
      );
      const open = duties.filter((duty) => duty.gapId === gap.id);
      if (covering === undefined || open.length > 0)
        violated(`${gap.id} was closed by ${gap.jobId} without a job that covers it (${open.length} open)`);
    }
  }

  async function checkJob(bucket: string): Promise<void> {
    const world = worldOf();
    const job = await world.latestJob(bucket);
    if (job?.state === 'done') await noteDone(job);
    const isRunning = job !== undefined && (job.state === 'queued' || job.state === 'running');
    if (!isRunning || world.troubles.has(bucket)) return void runningSince.delete(bucket);
    const since = runningSince.get(bucket);
    if (since?.jobId !== job.id) return void runningSince.set(bucket, { jobId: job.id, atMs: world.clock.nowMs() });
    if (world.clock.nowMs() - since.atMs > JOB_MS) violated(`${job.id} of ${bucket} has not ended: ${JSON.stringify(job)}`);
  }

  function allowedMs({ bucket, isCovered, allowanceMs }: Duty): number {
    return (isCovered ? DAY_MS : OPEN_MS) + SLACK_MS + CLOCK_MS + (BUDGET_MS[bucket]?.first ?? 0) + allowanceMs;
  }

  async function checkDuties(): Promise<void> {
    const world = worldOf();
    const nowMs = world.clock.nowMs();
    const gaps = new Map((await world.gaps()).map((gap) => [gap.id, gap]));
    for (const duty of duties) {
      const gap = gaps.get(duty.gapId);
      if (gap === undefined || gap.state === 'closed' || gap.lastSeenMs < duty.seenAtMs)
        violated(`no open gap stands for a change of ${duty.gapId}: ${JSON.stringify(gap)}`);
      const waitsForPerson = gap?.held === true || gap?.heldDeletes !== undefined;
      if (waitsForPerson || world.troubles.has(duty.bucket)) duty.sinceMs = Math.max(duty.sinceMs, nowMs);
      if (nowMs - duty.sinceMs <= allowedMs(duty)) continue;
      violated(`a change of ${duty.gapId} was not repaired within ${(allowedMs(duty) / HOUR_MS).toFixed(1)} h: ${JSON.stringify(gap)}`);
      duty.sinceMs = Infinity;
    }
  }

  return {
    violations,
    counts,
    async begun(bucket) {
      const record = await readRecord(worldOf().state, refs.bucket(bucket));
      return record === undefined ? 0 : lastBeginOf(record);
    },
    async reported(report, afterBeginOrder, keys) {
      const { bucket, kind, prefix = '', seenAtMs, calls } = report;
      const nowMs = worldOf().clock.nowMs();
      const duty: Duty = {
        bucket,
        gapId: gapId(report),
        kind,
        prefix,
        seenAtMs,
        afterBeginOrder,
        isCovered: calls !== undefined && calls.every(({ isReported }) => isReported),
        tags: report.tags === true,
        keys,
        sinceMs: Math.max(nowMs, seenAtMs),
        allowanceMs: 0,
      };
      counts.reported += 1;
      // a bulk delete that is reported late may be repaired already
      if ((coverings.get(bucket) ?? []).some((covering) => isCovering(covering, duty))) return;
      if (await worldOf().isConnected(bucket)) duties.push(duty);
    },
    disturbed(bucket) {
      for (const duty of duties) if (duty.bucket === bucket) duty.allowanceMs += ATTEMPT_MS + (BUDGET_MS[bucket]?.again ?? 0);
    },
    reset(bucket) {
      duties = duties.filter((duty) => duty.bucket !== bucket);
      coverings.delete(bucket);
    },
    gapClosed: (gap) => void closed.push(gap),
    async check() {
      for (const bucket of worldOf().s3s.keys()) await checkJob(bucket);
      await checkClosed();
      await checkDuties();
    },
  };
}
