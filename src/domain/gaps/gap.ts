import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { EnrichMode } from '../bucket.ts';
import { omit } from '../defined.ts';

/**
 * Gaps: changes that a source did not report, and deletions that wait for a person. They are stored. A reconcile that began
 * after the latest report and after `lastSeenMs` closes a gap (src/domain/reindex/covers.ts).
 */

export const gapKinds = ['bulk-delete', 'lifecycle', 'loss', 'held-deletes'] as const;
export type GapKind = (typeof gapKinds)[number];

/** Whether the gaps of this kind consist of deletes: a job's deletion limit would keep them from ever closing. */
export function isOfDeletes(kind: GapKind): boolean {
  switch (kind) {
    case 'bulk-delete':
    case 'lifecycle':
      return true;
    case 'loss':
    // they are deletes, but the limit is what holds them
    case 'held-deletes':
      return false;
  }
}

export const gapStates = ['open', 'closing', 'closed'] as const;

/** The reason of a bucket's first gap. */
export const NEVER_COMPARED = 'never compared';

export const gapSchema = z.object({
  id: z.string(),
  bucket: z.string(),
  kind: z.enum(gapKinds),
  /** Only keys with this prefix are affected; absent: the whole bucket. */
  prefix: z.string().optional(),
  /** Why the gap was opened, in a few words (`dead letter: record.key-missing`). The latest reason is kept. */
  reason: z.string(),
  firstSeenMs: z.number(),
  lastSeenMs: z.number(),
  count: z.number(),
  state: z.enum(gapStates),
  /** The job that is closing or has closed the gap. An open gap may name a job that began too early to close it. */
  jobId: z.string().optional(),
  closedAtMs: z.number().optional(),
  /** When the gap was opened and last reported, by the clock of the worker that stored it. The quiet time before a reconcile counts from here. */
  openedAtMs: z.number(),
  toldAtMs: z.number(),
  /** The latest beginning of a job of the bucket when the gap was last reported: only a job that began later covers the report. */
  afterBeginOrder: z.number().optional(),
  /** Changes before this time (by S3's clock) are covered by a reconcile that is done. */
  reconciledBeforeMs: z.number().optional(),
  /** True while the keys of all its bulk deletes are known to be reported one by one: the gap is reconciled within a day. */
  covered: z.boolean().optional(),
  /** The time of the latest bulk delete that came with one event per key. */
  keysToldMs: z.number().optional(),
  /** The request IDs of bulk deletes whose keys were not seen to be reported one by one. */
  unprovenCalls: z.array(z.string()).optional(),
  /** True once a bulk delete came without a request ID, or too many were not proven: the gap is never `covered`. */
  hasUnknownCalls: z.boolean().optional(),
  /** True once records were handed over to a re-index, and the gap stands for them: their keys are not indexed, whatever other sources reported, so it is never `covered`. */
  folded: z.boolean().optional(),
  /** True once changes of tags may be among what the gap stands for: only a reconcile that reads the tags of every object again closes it. */
  tags: z.boolean().optional(),
  /** Number of consecutive jobs that failed to close the gap. */
  failures: z.number().optional(),
  /** Why the gap is still open, and until when according to the current plan; shown to users. */
  waits: z.object({ reason: z.string(), untilMs: z.number().optional() }).optional(),
  /** No job is begun for it before. */
  notBeforeMs: z.number().optional(),
  /**
   * A job is done that covers every report so far, but began before `lastSeenMs` by the clock of S3 or of its worker: one of
   * them is behind, or that of the worker which reported is ahead. No job is begun for it before this time, unless the gap is reported again.
   */
  tooEarlyUntilMs: z.number().optional(),
  /** The budget of its bucket keeps it open: it is planned with the next gap that is due, so that none always overtakes it. */
  overBudget: z.literal(true).optional(),
  /** Only of the kind `held-deletes`: documents that the latest job did not delete, because its deletion limit held them back. A person decides about them. */
  heldDeletes: z.number().optional(),
  /** Beside it: how many documents that job had deleted. */
  deletedBefore: z.number().optional(),
  /** Since when the bucket or its index refuses what a re-index needs. No job is begun meanwhile, and no failure is counted. */
  refusedSinceMs: z.number().optional(),
  /** What the last report of its prefix found, until a re-index closes the gap or a later report finds no difference. */
  differences: z.object({ jobId: z.string(), atMs: z.number(), missing: z.number(), stale: z.number(), phantom: z.number() }).optional(),
  /** The events of the bucket are not known to arrive, so no re-index closes the gap that began before they are. */
  unproven: z.boolean().optional(),
  /** A re-index has covered every report, so that only the proof of the bucket's events is awaited: none could cover that now. */
  awaitsProof: z.boolean().optional(),
  /** No job is started for it until a re-index is requested: the bucket was connected so, or a person paused or cancelled the job that was to delete what it stands for. */
  held: z.boolean().optional(),
});
export type GapRecord = z.infer<typeof gapSchema>;

