import { createHash } from 'node:crypto';
import { z } from 'zod';

/** Gaps: changes that a source did not tell. Stored; a reconcile that began after `lastSeenMs` closes one. */

export const gapKinds = ['bulk-delete', 'lifecycle', 'loss'] as const;
export type GapKind = (typeof gapKinds)[number];

export const gapSchema = z.object({
  id: z.string(),
  bucket: z.string(),
  kind: z.enum(gapKinds),
  /** Only keys below this prefix are concerned; absent: the whole bucket. */
  prefix: z.string().optional(),
  /** Why it was opened, in a few words (`dead letter: record.key-missing`). The latest reason wins. */
  reason: z.string(),
  firstSeenMs: z.number(),
  lastSeenMs: z.number(),
  count: z.number(),
  state: z.enum(['open', 'closing', 'closed']),
  /** The job that is closing or has closed it; of an open one, a job that may yet do so (a paused one). */
  jobId: z.string().optional(),
  closedAtMs: z.number().optional(),
  /** When it was opened, and when it was last told, by the clock of who stored it: the quiet before its reconcile counts from there. */
  openedAtMs: z.number().optional(),
  toldAtMs: z.number().optional(),
  /** Changes before this moment (S3's clock) are covered by a reconcile that is done. */
  reconciledBeforeMs: z.number().optional(),
  /** A bulk delete whose keys are told one by one as well: left to a reconcile within a day. */
  covered: z.boolean().optional(),
  /** The time of the latest bulk delete that came with one event for each of its keys. */
  keysToldMs: z.number().optional(),
  /** Jobs in a row that did not close it. */
  failures: z.number().optional(),
  /** Why it is open still, and until when by the present plan; for people. */
  waits: z.object({ reason: z.string(), untilMs: z.number().optional() }).optional(),
  /** No job is begun for it before. */
  notBeforeMs: z.number().optional(),
});
export type GapRecord = z.infer<typeof gapSchema>;

/** What is seen of a gap: one report of many that one record sums up. */
export interface GapSighting {
  readonly bucket: string;
  readonly kind: GapKind;
  readonly prefix?: string;
  readonly reason: string;
  readonly seenAtMs: number;
  /** It says that changes will come which nobody tells, not that one came: it opens a gap that never was, and changes no other. */
  readonly standing?: true;
  /** Of a bulk delete: when the bucket's keys were last told one by one, as far as the teller knows. */
  readonly keysToldMs?: number;
}

/** One open gap record stands for each (bucket, kind, prefix). */
export function gapId(sighting: Pick<GapSighting, 'bucket' | 'kind' | 'prefix'>): string {
  const prefix = sighting.prefix ?? '';
  const suffix = prefix === '' ? '' : `:${createHash('sha256').update(prefix).digest('hex').slice(0, 16)}`;
  return `gap:${sighting.bucket}:${sighting.kind}${suffix}`;
}

/** How long keys that were told one by one stand for those of later bulk deletes. */
const KEYS_TOLD_LIFE_MS = 86_400_000;

export interface SightingFacts {
  readonly count: number;
  /** When they were told, by this machine's clock. */
  readonly toldAtMs: number;
}

/**
 * The record after `count` sightings, the latest of which is given: opens a new or closed gap, extends an open one. A later sighting puts a closing gap back to open. The very record where there is nothing to store.
 */
export function withSighting(current: GapRecord | undefined, sighting: GapSighting, { count, toldAtMs }: SightingFacts): GapRecord {
  if (current !== undefined && sighting.standing === true) return current;
  if (current !== undefined && isReconciled(current, sighting)) return { ...current, count: current.count + count };
  const base = current === undefined || current.state === 'closed' ? reopened(current, sighting, toldAtMs) : current;
  const { covered: _, ...rest } = base;
  return withCover({
    ...rest,
    reason: sighting.reason,
    firstSeenMs: Math.min(base.firstSeenMs, sighting.seenAtMs),
    lastSeenMs: Math.max(base.lastSeenMs, sighting.seenAtMs),
    toldAtMs: Math.max(base.toldAtMs ?? 0, toldAtMs),
    count: base.count + count,
    state: 'open',
    ...laterKeysTold(base.keysToldMs, sighting.keysToldMs),
  });
}

/** The record once it is known that the keys of its bulk deletes are told one by one. */
export function withKeysTold(gap: GapRecord, keysToldMs: number): GapRecord {
  return gap.state === 'closed' ? gap : withCover({ ...gap, ...laterKeysTold(gap.keysToldMs, keysToldMs) });
}

/**
 * A bulk delete that is told late, after the reconcile that saw its effect. Only of these is the time AWS's own; of
 * the others it may be a slow machine's.
 */
function isReconciled({ state, kind, reconciledBeforeMs = 0 }: GapRecord, { seenAtMs }: GapSighting): boolean {
  return state === 'closed' && kind === 'bulk-delete' && seenAtMs < reconciledBeforeMs;
}

function reopened(closed: GapRecord | undefined, sighting: GapSighting, toldAtMs: number): GapRecord {
  return {
    id: gapId(sighting),
    bucket: sighting.bucket,
    kind: sighting.kind,
    ...(sighting.prefix !== undefined && { prefix: sighting.prefix }),
    reason: sighting.reason,
    firstSeenMs: sighting.seenAtMs,
    lastSeenMs: sighting.seenAtMs,
    count: 0,
    state: 'open',
    openedAtMs: toldAtMs,
    ...(closed?.reconciledBeforeMs !== undefined && { reconciledBeforeMs: closed.reconciledBeforeMs }),
    ...(closed?.keysToldMs !== undefined && { keysToldMs: closed.keysToldMs }),
  };
}

function laterKeysTold(a: number | undefined, b: number | undefined): { readonly keysToldMs?: number } {
  return a === undefined && b === undefined ? {} : { keysToldMs: Math.max(a ?? 0, b ?? 0) };
}

function withCover(gap: GapRecord): GapRecord {
  const isCovered = gap.keysToldMs !== undefined && gap.lastSeenMs - gap.keysToldMs <= KEYS_TOLD_LIFE_MS;
  return isCovered ? { ...gap, covered: true } : gap;
}
