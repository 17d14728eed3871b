/**
 * Dirty marks: since when, and why, something of a bucket may be missing. Users see each as a *gap*. A bucket has one mark, and another
 * for each key that failed alone.
 *
 *   clean ──report──► dirty ──quiet for a minute, or reported for ten──► a job repairs it ──it covers every report──► closed
 *                      ▲                                                    │
 *                      └── reported since the job began, or the job failed ─┘
 *
 * Only a job that is done, began after the last report (by `order`) and saw every change up to `lastSeenMs` closes a mark. While a
 * bucket's events are not known to arrive, no job closes its mark.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { BucketRecord, EnrichMode } from './bucket.ts';
import { shellWords } from '../base/commands.ts';
import { defined, omit } from '../base/defined.ts';
import { type JobRecord, waitMs } from './job.ts';

export const markKinds = [
  /** Objects from before the bucket was connected were never compared. */
  'new',
  /** A trail reported a DeleteObjects call, which names no keys. */
  'bulk-delete',
  /** More objects should have expired than can be checked one by one. */
  'lifecycle',
  /** Events could not be served, and their messages were deleted. */
  'handed-over',
  'handed-over-deletes',
  /** Events were or may be lost. */
  'loss',
  /** The connection was changed, was broken, or was not known to work. */
  'connection',
  /** The bucket's index was replaced. */
  'index',
  /** A report found differences. */
  'drift',
  /** Documents may lack the tags that they should have. */
  'tags',
] as const;
export type MarkKind = (typeof markKinds)[number];

/** Kinds that report only deletions. A deletion limit would keep them from ever being repaired. */
const announcing: ReadonlySet<MarkKind> = new Set(['bulk-delete', 'lifecycle', 'handed-over-deletes'] as const);

/** Kinds whose losses may include changes of tags. A record that is handed over says so itself, and reports compare no tags. */
const mayMissTags: ReadonlySet<MarkKind> = new Set(['new', 'loss', 'connection', 'index', 'tags'] as const);

const reasonSchema = z.object({
  kind: z.enum(markKinds),
  count: z.number(),
  lastMs: z.number(),
  /** The latest one in a few words: `dead letter: record.invalid`. */
  example: z.string(),
});

const differencesSchema = z.object({
  jobId: z.string().optional(),
  atMs: z.number(),
  prefix: z.string(),
  missing: z.number(),
  stale: z.number(),
  phantom: z.number(),
});
export type Differences = z.infer<typeof differencesSchema>;

export const markSchema = z.object({
  id: z.string(),
  bucket: z.string(),
  /** The mark is for keys with this prefix; absent: for the whole bucket. */
  prefix: z.string().optional(),
  /** The time of the first change that may be missing. */
  sinceMs: z.number(),
  /** The time up to which changes may be missing, by the clocks of AWS and of the processes that reported. It may lie ahead. */
  lastSeenMs: z.number(),
  /** When it was first reported (since the last job that did not close it), by the reporting process's clock. `reportedAtMs`: last. */
  firstReportedAtMs: z.number(),
  reportedAtMs: z.number(),
  /** The place of the bucket's latest beginning of a job when the mark was last reported (src/records/job.ts). */
  order: z.number(),
  reasons: z.array(reasonSchema),
  /** `announced`: every reason announces deletions, so the job has no deletion limit. */
  deletes: z.enum(['announced', 'limited']),
  /** Only a job that reads every object's tags closes it. */
  readTags: z.literal(true).optional(),
  /** The bucket was connected without a first index, or a person stopped this job, which would have made the announced deletions. */
  held: z.object({ jobId: z.string().optional(), why: z.string() }).optional(),
  /** No job closes it: the bucket's events are not known to arrive, or its wiring is known to be broken. */
  unproven: z.enum(['events', 'wiring']).optional(),
  /** Only with `unproven`: a job has repaired what was reported, and no other begins until the mark is reported again. */
  compared: z.literal(true).optional(),
  /** A first index, or the comparison after a change that a person made. Until a job covers it, it keeps no distance from other repairs. */
  urgent: z.object({ order: z.number(), lastSeenMs: z.number() }).optional(),
  /** The job that repairs it now, and why it cannot continue. */
  jobId: z.string().optional(),
  stuck: z.string().optional(),
  /** How many jobs in a row failed to repair it. */
  failures: z.number(),
  /** Until when no job begins, since when, and why. `isAhead`: a job that began earlier would not close the mark, but later reports need not wait for this. */
  waits: z.object({ fromMs: z.number(), untilMs: z.number(), why: z.string(), isAhead: z.literal(true).optional() }).optional(),
  /** Since when the bucket or its index refuses what a job needs. */
  refusedSinceMs: z.number().optional(),
  /** Differences that a report, or `explain` for one key, found, and that no job has repaired since. */
  differences: z.array(differencesSchema).optional(),
});
export type DirtyMark = z.infer<typeof markSchema>;

