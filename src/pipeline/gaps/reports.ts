/** Gaps and unconnected names as stored records: reported from the data path, listed for the control plane. */
import { z } from 'zod';
import type { GapsRequest } from '../../api/gaps.ts';
import { bucketRecordSchema, enrichModes, mayBeFedBy } from '../../domain/bucket.ts';
import {
  CALLS_MAX,
  gapId,
  withKeysReported,
  withReport,
  type BulkCall,
  type BulkDelete,
  type GapRecord,
  type GapReport,
  type ReportFacts,
  gapSchema,
} from '../../domain/gaps/gap.ts';
import { decodeCursor } from '../../domain/cursor.ts';
import { lastBeginOf } from '../../domain/reindex/covers.ts';
import { createCoalescingWriter } from './coalescing-writer.ts';
import { readPage, type Page } from '../records/pages.ts';
import type { StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { listAllEntries, parseEntry, readRecord, refs, removeRecord, updateRecord, pagesOf, gapIdsOf } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';

/** Unconnected names are kept for people to see. The number is bounded, since anyone who can send to the queue can invent names. */
const UNCONNECTED_MAX = 1_000;

export interface GapReports {
  /**
   * Resolves when the report is stored durably, alone or merged with others of its gap (one write a second). A report
   * of a bucket that is not connected is dropped, since it has no index that could be repaired. Throws the store's fault.
   */
  report(report: GapReport, signal?: AbortSignal): Promise<void>;
  /**
   * Stores on the bucket's open gap of bulk deletes that the source also sends an event for each key of this one. A gap that does
   * not wait for this proof is not changed. Throws the store's fault.
   */
  keysReported(call: BulkDelete): Promise<void>;
}

/**
 * Resolves when an event of the bucket is counted durably, alone or merged with others. If the bucket was connected in the
 * meantime, its loss gap is opened instead. When 1,000 names are stored, new names are counted in telemetry only.
 */
export type ReportUnconnected = (bucket: string, seenAtMs: number, signal?: AbortSignal) => Promise<void>;

interface ReportSum {
  /** The latest report. */
  readonly report: GapReport;
  readonly firstSeenMs: number;
  readonly count: number;
}

/** Creates the reports of gaps. Their memory is bounded by their callers, since each call waits for its write. */
export function createGapReports({ state, clock, telemetry }: WithPorts<'state' | 'clock' | 'telemetry'>): GapReports {
  const write = createCoalescingWriter<ReportSum>({ clock, merge: sumOf, write: writeGap });

  async function writeGap(id: string, sum: ReportSum): Promise<void> {
    const { bucket } = sum.report;
    const facts = await factsOf(state, bucket);
    if (facts === undefined) return;
    let isOpen = false;
    await updateRecord(state, refs.gap(id), (current) => {
      const next = withReports(current, sum, { toldAtMs: clock.nowMs(), ...facts });
      isOpen = next !== current && next.state !== 'closed';
      return next;
    });
    if (isOpen) warnOfGap(telemetry, sum.report);
  }

  return {
    async keysReported(call) {
      const ref = refs.gap(gapId({ bucket: call.bucket, kind: 'bulk-delete' }));
      await updateRecord(state, ref, (current) => (current === undefined ? undefined : withKeysReported(current, call)));
    },
    report: (report, signal) => write(gapId(report), { report, firstSeenMs: report.seenAtMs, count: 1 }, signal),
  };
}

/** Whether the bucket has a record, which is all that a gap needs. Throws the store's fault. */
export async function isConnected(state: StateStore, bucket: string): Promise<boolean> {
  return (await factsOf(state, bucket)) !== undefined;
}

const factsSchema = z.object({
  enrich: z.enum(enrichModes).catch('tags'),
  lastBeginOrder: z.number().optional().catch(undefined),
  createdAtMs: z.number().catch(0),
});

/**
 * What a gap of the bucket needs of its record, which must be read after the loss was noticed; undefined: it is not connected. A
 * record that this version cannot read must not keep a loss from being stored, and counts as one that asks for tags. Throws the store's fault.
 */
export async function factsOf(state: StateStore, bucket: string): Promise<Pick<ReportFacts, 'enrich' | 'afterBeginOrder'> | undefined> {
  const entry = await state.get(refs.bucket(bucket).id);
  if (entry === undefined) return undefined;
  const { enrich, ...counted } = factsSchema.catch({ enrich: 'tags', createdAtMs: 0 }).parse(entry.record);
  return { enrich, afterBeginOrder: lastBeginOf(counted) };
}

/**
 * Both in one. A standing report changes nothing where a real one is, so it must not take that one's place; what either of two
 * real ones asks of the re-index, both ask.
 */
function sumOf(earlier: ReportSum, later: ReportSum): ReportSum {
  if (later.report.standing === true && earlier.report.standing !== true) return earlier;
  if (earlier.report.standing === true && later.report.standing !== true) return later;
  return {
    report: {
      ...later.report,
      ...callsOf(earlier, later),
      ...(earlier.report.folded === true && { folded: true }),
      ...(earlier.report.tags === true && { tags: true }),
      seenAtMs: Math.max(earlier.report.seenAtMs, later.report.seenAtMs),
    },
    firstSeenMs: Math.min(earlier.firstSeenMs, later.firstSeenMs),
    count: earlier.count + later.count,
  };
}

/** All calls of both, or more than a gap can wait for. */
function callsOf({ report: a }: ReportSum, { report: b }: ReportSum): Pick<GapReport, 'calls'> {
  if (a.calls === undefined && b.calls === undefined) return {};
  return { calls: [...(a.calls ?? [UNKNOWN]), ...(b.calls ?? [UNKNOWN])].slice(0, CALLS_MAX + 1) };
}

const UNKNOWN: BulkCall = { isReported: false };

function withReports(
  current: GapRecord | undefined,
  { report, firstSeenMs, count }: ReportSum,
  facts: Omit<ReportFacts, 'count'>,
): GapRecord {
  const first = withReport(current, { ...report, seenAtMs: firstSeenMs }, { ...facts, count });
  return report.seenAtMs === firstSeenMs ? first : withReport(first, report, { ...facts, count: 0 });
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

export type ListGaps = (request: GapsRequest, signal?: AbortSignal) => Promise<Page<GapRecord>>;

/** Creates the list of gaps, in the order of bucket, kind and prefix. */
export function createListGaps({ state }: WithPorts<'state'>): ListGaps {
  return async function listGaps({ limit, cursor, bucket, state: wanted }, signal) {
    const prefix = gapIdsOf(bucket);
    async function fetch(count: number, [position = '']: readonly string[] = []): Promise<readonly GapRecord[]> {
      const found: GapRecord[] = [];
      for await (const page of pagesOf(state, 'gap', { prefix, after: position > prefix ? position : prefix, signal })) {
        const gaps = page.map((entry) => parseEntry(entry, gapSchema));
        found.push(...gaps.filter((gap) => wanted === undefined || gap.state === wanted));
        if (found.length >= count) break;
      }
      return found.slice(0, count);
    }
    return readPage({ limit, after: decodeCursor(cursor, 1), fetch, positionOf: ({ id }) => [id] });
  };
}

/** Warns that a gap is open. */
export function warnOfGap(telemetry: Telemetry, { bucket, kind, reason }: Pick<GapReport, 'bucket' | 'kind' | 'reason'>): void {
  const message = 'gap is open: the index may differ from the bucket until a re-index closes it';
  telemetry.warnOnce(message, `${bucket} ${kind}`, { bucket, kind, reason });
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
