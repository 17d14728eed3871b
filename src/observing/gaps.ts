/**
 * Buckets' stored dirty marks: the only way to make one, who reports what, the deletions that wait for a person, which are stored
 * on the bucket's record, and what both mean for a job. A record that this version cannot read counts too.
 */
import { z } from 'zod';
import {
  enrichModes,
  bucketRecordSchema,
  mayBeFedBy,
  type BucketRecord,
  type BucketSource,
  type UnconnectedRecord,
} from '../records/bucket.ts';
import { omit } from '../base/defined.ts';
import {
  announcesAllOf,
  markId,
  markSchema,
  withReport,
  type DirtyMark,
  type GapReport,
  type ReportFacts,
  whyOf,
} from '../records/dirty.ts';
import { keysOverlap, withHeld, type HeldBack } from '../records/waiting-deletes.ts';
import { lastBeginOf, type JobRecord } from '../records/job.ts';
import type { Clock } from '../process/clock.ts';
import type { WithPorts, StateEntry, StateStore } from '../store/store.ts';
import { gapIdsOf, listAllEntries, readRecord, refs, updateRecord, removeRecord } from '../store/stored.ts';
import { createCoalescingWriter } from '../store/coalescing-writer.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { isProvenBy, type Arrival } from '../events/proof.ts';
import { bucketsNamedIn } from '../events/dead-letter.ts';

/**
 * Resolves with the mark once the report is stored durably. A report about an unconnected bucket is dropped, because there is no
 * index to repair. `unless`: says whether the report adds nothing to this mark. Throws the store's fault.
 */
export async function markDirty(
  { state, clock }: WithPorts<'state'> & { readonly clock: Pick<Clock, 'nowMs'> },
  report: GapReport,
  unless: (current: DirtyMark | undefined) => boolean = () => false,
): Promise<DirtyMark | undefined> {
  const known = await factsOf(state, report.bucket);
  if (known === undefined) return undefined;
  return updateRecord(state, refs.gap(markId(report.bucket, report.key)), (current) =>
    unless(current) ? current : withReport(current, report, { ...known, nowMs: clock.nowMs() }),
  );
}

const factsSchema = z.object({
  enrich: z.enum(enrichModes).catch('tags'),
  lastBeginOrder: z.number().optional().catch(undefined),
  createdAtMs: z.number().catch(0),
  repaired: z.object({ atMs: z.number(), comparingMs: z.number() }).optional().catch(undefined),
});

/**
 * What a mark needs from its bucket's record, which must be read after the loss was noticed; undefined if the bucket is not connected.
 * A record that this version cannot read must not keep a loss from being stored, and counts as one with `enrich: 'tags'`.
 */
async function factsOf(state: StateStore, bucket: string): Promise<Omit<ReportFacts, 'nowMs'> | undefined> {
  const entry = await state.get(refs.bucket(bucket).id);
  if (entry === undefined) return undefined;
  const { enrich, repaired, ...counted } = factsSchema.catch({ enrich: 'tags', createdAtMs: 0 }).parse(entry.record);
  return { enrich, repaired, order: lastBeginOf(counted) };
}

/** Whether the bucket is connected, even by a record that this version cannot read. Throws the store's fault. */
export async function isConnected(state: StateStore, bucket: string): Promise<boolean> {
  return (await state.get(refs.bucket(bucket).id)) !== undefined;
}

/**
 * Stores on the bucket's record what the job holds back, or that it holds nothing back among the keys that it has compared. Called
 * before the job stops or ends, so that every later job knows it. Throws the store's fault.
 */
export async function keepHeld(state: StateStore, job: JobRecord, held: Omit<HeldBack, 'lastOrder'>): Promise<void> {
  if (job.mode !== 'apply') return;
  await updateRecord(state, refs.bucket(job.bucket), (record) => {
    if (record === undefined) return undefined;
    const { waiting: before = [] } = record;
    const waiting = withHeld(before, job, { ...held, lastOrder: lastBeginOf(record) });
    if (waiting === before) return record;
    return waiting.length === 0 ? omit(record, 'waiting') : { ...record, waiting: [...waiting] };
  });
}

/**
 * Whether deletions of these keys wait for a person. The deletions of the job with this id don't count, because a person who resumes a job
 * consents to the rest of its limit. Throws the store's fault.
 */
