/**
 * The watch of a connection: when it checks, and what follows from what it finds. It only reads, because a watch that repairs
 * would wage war with whatever else manages the same parts.
 *
 *   ok, degraded ──found broken──► broken: a gap at once, which no job closes
 *        ▲                           │
 *        └──found in order again─────┘  a change, so one job closes it when AWS has applied that
 *
 * `unknown` says nothing about events, and keeps what was known.
 */
import type { BucketRecord, ConnectionCheck, WatchedState } from '../records/bucket.ts';
import { NOT_ENRICHED, statusOf, type Finding } from './finding.rules.ts';

/** Often enough to find a lost configuration within the hour, and rare enough to cost nothing: about six reads for each bucket. */
const CHECK_MS = 3_600_000;
/** An apply that no one continues is checked after this time: until then parts are missing because they are being made. */
const APPLYING_MS = 600_000;
/** S3 may not have answered for a moment. */
const TROUBLE_CHECK_MS = 60_000;
/** Enough to show the kind of trouble. The doctor shows all. */
const FINDINGS_MAX = 3;
const WHAT_LENGTH_MAX = 500;

type Watched = Pick<BucketRecord, 'connection' | 'connectionCheck'>;

/** Whether the watch checks the bucket now. */
export function isCheckDue(record: Watched, nowMs: number, news?: News): boolean {
  const { connectionCheck: last } = record;
  if (isChanging(record, nowMs)) return false;
  // a clock that was set back must not stop the watch
  return last === undefined || Math.abs(nowMs - last.atMs) >= intervalOf(last, news);
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

/** Parts are being made or have been taken away, so that some are missing rightfully. */
export function isChanging({ connection }: Pick<BucketRecord, 'connection'>, nowMs: number): boolean {
  switch (connection?.state) {
    case undefined:
    case 'applied':
      return false;
    case 'applying':
      return nowMs - connection.changedAtMs < APPLYING_MS;
    case 'paused':
    case 'removing':
      return true;
  }
}

/** What is broken or could not be read is checked again after as long as it has been so: it is shown until then, and may be mended. */
function intervalOf(last: ConnectionCheck, news: News | undefined): number {
  if (isNews(last, news)) return TROUBLE_CHECK_MS;
  if (last.state !== 'broken' && last.state !== 'unknown') return CHECK_MS;
  return Math.min(CHECK_MS, Math.max(TROUBLE_CHECK_MS, last.atMs - last.sinceMs));
}

export interface Checked {
  readonly findings: readonly Finding[];
  readonly passesBoth: boolean;
  /** Its parts were made, or its events are known to have arrived: something leads them to the queue. */
  readonly isConnected: boolean;
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
  const gap = checked.isConnected ? gapOf(before, check) : undefined;
  const isReadable = before?.unread !== undefined && check.unread === undefined;
  return { check, isReadable, ...(gap !== undefined && { gap }) };
}

function checkOf(before: ConnectionCheck | undefined, { findings, passesBoth, nowMs }: Checked): ConnectionCheck {
  const state = statusOf(findings);
  const brokenSinceMs = brokenSince(before, state, nowMs);
  return {
    state,
    atMs: nowMs,
    sinceMs: before?.state === state ? before.sinceMs : nowMs,
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

/** Since when events have been lost, as far as is known. */
function brokenSince(before: ConnectionCheck | undefined, state: WatchedState, nowMs: number): number | undefined {
  if (state === 'ok' || state === 'degraded') return undefined;
  return before?.brokenSinceMs ?? (state === 'broken' ? nowMs : undefined);
}

function gapOf(before: ConnectionCheck | undefined, { brokenSinceMs }: ConnectionCheck): AfterCheck['gap'] {
  if (brokenSinceMs === undefined) return before?.brokenSinceMs === undefined ? undefined : 'restored';
  return before?.brokenSinceMs === undefined ? 'lost' : undefined;
}
