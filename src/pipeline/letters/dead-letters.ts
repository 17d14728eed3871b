/** Dead letters: ingest sends them with their reason; people list them, send them back or discard them. */
import { deadLetterView, type DeadLetter, type LetterChoice, type WholeDeadLetter } from '../../api/dead-letters.ts';
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
import { createLetterBrowser, type BrowseLetters, type Visit } from './browser.ts';
import type { StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueClient, QueueMessage } from '../ports/queues.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';

/**
 * Sends the message's body to the dead-letter queue, with the fault and the positions of the records that failed. Resolves
 * when SQS has accepted it. Throws `queue.unreachable` if it cannot be sent, `queue.no-dead-letter` if no dead-letter
 * queue is known, and `message.empty` for a message without a body, which SQS does not accept.
 */
export type SendDeadLetter = (message: QueueMessage, fault: Fault, records: readonly number[]) => Promise<void>;

/** Each function reads at most 1,000 letters a call, and throws `dead-letter.no-queue` if no dead-letter queue is known. */
export interface DeadLetters {
  readonly send: SendDeadLetter;
  /** The one reader of dead-letter queues in this process: readings through it do not hide letters from each other. */
  readonly browse: BrowseLetters;
  /** Returns up to `limit` letters and removes none. */
  list(limit: number, signal?: AbortSignal): Promise<readonly DeadLetter[]>;
  /** Returns one letter with its body. Throws `dead-letter.not-found`. */
  show(id: string, signal?: AbortSignal): Promise<WholeDeadLetter>;
  /** Sends the original bodies of the chosen letters back to the bucket queue, then removes the letters. Returns how many. Throws `dead-letter.not-found` if none of the named is there. */
  replay(choice: LetterChoice, signal?: AbortSignal): Promise<number>;
  /** Removes the chosen letters. Returns how many. Throws as replay does. */
  discard(choice: LetterChoice, signal?: AbortSignal): Promise<number>;
}

interface DeadLetterDependencies {
  readonly queues: QueueClient;
  readonly state: StateStore;
  readonly telemetry: Telemetry;
  /** The queue of the setting, or the redrive target of the bucket queue once it was read. */
  readonly deadLetterQueueUrl: () => string | undefined;
  /** The queues that letters may be sent back to. The first receives letters whose origin is unknown. */
  readonly bucketQueueUrls: readonly string[];
}

/** Creates the functions on dead letters. */
export function createDeadLetters(dependencies: DeadLetterDependencies): DeadLetters {
  const { queues, telemetry, deadLetterQueueUrl } = dependencies;
  const browse = createLetterBrowser(dependencies);
  const { notesOf, keep, forget } = createLetterNotes(dependencies);

  const send: SendDeadLetter = async (message, fault, records) => {
    const queueUrl = deadLetterQueueUrl();
    if (queueUrl === undefined) throw new FaultError('queue.no-dead-letter', `no dead-letter queue is known for ${message.queueUrl}`);
    const { body, attributes: own, messageId } = message;
    if (body === '')
      throw new FaultError(
        'message.empty',
        `message ${messageId} of ${message.queueUrl} has no body, so SQS cannot take it as a dead letter`,
      );
    const firstReceived = new Date(message.firstReceivedAtMs).toISOString();
    const context = { queue: message.queueUrl, messageId, firstReceived, records: [...records] };
    const attributes = deadLetterAttributes({ body, attributes: own, fault, context });
    const letterId = await queues.send(queueUrl, { body, attributes: attributes ?? {} });
    const reason = letterReason(fault);
    if (attributes === undefined) await keep({ messageId: letterId, fault: fault.code, reason, context });
    telemetry.deadLettered({ code: fault.code, reason, messageId });
  };

  const list: DeadLetters['list'] = async (limit, signal) => {
    const letters: DeadLetter[] = [];
    await look(async (batch) => {
      letters.push(...(await Promise.all(batch.map(describe))));
      return { gone: [], isEnough: letters.length >= limit };
    }, signal);
    return letters.slice(0, limit);
  };

  const show: DeadLetters['show'] = async (id, signal) => {
    let found: QueueMessage | undefined;
    await look(async (batch) => {
      found = batch.find(({ messageId }) => messageId === id);
      return { gone: [], isEnough: found !== undefined };
    }, signal);
    if (found === undefined) throw notFound([id]);
    return { ...(await describe(found)), body: found.body };
  };

  async function describe(letter: QueueMessage): Promise<DeadLetter> {
    const { messageId: id, sentAtMs, body } = letter;
    return deadLetterView({ id, sentAtMs, sizeBytes: Buffer.byteLength(body), notes: await notesOf(letter) });
  }

  /** Acts on the named letters, or on all. `act` returns those of its letters that are done. */
  async function take(
    choice: LetterChoice,
    act: (letters: readonly QueueMessage[]) => Promise<readonly QueueMessage[]>,
    signal?: AbortSignal,
  ): Promise<number> {
    const wanted = 'all' in choice ? undefined : new Set(choice.ids);
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
    throw new RequestError(
      'dead-letter.no-queue',
      'no dead-letter queue is known: set TALLY_DEAD_LETTER_QUEUE_URL, or give the bucket queue a redrive policy',
    );
  }

  /** The letter is deleted only after its body was sent, so a crash in between repeats an event, which is harmless. */
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
    const origin = dependencies.bucketQueueUrls.find((queueUrl) => queueUrl === context?.queue);
    const queueUrl = origin ?? dependencies.bucketQueueUrls[0];
    if (queueUrl === undefined)
      throw new RequestError('dead-letter.no-queue', 'no bucket queue is known to send letters back to: set TALLY_QUEUE_URL');
    await queues.send(queueUrl, { body: letter.body, attributes: ownAttributes(letter.attributes) });
  }

  async function remove(letters: readonly QueueMessage[]): Promise<readonly QueueMessage[]> {
    if (letters.length === 0) return [];
    const handles = letters.map(({ receiptHandle }) => receiptHandle);
    const failures = await queues.deleteBatch(knownQueueUrl(), handles);
    for (const { code } of failures) telemetry.warn('SQS did not delete a dead letter', { code });
    const removed = letters.filter(({ receiptHandle }) => failures.every((failure) => failure.receiptHandle !== receiptHandle));
    await Promise.all(removed.map(forget));
    return removed;
  }

  return {
    send,
    browse,
    list,
    show,
    replay: (choice, signal) => take(choice, sendBack, signal),
    discard: (choice, signal) => take(choice, remove, signal),
  };
}

/** The fault, reason and context of letters: they are in the attributes, or in a record if the attributes had no room. */
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
      // the letter is in its queue already: an error now would make the caller send it twice
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
  return new RequestError(
    'dead-letter.not-found',
    `these letters are not in the dead-letter queue, or another reader has received them: ${names.join(', ')}`,
  );
}
