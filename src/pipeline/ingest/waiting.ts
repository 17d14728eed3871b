/**
 * What becomes of a record that cannot be served now, because a circuit that it needs is open:
 *
 *   in hand, while the share of its bucket has room ──► hidden in its queue ──► folded: an open gap of the bucket stands for it
 *
 * All of it follows from the message's own attributes, so restarts and the circuits of other workers change nothing. The
 * index store as a whole is waited for in hand, because then no gap could be stored and nothing is received.
 */
import { circuitOf, faultOf, type Fault } from '../../domain/fault.ts';
import type { ChangeRecord } from '../../domain/events/record.ts';
import type { LostChange, Outcome } from '../../domain/messages/outcome.ts';
import type { FoldedRecord, Folding } from '../gaps/folding.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueWatch } from '../queues/watch.ts';
import type { Circuits } from '../serving/circuits.ts';
import type { Attempt, Place } from '../serving/waiting-line.ts';
import { HOLD_MAX_MS, type InHand } from './held-set.ts';

/** A message is hidden for as long as it has waited already, within these bounds: a recovery is noticed within five minutes. */
const HIDDEN_MIN_S = 30;
const HIDDEN_MAX_S = 300;
/** By then a short outage is over. With the times above it is the seventh receive at most. */
const FOLDED_AFTER_MS = 600_000;
/** SQS stops at 120,000 messages in flight, and Tally at 80,000: folding begins well before both. */
const IN_FLIGHT_MAX = 40_000;
/** Twenty workers that each hide as many between two readings of the number in flight stay below 80,000. */
const HIDDEN_BETWEEN_READINGS_MAX = 1_000;
/** Nothing waits to the end of the retention: SQS deletes a message then without a trace. */
const RETENTION_MARGIN_MS = 43_200_000;

/** Why a record cannot be served. */
export interface Unserved {
  readonly record: ChangeRecord;
  readonly attempt: Attempt;
}

/**
 * Resolves with the places for the next attempt, which is decided again from the beginning, or with the outcome of the
 * record. Rejects with the reason of the stop.
 */
export type WaitOrFold = (unserved: Unserved, hand: InHand) => Promise<Place | Outcome>;

interface WaitingDependencies {
  readonly circuits: Circuits;
  readonly folding: Folding;
  readonly queueWatch: Pick<QueueWatch, 'inFlight' | 'readings' | 'maxReceiveCount' | 'retentionMs'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly heldMax: number;
  readonly holdMaxMs: number;
  /** Receiving stops when more messages are in flight. */
  readonly inFlightMax: number;
}

export interface Waiting {
  readonly waitOrFold: WaitOrFold;
  /** Waits in hand until the index store answers. Resolves to false if that takes longer than a message may be held. */
  forCluster(hand: InHand): Promise<boolean>;
  /** Takes room in the held set for a record of the bucket that waits for something else. Returns the function that gives it back; undefined if there is none. */
  enter(bucket: string, hand: InHand): (() => void) | undefined;
  /** Whether a record whose bucket is not connected must not wait any longer: it would become a dead letter, or keep others from being received. */
  isLastChance(hand: InHand): boolean;
  /** The outcome of a record that failed alone: its message is deferred, or folded when too many messages are in flight. */
  alone(unserved: Unserved, failure: { readonly fault: Fault; readonly delayS: number }, hand: InHand): Promise<Outcome>;
}

