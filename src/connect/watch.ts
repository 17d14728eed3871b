/**
 * Checks the connection of a bucket from time to time, and stores what it finds. It repairs nothing; only what is left of an earlier
 * source goes, as the person wanted who changed it.
 */
import type { BucketRecord } from '../records/bucket.ts';
import { FaultError } from '../base/fault.ts';
import { RequestError } from '../base/request-error.ts';
import { omit } from '../base/defined.ts';
import { printable } from '../base/printable.ts';
import { CLOCK_SKEW, type Finding } from './finding.rules.ts';
import { afterCheck, isChanging, isCheckDue, type AfterCheck } from './watch.rules.ts';
import { troublesOf, type Processes } from '../observing/processes.ts';
import type { DueOf, Visit } from '../observing/sweep.ts';
import { type GapReports, noteArrivals, openChangeGap, markDirty } from '../observing/gaps.ts';
import { PROBE_LOST } from './probe.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import type { Connections } from './connections.ts';
import type { Telemetry } from '../process/telemetry.ts';
import type { WithPorts } from '../store/store.ts';

/** As often as each bucket is checked. */
const CLOCK_MS = 3_600_000;

interface WatchDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly connections: Pick<Connections, 'diagnose'>;
  readonly gaps: Pick<GapReports, 'report'>;
}

/** Checks the connection of one bucket and stores what it found. Throws `connect.embedded` and the store's fault. */
export type CheckConnection = (record: BucketRecord, signal?: AbortSignal) => Promise<readonly Finding[]>;

