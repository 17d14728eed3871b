/**
 * The gap of a change. S3 takes about five minutes to apply a configuration, and a trail longer, so events of this time may be
 * missing although everything is right.
 */
import type { BucketSource, EnrichMode } from '../../domain/bucket.ts';
import { gapId, withSighting } from '../../domain/gaps/gap.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import { refs, updateRecord } from '../records/stored.ts';
import { factsOf } from './reports.ts';

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
  const sighting = { bucket, kind: 'loss', reason, seenAtMs } as const;
  const notBeforeMs = seenAtMs + ARRIVES_MS;
  await updateRecord(state, refs.gap(gapId(sighting)), (current) => ({
    ...withSighting(current, sighting, { count: 1, toldAtMs: nowMs, afterBeginOrder, enrich }),
    notBeforeMs,
    waits: { reason: AWAITED, untilMs: notBeforeMs },
    ...(isUnproven && { unproven: true }),
  }));
}

const AWAITED = 'AWS needs some minutes until it sends every event, and a re-index follows then';
