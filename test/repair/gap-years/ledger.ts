/**
 * What must be true in every year: each reported change is repaired in time, no gap is closed without a job that covers it, no
 * job stands still, none is begun again and again, none deletes without consent or more than a person consented to, and no status
 * is green over a change that was reported, or once all is quiet over any difference.
 *
 * **How long a change may wait for its repair**, counted from its report, or from the mark's lastSeen where that lies ahead. Derived
 * from docs/operate/reindex-gaps.md:
 *
 * | what | time |
 * |---|---|
 * | any gap | 10 min until its job starts (60 s of quiet at best), and the job |
 * | two repairs of one bucket | a distance of 20 times what the last one took, a day at most; or three times as long as it took |
 * | a job that a person paused or cancelled, or that failed | up to 6 h until the next attempt |
 * | stored times | as far as the clock of any process is wrong |
 *
 * The time does not pass while the bucket or S3 refuses it, or some of its keys, nor while a person must decide: about what a person has stopped, about a
 * bucket that was added with --no-reindex, and about a bucket that is not connected.
 */
import { isHeld, markId, type DirtyMark, type GapReport, type MarkKind } from '../../../src/records/dirty.ts';
import { lastBeginOf, type JobRecord } from '../../../src/records/job.ts';
import { keysOverlap, type WaitingDeletes } from '../../../src/records/waiting-deletes.ts';
import { readRecord, refs } from '../../../src/store/stored.ts';
import { DAY_MS, HOUR_MS, SKEWS_MS, type World } from './world.ts';

/** The simulation looks at idle gaps every twenty minutes to two hours only, and jobs take minutes; another job may be running first. */
const SLACK_MS = 4 * HOUR_MS;
const OPEN_MS = 10 * 60_000;
/** What an attempt that failed may add. */
const ATTEMPT_MS = 6 * HOUR_MS;
/** What the clocks of processes may add: times that the fastest stored, as the slowest reads them. */
const CLOCK_MS = Math.max(...SKEWS_MS) - Math.min(...SKEWS_MS);
/** Buckets of some objects are compared within milliseconds: their repairs keep a distance of seconds. */
const DISTANCE_MS = HOUR_MS;
/** A job that nobody disturbs ends within this time, even if its workers are killed several times. */
const JOB_MS = 2 * HOUR_MS;
/** Jobs that are begun for the gaps of one bucket within a day: a burst reports eight times, and attempts that fail come ever more seldom. */
const JOBS_MAX = 48;

const ANNOUNCING: ReadonlySet<MarkKind> = new Set(['bulk-delete', 'lifecycle', 'handed-over-deletes']);

