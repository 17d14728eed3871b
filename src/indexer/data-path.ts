/**
 * How a message becomes documents, on one screen. Begin here.
 *
 *   messages ─► unwrap ─► records ─► finish-record ─► outcomes ─► settlement ─► delete │ hide │ dead letter
 *
 * Each record ends in one outcome. A message is deleted only when every record's outcome is final, and what is written is durable by
 * then; `deferred` and `provisional` hide the message. The records of one message, and the messages of one batch, never wait for each
 * other. A poller receives the next batch while this one is written. Only if the held set has no room does it first wait until the
 * batch's fast messages (exact events) are settled, which is the back-pressure; slow messages, which wait for S3, for a settle, or for
 * something that does not answer, stay in the held set.
 *
 * Next: finish-record.ts decides a record and writes it; waiting.ts decides about a record that cannot be served now.
 */
import { LRUCache } from 'lru-cache';
import { unwrap, type Unwrapped, unwrapPosted, webhookOf } from '../events/envelope.ts';
import type { ChangeRecord, Dialect, RecordResult } from '../events/record.ts';
import { type Fault, FaultError, faultOf } from '../base/fault.ts';
import { deferDelayS, settlementOf, UNREAD, type Loss, type Outcome, type Settlement } from '../events/outcome.ts';
import { bucketsOfUnread } from '../observing/gaps.ts';
import { sideBySide } from '../process/async.ts';
import { finishRecord, type FinishParts } from './finish-record.ts';
import { recordsAtOnce, type HeldSet, type InHand } from './held-set.ts';
import type { HiddenMessages } from './waiting.ts';
import type { Telemetry } from '../process/telemetry.ts';
import type { QueueMessage, ConfirmSubscription } from '../aws/queues.ts';
import { finishServiceMessage } from './service-messages.ts';
import type { Settler } from './settler.ts';
import type { EventCounter } from './arrivals.ts';
import type { Handover } from './handover.ts';
import type { WithPorts } from '../store/store.ts';

/** Sends the message to the dead-letter queue, with its fault and the positions of the records that failed. Resolves when SQS has accepted it. */
export type SendDeadLetter = (message: QueueMessage, fault: Fault, records: readonly number[]) => Promise<void>;

/** Handles received messages up to their settlement. Resolves when the poller may receive again; never rejects. */
export type HandleMessages = (messages: readonly QueueMessage[]) => Promise<void>;

/** How many letters that could not be sent are remembered. */
const UNSENT_MAX = 10_000;

interface DataPathDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly held: HeldSet;
  readonly isAws: boolean;
  readonly settler: Settler;
  readonly finish: FinishParts;
  readonly confirmSubscription: ConfirmSubscription;
  readonly sendDeadLetter: SendDeadLetter;
  readonly handover: Handover;
  readonly bucketQueueUrls: readonly string[];
  readonly hiddenMessages: Pick<HiddenMessages, 'hidden' | 'settled'>;
  readonly counter: Pick<EventCounter, 'event'>;
}

type Letter = Extract<Settlement, { kind: 'dead-letter' }>;
type Records = Extract<Unwrapped, { kind: 'records' }>;
type RejectedRecord = Extract<RecordResult, { ok: false }>;

