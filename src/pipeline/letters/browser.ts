/**
 * Looking into a queue, which SQS offers by receiving only: what is looked at is hidden for 30 s and given back at the
 * end. Two that look at the same time each see a part.
 */
import { faultOf } from '../../domain/fault.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueClient, QueueMessage } from '../ports/queues.ts';

/** As long as a look may take; a process killed in the middle hides letters no longer than that. */
const HIDDEN_S = 30;
/** What is looked at is held in memory, at most 1 MiB each. */
const LETTERS_MAX = 1_000;
const BATCH_MAX = 10;
/** Without waiting SQS asks only some of its servers, so one empty answer does not mean an empty queue. */
const QUIET_ROUNDS_MAX = 3;

/** Shown up to ten letters not seen before; answers which of them it removed, and whether it has seen enough. */
export type Visit = (letters: readonly QueueMessage[]) => Promise<{ readonly gone: readonly QueueMessage[]; readonly isEnough: boolean }>;

export type BrowseLetters = (queueUrl: string, visit: Visit, signal?: AbortSignal) => Promise<void>;

/** Creates the browser. It ends when the queue has no more, at 1,000 letters, or when the visitor has seen enough; it throws `queue.unreachable` and what the visitor throws. */
export function createLetterBrowser({ queues, telemetry }: { readonly queues: QueueClient; readonly telemetry: Telemetry }): BrowseLetters {
  return async function browseLetters(queueUrl, visit, signal) {
    const seen = new Set<string>();
    const inHand = new Map<string, QueueMessage>();
    let quietRounds = 0;
    let isEnough = false;
    try {
      while (!isEnough && seen.size < LETTERS_MAX && quietRounds < QUIET_ROUNDS_MAX) {
        const max = Math.min(BATCH_MAX, LETTERS_MAX - seen.size);
        const received = await queues.receive(queueUrl, { visibilityS: HIDDEN_S, max }, signal);
        // also of one seen before: its newest receipt handle is the one that counts
        for (const letter of received) inHand.set(letter.messageId, letter);
        const fresh = received.filter(({ messageId }) => !seen.has(messageId));
        quietRounds = fresh.length === 0 ? quietRounds + 1 : 0;
        if (fresh.length === 0) continue;
        for (const { messageId } of fresh) seen.add(messageId);
        const visited = await visit(fresh);
        for (const { messageId } of visited.gone) inHand.delete(messageId);
        isEnough = visited.isEnough;
      }
    } finally {
      await giveBack(queueUrl, [...inHand.values()]);
    }
  };

  async function giveBack(queueUrl: string, letters: readonly QueueMessage[]): Promise<void> {
    try {
      for (let start = 0; start < letters.length; start += BATCH_MAX) {
        const batch = letters.slice(start, start + BATCH_MAX);
        await queues.changeVisibilityBatch(
          queueUrl,
          batch.map(({ receiptHandle }) => ({ receiptHandle, timeoutS: 0 })),
        );
      }
    } catch (error) {
      // they come back by themselves
      const { code, reason } = faultOf(error);
      telemetry.requestFailed('give dead letters back', code, reason);
    }
  }
}