/** A DeleteObjects call, as the reporting worker knows it. */
export interface BulkCall {
  /** Absent: the source does not pass it on. */
  readonly requestId?: string;
  /** A single delete with the same request ID was seen, so the trail reports the keys of this call one by one. */
  readonly isReported: boolean;
}

/** A DeleteObjects call of which a proof was found, or is looked for. */
export interface BulkDelete {
  readonly bucket: string;
  readonly requestId: string;
  readonly eventTimeMs: number;
}

/** The most calls of which a gap waits for a proof: the events of one call arrive within minutes, and it may wait for ten. */
export const CALLS_MAX = 100;

/** One report of a gap. One gap record sums up many of them. */
export interface GapReport {
  readonly bucket: string;
  readonly kind: GapKind;
  readonly prefix?: string;
  readonly reason: string;
  readonly seenAtMs: number;
  /** The report announces future changes that no event will report. It creates a gap if there is no record yet; an existing gap does not change. */
  readonly standing?: true;
  /** The DeleteObjects calls that are reported; at most CALLS_MAX + 1 are kept. */
  readonly calls?: readonly BulkCall[];
  /** Records were handed over to a re-index: their messages are deleted, and only the gap stands for their changes. */
  readonly folded?: true;
  /** Changes of tags are among what was handed over. */
  readonly tags?: true;
}

/** Whether a person has stopped the job that was to delete what the gap stands for: consent is not assumed again. */
export function isWithheld({ kind, held }: Pick<GapRecord, 'kind' | 'held'>): boolean {
  return held === true && isOfDeletes(kind);
}

/**
 * Whether the times of its reports are those of AWS, whichever process reports: of CloudTrail's calls, and of SQS for what is handed over. Those of
 * other kinds may be the time of a machine with a wrong clock.
 */
export function isTimedByAws(kind: GapKind): boolean {
  switch (kind) {
    case 'bulk-delete':
      return true;
    case 'lifecycle':
    case 'loss':
    case 'held-deletes':
      return false;
  }
}

/** The id of the gap record: there is one for each (bucket, kind, prefix). */
export function gapId(report: Pick<GapReport, 'bucket' | 'kind' | 'prefix'>): string {
  const prefix = report.prefix ?? '';
  const suffix = prefix === '' ? '' : `:${createHash('sha256').update(prefix).digest('hex').slice(0, 16)}`;
  return `gap:${report.bucket}:${report.kind}${suffix}`;
}

export interface ReportFacts {
  readonly count: number;
  /** When the changes were reported, by this machine's clock. */
  readonly toldAtMs: number;
  /** The latest beginning of a job of the bucket, as read after the changes were noticed. */
  readonly afterBeginOrder: number;
  /** What the bucket's documents are enriched with. */
  readonly enrich: EnrichMode;
}

/**
 * The record after `count` reports, of which `report` is the latest. It creates a gap, reopens a closed one, or extends
 * an open one; a closing gap becomes open again. Returns the same object when there is nothing to store.
 */
export function withReport(current: GapRecord | undefined, report: GapReport, facts: ReportFacts): GapRecord {
  const { count, toldAtMs } = facts;
  if (current !== undefined && report.standing === true) return current;
  if (current !== undefined && isReconciled(current, report)) return { ...current, count: current.count + count };
  const base = current === undefined || current.state === 'closed' ? reopened(current, report, toldAtMs) : current;
  return withCalls(extended(omit(base, 'tooEarlyUntilMs', 'awaitsProof'), report, facts), report);
}

function extended(gap: GapRecord, report: GapReport, { count, toldAtMs, afterBeginOrder, enrich }: ReportFacts): GapRecord {
  return {
    ...gap,
    reason: report.reason,
    firstSeenMs: Math.min(gap.firstSeenMs, report.seenAtMs),
    lastSeenMs: Math.max(gap.lastSeenMs, report.seenAtMs),
    toldAtMs: Math.max(gap.toldAtMs, toldAtMs),
    afterBeginOrder: Math.max(gap.afterBeginOrder ?? 0, afterBeginOrder),
    count: gap.count + count,
    state: 'open',
    ...(report.folded === true && { folded: true }),
    ...(mayMissTags(report, enrich) && { tags: true }),
  };
}

