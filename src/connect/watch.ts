/**
 * The watch of a bucket's connection: when it checks, and what follows from what it finds. It repairs nothing, because a watch that
 * repairs would fight whatever else manages the same parts. It only removes the remains of an earlier source, as the person wanted who
 * changed the source.
 *
 *   ok, degraded ──found broken──► broken: a gap at once, which no job closes
 *        ▲                           │
 *        └──found repaired─────┘  a change, so one job closes it once AWS has applied that
 *
 * `unknown` says nothing about events, and keeps what was known.
 */
import type { BucketRecord, ConnectionCheck, WatchedState } from '../records/bucket.ts';
import { FaultError } from '../base/fault.ts';
import { RequestError } from '../base/request-error.ts';
import { defined, omit } from '../base/defined.ts';
import { printable } from '../base/texts.ts';
import type { Diagnosed, Refused } from './diagnose.ts';
import { statusOf, type Finding } from './finding.rules.ts';
import { troublesOf, type Processes } from '../observing/processes.ts';
import type { DueOf, Visit } from '../observing/sweep.ts';
import { type GapReports, noteArrivals, openChangeGap, markDirty } from '../observing/gaps.ts';
import { PROBE_LOST } from './probe.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import type { Connections } from './connections.ts';
import type { WithPorts } from '../store/store.ts';

/** Often enough to find a lost configuration within the hour, and rare enough to cost nothing: about five reads a bucket. */
const CHECK_MS = 3_600_000;
/** After this time, an abandoned apply is checked. Until then, parts may be missing because they are being made. */
const APPLYING_MS = 600_000;
/** The trouble may last only a moment. */
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

/** What processes know about the bucket now, which may be newer than the last check. */
interface News {
  readonly isQueueMissing: boolean;
  /** S3 has just refused enrichment for an object. */
  readonly refused: Refused | undefined;
}

function isNews({ findings, unread }: ConnectionCheck, news: News | undefined): boolean {
  const isQueueMissing = findings.some(({ code }) => code === 'connect.queue-missing');
  return news !== undefined && (news.isQueueMissing !== isQueueMissing || (news.refused !== undefined && unread === undefined));
}

