/**
 * Reads a queue without removing messages. SQS can only receive, so the letters that were read are hidden for 30 s and given
 * back at the end. Two readers at the same time would see a part of the letters each, so the readings of one process follow
 * each other; another process can still hide letters from it.
 */
import PQueue from 'p-queue';
import type { Telemetry } from '../process/telemetry.ts';
import type { QueueClient, QueueMessage } from '../aws/queues.ts';

/** As long as one reading may take. If the process is killed during it, the letters are hidden no longer than that. */
const HIDDEN_S = 30;
/** The most letters of one reading: it takes some 200 requests and a few seconds, and ends long before the first letters are visible again. Their ids are in memory, never their bodies. */
export const LETTERS_MAX = 1_000;
const BATCH_MAX = 10;
/** A short poll of SQS reads only some of its servers, so one empty answer does not mean that the queue is empty. */
const QUIET_ROUNDS_MAX = 3;

/** Receives up to ten letters that are new to it. Returns which of them it removed, and whether it has seen enough. */
export type Visit = (letters: readonly QueueMessage[]) => Promise<{ readonly gone: readonly QueueMessage[]; readonly isEnough: boolean }>;

/** Resolves with whether the visitor has seen enough. */
export type BrowseLetters = (queueUrl: string, visit: Visit, signal?: AbortSignal) => Promise<boolean>;

/**
 * Creates the reader. It ends when the queue has no more letters, after 1,000 letters, or when the visitor has seen enough.
 * Throws `queue.unreachable` and what the visitor throws.
 */
export function createLetterBrowser({ queues, telemetry }: { readonly queues: QueueClient; readonly telemetry: Telemetry }): BrowseLetters {
  const readings = new PQueue({ concurrency: 1 });

  async function read(queueUrl: string, visit: Visit, signal?: AbortSignal): Promise<boolean> {
    const seen = new Set<string>();
    /** Receipt handles by message id. */
    const inHand = new Map<string, string>();
    let quietRounds = 0;
    let isEnough = false;
    try {
      while (!isEnough && seen.size < LETTERS_MAX && quietRounds < QUIET_ROUNDS_MAX) {
        const max = Math.min(BATCH_MAX, LETTERS_MAX - seen.size);
        const received = await queues.receive(queueUrl, { visibilityS: HIDDEN_S, max }, signal);
        // a letter that was received again as well: only its newest receipt handle is valid
        for (const { messageId, receiptHandle } of received) inHand.set(messageId, receiptHandle);
        const fresh = received.filter(({ messageId }) => !seen.has(messageId));
        quietRounds = fresh.length === 0 ? quietRounds + 1 : 0;
        if (fresh.length === 0) continue;
        for (const { messageId } of fresh) seen.add(messageId);
        const visited = await visit(fresh);
        for (const { messageId } of visited.gone) inHand.delete(messageId);
        isEnough = visited.isEnough;
      }
      return isEnough;
    } finally {
      await giveBack(queueUrl, [...inHand.values()]);
    }
  }

  async function giveBack(queueUrl: string, receiptHandles: readonly string[]): Promise<void> {
    try {
      for (let start = 0; start < receiptHandles.length; start += BATCH_MAX) {
        const batch = receiptHandles.slice(start, start + BATCH_MAX);
        await queues.changeVisibilityBatch(
          queueUrl,
          batch.map((receiptHandle) => ({ receiptHandle, timeoutS: 0 })),
        );
      }
    } catch (error) {
      // the letters become visible again without this
      telemetry.requestFailed('give dead letters back', error);
    }
  }

  return function browseLetters(queueUrl, visit, signal) {
    return readings.add(async () => {
      signal?.throwIfAborted();
      return read(queueUrl, visit, signal);
    });
  };
}