/**
 * Whether changes of tags may be among what was lost. Only a record that is handed over says what it was; of any other loss it is not known,
 * so where documents have tags, all of them are read again.
 */
function mayMissTags({ kind, folded, tags }: GapReport, enrich: EnrichMode): boolean {
  return tags === true || (kind === 'loss' && folded !== true && enrich === 'tags');
}

/** The gap once the events of its bucket are known to arrive: what changed until now may be missing. Returns the same object if it does not wait for that. */
export function withProof(
  gap: GapRecord,
  { atMs, afterBeginOrder }: { readonly atMs: number; readonly afterBeginOrder: number },
): GapRecord {
  if (gap.unproven !== true) return gap;
  const { unproven: _, awaitsProof: __, waits, ...rest } = gap;
  // S3 needs its minutes all the same after a change
  const stillWaits = waits !== undefined && (gap.notBeforeMs ?? 0) > atMs ? { waits } : {};
  return {
    ...rest,
    ...stillWaits,
    state: 'open',
    lastSeenMs: Math.max(gap.lastSeenMs, atMs),
    toldAtMs: Math.max(gap.toldAtMs, atMs),
    afterBeginOrder: Math.max(gap.afterBeginOrder ?? 0, afterBeginOrder),
  };
}

/** The gap after a report that found no difference in its keys. */
export function withoutDifferences(gap: GapRecord): GapRecord {
  return gap.differences === undefined ? gap : omit(gap, 'differences');
}

/** The record once it is known that the keys of this bulk delete are reported one by one. Returns the same object if the gap does not wait for that. */
export function withKeysReported(gap: GapRecord, call: Pick<BulkDelete, 'requestId' | 'eventTimeMs'>): GapRecord {
  if (gap.state === 'closed' || gap.unprovenCalls?.includes(call.requestId) !== true) return gap;
  const unprovenCalls = gap.unprovenCalls.filter((id) => id !== call.requestId);
  return withCover({ ...gap, unprovenCalls, keysToldMs: Math.max(gap.keysToldMs ?? 0, call.eventTimeMs) });
}

/** Whether a change was reported late, after a reconcile that has seen its effect. Only the times of AWS can say so. */
function isReconciled({ state, kind, reconciledBeforeMs = 0 }: GapRecord, { seenAtMs }: GapReport): boolean {
  return state === 'closed' && isTimedByAws(kind) && seenAtMs < reconciledBeforeMs;
}

function reopened(closed: GapRecord | undefined, report: GapReport, toldAtMs: number): GapRecord {
  return {
    id: gapId(report),
    bucket: report.bucket,
    kind: report.kind,
    ...(report.prefix !== undefined && { prefix: report.prefix }),
    reason: report.reason,
    firstSeenMs: report.seenAtMs,
    lastSeenMs: report.seenAtMs,
    count: 0,
    state: 'open',
    openedAtMs: toldAtMs,
    toldAtMs,
    ...(closed?.reconciledBeforeMs !== undefined && { reconciledBeforeMs: closed.reconciledBeforeMs }),
  };
}

/** The proof of one call says nothing about another: a gap is covered only if each of its calls is proven. */
function withCalls(gap: GapRecord, { kind, calls = [], seenAtMs }: GapReport): GapRecord {
  if (kind !== 'bulk-delete') return gap;
  const reported = new Set(calls.flatMap(({ requestId, isReported }) => (isReported ? (requestId ?? []) : [])));
  const known = [...(gap.unprovenCalls ?? []), ...calls.flatMap(({ requestId }) => requestId ?? [])];
  const unproven = [...new Set(known)].filter((id) => !reported.has(id));
  const isAnyUnknown = calls.length === 0 || calls.length > CALLS_MAX || calls.some(({ requestId }) => requestId === undefined);
  return withCover({
    ...gap,
    ...(reported.size > 0 && { keysToldMs: Math.max(gap.keysToldMs ?? 0, seenAtMs) }),
    unprovenCalls: unproven.slice(0, CALLS_MAX),
    hasUnknownCalls: gap.hasUnknownCalls === true || isAnyUnknown || unproven.length > CALLS_MAX,
  });
}

function withCover(gap: GapRecord): GapRecord {
  const { covered: _, unprovenCalls = [], hasUnknownCalls, ...rest } = gap;
  const isCovered = gap.folded !== true && hasUnknownCalls !== true && unprovenCalls.length === 0;
  return {
    ...rest,
    ...(unprovenCalls.length > 0 && { unprovenCalls }),
    ...(hasUnknownCalls === true && { hasUnknownCalls }),
    ...(isCovered && { covered: true }),
  };
}
