/**
 * What happens to a record that cannot be served now, because something that it needs fails:
 *
 *   hidden in its queue, five times ──► handed over: an open gap of the bucket stands for it
 *
 * All of this follows from the message's own attributes, so restarts and other workers change nothing. While the index store as a
 * whole fails, messages wait in hand, because no gap could be stored and nothing is received.
 */
import { faultOf, circuitOf, type Fault } from '../base/fault.ts';
import { reportsDeletion, type ChangeRecord } from '../events/record.ts';
import { deferDelayS, type LostChange, type Outcome } from '../events/outcome.ts';
import type { Handover } from './handover.ts';
import type { QueueWatch } from '../observing/queue-watch.ts';
import type { CircuitId, Circuits } from '../observing/circuits.ts';
import type { InHand } from './held-set.ts';
import type { WithPorts } from '../store/store.ts';
import { SETTLED_MS, type Hidden } from '../records/receiving.ts';
import type { Clock } from '../process/clock.ts';

/** A message is hidden for half a minute, then twice as long each time up to the maximum, so that a recovery is noticed within five minutes. */
const HIDDEN_MIN_S = 30;
const HIDDEN_MAX_S = 200;
/** By then it was hidden for 30 + 60 + 120 + 200 + 200 s, which is ten minutes: a short outage would be over. */
const HANDED_OVER_AT_RECEIVE = 6;
/** SQS stops delivering at 120,000 messages in flight, and Tally receiving at 80,000: handover begins well before both. */
const IN_FLIGHT_MAX = 40_000;
/** Even if twenty workers each hide this many before the number in flight is read again, it stays below 80,000. */
const HIDDEN_BETWEEN_READINGS_MAX = 1_000;
/** How long before the end of its queue's retention a message stops waiting: at the end SQS deletes it without a trace. */
const RETENTION_MARGIN_MS = 43_200_000;

/** A single failure may be chance, so the record tries again soon; the third failure in a row opens a circuit. */
export const RETRY_MS = 500;

interface WaitingDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly circuits: Circuits;
  readonly handover: Handover;
  readonly queueWatch: Pick<QueueWatch, 'inFlight' | 'readings' | 'retentionMs'>;
  /** Receiving stops when more messages are in flight. */
  readonly inFlightMax: number;
}

export interface Waiting {
  /** Returns the outcome of a record that cannot be served now; undefined if it is to be decided again from the beginning. Rejects with the reason of the stop. */
  hideOrHandOver(record: ChangeRecord, ids: readonly CircuitId[], hand: InHand): Promise<Outcome | undefined>;
  /**
   * After a fault of the whole index store, waits with the message in hand until the store answers. Resolves to false for any other
   * fault, or if it takes longer than a message may be held.
   */
  afterStoreFault(fault: Fault, hand: InHand): Promise<boolean>;
  /** Returns the outcome of a record that failed alone: deferred, or handed over if too many messages are in flight or the retention is about to end. */
  failedAlone(record: ChangeRecord, fault: Fault, hand: InHand): Promise<Outcome>;
}

