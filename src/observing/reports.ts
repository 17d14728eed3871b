/** Reports of gaps, and the names of buckets that are not connected. */
import { bucketRecordSchema, mayBeFedBy } from '../records/bucket.ts';
import { markId, whyOf, type DirtyMark, type GapReport } from '../records/dirty.ts';
import { createCoalescingWriter } from '../store/coalescing-writer.ts';
import { isConnected, markDirty } from './stored-gaps.ts';
import type { StateStore, WithPorts } from '../store/store.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { listAllEntries, readRecord, refs, removeRecord, updateRecord } from '../store/stored.ts';

/** Unconnected names are kept for people to see. The number is bounded, since anyone who can send to the queue can invent names. */
const UNCONNECTED_MAX = 1_000;

export interface GapReports {
  /**
   * Resolves when the report is stored durably, alone or merged with others of its mark and kind (one write a second). A report
   * of a bucket that is not connected is dropped. Throws the store's fault.
   */
  report(report: GapReport, signal?: AbortSignal): Promise<void>;
}

/**
 * Resolves when an event of the bucket is counted durably, alone or merged with others. If the bucket was connected in the
 * meantime, it is marked instead. When 1,000 names are stored, new names are counted in telemetry only.
 */
export type ReportUnconnected = (bucket: string, seenAtMs: number, signal?: AbortSignal) => Promise<void>;

/** Creates the reports of gaps. Their memory is bounded by their callers, since each call waits for its write. */
export function createGapReports(ports: WithPorts<'state' | 'clock' | 'telemetry'>): GapReports {
  const write = createCoalescingWriter<GapReport>({
    clock: ports.clock,
    merge: merged,
    async write(_, report) {
      const mark = await markDirty(ports, report);
      if (mark !== undefined) warnOfGap(ports.telemetry, mark);
    },
  });
  return { report: (report, signal) => write(`${markId(report.bucket, report.key)} ${report.kind}`, report, signal) };
}

/** Both in one. */
function merged(earlier: GapReport, later: GapReport): GapReport {
  return {
    ...later,
    ...(earlier.tags === true && { tags: true }),
    firstSeenMs: Math.min(earlier.firstSeenMs ?? earlier.seenAtMs, later.firstSeenMs ?? later.seenAtMs),
    seenAtMs: Math.max(earlier.seenAtMs, later.seenAtMs),
    count: (earlier.count ?? 1) + (later.count ?? 1),
  };
}

interface UnconnectedSum {
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  readonly count: number;
}

/** Creates the reports of names that are not connected. Their memory is bounded as that of gap reports. */
export function createReportUnconnected({
  state,
  clock,
  telemetry,
  gaps,
}: WithPorts<'state' | 'clock' | 'telemetry'> & { readonly gaps: GapReports }): ReportUnconnected {
  const write = createCoalescingWriter<UnconnectedSum>({
    clock,
    merge: (earlier, later) => ({
      firstSeenMs: Math.min(earlier.firstSeenMs, later.firstSeenMs),
      lastSeenMs: Math.max(earlier.lastSeenMs, later.lastSeenMs),
      count: earlier.count + later.count,
    }),
    write: writeName,
  });

  async function writeName(bucket: string, sum: UnconnectedSum): Promise<void> {
    reportUnconnectedEvents(telemetry, bucket, sum.count);
    if (await isConnected(state, bucket)) return reportEarlyEvents(gaps, bucket, Math.max(clock.nowMs(), sum.lastSeenMs));
    const ref = refs.unconnected(bucket);
    const isKnown = (await readRecord(state, ref)) !== undefined;
    if (!isKnown && (await state.count('unconnected')) >= UNCONNECTED_MAX) return;
    await updateRecord(state, ref, (current) => ({
      bucket,
      count: (current?.count ?? 0) + sum.count,
      firstSeenMs: Math.min(current?.firstSeenMs ?? Infinity, sum.firstSeenMs),
      lastSeenMs: Math.max(current?.lastSeenMs ?? 0, sum.lastSeenMs),
    }));
    // connect() stores the bucket's record before it reads this one, so whichever write comes second sees the other record
    if (await isConnected(state, bucket)) await absorbUnconnected({ state, clock, gaps }, bucket);
  }

  return (bucket, seenAtMs, signal) => write(bucket, { firstSeenMs: seenAtMs, lastSeenMs: seenAtMs, count: 1 }, signal);
}

/**
 * Opens a loss gap for the events that were dropped before the bucket was connected, if there were any. The gap is stored
 * before the name is removed, so a crash in between repeats both.
 */
export async function absorbUnconnected(
  { state, clock, gaps }: WithPorts<'state' | 'clock'> & { readonly gaps: GapReports },
  bucket: string,
): Promise<void> {
  const { id, schema } = refs.unconnected(bucket);
  const unconnected = await readRecord(state, { id, schema });
  if (unconnected === undefined) return;
  await reportEarlyEvents(gaps, bucket, Math.max(clock.nowMs(), unconnected.lastSeenMs));
  await removeRecord(state, id);
}

function reportEarlyEvents(gaps: GapReports, bucket: string, seenAtMs: number): Promise<void> {
  return gaps.report({ bucket, kind: 'loss', reason: 'events arrived before the bucket was connected', seenAtMs });
}

/** Warns that a gap is open. */
export function warnOfGap(telemetry: Telemetry, mark: DirtyMark): void {
  const message = 'gap is open: the index may differ from the bucket until a re-index closes it';
  telemetry.warnOnce(message, mark.id, { bucket: mark.bucket, prefix: mark.prefix, why: whyOf(mark) });
}

/** Counts events of a bucket that is not connected, and warns of them. */
export function reportUnconnectedEvents(telemetry: Telemetry, bucket: string, count: number): void {
  telemetry.count('tally_unconnected_records_total', count);
  telemetry.warnOnce('events received for a bucket that is not connected', bucket, { bucket });
}

interface FedBy {
  /** The queues that lost messages; none: it is not known which. */
  readonly queueUrls: readonly string[];
  /** All bucket queues of this process. */
  readonly bucketQueueUrls: readonly string[];
  readonly nowMs: number;
}

/** Returns the connected buckets whose events may come from one of these queues. Throws the store's fault. */
export async function bucketsFedBy(state: StateStore, { queueUrls, bucketQueueUrls, nowMs }: FedBy): Promise<readonly string[]> {
  const others = queueUrls.length === 0 ? [] : bucketQueueUrls.filter((url) => !queueUrls.includes(url));
  return (await listAllEntries(state, 'bucket')).flatMap(({ id, record }) => {
    const { data } = bucketRecordSchema.safeParse(record);
    // a record that this version cannot read must not keep a loss from being stored
    return data === undefined || mayBeFedBy(data, { queueUrls, others, nowMs }) ? [id.slice(refs.bucket('').id.length)] : [];
  });
}
