/** Dead letters: sent by ingest with their reason, looked at, sent back or discarded by people. */
import { z } from 'zod';
import {
  deadLetterAttributes,
  letterNotes,
  letterReason,
  ownAttributes,
  type DeadLetterRecord,
  type LetterNotes,
} from '../../domain/messages/dead-letter.ts';
import { FaultError, faultOf, type Fault } from '../../domain/fault.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Control, DeadLetter } from '../control/control.ts';
import { createLetterBrowser, type Visit } from './browser.ts';
import { limitSchema, parseRequest } from '../records/pages.ts';
import type { StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueClient, QueueMessage } from '../ports/queues.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';

/**
 * Sends the message's body to the dead-letter queue with what went wrong at which of its records (positions). Resolves
 * when SQS has it. Throws `queue.unreachable` when it cannot be sent and `queue.no-dead-letter` when no queue is known.
 */
export type SendDeadLetter = (message: QueueMessage, fault: Fault, records: readonly number[]) => Promise<void>;

const listSchema = z.strictObject({ limit: limitSchema });

type Verbs = Control['deadLetters'];

interface DeadLetters extends Verbs {
  readonly send: SendDeadLetter;
}

interface DeadLetterDependencies {
  readonly queues: QueueClient;
  readonly state: StateStore;
  readonly telemetry: Telemetry;
  /** The setting, or the bucket queue's redrive target once that was read. */
  readonly deadLetterQueueUrl: () => string | undefined;
  /** The queues that letters may be sent back to; the first takes those that do not say where they are from. */
  readonly bucketQueueUrls: readonly string[];
}