/** Whether parts are being made or were removed on purpose, so that missing ones are no defect. */
function isChanging({ connection }: Pick<BucketRecord, 'connection'>, nowMs: number): boolean {
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

/** Something broken or unreadable is checked again after as long as it has lasted: it may be fixed, and is shown until the next check. */
function intervalOf(last: ConnectionCheck, news: News | undefined): number {
  if (isNews(last, news)) return TROUBLE_CHECK_MS;
  if (last.state !== 'broken' && last.state !== 'unknown' && last.unread === undefined) return CHECK_MS;
  return Math.min(CHECK_MS, Math.max(TROUBLE_CHECK_MS, last.atMs - (last.unread ?? last).sinceMs));
}

interface Checked extends Diagnosed {
  /** Tally made its parts, or its events are known to arrive. */
  readonly isConnected: boolean;
  readonly nowMs: number;
}

interface AfterCheck {
  readonly check: ConnectionCheck;
  /** `lost`: events are being lost. `restored`: they arrive again, but those in between are missing. */
  readonly gap?: 'lost' | 'restored';
  /** Enrichment can read again, but documents written in between lack its fields. */
  readonly isReadable: boolean;
}

/** What a check stores, and the gap that is opened before that. */
export function afterCheck(before: ConnectionCheck | undefined, checked: Checked): AfterCheck {
  const check = checkOf(before, checked);
  const gap = checked.isConnected ? gapOf(before, check) : undefined;
  const isReadable = before?.unread !== undefined && check.unread === undefined;
  return { check, isReadable, ...(gap !== undefined && { gap }) };
}

function checkOf(before: ConnectionCheck | undefined, checked: Checked): ConnectionCheck {
  const { findings, passesBoth, nowMs } = checked;
  const state = statusOf(findings);
  const brokenSinceMs = brokenSince(before, state, nowMs);
  return {
    state,
    atMs: nowMs,
    sinceMs: before?.state === state ? before.sinceMs : nowMs,
    findings: findings.slice(0, FINDINGS_MAX).map(({ code, what }) => ({ code, what: what.slice(0, WHAT_LENGTH_MAX) })),
    ...(brokenSinceMs !== undefined && { brokenSinceMs }),
    ...(passesBoth && { passesBoth }),
    ...unreadOf(before?.unread, checked),
  };
}

/** A refusal lasts until a check can read, and none came in the meantime: then one re-index fills in what is missing. */
function unreadOf(before: ConnectionCheck['unread'], { refused, isReadable, nowMs }: Checked): Pick<ConnectionCheck, 'unread'> {
  if (refused !== undefined)
    return { unread: { key: refused.key, reason: refused.reason.slice(0, WHAT_LENGTH_MAX), sinceMs: before?.sinceMs ?? nowMs } };
  return before === undefined || isReadable === true ? {} : { unread: before };
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

interface WatchDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly connections: Pick<Connections, 'diagnose'>;
  readonly gaps: Pick<GapReports, 'report'>;
}

/** Checks the connection of one bucket and stores what it found. `refused`: S3 has just refused enrichment for this object. Throws `connect.embedded` and the store's fault. */
export type CheckConnection = (record: BucketRecord, signal?: AbortSignal, refused?: Refused) => Promise<readonly Finding[]>;

/** Creates the check. Its gap is stored before its result: after a kill in between, the gap is opened again. */
export function createCheckConnection({ state, connections, gaps, clock, telemetry }: WatchDependencies): CheckConnection {
  return async function checkConnection(record, signal, fresh) {
    const { bucket, connection, provenAtMs } = record;
    const { findings, refused = fresh, ...diagnosed } = await connections.diagnose(record, signal, fresh?.key);
    const nowMs = clock.nowMs();
    const isAsRead = (current: BucketRecord | undefined): current is BucketRecord =>
      current !== undefined && isSameWay(current, record) && !isChanging(current, nowMs);
    // during an apply, the reads may mix the old state and the new one
    if (!isAsRead(await readRecord(state, refs.bucket(bucket), signal))) return findings;
    const isConnected = connection !== undefined || provenAtMs !== undefined;
    const after = afterCheck(record.connectionCheck, { ...diagnosed, ...defined({ refused }), findings, isConnected, nowMs });
    await openGap(record, after, signal);
    const { check } = after;
    await updateRecord(state, refs.bucket(bucket), (current) => (isAsRead(current) ? { ...current, connectionCheck: check } : undefined));
    if (check.state !== record.connectionCheck?.state) report(bucket, check);
    // with the configuration read, earlier arrivals may prove the connection
    if (diagnosed.passesBoth && provenAtMs === undefined) await noteArrivals({ state, clock }, record, []);
    return findings;
  };

  function report(bucket: string, { state: found, findings }: AfterCheck['check']): void {
    const fields = { bucket, state: found, findings: findings.map(({ code, what }) => `${code}: ${printable(what)}`) };
    if (found === 'ok') telemetry.info("the bucket's connection works", fields);
    else telemetry.warn("the bucket's connection has problems", fields);
  }

  async function openGap(record: BucketRecord, { check, gap, isReadable }: AfterCheck, signal?: AbortSignal): Promise<void> {
    const { bucket, enrich } = record;
    if (isReadable && enrich !== 'none')
      await gaps.report({ bucket, kind: 'tags', reason: UNREAD, seenAtMs: check.atMs, tags: true }, signal);
    switch (gap) {
      case undefined:
        return;
      case 'lost': {
        const reason = `the bucket's connection is broken: ${check.findings.map(({ code }) => code).join(', ')}`;
        await markDirty({ state, clock }, { bucket, kind: 'connection', reason, seenAtMs: check.atMs, unproven: 'wiring' });
        // events sent from now on show that it was fixed, even before the next check
        await updateRecord(state, refs.bucket(bucket), (current) => current && { ...omit(current, 'arrived'), waySinceMs: check.atMs });
        return;
      }
      case 'restored':
        await restored(record);
    }
  }

  /** A proof from before the breakage no longer counts. */
  async function restored(record: BucketRecord): Promise<void> {
    const { provenAtMs, connectionCheck } = record;
    const isProven = provenAtMs !== undefined && provenAtMs >= (connectionCheck?.brokenSinceMs ?? 0);
    const reason = "the bucket's connection was broken until now";
    await openChangeGap({ state, clock }, record, { reason, unproven: isProven ? 'none' : 'events' });
    if (!isProven) await updateRecord(state, refs.bucket(record.bucket), (current) => current && omit(current, 'provenAtMs'));
  }
}

function isSameWay(a: BucketRecord, b: BucketRecord): boolean {
  return a.source === b.source && a.topicArn === b.topicArn && a.connection?.changedAtMs === b.connection?.changedAtMs;
}

const UNREAD = 'until now, S3 refused what enrichment reads';

function newsOf(...[troubles, record, nowMs]: Parameters<typeof troublesOf>): News {
  const { waitsFor, unread } = troublesOf(troubles, record, nowMs);
  const { key, reason = '' } = unread ?? {};
  return { isQueueMissing: waitsFor?.code === 'queue.missing', refused: key === undefined ? undefined : { key, reason } };
}

interface VisitParts extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly processes: Pick<Processes, 'troubles'>;
  readonly connections: Pick<Connections, 'removeEarlier' | 'probe'>;
  readonly checkConnection: CheckConnection;
}