/** Creates the check. What follows from it is stored first: a process that is killed in between opens the gap again. */
export function createCheckConnection({ state, connections, gaps, clock, telemetry }: WatchDependencies): CheckConnection {
  return async function checkConnection(record, signal) {
    const { bucket, connection, provenAtMs } = record;
    const { findings: found, passesBoth } = await connections.diagnose(record, signal);
    const findings = found.filter((finding) => finding.code !== CLOCK_SKEW);
    if (findings.length < found.length) reportClock(found);
    const nowMs = clock.nowMs();
    const isAsRead = (current: BucketRecord | undefined): current is BucketRecord =>
      current !== undefined && isSameWay(current, record) && !isChanging(current, nowMs);
    // what was read while an apply changed it may be neither what was there nor what is
    if (!isAsRead(await readRecord(state, refs.bucket(bucket), signal))) return found;
    const isConnected = connection !== undefined || provenAtMs !== undefined;
    const after = afterCheck(record.connectionCheck, { findings, passesBoth, isConnected, nowMs });
    await openGap(record, after, signal);
    const { check } = after;
    await updateRecord(state, refs.bucket(bucket), (current) => (isAsRead(current) ? { ...current, connectionCheck: check } : undefined));
    if (check.state !== record.connectionCheck?.state) report(bucket, check);
    // what has arrived may be proof now that the configuration was read
    if (passesBoth && provenAtMs === undefined) await noteArrivals({ state, clock }, record, []);
    return found;
  };

  /** A clock that differs is most likely that of this machine. It says nothing about the bucket, which other machines check as well, so it is not stored. */
  function reportClock(found: readonly Finding[]): void {
    for (const { code, what, why } of found)
      if (code === CLOCK_SKEW)
        telemetry.warnOnce("S3's clock and this machine's clock differ", code, { code, what, advice: why }, CLOCK_MS);
  }

  function report(bucket: string, { state: found, findings }: AfterCheck['check']): void {
    const fields = { bucket, state: found, findings: findings.map(({ code, what }) => `${code}: ${printable(what)}`) };
    if (found === 'ok') telemetry.info("the bucket's connection works", fields);
    else telemetry.warn("the bucket's connection has problems", fields);
  }

  async function openGap(record: BucketRecord, { check, gap, isReadable }: AfterCheck, signal?: AbortSignal): Promise<void> {
    const { bucket } = record;
    if (isReadable) await gaps.report({ bucket, kind: 'tags', reason: UNREAD, seenAtMs: check.atMs, tags: true }, signal);
    switch (gap) {
      case undefined:
        return;
      case 'lost': {
        const reason = `the bucket's connection is broken: ${check.findings.map(({ code }) => code).join(', ')}`;
        await markDirty({ state, clock }, { bucket, kind: 'connection', reason, seenAtMs: check.atMs, unproven: 'wiring' });
        // by what is sent from now on it is known to be mended, even before a check finds it in order
        await updateRecord(state, refs.bucket(bucket), (current) => current && { ...omit(current, 'arrived'), waySinceMs: check.atMs });
        return;
      }
      case 'restored':
        await restored(record);
    }
  }

  /** What proved the connection before it broke does not count any more. */
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

interface DueDependencies extends WithPorts<'state' | 'clock'> {
  readonly processes: Pick<Processes, 'troubles'>;
}

function newsOf(...[troubles, record, nowMs]: Parameters<typeof troublesOf>) {
  const { waitsFor, unread } = troublesOf(troubles, record, nowMs);
  return { isQueueMissing: waitsFor?.code === 'queue.missing', isUnread: unread !== undefined };
}

/** Creates the function that decides which buckets are to be checked in a run. */
export function createConnectionsDue({ clock, processes }: Omit<DueDependencies, 'state'>): DueOf {
  return async () => {
    const troubles = await processes.troubles();
    return (record) => isCheckDue(record, clock.nowMs(), newsOf(troubles, record, clock.nowMs()));
  };
}

/** Creates the visit of one bucket. Throws what AWS did not answer, once it is stored: other buckets of the region are visited later then. */
export function createVisitConnection({
  state,
  clock,
  processes,
  checkConnection,
  connections,
  telemetry,
}: DueDependencies & {
  readonly connections: Pick<Connections, 'removeEarlier' | 'probe'>;
  readonly telemetry: Pick<Telemetry, 'info' | 'warn'>;
  readonly checkConnection: CheckConnection;
}): Visit {
  return async function visitConnection({ bucket }, signal) {
    // the sweep may have read the bucket some minutes ago
    const record = await readRecord(state, refs.bucket(bucket), signal);
    const nowMs = clock.nowMs();
    if (record === undefined || !isCheckDue(record, nowMs, newsOf(await processes.troubles(), record, nowMs))) return undefined;
    const { connection } = record;
    if ((connection?.earlier ?? []).length > 0) {
      const refusal = await attempt("the earlier source's parts could not be removed", bucket, async () => {
        const kept = await connections.removeEarlier(bucket, signal);
        if (kept !== undefined) telemetry.info("the earlier source's parts are removed", { bucket, kept: kept.map(({ name }) => name) });
      });
      // it stays due: a dead process's lease ends only for who looks at it again within seconds
      if (refusal === 'connect.busy') return undefined;
    }
    const findings = await checkConnection(record, signal);
    const unanswered = findings.find(({ code }) => code === 'connect.unavailable' || code === 's3.unavailable');
    if (unanswered !== undefined) throw new FaultError('connect.unavailable', unanswered.what);
    const isLost = findings.some(({ code }) => code === PROBE_LOST);
    if (connection?.state === 'applied')
      await attempt("the bucket's topic is not probed", bucket, () => connections.probe(connection, isLost, signal));
    return 0;
  };

  /** Another process changes connections, or this one may not do it: the next visit tries again. Resolves with the code of what failed. */
  async function attempt(failed: string, bucket: string, work: () => Promise<void>): Promise<string | undefined> {
    try {
      await work();
      return undefined;
    } catch (error) {
      if (!(error instanceof RequestError || error instanceof FaultError)) throw error;
      telemetry.warn(failed, { bucket, reason: printable(error.message) });
      return error.code;
    }
  }
}