/** A change that was reported and must be repaired. */
interface Duty {
  readonly bucket: string;
  readonly markId: string;
  readonly key: string | undefined;
  readonly kind: MarkKind;
  readonly seenAtMs: number;
  /** The latest beginning of a job before it was noticed. */
  readonly order: number;
  readonly tags: boolean;
  readonly keys: readonly string[];
  /** It was there at the last look, so before whatever began since. */
  wasSeen: boolean;
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

export type Ledger = ReturnType<typeof createLedger>;

/** Creates the ledger of a world, which exists by the first call. */
export function createLedger(worldOf: () => World) {
  let duties: Duty[] = [];
  const violations: string[] = [];
  /** How many changes were reported, and how many gaps closed. */
  const counts = { reported: 0, closed: 0, jobs: 0 };
  const coverings = new Map<string, Covering[]>();
  const noted = new Set<string>();
  /** Jobs that are done since the last look: within one step another job of the bucket may follow. */
  const done: JobRecord[] = [];
  const closed: { readonly mark: DirtyMark; readonly jobId: string }[] = [];
  const brokenBuckets = new Set<string>();
  /**
   * The latest job of each bucket that a person stopped. What it may have deleted was the whole of its limit; and if it had none, no
   * other begins by itself until a person has begun one (`isAnswered`). A later job that has compared all of its keys ends both.
   */
  const stopped = new Map<string, { readonly job: JobRecord; isAnswered: boolean }>();
  /** When jobs were begun for the gaps of each bucket. */
  const begunAtMs = new Map<string, readonly number[]>();
  const seenJobs = new Set<string>();
  const consented = new Set<string>();
  const deletedBy = new Map<string, number>();
  const allowedTo = new Map<string, number>();
  const declined = new Set<string>();
  /** The deletions of each bucket that waited at the last look. */
  let waited = new Map<string, readonly WaitingDeletes[]>();
  /** Since when the job of each bucket has been able to run. */
  const runningSince = new Map<string, { readonly jobId: string; readonly atMs: number }>();

  function violated(what: string): void {
    if (violations.length < 20) violations.push(`${new Date(worldOf().clock.nowMs()).toISOString()}: ${what}`);
  }

  function isCovering(covering: Covering, duty: Pick<Duty, 'key' | 'seenAtMs' | 'order' | 'tags'>): boolean {
    const isLater = covering.beginOrder > duty.order && covering.coversBeforeMs > duty.seenAtMs;
    return isLater && (duty.key ?? '').startsWith(covering.prefix) && (!duty.tags || covering.tags);
  }

  /** A job that is done has repaired what it covers, but for the deletions that its deletion limit held back, which wait for a person. */
  async function noteDone(job: JobRecord): Promise<void> {
    if (noted.has(job.id)) return;
    noted.add(job.id);
    counts.jobs += 1;
    if (job.mode !== 'apply' || job.now === true || job.coversBeforeMs === undefined) return;
    const { prefix, coversBeforeMs, beginOrder = 0 } = job;
    const before = stopped.get(job.bucket)?.job;
    if (before?.prefix.startsWith(prefix) === true && beginOrder >= (before.beginOrder ?? Infinity)) stopped.delete(job.bucket);
    const covering = { prefix, coversBeforeMs, beginOrder, tags: job.tags === true };
    coverings.set(job.bucket, [...(coverings.get(job.bucket) ?? []).slice(-9), covering]);
    const repaired = duties.filter((duty) => duty.bucket === job.bucket && isCovering(covering, duty));
    if (repaired.length === 0) return;
    duties = duties.filter((duty) => !repaired.includes(duty));
    if ((job.counts?.held ?? 0) > 0) {
      if ((await worldOf().waiting(job.bucket)).length === 0)
        violated(`${job.id} of ${job.bucket} held deletions back, and no record says so`);
      return;
    }
    const found = await worldOf().found(job.bucket);
    for (const { keys } of repaired) for (const key of keys) compareKey(job, key, found);
  }

  function compareKey(job: JobRecord, key: string, found: ReadonlySet<string>): void {
    // it has a gap of its own
    if (worldOf().denied.has(job.bucket)) return;
    const object = worldOf().s3s.get(job.bucket)?.objects.get(key);
    if (object === undefined && found.has(key)) violated(`${key} of ${job.bucket} is gone, and found after ${job.id}`);
    if (object !== undefined && (object.lastModifiedMs ?? 0) < (job.coversBeforeMs ?? 0) && !found.has(key))
      violated(`${key} of ${job.bucket} exists, and is not found after ${job.id}`);
  }

  async function checkClosed(): Promise<void> {
    for (const { mark, jobId } of closed.splice(0)) {
      counts.closed += 1;
      const facts = { key: mark.prefix, seenAtMs: mark.lastSeenMs, order: mark.order, tags: mark.readTags === true };
      const covering = (coverings.get(mark.bucket) ?? []).find((each) => isCovering(each, facts));
      const open = duties.filter((duty) => duty.markId === mark.id && duty.order < mark.order);
      if (covering === undefined || open.length > 0)
        violated(`${mark.id} was closed by ${jobId} without a job that covers it (${open.length} open)`);
      if (brokenBuckets.has(mark.bucket) && mark.prefix === undefined)
        violated(`${mark.id} was closed by ${jobId} although its wiring is broken`);
    }
  }

  async function checkJob(bucket: string): Promise<void> {
    const world = worldOf();
    const job = await world.latestJob(bucket);
    if (job !== undefined) noteBegun(job);
    if (job !== undefined) await checkConsent(job);
    const isRunning = job !== undefined && (job.state === 'queued' || job.state === 'running');
    if (!isRunning || world.troubles.has(bucket)) return void runningSince.delete(bucket);
    const since = runningSince.get(bucket);
    if (since?.jobId !== job.id) return void runningSince.set(bucket, { jobId: job.id, atMs: world.clock.nowMs() });
    if (world.clock.nowMs() - since.atMs > JOB_MS) violated(`${job.id} of ${bucket} has not ended: ${JSON.stringify(job)}`);
  }

  function noteBegun({ id, bucket, prefix, requestedBy }: JobRecord): void {
    if (seenJobs.has(id)) return;
    seenJobs.add(id);
    const before = stopped.get(bucket);
    if (before !== undefined && requestedBy !== 'gap' && requestedBy !== 'schedule') before.isAnswered = true;
    if (requestedBy !== 'gap') return;
    const isLimited = duties.some((duty) => duty.bucket === bucket && duty.key === undefined && !ANNOUNCING.has(duty.kind));
    // what was lost beside the deletions is repaired, with a limit
    if (before?.isAnswered === false && before.job.deletions?.limit === undefined && prefix === '' && !isLimited)
      violated(`${id} of ${bucket} was begun although a person stopped it: ${before.job.id}`);
    const nowMs = worldOf().clock.nowMs();
    const recent = [...(begunAtMs.get(bucket) ?? []).filter((atMs) => nowMs - atMs < DAY_MS), nowMs];
    begunAtMs.set(bucket, recent);
    if (recent.length > JOBS_MAX) violated(`${recent.length} jobs were begun for gaps of ${bucket} within a day`);
  }

  /**
   * A job without a limit deletes what was announced, and nothing else was reported when it began to compare: one that a person paused
   * before that may do so long after it began. While deletions wait, it deletes what a person has allowed to it. Whatever becomes of its
   * processes, none deletes more.
   */
  async function checkConsent({ id, bucket, prefix, deletions }: JobRecord): Promise<void> {
    if (deletions === undefined) return;
    const { limit = Infinity } = deletions;
    if ((deletedBy.get(id) ?? 0) > limit) violated(`${id} of ${bucket} has deleted ${deletedBy.get(id)}, and may delete ${limit}`);
    if (declined.has(id) && (deletedBy.get(id) ?? 0) > 0) violated(`${id} of ${bucket} has deleted what was declined`);
    if (consented.has(id)) return;
    consented.add(id);
    const now = await worldOf().waiting(bucket);
    const waits = (waited.get(bucket) ?? []).filter(
      (each) => each.jobId !== id && keysOverlap(each.prefix, prefix) && now.some(({ jobId }) => jobId === each.jobId),
    );
    if (waits.length > 0 && limit > (allowedTo.get(id) ?? 0)) violated(`${id} of ${bucket} deletes ${limit} beyond consent`);
    const before = stopped.get(bucket)?.job;
    const isAfterStop = before !== undefined && before.id !== id && keysOverlap(before.prefix, prefix) && (await hasLeft(before));
    if (isAfterStop && limit > (allowedTo.get(id) ?? 0)) violated(`${id} of ${bucket} has a second limit after ${before.id}: ${limit}`);
    if (deletions.limit !== undefined) return;
    const ofBucket = duties.filter((duty) => duty.bucket === bucket && duty.key === undefined);
    const [announced, others] = [ofBucket.filter(({ kind }) => ANNOUNCING.has(kind)), ofBucket.filter(({ kind }) => !ANNOUNCING.has(kind))];
    const isAnnounced = prefix === '' && announced.length > 0 && !others.some(({ wasSeen }) => wasSeen);
    if (!isAnnounced) violated(`${id} of ${bucket} deletes without consent: ${JSON.stringify(ofBucket)}`);
  }

  /** Whether the stopped job has not compared everything. If it had just done so, it has told what it held back. */
  async function hasLeft({ id }: JobRecord): Promise<boolean> {
    const { parts } = (await readRecord(worldOf().state, refs.job(id))) ?? {};
    return parts === undefined || parts.length > 0;
  }

  async function checkDuties(): Promise<void> {
    const world = worldOf();
    const nowMs = world.clock.nowMs();
    const marks = new Map((await world.gaps()).map((mark) => [mark.id, mark]));
    for (const duty of duties) {
      const mark = marks.get(duty.markId);
      if (mark === undefined || mark.lastSeenMs < duty.seenAtMs)
        violated(`no open gap stands for a change of ${duty.markId}: ${JSON.stringify(mark)}`);
      const isRefused = world.troubles.has(duty.bucket) || world.denied.has(duty.bucket);
      if ((mark !== undefined && isHeld(mark)) || isRefused) duty.sinceMs = Math.max(duty.sinceMs, nowMs);
      const allowedMs = OPEN_MS + SLACK_MS + CLOCK_MS + DISTANCE_MS + duty.allowanceMs;
      if (nowMs - duty.sinceMs <= allowedMs) continue;
      violated(`a change of ${duty.markId} was not repaired within ${(allowedMs / HOUR_MS).toFixed(1)} h: ${JSON.stringify(mark)}`);
      duty.sinceMs = Infinity;
    }
  }

  async function checkStatuses(): Promise<void> {
    for (const bucket of new Set(duties.map((duty) => duty.bucket)))
      if ((await worldOf().status(bucket))?.state === 'ok') violated(`${bucket} is said to be right over a change that was reported`);
  }

  return {
    violations,
    counts,
    /** The latest beginning of a job of the bucket, to be asked when a change is noticed. */
    async begun(bucket: string) {
      const record = await readRecord(worldOf().state, refs.bucket(bucket));
      return record === undefined ? 0 : lastBeginOf(record);
    },
    /** This report was made, after this beginning was read; `keys`: those that it is about. */
    async reported(report: GapReport, order: number, keys: readonly string[]) {
      const { bucket, kind, key, seenAtMs } = report;
      const nowMs = worldOf().clock.nowMs();
      counts.reported += 1;
      if (!(await worldOf().isConnected(bucket))) return;
      const tags = report.tags === true;
      const sinceMs = Math.max(nowMs, seenAtMs);
      duties.push({ bucket, markId: markId(bucket, key), key, kind, seenAtMs, order, tags, keys, wasSeen: false, sinceMs, allowanceMs: 0 });
    },
    /** Something was done to the bucket that may cost its gaps an attempt. */
    disturbed(bucket: string) {
      for (const duty of duties) if (duty.bucket === bucket) duty.allowanceMs += ATTEMPT_MS + CLOCK_MS;
    },
    /** A person paused or cancelled this job. */
    stopped(job: JobRecord) {
      if (job.deletions !== undefined && job.beginOrder !== undefined) stopped.set(job.bucket, { job, isAnswered: false });
    },
    /** The bucket's wiring is broken, or in order again. */
    broken: (bucket: string, isBroken: boolean) => void (isBroken ? brokenBuckets.add(bucket) : brokenBuckets.delete(bucket)),
    /** The bucket is no longer connected, or is connected again. */
    reset(bucket: string) {
      duties = duties.filter((duty) => duty.bucket !== bucket);
      for (const each of [coverings, stopped]) each.delete(bucket);
      brokenBuckets.delete(bucket);
    },
    gapClosed: (mark: DirtyMark, jobId: string) => void closed.push({ mark, jobId }),
    jobDone: (job: JobRecord) => void done.push(job),
    deleted: (jobId: string, count: number) => void deletedBy.set(jobId, (deletedBy.get(jobId) ?? 0) + count),
    /** A person allowed this job so many of the deletions that waited. */
    allowed: (jobId: string, count: number) => void allowedTo.set(jobId, count),
    /** A person declined them after all, before this job compared. */
    declined: (jobId: string) => void declined.add(jobId),
    /** Looks at everything; to be called after each step. */
    async check() {
      for (const job of done.splice(0)) {
        await checkConsent(job);
        await noteDone(job);
      }
      for (const bucket of worldOf().s3s.keys()) await checkJob(bucket);
      await checkClosed();
      await checkDuties();
      await checkStatuses();
      const waiting = [...worldOf().s3s.keys()].map(async (bucket) => [bucket, await worldOf().waiting(bucket)] as const);
      waited = new Map(await Promise.all(waiting));
      for (const duty of duties) duty.wasSeen = true;
    },
    /** Looks at what all have been told, now that nothing has happened for long. */
    async checkQuiet() {
      for (const [bucket, { objects }] of worldOf().s3s) {
        if (!(await worldOf().isConnected(bucket))) continue;
        const differing = (await worldOf().found(bucket)).symmetricDifference(new Set(objects.keys()));
        const status = await worldOf().status(bucket);
        if (differing.size > 0 && status?.state === 'ok')
          violated(`${bucket} is said to be right, and differs: ${[...differing].join(', ')}`);
      }
    },
  };
}
