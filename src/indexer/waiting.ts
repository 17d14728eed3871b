/**
 * What becomes of a record that cannot be served now, because a circuit that it needs is open:
 *
 *   in hand, while the share of its bucket has room ──► hidden in its queue ──► handed over: an open gap of the bucket stands for it
 *
 * All of it follows from the message's own attributes, so restarts and the circuits of other workers change nothing. The
 * index store as a whole is waited for in hand, because then no gap could be stored and nothing is received.
 */
import { faultOf, circuitOf, type Fault } from '../base/fault.ts';
import type { ChangeRecord } from '../events/record.ts';
import type { LostChange, Outcome } from '../events/outcome.ts';
import type { HandedOverRecord, Handover } from './handover.ts';
import type { QueueWatch } from '../observing/queue-watch.ts';
import type { Circuits } from '../observing/circuits.ts';
import { NO_PERMIT, type Attempt, type Permit } from '../observing/waiting-line.ts';
import { HOLD_MAX_MS, type InHand } from './held-set.ts';
import type { WithPorts } from '../store/store.ts';

/** A message is hidden for as long as it has waited already, within these bounds: a recovery is noticed within five minutes. */
const HIDDEN_MIN_S = 30;
const HIDDEN_MAX_S = 300;
/** By then a short outage is over. With the times above it is the seventh receive at most. */
const HANDED_OVER_AFTER_MS = 600_000;
/** SQS stops at 120,000 messages in flight, and Tally at 80,000: handover begins well before both. */
const IN_FLIGHT_MAX = 40_000;
/** Twenty workers that each hide as many between two readings of the number in flight stay below 80,000. */
const HIDDEN_BETWEEN_READINGS_MAX = 1_000;
/** Nothing waits to the end of the retention: SQS deletes a message then without a trace. */
const RETENTION_MARGIN_MS = 43_200_000;

/** A failure that has not opened its circuit yet may be chance: the record tries again soon, and the third failure opens the circuit. */
export const RETRY_MS = 500;

interface WaitingDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly circuits: Circuits;
  readonly handover: Handover;
  readonly queueWatch: Pick<QueueWatch, 'inFlight' | 'readings' | 'retentionMs'>;
  readonly heldMax: number;
  readonly weightMaxBytes: number;
  readonly holdMaxMs: number;
  /** Receiving stops when more messages are in flight. */
  readonly inFlightMax: number;
}

export interface Waiting {
  /**
   * What becomes of a record that cannot be served now. Resolves with the permits for the next attempt, which is decided again
   * from the beginning, or with the outcome of the record. Rejects with the reason of the stop.
   */
  waitOrHandOver(record: ChangeRecord, attempt: Attempt, hand: InHand): Promise<Permit | Outcome>;
  /**
   * After a fault that concerns the whole message: waits in hand until the index store answers, if the fault is the store's.
   * Resolves to false if it is not, or if that takes longer than a message may be held.
   */
  afterStoreFault(fault: Fault, hand: InHand): Promise<boolean>;
  /** The outcome of a record that failed alone: its message is deferred, or it is handed over to a re-index when too many messages are in flight. */
  alone(record: ChangeRecord, failure: { readonly fault: Fault; readonly delayS: number }, hand: InHand): Promise<Outcome>;
}

/** A record that cannot be served now, what its attempt needs, and its message. */
interface Waiter {
  readonly record: ChangeRecord;
  readonly attempt: Attempt;
  readonly hand: InHand;
}