/** Creates all that is done with dead letters. list, show, replay and discard reach 1,000 letters a call. */
export function createDeadLetters(dependencies: DeadLetterDependencies): DeadLetters {
  const { queues, telemetry, deadLetterQueueUrl } = dependencies;
  const browse = createLetterBrowser(dependencies);
  const { notesOf, keep, forget } = createLetterNotes(dependencies);

  const send: SendDeadLetter = async (message, fault, records) => {
    const queueUrl = deadLetterQueueUrl();
    if (queueUrl === undefined) throw new FaultError('queue.no-dead-letter', `no dead-letter queue of ${message.queueUrl} is known`);
    const { body, attributes: own, messageId } = message;
    const firstReceived = new Date(message.firstReceivedAtMs).toISOString();
    const context = { queue: message.queueUrl, messageId, firstReceived, records: [...records] };
    const attributes = deadLetterAttributes({ body, attributes: own, fault, context });
    const letterId = await queues.send(queueUrl, { body, attributes: attributes ?? {} });
    const reason = letterReason(fault);
    if (attributes === undefined) await keep({ messageId: letterId, fault: fault.code, reason, context });
    telemetry.deadLettered({ code: fault.code, reason, messageId });
  };

  const list: Verbs['list'] = async (request, signal) => {
    const { limit } = parseRequest(listSchema, request);
    const letters: DeadLetter[] = [];
    await look(async (batch) => {
      letters.push(...(await Promise.all(batch.map(describe))));
      return { gone: [], isEnough: letters.length >= limit };
    }, signal);
    return letters.slice(0, limit);
  };

  const show: Verbs['show'] = async (id, signal) => {
    let found: QueueMessage | undefined;
    await look(async (batch) => {
      found = batch.find(({ messageId }) => messageId === id);
      return { gone: [], isEnough: found !== undefined };
    }, signal);
    if (found === undefined) throw notFound([id]);
    return { ...(await describe(found)), body: found.body };
  };

  async function describe(letter: QueueMessage): Promise<DeadLetter> {
    return {
      id: letter.messageId,
      sentAt: new Date(letter.sentAtMs).toISOString(),
      ...(await notesOf(letter)),
      sizeBytes: Buffer.byteLength(letter.body),
    };
  }

  /** Acts on all letters or on those named; `act` answers which of those it was given are done. */
  async function take(
    ids: readonly string[] | 'all',
    act: (letters: readonly QueueMessage[]) => Promise<readonly QueueMessage[]>,
    signal?: AbortSignal,
  ): Promise<number> {
    const wanted = ids === 'all' ? undefined : new Set(ids);
    if (wanted?.size === 0) return 0;
    let count = 0;
    await look(async (batch) => {
      const chosen = batch.filter(({ messageId }) => wanted?.delete(messageId) ?? true);
      const done = chosen.length === 0 ? [] : await act(chosen);
      count += done.length;
      return { gone: done, isEnough: wanted?.size === 0 };
    }, signal);
    if (count === 0 && wanted !== undefined && wanted.size > 0) throw notFound([...wanted]);
    return count;
  }

  function look(visit: Visit, signal: AbortSignal | undefined): Promise<void> {
    return browse(knownQueueUrl(), visit, signal);
  }

  function knownQueueUrl(): string {
    const queueUrl = deadLetterQueueUrl();
    if (queueUrl !== undefined) return queueUrl;
    throw new RequestError('dead-letter.no-queue', 'no dead-letter queue is known: set TALLY_DEAD_LETTER_QUEUE_URL or a redrive policy');
  }

  /** The letter goes only after its body was sent, so that a crash in between repeats an event, which is harmless. */
  async function sendBack(letters: readonly QueueMessage[]): Promise<readonly QueueMessage[]> {
    const answers = await Promise.allSettled(letters.map(sendOneBack));
    const sent = letters.filter((_, index) => answers[index]?.status === 'fulfilled');
    await remove(sent);
    const failed = answers.find((answer) => answer.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return sent;
  }

  async function sendOneBack(letter: QueueMessage): Promise<void> {
    const { context } = await notesOf(letter);
    const origin = dependencies.bucketQueueUrls.find((queueUrl) => queueUrl === context?.['queue']);
    const queueUrl = origin ?? dependencies.bucketQueueUrls[0];
    if (queueUrl === undefined)
      throw new RequestError('dead-letter.no-queue', 'no bucket queue to send letters back to: set TALLY_QUEUE_URL');
    await queues.send(queueUrl, { body: letter.body, attributes: ownAttributes(letter.attributes) });
  }

  async function remove(letters: readonly QueueMessage[]): Promise<readonly QueueMessage[]> {
    if (letters.length === 0) return [];
    const handles = letters.map(({ receiptHandle }) => receiptHandle);
    const failures = await queues.deleteBatch(knownQueueUrl(), handles);
    for (const { code } of failures) telemetry.warn('a dead letter could not be deleted', { code });
    const removed = letters.filter(({ receiptHandle }) => failures.every((failure) => failure.receiptHandle !== receiptHandle));
    await Promise.all(removed.map(forget));
    return removed;
  }

  return {
    send,
    list,
    show,
    replay: (ids, signal) => take(ids, sendBack, signal),
    discard: (ids, signal) => take(ids, remove, signal),
  };
}

/** What is known of letters: in their attributes, or kept apart when these had no room. */
function createLetterNotes({ state, telemetry }: Pick<DeadLetterDependencies, 'state' | 'telemetry'>) {
  async function notesOf(letter: QueueMessage): Promise<LetterNotes> {
    const notes = letterNotes(letter.attributes);
    if (notes.fault !== undefined) return notes;
    const kept = await readRecord(state, refs.deadLetter(letter.messageId));
    return kept === undefined ? notes : { fault: kept.fault, reason: kept.reason, context: kept.context };
  }

  async function keep(record: DeadLetterRecord): Promise<void> {
    try {
      await updateRecord(state, refs.deadLetter(record.messageId), () => record);
    } catch (error) {
      // the letter is in its queue: to fail now would send it twice
      const { code, reason } = faultOf(error);
      telemetry.requestFailed('keep the reason of a dead letter', code, reason);
    }
  }

  async function forget(letter: QueueMessage): Promise<void> {
    if (letterNotes(letter.attributes).fault === undefined) await removeRecord(state, refs.deadLetter(letter.messageId).id);
  }

  return { notesOf, keep, forget };
}

function notFound(ids: readonly string[]): RequestError {
  const names = ids.slice(0, 5).map((id) => id.slice(0, 128));
  return new RequestError('dead-letter.not-found', `not in the dead-letter queue (or just in another's hands): ${names.join(', ')}`);
}
