/**
 * The gaps of a bucket's connection: one for what it held before it was connected, one for each change of its connection, and
 * the proof that its events arrive (one has arrived since the last change, or S3's test event). Until then a
 * gap stands for all that may be missing.
 */
import type { BucketRecord, BucketSource, EnrichMode } from '../../domain/bucket.ts';
import { isFormOf, type Dialect } from '../../domain/events/record.ts';
import { gapId, NEVER_COMPARED, withProof, withReport, type GapRecord } from '../../domain/gaps/gap.ts';
import { lastBeginOf } from '../../domain/reindex/covers.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';
import { factsOf } from './reports.ts';

/** S3's clock, by which jobs begin, has whole seconds and is not that of this machine: a job that begins just after the proof covers it. */
const CLOCK_SLACK_MS = 5_000;

const UNKNOWN_UNTIL_NOW = 'until now it was not known whether the events of the bucket arrive';

/** Whether an event of this form that happened by this moment proves that the bucket's events arrive by its present way. S3's test event is `native`. */
export function provesWay(
  { source, waySinceMs, createdAtMs }: Pick<BucketRecord, 'source' | 'waySinceMs' | 'createdAtMs'>,
  dialect: Dialect,
  happenedMs: number,
): boolean {
  return isFormOf(source, dialect) && happenedMs >= (waySinceMs ?? createdAtMs);
}

/**
 * Stores the proof for a bucket that is connected as in this record. The gap comes first: a process that is killed in between
 * stores both again. Throws the store's fault.
 */
export async function noteProof(
  { state, clock }: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> },
  { bucket, source, topicArn }: Pick<BucketRecord, 'bucket' | 'source' | 'topicArn'>,
): Promise<void> {
  const nowMs = clock.nowMs();
  const now = await readRecord(state, refs.bucket(bucket));
  // the bucket was changed meanwhile: this is the proof of another way
  if (now === undefined || now.source !== source || now.topicArn !== topicArn) return;
  await proveGap({ state, clock }, now);
  if (now.provenAtMs !== undefined) return;
  await updateRecord(state, refs.bucket(bucket), (current) => {
    const isSameWay = current?.source === source && current.topicArn === topicArn;
    return isSameWay ? { ...current, provenAtMs: current.provenAtMs ?? nowMs } : undefined;
  });
}

/**
 * What the gap of the bucket knows of the proof, by a record that was read after the proof had come. Where no gap waits for it,
 * one is opened: until now, nothing was known of the events. Throws the store's fault.
 */
export async function proveGap(
  { state, clock }: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> },
  record: BucketRecord,
): Promise<void> {
  const { bucket, enrich, provenAtMs } = record;
  const nowMs = clock.nowMs();
  const atMs = nowMs - CLOCK_SLACK_MS;
  const afterBeginOrder = lastBeginOf(record);
  const report = { bucket, kind: 'loss', reason: UNKNOWN_UNTIL_NOW, seenAtMs: atMs } as const;
  await updateRecord(state, refs.gap(gapId(report)), (current) => {
    if (current?.unproven === true) return withProof(current, { atMs, afterBeginOrder });
    return provenAtMs === undefined ? withReport(current, report, { count: 1, toldAtMs: nowMs, afterBeginOrder, enrich }) : current;
  });
}

// ── the first gap ──────────────────────────────────────────────────────────────────────────────────────────────────

const HELD = 'the bucket was connected without a first re-index: start one when you want it';

interface NeverComparedPorts {
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
}

export interface FirstGap {
  readonly bucket: string;
  readonly enrich: EnrichMode;
  /** Every re-index that begins from now on covers this time. */
  readonly seenAtMs: number;
  /** The latest beginning of a job of the bucket, as in the record that is stored with the gap. */
  readonly afterBeginOrder: number;
  /** The gap is shown, but no job is started for it until a re-index is requested. */
  readonly isHeld: boolean;
  /** The events of the bucket are known to arrive. */
  readonly isProven?: boolean;
}

/**
 * Stores the first gap of a bucket: what it held before it was connected is not in the index until a re-index has compared all
 * of it. The gap is stored before the bucket's record, so that no crash can leave a connected bucket without it. `before`: the bucket's record is stored next, so a gap that is there already belongs to an earlier life of
 * the bucket and is replaced, and one of deletions that wait for a person is removed: its documents are gone. `after`: the record is stored, and the gap only if it is missing. Throws the store's fault.
 */
export async function openNeverCompared(
  { state, clock }: NeverComparedPorts,
  { bucket, enrich, seenAtMs, afterBeginOrder, isHeld, isProven }: FirstGap,
  at: 'before' | 'after',
): Promise<void> {
  const report = { bucket, kind: 'loss', reason: NEVER_COMPARED, seenAtMs } as const;
  const gap = withReport(undefined, report, { count: 1, toldAtMs: clock.nowMs(), afterBeginOrder, enrich });
  const stored: GapRecord = {
    ...gap,
    ...(isProven !== true && { unproven: true }),
    ...(isHeld && { held: true, waits: { reason: HELD } }),
  };
  const ref = refs.gap(gapId(report));
  await updateRecord(state, ref, (current) => (at === 'after' ? (current ?? stored) : stored));
}

// ── the gap of a change ────────────────────────────────────────────────────────────────────────────────────────────

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/enable-event-notifications-how-to.html says five minutes. */
const S3_MS = 6 * 60_000;
const TRAIL_MS = 20 * 60_000;
/** What was sent at the last moment arrives within this time. */
const ARRIVES_MS = 60_000;

/** How long AWS applies a change of this source, so that events may be missing, or still come as before it. */
export function appliedWithinMs(source: BucketSource): number {
  return source === 'routed' ? TRAIL_MS : S3_MS;
}

/** Opens the gap of a change that was made now. `isUnproven`: whether events arrive by the new way is not known yet. The gap is never extended by a job that began too early. */
export async function openChangeGap(
  { state, clock }: { readonly state: StateStore; readonly clock: Pick<Clock, 'nowMs'> },
  {
    bucket,
    source,
    enrich,
    isUnproven = false,
  }: { readonly bucket: string; readonly source: BucketSource; readonly enrich: EnrichMode; readonly isUnproven?: boolean },
  reason = 'the connection of the bucket was changed',
): Promise<void> {
  const nowMs = clock.nowMs();
  // one that is not connected yet has no jobs
  const { afterBeginOrder } = (await factsOf(state, bucket)) ?? { afterBeginOrder: 0 };
  const seenAtMs = nowMs + appliedWithinMs(source);
  const report = { bucket, kind: 'loss', reason, seenAtMs } as const;
  const notBeforeMs = seenAtMs + ARRIVES_MS;
  await updateRecord(state, refs.gap(gapId(report)), (current) => ({
    ...withReport(current, report, { count: 1, toldAtMs: nowMs, afterBeginOrder, enrich }),
    notBeforeMs,
    waits: { reason: AWAITED, untilMs: notBeforeMs },
    ...(isUnproven && { unproven: true }),
  }));
}

const AWAITED = 'AWS needs some minutes until it sends every event, and a re-index follows then';
