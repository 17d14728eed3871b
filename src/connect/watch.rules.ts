/**
 * The watch of a connection: when it checks, and what follows from what it finds. It only reads, because a watch that repairs
 * would wage war with whatever else manages the same parts.
 *
 *   ok, degraded ──found broken──► broken: a gap at once, which no job closes
 *        ▲                           │
 *        └──found in order again─────┘  a change, so one job closes it when AWS has applied that
 *
 * `unknown` and `paused` say nothing about events, and keep what was known.
 */
import type { BucketRecord, ConnectionCheck, WatchedState } from '../records/bucket.ts';
import { NOT_ENRICHED, statusOf, type Finding } from './finding.rules.ts';
import type { ConnectionRecord } from './connection.rules.ts';

/** Often enough to find a lost configuration within the hour, and rare enough to cost nothing: about six reads for each bucket. */
const CHECK_MS = 3_600_000;
/** An apply that no one continues is checked after this time: until then parts are missing because they are being made. */
const APPLYING_MS = 600_000;
/** S3 may not have answered for a moment. */
const TROUBLE_CHECK_MS = 60_000;
/** Enough to show the kind of trouble. The doctor shows all. */
const FINDINGS_MAX = 3;
const WHAT_LENGTH_MAX = 500;

type Watched = Pick<ConnectionRecord, 'state' | 'changedAtMs' | 'pausedAtMs'>;

type Seen = Pick<BucketRecord, 'connectionCheck'>;

/** Whether the watch checks the bucket now. */
export function isCheckDue(record: Seen, connection: Watched | undefined, nowMs: number, news?: News): boolean {
  const { connectionCheck: last } = record;
  if (isBeingMade(connection, nowMs)) return false;
  if (last === undefined || (connection?.state === 'paused') !== (last.state === 'paused')) return true;
  // a clock that was set back must not stop the watch
  return Math.abs(nowMs - last.atMs) >= intervalOf(record, news);
}

/** What processes know of the bucket, which the last check may not have found yet, or may have found when it was not over. */
interface News {
  readonly isQueueMissing: boolean;
  readonly isUnread: boolean;
}

function isNews({ findings, unread }: ConnectionCheck, news: News | undefined): boolean {
  const isQueueMissing = findings.some(({ code }) => code === 'connect.queue-missing');
  return news !== undefined && (news.isQueueMissing !== isQueueMissing || news.isUnread !== (unread !== undefined));
}

/** Parts are being made or taken away now, so that some are missing rightfully. */
export function isBeingMade(connection: Watched | undefined, nowMs: number): boolean {
  if (connection === undefined) return false;
  return connection.state === 'removing' || (connection.state === 'applying' && nowMs - (connection.changedAtMs ?? 0) < APPLYING_MS);
}

/** What is broken or could not be read is checked again after as long as it has been so: it is shown until then, and may be mended. */
function intervalOf({ connectionCheck: last }: Seen, news: News | undefined): number {
  if (last !== undefined && isNews(last, news)) return TROUBLE_CHECK_MS;
  if (last?.state !== 'broken' && last?.state !== 'unknown') return CHECK_MS;
  return Math.min(CHECK_MS, Math.max(TROUBLE_CHECK_MS, last.atMs - last.sinceMs));
}

export interface Checked {
  readonly findings: readonly Finding[];
  readonly passesBoth: boolean;
  /** Absent: nothing was made for the bucket. */
  readonly connection: Watched | undefined;
  /** Its events are known to have arrived. */
  readonly isProven: boolean;
  readonly nowMs: number;
}

export interface AfterCheck {
  readonly check: ConnectionCheck;
  /** `lost`: events are being lost. `restored`: they arrive again, and those of the meantime are missing. */
  readonly gap?: 'lost' | 'restored';
  /** What enrichment reads is readable again: documents of the meantime lack it. */
  readonly isReadable: boolean;
}

/** What is stored after a check, and the gap that is opened before that. */
export function afterCheck(before: ConnectionCheck | undefined, checked: Checked): AfterCheck {
  const check = checkOf(before, checked);
  const gap = gapOf(before, check, checked);
  const isReadable = before?.unread !== undefined && check.unread === undefined;
  return { check, isReadable, ...(gap !== undefined && { gap }) };
}

function checkOf(before: ConnectionCheck | undefined, { findings, passesBoth, connection, nowMs }: Checked): ConnectionCheck {
  const state: WatchedState = connection?.state === 'paused' ? 'paused' : statusOf(findings);
  const brokenSinceMs = brokenSince(before, state, nowMs);
  return {
    state,
    atMs: nowMs,
    sinceMs: stateSince(before, state, nowMs),
    ...(state === 'paused' && connection?.pausedAtMs !== undefined && { sinceMs: connection.pausedAtMs }),
    findings: findings.slice(0, FINDINGS_MAX).map(({ code, what }) => ({ code, what: what.slice(0, WHAT_LENGTH_MAX) })),
    ...(brokenSinceMs !== undefined && { brokenSinceMs }),
    ...(passesBoth && { passesBoth }),
    ...unreadOf(before, findings, nowMs),
  };
}

function unreadOf(before: ConnectionCheck | undefined, findings: readonly Finding[], nowMs: number): Pick<ConnectionCheck, 'unread'> {
  const found = findings.find(({ code }) => code === NOT_ENRICHED);
  if (found !== undefined) return { unread: { reason: found.what.slice(0, WHAT_LENGTH_MAX), sinceMs: before?.unread?.sinceMs ?? nowMs } };
  // what could not be looked at is as it was
  return before?.unread !== undefined && statusOf(findings) === 'unknown' ? { unread: before.unread } : {};
}

function stateSince(before: ConnectionCheck | undefined, state: WatchedState, nowMs: number): number {
  return before?.state === state ? before.sinceMs : nowMs;
}

function isInOrder(state: WatchedState): boolean {
  return state === 'ok' || state === 'degraded';
}

/** Since when events have been lost, as far as is known. */
function brokenSince(before: ConnectionCheck | undefined, state: WatchedState, nowMs: number): number | undefined {
  if (isInOrder(state)) return undefined;
  return before?.brokenSinceMs ?? (state === 'broken' ? nowMs : undefined);
}

function gapOf(
  before: ConnectionCheck | undefined,
  { brokenSinceMs }: ConnectionCheck,
  { connection, isProven }: Checked,
): AfterCheck['gap'] {
  // nothing leads its events to the queue yet
  if (connection === undefined && !isProven) return undefined;
  // also after an apply, whose gap ends with it: it need not be what has repaired the connection
  if (brokenSinceMs === undefined) return before?.brokenSinceMs === undefined ? undefined : 'restored';
  return before?.brokenSinceMs === undefined ? 'lost' : undefined;
}
