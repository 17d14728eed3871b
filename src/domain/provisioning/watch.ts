/**
 * The watch of a connection: when it looks, and what follows from what it finds. It only reads, because a watch that repairs
 * would wage war with whatever else manages the same parts.
 *
 *   ok, degraded ──found broken──► broken: a gap, once
 *        ▲                           │
 *        └──found in order again─────┘  a second gap for what was lost since, unless an apply has opened one
 *
 * `unknown` and `paused` say nothing about events, and keep what was known.
 */
import type { BucketRecord, ConnectionCheck, WatchedState } from '../bucket.ts';
import { statusOf, type Finding } from './checks/finding.ts';
import type { ConnectionRecord } from './connection.ts';

/** Often enough to find a lost configuration within the hour, and rare enough to cost nothing: about six reads for each bucket. */
const LOOK_MS = 3_600_000;
/** A write of others that crossed ours shows soon after it. */
const AFTER_CHANGE_MS = [5_000, 30_000] as const;
/** An apply that no one continues is looked at after this time: until then parts are missing because they are being made. */
const APPLYING_MS = 600_000;
/** A bucket that is wired by hand is connected before or after its wiring: the watch does not judge what is being made. */
const WIRING_MS = 600_000;
/** Enough to show the kind of trouble. The doctor shows all. */
const FINDINGS_MAX = 3;
const WHAT_LENGTH_MAX = 500;

type Watched = Pick<ConnectionRecord, 'state' | 'changedAtMs' | 'pausedAtMs'>;

/** Whether the watch looks at the bucket now. */
export function isLookDue(
  record: Pick<BucketRecord, 'createdAtMs' | 'connectionCheck'>,
  connection: Watched | undefined,
  nowMs: number,
): boolean {
  if (connection?.state === 'removing') return false;
  const { connectionCheck: last, createdAtMs } = record;
  const changedAtMs = connection?.changedAtMs ?? 0;
  if (connection?.state === 'applying' && nowMs - changedAtMs < APPLYING_MS) return false;
  if (connection === undefined && nowMs - createdAtMs < WIRING_MS) return false;
  if (last === undefined || nowMs - last.atMs >= LOOK_MS) return true;
  // a clock that was set back must not stop the watch
  if (last.atMs > nowMs + LOOK_MS) return true;
  if ((connection?.state === 'paused') !== (last.state === 'paused')) return true;
  return AFTER_CHANGE_MS.some((afterMs) => nowMs >= changedAtMs + afterMs && last.atMs < changedAtMs + afterMs);
}

export interface Looked {
  readonly findings: readonly Finding[];
  /** Absent: the bucket was wired by hand. */
  readonly connection: Watched | undefined;
  readonly nowMs: number;
}

export interface AfterLook {
  readonly check: ConnectionCheck;
  /** `lost`: events are being lost. `restored`: they arrive again, and those of the meantime are missing. */
  readonly gap?: 'lost' | 'restored';
}

/** What is stored after a look, and the gap that is opened before that. */
export function afterLook(before: ConnectionCheck | undefined, { findings, connection, nowMs }: Looked): AfterLook {
  const state: WatchedState = connection?.state === 'paused' ? 'paused' : statusOf(findings);
  const isInOrder = state === 'ok' || state === 'degraded';
  const wasInOrder = isInOrder || before?.wasInOrder === true;
  const brokenSinceMs = isInOrder ? undefined : (before?.brokenSinceMs ?? (state === 'broken' ? nowMs : undefined));
  const since = state === before?.state ? before.sinceMs : nowMs;
  const check: ConnectionCheck = {
    state,
    atMs: nowMs,
    sinceMs: state === 'paused' ? (connection?.pausedAtMs ?? since) : since,
    findings: findings.slice(0, FINDINGS_MAX).map(({ code, what }) => ({ code, what: what.slice(0, WHAT_LENGTH_MAX) })),
    ...(brokenSinceMs !== undefined && { brokenSinceMs }),
    ...(wasInOrder && { wasInOrder }),
  };
  const gap = gapOf(before, check, connection);
  return gap === undefined ? { check } : { check, gap };
}

function gapOf(before: ConnectionCheck | undefined, after: ConnectionCheck, connection: Watched | undefined): AfterLook['gap'] {
  const wasSinceMs = before?.brokenSinceMs;
  // how a bucket is wired that was never found in order is not known: it is shown, and not repaired again and again
  const isKnown = connection !== undefined || after.wasInOrder === true;
  if (wasSinceMs === undefined) return after.brokenSinceMs !== undefined && isKnown ? 'lost' : undefined;
  if (after.brokenSinceMs !== undefined || !isKnown) return undefined;
  // the apply that repaired it has opened a gap that covers this time
  return (connection?.changedAtMs ?? 0) > wasSinceMs ? undefined : 'restored';
}