/** Creates the waiting. */
export function createWaiting(dependencies: WaitingDependencies): Waiting {
  const { circuits, handover, queueWatch, clock, telemetry, holdMaxMs } = dependencies;
  // half of the setting: before receiving stops for all buckets
  const crowdedAt = Math.min(IN_FLIGHT_MAX, dependencies.inFlightMax / 2);
  const shares = createShares(dependencies);
  let hidden = { sinceReading: 0, reading: 0 };
  /** How far this machine's clock is ahead of SQS's, by the latest first receive. */
  let aheadMs = 0;

  /** The present by SQS's clock: a message's first receive was received when SQS says so. */
  function queueNowMs({ receiveCount, receivedAtMonotonicMs, firstReceivedAtMs }: InHand['message']): number {
    if (receiveCount === 1) aheadMs = clock.nowMs() - (clock.monotonicMs() - receivedAtMonotonicMs) - firstReceivedAtMs;
    return clock.nowMs() - aheadMs;
  }

  async function afterStoreFault(fault: Fault, hand: InHand): Promise<boolean> {
    if (circuitOf(fault.code) !== 'cluster') return false;
    circuits.clusterFailed(fault);
    hand.turnSlow();
    await clock.sleep(RETRY_MS, hand.signal);
    const permit = await circuits.wait(CLUSTER, hand.holdLeftMs(), hand.signal);
    permit?.leave();
    return permit !== undefined;
  }

  async function waitOrHandOver(record: ChangeRecord, attempt: Attempt, hand: InHand): Promise<Permit | Outcome> {
    hand.turnSlow();
    const open = circuits.openOf(attempt.ids);
    if (open === undefined) return NO_PERMIT;
    const waiter: Waiter = { record, attempt, hand };
    if (open.level === 'cluster') return waitForCluster(waiter, open.fault);
    const isHandedOver = handover.isPermitted && isHandoverDue(hand);
    const permit = isHandedOver ? undefined : await inHand(waiter, holdMaxMs);
    return permit ?? (await handedOver(record, open.fault, hand)) ?? (await hide(waiter, open.fault));
  }

  /**
   * Waits for the circuit of the cluster. If failing indices opened it, the first index that takes a document closes it, so the
   * attempt waits to be the trial of its own index. Such trials are received meanwhile, and the indices may fail for this worker
   * alone (a role that was not given its permission), so the first receives of a message are given back for another. What was
   * received often all the same, because workers are restarted again and again, is handed over.
   */
  async function waitForCluster(waiter: Waiter, fault: Fault): Promise<Permit | Outcome> {
    const { attempt, record, hand } = waiter;
    const isByIndices = circuits.cluster().isOpenByIndices;
    const outcome = isByIndices && isUsed(hand, 1 / 2) ? await handedOver(record, fault, hand) : undefined;
    if (outcome !== undefined) return outcome;
    // the index store may fail for hours, and what is received then must not become a letter
    const isGivenBack = isByIndices && !isUsed(hand, 1 / 4) && !isExpiring(hand.message);
    const forMs = hand.holdLeftMs(isGivenBack ? holdMaxMs : HOLD_MAX_MS);
    const permit = await circuits.wait(isByIndices ? attempt : CLUSTER, Math.max(0, forMs), hand.signal);
    return permit ?? (isGivenBack ? hide(waiter, fault) : deferred(record, fault, 0));
  }

  /** Undefined if the share has no room, or the record may not begin in time. */
  async function inHand({ record: { bucket }, attempt, hand }: Waiter, maxMs: number): Promise<Permit | undefined> {
    const forMs = hand.holdLeftMs(maxMs);
    const leave = forMs > 0 ? shares.enter(bucket, hand) : undefined;
    if (leave === undefined) return undefined;
    try {
      return await circuits.wait(attempt, forMs, hand.signal);
    } finally {
      leave();
    }
  }

  /** Whether the record must not wait any longer. */
  function isHandoverDue(hand: InHand): boolean {
    const { message } = hand;
    // an outage of the whole store is over: what waited for it has not waited for this circuit
    const sinceClusterMs = clock.monotonicMs() - circuits.cluster().closedAtMs;
    return (
      Math.min(queueNowMs(message) - message.firstReceivedAtMs, sinceClusterMs) >= HANDED_OVER_AFTER_MS ||
      isUsed(hand, 1 / 2) ||
      isCrowded() ||
      hasHiddenMany() ||
      isExpiring(message)
    );
  }

  function isCrowded(): boolean {
    return queueWatch.inFlight > crowdedAt;
  }

  function hasHiddenMany(): boolean {
    if (hidden.reading !== queueWatch.readings) hidden = { sinceReading: 0, reading: queueWatch.readings };
    return hidden.sinceReading >= HIDDEN_BETWEEN_READINGS_MAX;
  }

  function isExpiring(message: InHand['message']): boolean {
    const retentionMs = queueWatch.retentionMs(message.queueUrl);
    if (retentionMs === undefined) return false;
    return queueNowMs(message) - message.sentAtMs > retentionMs - Math.min(RETENTION_MARGIN_MS, retentionMs / 4);
  }

  async function handedOver(record: ChangeRecord, fault: Fault, hand: InHand): Promise<Outcome | undefined> {
    if (!handover.isPermitted || !isHandoverDue(hand)) return undefined;
    try {
      await handover.handOver(handedOverRecord(record, fault, hand), hand.signal);
    } catch (error) {
      hand.signal.throwIfAborted();
      const { code, reason } = faultOf(error);
      telemetry.requestFailed('hand a record over to a re-index', error);
      if (circuitOf(code) === 'cluster') circuits.clusterFailed({ code, reason });
      return undefined;
    }
    telemetry.count('tally_folded_total', 1, { fault: fault.code });
    return { kind: 'gap' };
  }

  /** Hides the message. At its last receive it is held instead, because it is given up when it comes again. */
  async function hide(waiter: Waiter, fault: Fault): Promise<Permit | Outcome> {
    const { record, hand } = waiter;
    const { message } = hand;
    const { bucket } = record;
    if (isExpiring(message)) return { kind: 'rejected', fault, bucket };
    const permit = hand.isLastReceive ? await inHand(waiter, HOLD_MAX_MS) : undefined;
    if (permit !== undefined) return permit;
    hidden.sinceReading += 1;
    const waitedS = Math.max(0, queueNowMs(message) - message.firstReceivedAtMs) / 1_000;
    return deferred(record, fault, Math.round(Math.min(HIDDEN_MAX_S, Math.max(HIDDEN_MIN_S, waitedS))));
  }

  return {
    waitOrHandOver,
    afterStoreFault,
    async alone(record, { fault, delayS }, hand) {
      const isDue = isCrowded() || isExpiring(hand.message);
      const outcome = isDue ? await handedOver(record, fault, hand) : undefined;
      if (outcome !== undefined) return outcome;
      const loss = { bucket: record.bucket, key: record.key, change: changeOf(record) };
      return isExpiring(hand.message) ? { kind: 'rejected', fault, ...loss } : { kind: 'deferred', fault, delayS, ...loss };
    },
  };
}