export async function isAnyHeld(
  state: StateStore,
  { bucket, prefix = '', id }: { readonly bucket: string; readonly prefix?: string; readonly id?: string },
): Promise<boolean> {
  const { waiting = [] } = (await readRecord(state, refs.bucket(bucket))) ?? {};
  return waiting.some(({ jobId, prefix: waits }) => keysOverlap(waits, prefix) && (id === undefined || jobId !== id));
}

/** Lists the marks of one bucket. Throws the store's fault. */
export async function gapsOf(state: StateStore, bucket: string, signal?: AbortSignal): Promise<readonly DirtyMark[]> {
  return (await listAllEntries(state, 'gap', { prefix: gapIdsOf(bucket), signal })).map(shownMark);
}

/** Lists all marks. Throws the store's fault. */
export async function allGaps(state: StateStore): Promise<readonly DirtyMark[]> {
  return (await listAllEntries(state, 'gap')).map(shownMark);
}

/** The mark in this entry. One that this version cannot read is shown as a loss of unknown extent. */
function shownMark({ id, record }: StateEntry): DirtyMark {
  const { data } = markSchema.safeParse(record);
  const [, bucket = ''] = id.split(':');
  const reasons: DirtyMark['reasons'] = [{ kind: 'loss', count: 1, lastMs: 0, example: 'a record that this version of Tally cannot read' }];
  const times = { sinceMs: 0, lastSeenMs: 0, firstReportedAtMs: 0, reportedAtMs: 0, order: 0 };
  return data ?? { id, bucket, ...times, reasons, deletes: 'limited', failures: 0 };
}

/** Whether all deletions that the job may find were announced by its gaps. Throws the store's fault. */
export async function areDeletesAnnounced(state: StateStore, job: JobRecord): Promise<boolean> {
  return announcesAllOf(job, await gapsOf(state, job.bucket));
}

/**
 * Whether a resumed job needs a person's consent to delete: deletions of its keys are held, or it began without a limit and its
 * deletions are no longer announced. Throws the store's fault.
 */
export async function needsConsent(state: StateStore, job: JobRecord): Promise<boolean> {
  if (await isAnyHeld(state, job)) return true;
  const isUnlimited = job.deletions !== undefined && job.deletions.limit === undefined;
  return isUnlimited && !(await areDeletesAnnounced(state, job));
}

// ── reports from the data path, which come by the thousand, and the names of buckets that are not connected ────────────

/** How many unconnected names are kept for people to see. It is bounded because anyone who can send to the queue can invent names. */
const UNCONNECTED_MAX = 1_000;

export interface GapReports {
  /**
   * Resolves when the report is stored durably, alone or merged with others of its mark and kind (one write a second). A report about
   * an unconnected bucket is dropped. Throws the store's fault.
   */
  report(report: GapReport, signal?: AbortSignal): Promise<void>;
}

/**
 * Resolves when an event of the bucket is counted durably, alone or merged with others. If the bucket was connected in the
 * meantime, it gets a gap instead. Once 1,000 names are stored, only the metric counts events of other names.
 */
export type ReportUnconnected = (bucket: string, seenAtMs: number, signal?: AbortSignal) => Promise<void>;

/** Creates the reports of gaps. Their memory is bounded by their callers, since each call waits for its write. */
export function createGapReports(ports: WithPorts<'state' | 'clock' | 'telemetry'>): GapReports {
  const write = createCoalescingWriter<GapReport>({
    clock: ports.clock,
    merge: mergeReports,
    async write(_, report) {
      const mark = await markDirty(ports, report);
      if (mark !== undefined) warnOfGap(ports.telemetry, mark);
    },
  });
  return { report: (report, signal) => write(`${markId(report.bucket, report.key)} ${report.kind}`, report, signal) };
}

/** One report that says what both say. */
export function mergeReports(earlier: GapReport, later: GapReport): GapReport {
  return {
    ...later,
    ...(earlier.tags === true && { tags: true }),
    firstSeenMs: Math.min(earlier.firstSeenMs ?? earlier.seenAtMs, later.firstSeenMs ?? later.seenAtMs),
    seenAtMs: Math.max(earlier.seenAtMs, later.seenAtMs),
    count: (earlier.count ?? 1) + (later.count ?? 1),
  };
}