/** What is kept of a bucket's closed marks, to be shown. */
export const markHistorySchema = z.object({
  bucket: z.string(),
  closed: z.array(
    markSchema
      .pick({ id: true, prefix: true, sinceMs: true, lastSeenMs: true, reasons: true })
      .extend({ closedAtMs: z.number(), jobId: z.string() }),
  ),
});
export type MarkHistory = z.infer<typeof markHistorySchema>;

/** What lists show: a mark, or what is kept of a closed one. */
export type ListedGap = DirtyMark | (MarkHistory['closed'][number] & { readonly bucket: string });

const HISTORY_MS = 30 * 86_400_000;
const HISTORY_MAX = 1_000;

/** The history after this mark was closed, which another process may already have noted. The oldest come first. */
export function withClosed(
  history: MarkHistory | undefined,
  { id, bucket, prefix, sinceMs, lastSeenMs, reasons }: DirtyMark,
  { jobId, nowMs }: { readonly jobId: string; readonly nowMs: number },
): MarkHistory {
  if (history?.closed.some((each) => each.id === id && each.jobId === jobId) === true) return history;
  const kept = keptOf(history, nowMs);
  // no two have the same time, because lists are sorted by it
  const closedAtMs = Math.max(nowMs, (kept.at(-1)?.closedAtMs ?? 0) + 1);
  const closed = [...kept, { id, ...defined({ prefix }), sinceMs, lastSeenMs, reasons: [...reasons], closedAtMs, jobId }];
  return { ...history, bucket, closed: closed.slice(-HISTORY_MAX) };
}

/** What was closed within the last 30 days. */
export function keptOf(history: MarkHistory | undefined, nowMs: number): MarkHistory['closed'] {
  return (history?.closed ?? []).filter(({ closedAtMs }) => nowMs - closedAtMs < HISTORY_MS);
}

/** The id of the bucket's mark, or of this key's. */
export function markId(bucket: string, key?: string): string {
  return key === undefined ? `gap:${bucket}:bucket` : `gap:${bucket}:key:${createHash('sha256').update(key).digest('hex').slice(0, 16)}`;
}

// ── reports ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A report that something of a bucket may be missing. */
export interface GapReport {
  readonly bucket: string;
  /** Only this key is affected. */
  readonly key?: string;
  readonly kind: MarkKind;
  /** In a few words. */
  readonly reason: string;
  /** Changes up to this time may be missing. */
  readonly seenAtMs: number;
  /** The time of the first of these changes. Default: the same. */
  readonly firstSeenMs?: number;
  /** Default: 1. */
  readonly count?: number;
  /** Changes of tags are among them. */
  readonly tags?: true;
  /** `none`: the events are known to arrive from now on. */
  readonly unproven?: NonNullable<DirtyMark['unproven']> | 'none';
  readonly waits?: DirtyMark['waits'];
  readonly isUrgent?: boolean;
  readonly held?: DirtyMark['held'];
  readonly differences?: Differences;
}

type Repaired = NonNullable<BucketRecord['repaired']>;

/** Facts from the bucket's record, which must be read after the loss was noticed. */
export interface ReportFacts {
  /** By the clock of the process that reports. */
  readonly nowMs: number;
  readonly order: number;
  readonly enrich: EnrichMode;
  readonly repaired: Repaired | undefined;
}

/** How many reports' prefixes a mark remembers; the oldest are forgotten. */
const DIFFERENCES_MAX = 20;