/** Creates the data path. */
export function createDataPath(dependencies: DataPathDependencies): HandleMessages {
  const { held, settler, finish, sendDeadLetter, isAws } = dependencies;
  const { gaps, waiting } = finish;
  const { hiddenMessages, clock, telemetry, counter } = dependencies;
  /** Letters that could not be sent, by message ID. Their gaps are stored, so when the message comes back only the sending is left. */
  const unsentLetters = new LRUCache<string, Letter>({ max: UNSENT_MAX });

  return async function handleMessages(messages) {
    for (const message of messages) settler.hold(message);
    const done = held.run(messages, finishMessage);
    // waiting for each batch would leave the queue idle while the store works, and the store idle while messages are received
    if (!held.hasRoom) await done;
  };

  async function finishMessage(hand: InHand): Promise<void> {
    try {
      await held.inTurn(hand.message, () => finishInTurn(hand));
    } catch (error) {
      await giveBack(hand, error);
    }
  }

  async function finishInTurn(hand: InHand): Promise<void> {
    const { message, lastReceive } = hand;
    hand.signal.throwIfAborted();
    // it comes back after its last receive: its letter could not be sent, or its process ended, perhaps while parsing the body
    const unwrapped = message.receiveCount > lastReceive ? undefined : read(message, isAws);
    for (let isSettled = false; !isSettled;) {
      const settlement = unwrapped === undefined ? (unsentLetters.get(message.messageId) ?? UNREAD) : await settlementFor(unwrapped, hand);
      isSettled = await settle(hand, settlement);
    }
  }

  async function settlementFor(unwrapped: Unwrapped, hand: InHand): Promise<Settlement> {
    const {
      message: { receiveCount },
      isLastReceive,
    } = hand;
    const settlement = settlementOf(await outcomesOf(unwrapped, hand), { receiveCount, isLastReceive });
    // the letter names no record if the body failed as a whole
    return settlement.kind === 'dead-letter' && unwrapped.kind !== 'records' ? { ...settlement, records: [] } : settlement;
  }

  function outcomesOf(unwrapped: Unwrapped, hand: InHand): Promise<readonly Outcome[]> {
    if (unwrapped.kind === 'records') return outcomesOfAll(unwrapped, hand);
    if (unwrapped.kind === 'rejected') return Promise.resolve([{ kind: 'rejected', fault: unwrapped.fault }]);
    return finishServiceMessage({ ...dependencies, gaps, waiting }, unwrapped, hand).then((outcome) => [outcome]);
  }

  async function outcomesOfAll({ records, topicArn }: Records, hand: InHand): Promise<readonly Outcome[]> {
    const [first] = records;
    // the usual message has one record and needs no join
    if (first?.ok === true && records.length === 1) return [await outcomeOf(first.record, hand, topicArn)];
    const rejected = new Map<RejectedRecord, Outcome>();
    const outcomes: Outcome[] = [];
    await sideBySide([...records.entries()], recordsAtOnce(hand.message.body), async ([index, result]) => {
      outcomes[index] = result.ok ? await outcomeOf(result.record, hand, topicArn) : unreadable(result, rejected, hand);
    });
    return outcomes;
  }

  async function outcomeOf(record: ChangeRecord, hand: InHand, topicArn: string | undefined): Promise<Outcome> {
    const outcome = await finishRecord(finish, record, hand, topicArn);
    reportOutcome(telemetry, record, outcome, hand);
    // later receives settle or repeat a write
    if (hand.message.receiveCount > 1) return outcome;
    const { kind } = outcome;
    // a search finds the change from now on
    const isFound = kind === 'written' || kind === 'provisional';
    const lagMs = isFound ? Math.max(0, clock.nowMs() - (record.eventTimeMs ?? hand.message.sentAtMs)) : undefined;
    if (lagMs !== undefined) telemetry.observe('tally_event_lag_seconds', lagMs / 1_000);
    if (kind !== 'ignored' && kind !== 'unconnected') counter.event(lagMs);
    return outcome;
  }

  /** Records that were rejected alike are one result, and get one outcome: a body of 1 MiB has room for 20,000 of them. */
  function unreadable(result: RejectedRecord, known: Map<RejectedRecord, Outcome>, hand: InHand): Outcome {
    const { fault, bucket, dialect } = result;
    const outcome = known.get(result) ?? { kind: 'rejected', fault, ...(bucket !== undefined && { bucket }) };
    reportOutcome(telemetry, { dialect: dialect ?? 'unknown', bucket }, outcome, hand);
    known.set(result, outcome);
    return outcome;
  }

  /** Carries out the settlement. Returns false if the message stays in hand to be decided again. */
  async function settle(hand: InHand, settlement: Settlement): Promise<boolean> {
    switch (settlement.kind) {
      case 'delete':
        noteSettled(hand, 'delete', await settler.remove(hand.message));
        return true;
      case 'defer':
        hiddenMessages.hidden(hand.message.messageId, settlement.buckets, settlement);
        noteSettled(hand, 'defer', await settler.hide(hand.message, settlement.delayS));
        return true;
      case 'wait':
        // hidden at its last receive, it would be given up when it comes back
        if (hand.isLastReceive) return clock.sleep(settlement.delayS * 1_000, hand.signal).then(() => false);
        noteSettled(hand, 'wait', await settler.hide(hand.message, settlement.delayS));
        return true;
      case 'dead-letter':
        return deadLetter(hand, settlement);
    }
  }

  /**
   * Stores the gaps, then sends the letter, then deletes the message, so a crash in between repeats steps and loses nothing. Without a
   * dead-letter queue, the message comes back until its retention ends.
   */
  async function deadLetter(hand: InHand, letter: Letter): Promise<boolean> {
    hand.turnSlow();
    const { messageId } = hand.message;
    try {
      for (const loss of unsentLetters.has(messageId) ? [] : await lossesOf(letter, hand)) await reportLoss(loss, letter.fault, hand);
      unsentLetters.set(messageId, { ...letter, losses: [] });
      await sendDeadLetter(hand.message, letter.fault, letter.records);
      unsentLetters.delete(messageId);
    } catch (error) {
      return keepUnsent(hand, faultOf(error));
    }
    noteSettled(hand, 'dead-letter', await settler.remove(hand.message));
    return true;
  }

  async function lossesOf({ losses }: Letter, { message: { body, queueUrl } }: InHand): Promise<readonly Loss[]> {
    return losses === 'unread' ? (await bucketsOfUnread(body, [queueUrl], dependencies)).map((bucket) => ({ bucket })) : losses;
  }

  async function reportLoss({ bucket, key, change = 'other' }: Loss, { code }: Fault, { message: { sentAtMs } }: InHand): Promise<void> {
    // an object that failed alone is observed again by itself, without a re-index of its whole bucket
    if (key !== undefined) return dependencies.handover.handOver({ bucket, key, change, sentAtMs, eventTimeMs: undefined, reason: code });
    const reason = `dead letter: ${code}`;
    // never before the event by SQS's clock: if this machine's clock is slow, an earlier reconcile would close the gap
    await gaps.report({ bucket, kind: 'loss', reason, seenAtMs: Math.max(clock.nowMs(), sentAtMs) });
  }

  async function keepUnsent(hand: InHand, fault: Fault): Promise<boolean> {
    if (await waiting.afterStoreFault(fault, hand)) return false;
    telemetry.requestFailed('send a dead letter', new FaultError(fault.code, fault.reason));
    noteSettled(hand, 'defer', await settler.hide(hand.message, deferDelayS(hand.message.receiveCount)));
    return true;
  }

  /** Returns the message to its queue, because the process stops or an unexpected error occurred. */
  async function giveBack(hand: InHand, error: unknown): Promise<void> {
    const isStop = hand.signal.aborted;
    if (!isStop) telemetry.requestFailed('ingest a message', error);
    const isDone = await settler.hide(hand.message, isStop ? 0 : deferDelayS(hand.message.receiveCount));
    noteSettled(hand, 'give-back', isDone);
  }

  /** If SQS did not take the settlement, the message comes back, and counts when it is settled then. */
  function noteSettled({ message }: InHand, kind: Settlement['kind'] | 'give-back', isDone: boolean): void {
    if (isDone) telemetry.count('tally_messages_total', 1, { settlement: kind });
    if (isDone && (kind === 'delete' || kind === 'dead-letter' || kind === 'wait')) hiddenMessages.settled(message.messageId);
  }
}

function read({ body, attributes }: QueueMessage, isAws: boolean): Unwrapped {
  const webhook = webhookOf(attributes);
  return webhook === undefined ? unwrap(body, isAws ? 'aws' : 'store') : unwrapPosted(body, webhook);
}

interface EndedRecord {
  /** `unknown`: the record was so broken that its dialect could not be recognised. */
  readonly dialect: Dialect | 'unknown';
  readonly bucket?: string | undefined;
  readonly key?: string;
  readonly eventName?: string;
}

function reportOutcome(
  telemetry: Telemetry,
  { dialect, bucket, key, eventName = '' }: EndedRecord,
  outcome: Outcome,
  { message: { messageId } }: InHand,
): void {
  telemetry.count('tally_records_total', 1, { dialect, outcome: outcome.kind });
  if (outcome.kind === 'ignored' && outcome.reason === 'other-bucket')
    telemetry.warnOnce("a store posts events of other buckets to this bucket's webhook, and they are ignored", bucket ?? '', { bucket });
  const fault = 'fault' in outcome ? outcome.fault.code : undefined;
  telemetry.debug('record ended', { messageId, bucket, key, dialect, eventName, outcome: outcome.kind, fault });
}
