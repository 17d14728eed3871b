/**
 * What a bucket's connection means for its mark: what it held before it was connected, each change of its connection, and
 * the proof that its events arrive (src/events/proof.ts). Until then no job closes the mark.
 */
import { z } from 'zod';
import type { BucketRecord, BucketSource, EnrichMode } from '../records/bucket.ts';
import { omit } from '../base/defined.ts';
import { markId, withReport, type GapReport } from '../records/dirty.ts';
import { isProvenBy, type Arrival } from '../events/proof.ts';
import type { WithPorts, StateStore } from '../store/store.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import { markDirty } from './stored-gaps.ts';

/** S3's clock, by which jobs begin, has whole seconds and is not that of this machine: a job that begins just after the proof covers it. */
const CLOCK_SLACK_MS = 5_000;

const UNKNOWN_UNTIL_NOW = "until now, it was unknown whether the bucket's events arrive";

/**
 * Stores what has arrived for a bucket that is connected as in this record, and the proof if it is one. The mark comes first: a
 * process that is killed in between stores both again. Throws the store's fault.
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
  // the bucket was changed meanwhile: this is the proof of another way
  if (now === undefined || !isSame(now)) return;
  const arrived = [...new Set([...(now.arrived ?? []), ...families])];
  const isProven = now.provenAtMs !== undefined || isProvenBy({ ...now, arrived }, await isByHand(state, bucket));
  if (isProven) await proveGap(ports, now);
  if (now.provenAtMs !== undefined) return;
  await updateRecord(state, refs.bucket(bucket), (current) => {
    if (current === undefined || !isSame(current) || current.waySinceMs !== now.waySinceMs) return undefined;
    if (isProven) return { ...omit(current, 'arrived'), provenAtMs: current.provenAtMs ?? nowMs };
    return arrived.length > (current.arrived?.length ?? 0) ? { ...current, arrived } : undefined;
  });
}

/** Of the record of a connection, whose other fields only provision/ reads. */
const byHandRef = (bucket: string) => ({ id: `connection:${bucket}`, schema: z.object({ byHand: z.boolean().optional() }) });

async function isByHand(state: StateStore, bucket: string): Promise<boolean> {
  return (await readRecord(state, byHandRef(bucket)))?.byHand === true;
}

/**
 * Reports what changed until the proof came, by a record that was read after it: until now, nothing was known of the events. An event proves
 * nothing while the wiring is known to be broken. Throws the store's fault.
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
const HELD = { why: 'the bucket was connected without a first re-index; start one when you want it' };

export interface FirstGap {
  readonly bucket: string;
  readonly enrich: EnrichMode;
  /** Every re-index that begins from now on covers this time. */
  readonly seenAtMs: number;
  /** The latest beginning of a job of the bucket, as in the record that is stored with the mark. */
  readonly order: number;
  /** The mark is shown, but no job is started for it until a re-index is requested. */
  readonly isHeld: boolean;
  /** The events of the bucket are known to arrive. */
  readonly isProven?: boolean;
}

/**
 * Stores the first mark of a bucket: what it held before it was connected is not in the index until a re-index has compared all
 * of it. The mark is stored before the bucket's record, so that no crash can leave a connected bucket without it. `before`: the
 * bucket's record is stored next, so a mark that is there already belongs to an earlier life of the bucket and is replaced. `after`:
 * the record is stored, and the mark only if it is missing. Throws the store's fault.
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
/** What was sent at the last moment arrives within this time. */
const ARRIVES_MS = 60_000;

/** How long AWS applies a change of this source, so that events may be missing, or still come as before it. */
export function appliedWithinMs(source: BucketSource): number {
  return source === 'routed' ? TRAIL_MS : S3_MS;
}

/** Reports a change that was made now, with what is known of the events by the new way. `isUrgent`: a person made it. */
export async function openChangeGap(
  ports: WithPorts<'state' | 'clock'>,
  { bucket, source }: Pick<BucketRecord, 'bucket' | 'source'>,
  how: Pick<GapReport, 'unproven' | 'isUrgent'> & { readonly reason?: string } = {},
): Promise<void> {
  const { reason = "the bucket's connection was changed", ...rest } = how;
  const seenAtMs = ports.clock.nowMs() + appliedWithinMs(source);
  await markDirty(ports, {
    bucket,
    kind: 'connection',
    reason,
    seenAtMs,
    waits: { untilMs: seenAtMs + ARRIVES_MS, why: AWAITED },
    ...rest,
  });
}

const AWAITED = 'AWS needs a few minutes before it sends every event; a re-index follows then';

/** Takes back the proof of a bucket's events. What was sent before now, or this time, proves nothing. Its mark comes first, which no job closes until an event arrives. */
export async function forgetProof(
  { state, clock }: WithPorts<'state' | 'clock'>,
  bucket: string,
  waySinceMs = clock.nowMs(),
): Promise<void> {
  await updateRecord(state, refs.bucket(bucket), (current) => current && { ...omit(current, 'provenAtMs', 'arrived'), waySinceMs });
}