/** The mark after a report. Undefined fields are not stored. */
export function withReport(current: DirtyMark | undefined, report: GapReport, facts: ReportFacts): DirtyMark {
  const { kind, seenAtMs, firstSeenMs = seenAtMs } = report;
  const base = omit(current ?? fresh(report, facts), 'compared');
  const wants = wantsOf(base, report, facts);
  // what an earlier report found may have been repaired since, although its mark stayed
  const isOfReports =
    report.differences !== undefined && base.differences !== undefined && base.reasons.every((each) => each.kind === 'drift');
  const before = isOfReports ? (wants.differences ?? []).map(({ atMs }) => atMs) : [base.sinceMs];
  return {
    ...base,
    sinceMs: Math.min(firstSeenMs, ...before),
    lastSeenMs: Math.max(base.lastSeenMs, seenAtMs),
    // a time stored by a fast clock must not outlast a right one
    firstReportedAtMs: Math.min(base.firstReportedAtMs, facts.nowMs),
    reportedAtMs: Math.max(plausible(base.reportedAtMs, CLOCKS_DIFFER_MS, facts.nowMs), facts.nowMs),
    order: Math.max(base.order, facts.order),
    reasons: withReason(base.reasons, report),
    deletes: announcing.has(kind) ? base.deletes : 'limited',
    ...wants,
    ...planOf(base, report, facts),
  };
}

/** What the mark's job must do, and what keeps the mark open. */
function wantsOf(
  base: DirtyMark,
  { kind, tags, unproven = base.unproven, held = base.held, differences: found }: GapReport,
  { enrich }: ReportFacts,
) {
  const isOfTags = base.readTags === true || tags === true || (enrich === 'tags' && mayMissTags.has(kind));
  return {
    readTags: isOfTags ? (true as const) : undefined,
    unproven: unproven === 'none' ? undefined : unproven,
    held,
    differences: found === undefined ? base.differences : withDifferences(base.differences, found),
  };
}

function fresh({ bucket, key, seenAtMs }: GapReport, { nowMs, order }: ReportFacts): DirtyMark {
  const times = { sinceMs: seenAtMs, lastSeenMs: seenAtMs, firstReportedAtMs: nowMs, reportedAtMs: nowMs };
  return { id: markId(bucket, key), bucket, ...defined({ prefix: key }), ...times, order, reasons: [], deletes: 'announced', failures: 0 };
}

function withReason(reasons: DirtyMark['reasons'], { kind, reason, seenAtMs, count = 1 }: GapReport): DirtyMark['reasons'] {
  // each drift report is complete, so it replaces the last one
  const before = kind === 'drift' ? undefined : reasons.find((each) => each.kind === kind);
  const lastMs = Math.max(seenAtMs, before?.lastMs ?? 0);
  return [{ kind, count: count + (before?.count ?? 0), lastMs, example: reason }, ...reasons.filter((each) => each.kind !== kind)];
}

/** When a job may begin. After an urgent report, the mark waits only for what that report waits for: neither for distance, nor because a job failed. */
function planOf(base: DirtyMark, report: GapReport, { nowMs, order, repaired }: ReportFacts): Pick<DirtyMark, 'urgent' | 'waits'> {
  if (report.isUrgent === true) return { urgent: { order, lastSeenMs: report.seenAtMs }, waits: report.waits };
  const before = base.waits?.isAhead === true || !isWaiting(base, nowMs) ? undefined : base.waits;
  return { waits: laterOf(before, report.waits, base.urgent === undefined ? distanceOf(base, repaired, nowMs) : undefined) };
}

function laterOf(...waits: readonly DirtyMark['waits'][]): DirtyMark['waits'] {
  return waits.reduce((later, each) => ((each?.untilMs ?? 0) > (later?.untilMs ?? 0) ? each : later), undefined);
}

/** A report's differences replace those that earlier reports found among its keys. */
function withDifferences(known: DirtyMark['differences'] = [], found: Differences): DirtyMark['differences'] {
  return [...known.filter(({ prefix }) => !prefix.startsWith(found.prefix)), found].slice(-DIFFERENCES_MAX);
}

/** The mark after a report that found no differences among its keys. It stays open, because only a job that waits for late events closes it. */
export function withoutDifferences(mark: DirtyMark, isOver: (found: Differences) => boolean): DirtyMark {
  const left = mark.differences?.filter((found) => !isOver(found));
  return left === undefined || left.length === mark.differences?.length ? mark : { ...mark, differences: left };
}

// ── when a job begins ──────────────────────────────────────────────────────────────────────────────────────────────

/** A job begins once there was no report for this long, so that a burst of deletes needs only one job. */
const QUIET_MS = 60_000;
/** The longest wait for quiet, because reports may never pause. */
const OPEN_MAX_MS = 600_000;
/**
 * The clocks of two processes seldom differ by more, because one that is minutes away from SQS's keeps SQS's time once SQS has answered
 * (src/process/clock.ts).
 */