/** Resolves with the function that says which buckets a run checks. */
export async function connectionsDue({ clock, processes }: Pick<VisitParts, 'clock' | 'processes'>): ReturnType<DueOf> {
  const troubles = await processes.troubles();
  return (record) => isCheckDue(record, clock.nowMs(), newsOf(troubles, record, clock.nowMs()));
}

/** Visits one bucket. If AWS did not answer, it stores that and throws, so that the region's other buckets are visited later. */
export async function visitConnection(parts: VisitParts, { bucket }: BucketRecord, signal: AbortSignal): ReturnType<Visit> {
  const { state, clock, processes, checkConnection, connections, telemetry } = parts;
  // the sweep may have read the bucket some minutes ago
  const record = await readRecord(state, refs.bucket(bucket), signal);
  const nowMs = clock.nowMs();
  if (record === undefined) return undefined;
  const news = newsOf(await processes.troubles(), record, nowMs);
  if (!isCheckDue(record, nowMs, news)) return undefined;
  const { connection } = record;
  if ((connection?.earlier ?? []).length > 0) {
    const refusal = await attempt(parts, "the earlier source's parts could not be removed", bucket, async () => {
      const kept = await connections.removeEarlier(bucket, signal);
      if (kept !== undefined) telemetry.info("the earlier source's parts are removed", { bucket, kept: kept.map(({ name }) => name) });
    });
    // it stays due, because a dead process's lease ends only if it is looked at again within seconds
    if (refusal === 'connect.busy') return undefined;
  }
  const findings = await checkConnection(record, signal, news.refused);
  const unanswered = findings.find(({ code }) => code === 'connect.unavailable' || code === 's3.unavailable');
  if (unanswered !== undefined) throw new FaultError('connect.unavailable', unanswered.what);
  const isLost = findings.some(({ code }) => code === PROBE_LOST);
  if (connection?.state === 'applied')
    await attempt(parts, "the bucket's topic is not probed", bucket, () => connections.probe(connection, isLost, signal));
  return 0;
}

/** Logs a failure, for the next visit to try again: another process may hold the lease, or a permission may be missing. Resolves with the error's code. */
async function attempt({ telemetry }: VisitParts, failed: string, bucket: string, work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (!(error instanceof RequestError || error instanceof FaultError)) throw error;
    telemetry.warn(failed, { bucket, reason: printable(error.message) });
    return error.code;
  }
}