/** Creates the waiting. */
export function createWaiting(dependencies: WaitingDependencies): Waiting {
  const { circuits, folding, queueWatch, clock, telemetry, heldMax, holdMaxMs } = dependencies;
  // half of the setting: before receiving stops for all buckets
  const crowdedAt = Math.min(IN_FLIGHT_MAX, dependencies.inFlightMax / 2);
  const shares = createShares(heldMax);
  const isUsed = createIsUsed(queueWatch);
  let hidden = { sinceReading: 0, reading: 0 };
  /** How far this machine's clock is ahead of SQS's, by the latest first receive. */
  let aheadMs = 0;

  /** The present by SQS's clock: a message's first receive was received when SQS says so. */
  function queueNowMs({ receiveCount, receivedAtMonotonicMs, firstReceivedAtMs }: InHand['message']): number {
    if (receiveCount === 1) aheadMs = clock.nowMs() - (clock.monotonicMs() - receivedAtMonotonicMs) - firstReceivedAtMs;
    return clock.nowMs() - aheadMs;
  }

  function leftMs({ message }: InHand, maxMs: number): number {
    return message.receivedAtMonotonicMs + maxMs - clock.monotonicMs();
  }

  async function forCluster(hand: InHand): Promise<boolean> {
    hand.turnSlow();
    const place = await circuits.wait(CLUSTER, leftMs(hand, HOLD_MAX_MS), hand.signal);
    place?.leave();
    return place !== undefined;
  }

  async function waitOrFold(unserved: Unserved, hand: InHand): Promise<Place | Outcome> {
    const { attempt } = unserved;
    hand.turnSlow();
    const open = circuits.openOf(attempt.ids);
    if (open === undefined) return FREE;
    if (open.level === 'cluster') return waitForCluster(unserved, open.fault, hand);
    const place = await inHandForNow(unserved, hand);
    if (place !== undefined) return place;
    const still = circuits.openOf(attempt.ids);
    if (still === undefined || still.level === 'cluster') return FREE;
    return (await folded(unserved, still.fault, hand)) ?? (await hide(unserved, still.fault, hand));
  }

  /**
   * Waits for the circuit of the cluster. If failing indices opened it, the first index that takes a document closes it, so the
   * attempt waits to be the trial of its own index. Such trials are received meanwhile, and the indices may fail for this worker
   * alone (a role that was not given its permission), so the first receives of a message are given back for another. What was
   * received often all the same, because workers are restarted again and again, is folded.
   */
  async function waitForCluster(unserved: Unserved, fault: Fault, hand: InHand): Promise<Place | Outcome> {
    const { attempt, record } = unserved;
    const isByIndices = circuits.cluster().isOpenByIndices;
    const outcome = isByIndices && isUsed(hand.message, 1 / 2) ? await folded(unserved, fault, hand) : undefined;
    if (outcome !== undefined) return outcome;
    // the index store may fail for hours, and what is received then must not become a letter
    const isGivenBack = isByIndices && !isUsed(hand.message, 1 / 4) && !isExpiring(hand.message);
    const forMs = leftMs(hand, isGivenBack ? holdMaxMs : HOLD_MAX_MS);
    const place = await circuits.wait(isByIndices ? attempt : CLUSTER, Math.max(0, forMs), hand.signal);
    return place ?? (isGivenBack ? hide(unserved, fault, hand) : deferred(record, fault, 0));
  }

  /** Waits for the time that each receive gives, unless the record can be folded. Keys that have not failed yet have half as much room again, so that they are found among those that have. */
  async function inHandForNow(unserved: Unserved, hand: InHand): Promise<Place | undefined> {
    if (folding.isPermitted && isFoldDue(hand)) return undefined;
    return inHand(unserved, hand, { maxMs: holdMaxMs, ofShare: unserved.attempt.isNewKey ? 1.5 : 1 });
  }

  /** Undefined if the share has no room, or the record may not begin in time. */
  async function inHand(
    { attempt, record: { bucket } }: Unserved,
    hand: InHand,
    { maxMs, ofShare }: { readonly maxMs: number; readonly ofShare: number },
  ): Promise<Place | undefined> {
    const forMs = leftMs(hand, maxMs);
    const leave = forMs > 0 ? shares.enter(bucket, hand, ofShare) : undefined;
    if (leave === undefined) return undefined;
    try {
      return await circuits.wait(attempt, forMs, hand.signal);
    } finally {
      leave();
    }
  }

  /** Whether the record must not wait any longer. */
  function isFoldDue({ message }: InHand): boolean {
    // an outage of the whole store is over: what waited for it has not waited for this circuit
    const sinceClusterMs = clock.monotonicMs() - circuits.cluster().closedAtMs;
    return (
      Math.min(queueNowMs(message) - message.firstReceivedAtMs, sinceClusterMs) >= FOLDED_AFTER_MS ||
      isUsed(message, 1 / 2) ||
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

  async function folded(unserved: Unserved, fault: Fault, hand: InHand): Promise<Outcome | undefined> {
    if (!folding.isPermitted || !isFoldDue(hand)) return undefined;
    try {
      await folding.fold(foldedRecord(unserved, fault, hand), hand.signal);
    } catch (error) {
      hand.signal.throwIfAborted();
      const { code, reason } = faultOf(error);
      telemetry.requestFailed('fold a record', code, reason);
      if (circuitOf(code) === 'cluster') circuits.clusterFailed({ code, reason });
      return undefined;
    }
    telemetry.count('tally_folded_total', 1, { fault: fault.code });
    return { kind: 'gap' };
  }

  /** Hides the message. At its last permitted receive it is held instead, because SQS would move it to the dead-letter queue. */
  async function hide(unserved: Unserved, fault: Fault, hand: InHand): Promise<Place | Outcome> {
    const { message } = hand;
    const { bucket } = unserved.record;
    if (isExpiring(message)) return { kind: 'rejected', fault, bucket };
    if (hand.isLastReceive) {
      // half as much room again, for those that would become dead letters
      const place = await inHand(unserved, hand, { maxMs: HOLD_MAX_MS, ofShare: 1.5 });
      if (place !== undefined) return place;
    }
    hidden.sinceReading += 1;
    const waitedS = Math.max(0, queueNowMs(message) - message.firstReceivedAtMs) / 1_000;
    return deferred(unserved.record, fault, Math.round(Math.min(HIDDEN_MAX_S, Math.max(HIDDEN_MIN_S, waitedS))));
  }

  return {
    waitOrFold,
    forCluster,
    enter: (bucket, hand) => shares.enter(bucket, hand, 1),
    isLastChance: (hand) => hand.isLastReceive || isCrowded() || isExpiring(hand.message),
    async alone(unserved, { fault, delayS }, hand) {
      const { bucket, key } = unserved.record;
      const isDue = isCrowded() || isExpiring(hand.message);
      const outcome = isDue ? await folded(unserved, fault, hand) : undefined;
      if (outcome !== undefined) return outcome;
      const loss = { bucket, key, change: changeOf(unserved.record) };
      return isExpiring(hand.message) ? { kind: 'rejected', fault, ...loss } : { kind: 'deferred', fault, delayS, ...loss };
    },
  };
}

/**
 * Whether this part of the permitted receives is used. Half of them are kept for what else may happen to a message, such as
 * workers that are killed.
 */
function createIsUsed(queueWatch: Pick<QueueWatch, 'maxReceiveCount'>) {
  return ({ receiveCount, queueUrl }: InHand['message'], part: number): boolean =>
    receiveCount >= queueWatch.maxReceiveCount(queueUrl) * part;
}

const CLUSTER: Attempt = { ids: ['cluster'], isNewKey: false };

/** Nothing is in the way any more. */
const FREE: Place = { ids: [], leave: () => undefined };

function deferred({ bucket }: ChangeRecord, fault: Fault, delayS: number): Outcome {
  return { kind: 'deferred', fault, delayS, bucket };
}

function foldedRecord({ record }: Unserved, fault: Fault, { message }: InHand): FoldedRecord {
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
    case 'ignored':
      return 'other';
  }
}

/** Of the held set: what the waiting records of one bucket may have, and what all of them may have. */
const BUCKET_SHARE = 1 / 4;
const ALL_SHARE = 1 / 2;

interface Shares {
  /** Takes a place in the held set for a waiting record. Returns the function that gives it back; undefined if there is no room. */
  enter(bucket: string, hand: InHand, factor: number): (() => void) | undefined;
}

/** Counts the messages of waiting records, each message once for each bucket, and what they weigh. */
function createShares(heldMax: number): Shares {
  const buckets = new Map<string, Map<InHand, number>>();
  const weights = new Map<string, number>();
  let messages = 0;
  let weight = 0;

  function change(bucket: string, by: 1 | -1, bytes: number): void {
    messages += by;
    weight += by * bytes;
    weights.set(bucket, (weights.get(bucket) ?? 0) + by * bytes);
  }

  return {
    enter(bucket, hand, factor) {
      const waiting = buckets.get(bucket) ?? new Map<InHand, number>();
      const records = waiting.get(hand) ?? 0;
      const hasRoom =
        waiting.size < heldMax * BUCKET_SHARE * factor &&
        messages < heldMax * ALL_SHARE * factor &&
        (weights.get(bucket) ?? 0) < hand.weightMaxBytes * BUCKET_SHARE * factor &&
        weight < hand.weightMaxBytes * ALL_SHARE * factor;
      if (records === 0 && !hasRoom) return undefined;
      buckets.set(bucket, waiting);
      waiting.set(hand, records + 1);
      const { bytes } = hand.weight;
      if (records === 0) change(bucket, 1, bytes);
      return () => {
        const left = (waiting.get(hand) ?? 1) - 1;
        if (left > 0) return void waiting.set(hand, left);
        waiting.delete(hand);
        change(bucket, -1, bytes);
        if (waiting.size > 0) return;
        buckets.delete(bucket);
        weights.delete(bucket);
      };
    },
  };
}