/** Creates the waiting. */
export function createWaiting(dependencies: WaitingDependencies): Waiting {
  const { circuits, handover, queueWatch, clock, telemetry } = dependencies;
  // half of the limit at which receiving stops for all buckets
  const crowdedAt = Math.min(IN_FLIGHT_MAX, dependencies.inFlightMax / 2);
  let hiddenCount = { sinceReading: 0, reading: 0 };

  async function afterStoreFault(fault: Fault, hand: InHand): Promise<boolean> {
    if (circuitOf(fault.code) !== 'cluster') return false;
    circuits.clusterFailed(fault);
    hand.turnSlow();
    await clock.sleep(RETRY_MS, hand.signal);
    return circuits.untilStoreAnswers(hand.holdLeftMs(), hand.signal);
  }

  async function hideOrHandOver(record: ChangeRecord, ids: readonly CircuitId[], hand: InHand): Promise<Outcome | undefined> {
    hand.turnSlow();
    const open = circuits.openOf(ids);
    if (open === undefined) return undefined;
    const { fault, level } = open;
    if (level !== 'cluster') return (await handedOver(record, fault, hand)) ?? hide(record, fault, hand);
    const isBack = await circuits.untilStoreAnswers(hand.holdLeftMs(), hand.signal);
    return isBack ? undefined : { kind: 'deferred', fault, delayS: 0, bucket: record.bucket };
  }

  /** Whether the record must not wait any longer. Half of its receives are kept for other mishaps, such as killed workers. */
  function isHandoverDue({ message, lastReceive }: InHand): boolean {
    return (
      message.receiveCount >= Math.min(HANDED_OVER_AT_RECEIVE, lastReceive / 2) || isCrowded() || hasHiddenMany() || isExpiring(message)
    );
  }

  function isCrowded(): boolean {
    return queueWatch.inFlight > crowdedAt;
  }

  function hasHiddenMany(): boolean {
    if (hiddenCount.reading !== queueWatch.readings) hiddenCount = { sinceReading: 0, reading: queueWatch.readings };
    return hiddenCount.sinceReading >= HIDDEN_BETWEEN_READINGS_MAX;
  }

  function isExpiring(message: InHand['message']): boolean {
    const retentionMs = queueWatch.retentionMs(message.queueUrl);
    if (retentionMs === undefined) return false;
    const ageMs = clock.nowMs() - message.sentAtMs;
    return ageMs > retentionMs - Math.min(RETENTION_MARGIN_MS, retentionMs / 4);
  }

  async function handedOver(record: ChangeRecord, fault: Fault, hand: InHand): Promise<Outcome | undefined> {
    if (!handover.isPermitted || !isHandoverDue(hand)) return undefined;
    try {
      const { bucket, eventTimeMs } = record;
      const handedRecord = { bucket, change: changeOf(record), sentAtMs: hand.message.sentAtMs, eventTimeMs, reason: fault.code };
      await handover.handOver(handedRecord, hand.signal);
    } catch (error) {
      hand.signal.throwIfAborted();
      const { code, reason } = faultOf(error);
      telemetry.requestFailed('hand a record over to a re-index', error);
      if (circuitOf(code) === 'cluster') circuits.clusterFailed({ code, reason });
      return undefined;
    }
    telemetry.count('tally_handed_over_records_total', 1, { fault: fault.code });
    return { kind: 'gap' };
  }

  function hide(record: ChangeRecord, fault: Fault, { message }: InHand): Outcome {
    if (isExpiring(message)) return { kind: 'rejected', fault, bucket: record.bucket };
    hiddenCount.sinceReading += 1;
    const delayS = Math.min(HIDDEN_MAX_S, HIDDEN_MIN_S * 2 ** (message.receiveCount - 1));
    return { kind: 'deferred', fault, delayS, bucket: record.bucket };
  }

  return {
    hideOrHandOver,
    afterStoreFault,
    async failedAlone(record, fault, hand) {
      const isDue = isCrowded() || isExpiring(hand.message);
      const outcome = isDue ? await handedOver(record, fault, hand) : undefined;
      if (outcome !== undefined) return outcome;
      const end = { fault, bucket: record.bucket, key: record.key, change: changeOf(record) };
      return isExpiring(hand.message)
        ? { kind: 'rejected', ...end }
        : { kind: 'deferred', delayS: deferDelayS(hand.message.receiveCount), ...end };
    },
  };
}

function changeOf({ change }: ChangeRecord): LostChange {
  if (change.kind === 'tagged') return 'tags';
  return reportsDeletion(change) ? 'delete' : 'other';
}

// ── the messages that are hidden now ───────────────────────────────────────────────────────────────────────────────

export interface HiddenMessages {
  /** Notes that the message, which is about these buckets, is hidden for `delayS`. */
  hidden(messageId: string, buckets: readonly string[], how: { readonly fault: Fault; readonly delayS: number }): void;
  /** Forgets the message, which is no longer hidden for a fault. */
  settled(messageId: string): void;
  /** Summarises, for each bucket, its hidden messages. */
  byBucket(): readonly Hidden[];
}

interface HiddenOfBucket {
  readonly code: string;
  readonly sinceMs: number;
  /** When each message is received again, by the monotonic clock. */
  readonly untilMs: Map<string, number>;
}

/**
 * The messages that this process has put back into their queue because they could not be served. Until each is settled, the index
 * lacks its change, even if what failed works again. Their number is bounded by what may be in flight.
 */
export function createHiddenMessages(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>): HiddenMessages {
  const byBucket = new Map<string, HiddenOfBucket>();

  function settled(messageId: string): void {
    for (const [bucket, { untilMs }] of byBucket) if (untilMs.delete(messageId) && untilMs.size === 0) byBucket.delete(bucket);
  }

  return {
    hidden(messageId, buckets, { fault: { code }, delayS }) {
      const atMs = clock.monotonicMs() + delayS * 1_000;
      for (const bucket of buckets) {
        const known = byBucket.get(bucket) ?? { code, sinceMs: clock.nowMs(), untilMs: new Map<string, number>() };
        known.untilMs.set(messageId, atMs);
        byBucket.set(bucket, known);
      }
    },
    settled(messageId) {
      if (byBucket.size > 0) settled(messageId);
    },
    byBucket() {
      const nowMs = clock.monotonicMs();
      return [...byBucket].flatMap(([bucket, { code, sinceMs, untilMs }]) => {
        let lastMs = 0;
        for (const [messageId, atMs] of untilMs) {
          // by now another process has settled it
          if (nowMs >= atMs + SETTLED_MS) untilMs.delete(messageId);
          else lastMs = Math.max(lastMs, atMs);
        }
        if (untilMs.size > 0) return [{ bucket, code, sinceMs, leftMs: Math.max(0, lastMs - nowMs) }];
        byBucket.delete(bucket);
        return [];
      });
    },
  };
}