export const CLOCKS_DIFFER_MS = 1_800_000;
/** The longest distance between two repairs. */
const DISTANCE_MAX_MS = 30 * 86_400_000;
const DAY_MS = 86_400_000;

/** Whether no job begins for the mark by itself. If a person stopped a job and other changes may be missing too, another job begins, but deletes nothing. */
export function isHeld({ held, deletes }: DirtyMark): boolean {
  return held !== undefined && (held.jobId === undefined || deletes === 'announced');
}

/** Whether a job will begin for the mark by itself. */
export function isPlanned(mark: DirtyMark): boolean {
  return !isHeld(mark) && mark.compared !== true && mark.jobId === undefined;
}

/** When a job begins for a planned mark, by the caller's clock; Infinity for any other. */
export function dueAtMs(mark: DirtyMark, nowMs: number): number {
  const { reportedAtMs, firstReportedAtMs, waits } = mark;
  if (!isPlanned(mark)) return Infinity;
  const quietAtMs = Math.min(reportedAtMs + QUIET_MS, firstReportedAtMs + OPEN_MAX_MS);
  return Math.max(plausible(quietAtMs, OPEN_MAX_MS + CLOCKS_DIFFER_MS, nowMs), isWaiting(mark, nowMs) ? (waits?.untilMs ?? 0) : 0);
}

/** Whether the mark's wait is still running. A wait that began in the future was stored by a fast clock, and counts as over. */
function isWaiting({ waits }: Pick<DirtyMark, 'waits'>, nowMs: number): boolean {
  return waits !== undefined && waits.untilMs > nowMs && waits.fromMs <= nowMs + CLOCKS_DIFFER_MS;
}

function plausible(atMs: number, aheadMaxMs: number, nowMs: number): number {
  return atMs > nowMs + aheadMaxMs ? nowMs : atMs;
}

/**
 * How long a bucket's next automatic repair waits after the last one, which compared for t: 20 t, so that repairs take a twentieth of
 * one process; but at most the longer of a day and 3 t.
 */
function distanceMs(comparingMs: number): number {
  return Math.min(20 * comparingMs, Math.max(DAY_MS, 3 * comparingMs), DISTANCE_MAX_MS);
}

function distanceOf({ prefix }: Pick<DirtyMark, 'prefix'>, repaired: Repaired | undefined, nowMs: number): DirtyMark['waits'] {
  if (prefix !== undefined || repaired === undefined) return undefined;
  const untilMs = Math.min(repaired.atMs, nowMs) + distanceMs(repaired.comparingMs);
  if (untilMs <= nowMs) return undefined;
  const why = `the last repair of the bucket compared for ${Math.ceil(repaired.comparingMs / 1_000)} s, so the next one waits`;
  return { fromMs: nowMs, untilMs, why };
}

// ── what the jobs of the bucket mean for the mark ──────────────────────────────────────────────────────────────────

/** What a mark needs to know of a job. */
export type RepairJob = Pick<
  JobRecord,
  | 'id'
  | 'bucket'
  | 'mode'
  | 'prefix'
  | 'state'
  | 'now'
  | 'tags'
  | 'requestedBy'
  | 'startedAtMs'
  | 'beginOrder'
  | 'coversBeforeMs'
  | 'error'
  | 'counts'
  | 'waits'
  | 'parts'
>;

/** Whether the job can repair the mark: it writes, waits for late events, covers the mark's keys, and reads tags if the mark needs that. */
function repairs(job: RepairJob, { prefix = '', readTags }: DirtyMark): boolean {
  return job.mode === 'apply' && job.now !== true && prefix.startsWith(job.prefix) && (readTags !== true || job.tags === true);
}

/** Whether the job began after the last report, by the order of beginnings and by the clocks of S3 and of its worker. */
function beganAfter({ beginOrder = 0, coversBeforeMs = 0 }: RepairJob, { order, lastSeenMs }: Pick<DirtyMark, 'order' | 'lastSeenMs'>) {
  return beginOrder > order && coversBeforeMs > lastSeenMs;
}

export interface Look {
  /** The job that the mark names; undefined if its record is gone. */
  readonly named: RepairJob | undefined;
  /** The bucket's latest apply job. */
  readonly latest: RepairJob | undefined;
  readonly nowMs: number;
  readonly repaired: Repaired | undefined;
}