/** Creates the reports about unconnected names. Their memory is bounded like that of gap reports. */
export function createReportUnconnected({
  state,
  clock,
  telemetry,
  gaps,
}: WithPorts<'state' | 'clock' | 'telemetry'> & { readonly gaps: GapReports }): ReportUnconnected {
  const write = createCoalescingWriter<Omit<UnconnectedRecord, 'bucket'>>({
    clock,
    merge: (earlier, later) => ({
      firstSeenMs: Math.min(earlier.firstSeenMs, later.firstSeenMs),
      lastSeenMs: Math.max(earlier.lastSeenMs, later.lastSeenMs),
      count: earlier.count + later.count,
    }),
    write: writeName,
  });

  async function writeName(bucket: string, sum: Omit<UnconnectedRecord, 'bucket'>): Promise<void> {
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
 * Opens a loss gap for events that were dropped before the bucket was connected, if there were any. The gap is stored before the
 * name is removed, so a crash in between repeats both.
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

/** Counts events of an unconnected bucket, and warns about them. */
export function reportUnconnectedEvents(telemetry: Telemetry, bucket: string, count: number): void {
  telemetry.count('tally_unconnected_records_total', count);
  telemetry.warnOnce('events received for a bucket that is not connected', bucket, { bucket });
}

interface FedBy {
  /** The queues that lost messages; empty if it is not known which did. */
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

// ── what a connection means for the mark: earlier objects, each change, and the proof that the bucket's events arrive
// (src/events/proof.ts), until which no job closes the mark ────────────────────────────────────────────────────────────

/** Jobs begin by S3's clock, which has whole seconds and may differ from this machine's: with this slack, a job that begins just after the proof covers it. */
const CLOCK_SLACK_MS = 5_000;

const UNKNOWN_UNTIL_NOW = "until now, it was unknown whether the bucket's events arrive";

/**
 * Stores what has arrived for a bucket that is connected as in this record, and, if that suffices, the proof. The mark is stored
 * first, so a process that is killed in between stores both again. Throws the store's fault.
 */
export async function noteArrivals(
  ports: WithPorts<'state' | 'clock'>,
  { bucket, source, topicArn }: Pick<BucketRecord, 'bucket' | 'source' | 'topicArn'>,
  families: readonly Arrival['family'][],
): Promise<void> {
  const { state, clock } = ports;
  const isSame = (record: Pick<BucketRecord, 'source' | 'topicArn'>): boolean => record.source === source && record.topicArn === topicArn;
  const nowMs = clock.nowMs();
  const now = await readRecord(state, refs.bucket(bucket));
  // the bucket was changed in the meantime, so this would prove another connection
  if (now === undefined || !isSame(now)) return;
  const arrived = [...new Set([...(now.arrived ?? []), ...families])];
  const isProven = now.provenAtMs !== undefined || isProvenBy({ ...now, arrived });
  if (isProven) await proveGap(ports, now);
  if (now.provenAtMs !== undefined) return;
  await updateRecord(state, refs.bucket(bucket), (current) => {
    if (current === undefined || !isSame(current) || current.waySinceMs !== now.waySinceMs) return undefined;
    if (isProven) return { ...omit(current, 'arrived'), provenAtMs: current.provenAtMs ?? nowMs };
    return arrived.length > (current.arrived?.length ?? 0) ? { ...current, arrived } : undefined;
  });
}

/**
 * Reports that until this proof it was unknown whether events arrive. The bucket's record must be read after the proof came. An event
 * proves nothing while the wiring is known to be broken. Throws the store's fault.
 */
export async function proveGap(ports: WithPorts<'state' | 'clock'>, { bucket, provenAtMs }: BucketRecord): Promise<void> {
  const seenAtMs = ports.clock.nowMs() - CLOCK_SLACK_MS;
  const report = { bucket, kind: 'connection', reason: UNKNOWN_UNTIL_NOW, seenAtMs, unproven: 'none' } as const;
  await markDirty(
    ports,
    report,
    (current) => current?.unproven !== 'events' && (provenAtMs !== undefined || current?.unproven === 'wiring'),
  );
}

// ── the first mark ─────────────────────────────────────────────────────────────────────────────────────────────────

const NEVER_COMPARED = 'objects from before the bucket was connected';
const HELD = { why: 'the bucket was connected without a first re-index: start one when you are ready' };

interface FirstGap extends Pick<BucketRecord, 'bucket' | 'enrich'> {
  /** Since when the gap exists: any re-index that begins later covers it. */
  readonly seenAtMs: number;
  /** The order of the bucket's latest job, as in the record that is stored with the mark. */
  readonly order: number;
  /** The mark is shown, but no job is started for it until a re-index is requested. */
  readonly isHeld: boolean;
  /** Whether the bucket's events are known to arrive. */
  readonly isProven?: boolean;
}

/**
 * Stores a bucket's first mark: the objects from before it was connected are not in the index until a re-index has compared all of
 * them. The mark is stored before the bucket's record, so that no crash can leave a connected bucket without it. `before`: the
 * record is stored next, so any mark that exists belongs to an earlier life of the bucket and is replaced. `after`: the record is
 * stored, so the mark is stored only if it is missing. Throws the store's fault.
 */
export async function openNeverCompared(
  { state, clock }: WithPorts<'state' | 'clock'>,
  { bucket, enrich, seenAtMs, order, isHeld, isProven }: FirstGap,
  at: 'before' | 'after',
): Promise<void> {
  const known: Pick<GapReport, 'unproven' | 'held'> = { ...(isProven !== true && { unproven: 'events' }), ...(isHeld && { held: HELD }) };
  const report: GapReport = { bucket, kind: 'new', reason: NEVER_COMPARED, seenAtMs, isUrgent: true, ...known };
  const stored = withReport(undefined, report, { nowMs: clock.nowMs(), order, enrich, repaired: undefined });
  await updateRecord(state, refs.gap(markId(bucket)), (current) => (at === 'after' ? (current ?? stored) : stored));
}

// ── a change ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/enable-event-notifications-how-to.html says five minutes. */
const S3_MS = 6 * 60_000;
const TRAIL_MS = 20 * 60_000;
/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html */
const QUEUE_MS = 60_000;
/** Within this time, events that were sent at the last moment have arrived. */
const ARRIVES_MS = 60_000;

/** How long AWS may take to apply a change of this source. Until then events may be missing, or still come the old way. */
export function appliedWithinMs({ source, byHand }: { readonly source: BucketSource; readonly byHand?: boolean | undefined }): number {
  // a person has wired the rest before
  if (byHand === true) return QUEUE_MS;
  return source === 'routed' ? TRAIL_MS : S3_MS;
}

/** Reports a change that was just made to the connection, with what is known about events that come the new way. `isUrgent`: a person made it. */
export async function openChangeGap(
  ports: WithPorts<'state' | 'clock'>,
  connection: Parameters<typeof appliedWithinMs>[0] & Pick<BucketRecord, 'bucket'>,
  how: Pick<GapReport, 'unproven' | 'isUrgent'> & { readonly reason?: string } = {},
): Promise<void> {
  const { reason = "the bucket's connection was changed", ...rest } = how;
  const fromMs = ports.clock.nowMs();
  const seenAtMs = fromMs + appliedWithinMs(connection);
  await markDirty(ports, {
    bucket: connection.bucket,
    kind: 'connection',
    reason,
    seenAtMs,
    waits: { fromMs, untilMs: seenAtMs + ARRIVES_MS, why: AWAITED },
    ...rest,
  });
}

const AWAITED = 'it takes a few minutes until every change sends an event; a re-index follows then';

/** Takes back the proof of a bucket's events: those sent before `waySinceMs` prove nothing any more. Callers first store a mark that no job closes until an event arrives. */
export async function forgetProof(
  { state, clock }: WithPorts<'state' | 'clock'>,
  bucket: string,
  waySinceMs = clock.nowMs(),
): Promise<void> {
  await updateRecord(state, refs.bucket(bucket), (current) => current && { ...omit(current, 'provenAtMs', 'arrived'), waySinceMs });
}

// ── what is lost with a message whose body no process reads, because SQS moved it, or because parsing it would crash the process ──

/** The names of the connected buckets, including those whose records this version cannot read. Throws the store's fault. */
export async function connectedBuckets(state: StateStore): Promise<ReadonlySet<string>> {
  const { length } = refs.bucket('').id;
  return new Set((await listAllEntries(state, 'bucket')).map(({ id }) => id.slice(length)));
}

/** The connected buckets that the body names; if it names none, all buckets whose events may come from these queues. Throws the store's fault. */
export async function bucketsOfUnread(
  body: string,
  queueUrls: readonly string[],
  { state, clock, bucketQueueUrls }: WithPorts<'state' | 'clock'> & Pick<FedBy, 'bucketQueueUrls'>,
): Promise<readonly string[]> {
  const named = bucketsNamedIn(body, await connectedBuckets(state));
  return named.length > 0 ? named : bucketsFedBy(state, { queueUrls, bucketQueueUrls, nowMs: clock.nowMs() });
}