/** Whether this part of the message's receives is used. Half of them are kept for what else may happen to it, such as workers that are killed. */
function isUsed({ message, lastReceive }: InHand, part: number): boolean {
  return message.receiveCount >= lastReceive * part;
}

const CLUSTER: Attempt = { ids: ['cluster'], isNewKey: false };

function deferred({ bucket }: ChangeRecord, fault: Fault, delayS: number): Outcome {
  return { kind: 'deferred', fault, delayS, bucket };
}

function handedOverRecord(record: ChangeRecord, fault: Fault, { message }: InHand): HandedOverRecord {
  return {
    bucket: record.bucket,
    change: changeOf(record),
    sentAtMs: message.sentAtMs,
    eventTimeMs: record.eventTimeMs,
    reason: fault.code,
  };
}

function changeOf({ change: { kind } }: ChangeRecord): LostChange {
  switch (kind) {
    case 'deleted':
    case 'marker-created':
    case 'bulk-deleted':
    case 'lifecycle-expired':
    case 'lost':
      return 'delete';
    case 'tagged':
      return 'tags';
    case 'created':
    case 'multipart-completed':
    case 'storage-changed':
    case 'unknown':
    case 'ignored':
      return 'other';
  }
}

/** Of the held set: what the waiting records of one bucket may have, and what all of them may have. */
const BUCKET_SHARE = 1 / 4;
const ALL_SHARE = 1 / 2;

interface Shares {
  /** Takes a place in the held set for a waiting record. Returns the function that gives it back; undefined if there is no room. */
  enter(bucket: string, hand: InHand): (() => void) | undefined;
}

/** Counts the messages of waiting records, each message once for each bucket, and what they weigh. */
function createShares({ heldMax, weightMaxBytes }: Pick<WaitingDependencies, 'heldMax' | 'weightMaxBytes'>): Shares {
  /** By bucket: how many records of each message wait. */
  const buckets = new Map<string, Map<InHand, number>>();

  function hasRoom(waiting: readonly InHand[], share: number): boolean {
    return waiting.length < heldMax * share && waiting.reduce((sum, { weightBytes }) => sum + weightBytes, 0) < weightMaxBytes * share;
  }

  return {
    enter(bucket, hand) {
      const waiting = buckets.get(bucket) ?? new Map<InHand, number>();
      const records = waiting.get(hand) ?? 0;
      if (records === 0) {
        const all = [...buckets.values()].flatMap((ofBucket) => [...ofBucket.keys()]);
        if (!hasRoom([...waiting.keys()], BUCKET_SHARE) || !hasRoom(all, ALL_SHARE)) return undefined;
      }
      buckets.set(bucket, waiting.set(hand, records + 1));
      return () => {
        const left = (waiting.get(hand) ?? 1) - 1;
        if (left > 0) waiting.set(hand, left);
        else waiting.delete(hand);
        if (waiting.size === 0) buckets.delete(bucket);
      };
    },
  };
}