/** The mark after a look at its job, or, if it names none, at the bucket's latest one. Returns the same object if nothing has changed. */
export function afterLook(mark: DirtyMark, look: Look): DirtyMark | { readonly closedBy: string } {
  if (mark.jobId === undefined) return afterOther(mark, look);
  const looked = afterNamed(mark, mark.jobId, look);
  return looked === mark || 'closedBy' in looked || look.latest?.id === mark.jobId ? looked : afterOther(looked, look);
}

function afterNamed(mark: DirtyMark, jobId: string, look: Look): ReturnType<typeof afterLook> {
  const { named: job, nowMs } = look;
  if (job === undefined) return failedOf(mark, `${jobId} no longer exists`, nowMs);
  const { error } = job;
  switch (job.state) {
    case 'queued':
    case 'running':
      return withStuck(mark, job);
    case 'paused':
    case 'cancelled':
      if (mark.deletes === 'announced') return stoppedOf(mark, job);
      return failedOf(mark, `${jobId} was ${job.state}, so another job follows`, nowMs);
    case 'failed':
      return failedOf(mark, `${jobId} failed: ${error === undefined ? 'the reason is unknown' : `${error.code}: ${error.reason}`}`, nowMs);
    case 'done':
      return afterDone(mark, job, look);
  }
}

/** The mark with what keeps its job from continuing. */
function withStuck(mark: DirtyMark, { waits, parts = [] }: RepairJob): DirtyMark {
  const fault = waits ?? parts.find((part) => part.fault !== undefined)?.fault;
  const stuck = fault && `${fault.code}: ${fault.reason}`;
  return stuck === mark.stuck ? mark : { ...omit(mark, 'stuck'), ...defined({ stuck }) };
}

/** A job that was started for another reason repairs the mark too. */
function afterOther(mark: DirtyMark, look: Look): ReturnType<typeof afterLook> {
  const { latest: job } = look;
  if (job === undefined || mark.compared === true || !repairs(job, mark)) return mark;
  if (job.state === 'queued' || job.state === 'running') return withJob(mark, job);
  return job.state === 'done' && beganAfter(job, mark) ? afterDone(mark, job, look) : mark;
}

/** The mark while this job repairs it. A job that a person starts lifts the hold, unless that is about deletions, about which the job asks. */
export function withJob(mark: DirtyMark, { id, requestedBy }: Pick<RepairJob, 'id' | 'requestedBy'>): DirtyMark {
  const isOurs = requestedBy === 'gap' || requestedBy === 'schedule';
  return { ...omit(mark, 'stuck', 'refusedSinceMs', ...(isOurs || mark.held?.jobId !== undefined ? [] : (['held'] as const))), jobId: id };
}

function afterDone(found: DirtyMark, job: RepairJob, { nowMs, repaired }: Look): ReturnType<typeof afterLook> {
  if (!repairs(job, found)) return { ...omit(found, 'jobId'), failures: 0 };
  const { coversBeforeMs = 0 } = job;
  const mark = withoutDifferences(found, (differences) => isRepaired(differences, job));
  const isUrgentStill = mark.urgent !== undefined && !beganAfter(job, mark.urgent);
  const rest = { ...omit(mark, 'jobId', 'held', 'waits', 'refusedSinceMs', ...(isUrgentStill ? [] : (['urgent'] as const))), failures: 0 };
  if (beganAfter(job, mark)) return mark.unproven === undefined ? { closedBy: job.id } : { ...rest, compared: true };
  // reports from before the job began are repaired, and the rest waits for quiet again
  const firstReportedAtMs = Math.max(mark.firstReportedAtMs, Math.min(coversBeforeMs, nowMs));
  const waits = laterOf(aheadOf(mark, job, nowMs), isUrgentStill ? undefined : distanceOf(mark, repaired, nowMs));
  return { ...rest, firstReportedAtMs, ...defined({ waits }) };
}

/** Whether the job has compared the keys of these differences, and held nothing back. */
function isRepaired({ prefix, atMs }: Differences, { prefix: compared, coversBeforeMs = 0, counts }: RepairJob): boolean {
  return prefix.startsWith(compared) && coversBeforeMs > atMs && (counts?.held ?? 0) === 0;
}

/** AWS takes up to 20 minutes to apply a changed trail: a time further ahead came from a wrong clock. */
const AHEAD_USUAL_MS = 25 * 60_000;

/** The wait until `lastSeenMs`, by the last job's clocks: a job that began earlier would not close the mark either. It is at most a day. */
function aheadOf({ bucket, lastSeenMs }: DirtyMark, { startedAtMs, coversBeforeMs = 0 }: RepairJob, nowMs: number): DirtyMark['waits'] {
  const aheadMs = lastSeenMs - (coversBeforeMs + nowMs - (startedAtMs ?? nowMs));
  if (aheadMs <= 0) return undefined;
  const seconds = Math.ceil(aheadMs / 1_000);
  const clocks = `: a clock is wrong, and \`${shellWords('tally', 'doctor', bucket)}\` compares them`;
  const why = `changes may be missing for another ${seconds} s${aheadMs > AHEAD_USUAL_MS ? clocks : ', until a change in AWS has taken effect'}`;
  return { fromMs: nowMs, untilMs: nowMs + Math.min(aheadMs + 1_000, DAY_MS), why, isAhead: true };
}

/** After a failure the mark waits one minute, then two, four …, at most six hours, which is four attempts a day. */
const RETRY_MIN_MS = 60_000;
const RETRY_MAX_MS = 21_600_000;

/** The mark after its job did not repair it, or could not be started. */
export function failedOf(mark: DirtyMark, why: string, nowMs: number): DirtyMark {
  const waitsMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(mark.failures, 30));
  return { ...omit(mark, 'jobId'), failures: mark.failures + 1, waits: { fromMs: nowMs, untilMs: nowMs + waitsMs, why } };
}

/** The mark while no job can begin, because the bucket or its index refuses. This is no failure: Tally asks again soon, and later less often. */
export function refusedOf(mark: DirtyMark, why: string, nowMs: number): DirtyMark {
  const refusedSinceMs = mark.refusedSinceMs ?? nowMs;
  const untilMs = nowMs + Math.max(RETRY_MIN_MS, waitMs(refusedSinceMs, nowMs));
  return { ...mark, refusedSinceMs, waits: { fromMs: nowMs, untilMs, why } };
}

/** The mark after a person stopped its job: until a person decides, nothing makes the announced deletions, because consent to one job is not consent to another. */
function stoppedOf(mark: DirtyMark, { id, state }: RepairJob): DirtyMark {
  const { bucket, prefix } = mark;
  const ofPrefix = prefix === undefined ? [] : ['--prefix', prefix];
  const reindex = shellWords('tally', 'reindex', bucket, ...ofPrefix);
  const [what, act] =
    state === 'paused'
      ? ['paused', `\`tally jobs resume ${id}\`, or \`${reindex}\`, which counts them and asks you`]
      : ['cancelled', `\`${reindex}\`, which counts them and asks you`];
  const why = `${id} was ${what}, so Tally deletes nothing for this gap: look at the bucket, and if it is as intended, run ${act}`;
  return { ...omit(mark, 'jobId', 'waits', 'refusedSinceMs'), failures: 0, held: { jobId: id, why } };
}

/** What happens next, in a few words; `dueAtMs` says when. */
export function nextOf(mark: DirtyMark, nowMs: number): string {
  const { jobId, stuck, held, compared, unproven, waits } = mark;
  if (jobId !== undefined) return stuck === undefined ? 'a re-index is repairing it' : `its re-index waits: ${stuck}`;
  if (held !== undefined && isHeld(mark)) return `it waits for you: ${held.why}`;
  if (compared === true) return unproven === 'wiring' ? AFTER_WIRING : AFTER_PROOF;
  if (waits !== undefined && isWaiting(mark, nowMs)) return waits.why;
  return dueAtMs(mark, nowMs) > nowMs ? 'a re-index begins' : 'a re-index begins once no other job of the bucket runs';
}

const AFTER_PROOF = "a re-index follows once the bucket's events are known to arrive";
const AFTER_WIRING = "a re-index follows once the bucket's wiring is fixed";

/** Why the mark exists, the latest reason first. */
export function whyOf({ reasons }: Pick<DirtyMark, 'reasons'>): string {
  return reasons.map(({ example, count }) => (count === 1 ? example : `${example}, ${count.toLocaleString('en')} times`)).join('; ');
}

// ── consent ────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Whether all deletions that this job may find were announced: Tally began it for the bucket's mark, which has only deletions. A mark of
 * a single key announces one delete, and lifts no limit.
 */
export function announcesAllOf({ requestedBy, prefix }: Pick<RepairJob, 'requestedBy' | 'prefix'>, marks: readonly DirtyMark[]): boolean {
  const mark = marks.find((each) => each.prefix === undefined);
  return requestedBy === 'gap' && prefix === '' && mark?.deletes === 'announced';
}
