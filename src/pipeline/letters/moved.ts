/**
 * Opens `loss` gaps (rule 4) for the letters that SQS itself moved to the dead-letter queue, because they were received too
 * often (a worker was killed each time, or another consumer received them): their events may never have been indexed. A letter
 * without Tally's attributes and without a stored reason counts as moved.
 */
import { isBucketName } from '../../domain/bucket.ts';
import { letterNotes } from '../../domain/messages/dead-letter.ts';
import { unwrap } from '../../domain/events/envelope.ts';
import type { GapReports } from '../gaps/reports.ts';
import type { BrowseLetters } from './browser.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import type { QueueMessage } from '../ports/queues.ts';
import { readRecord, refs, updateRecord } from '../records/stored.ts';

const MOVED = { fault: 'message.moved', reason: 'SQS moved the message after its last permitted receive' } as const;

interface MovedLettersDependencies {
  readonly browse: BrowseLetters;
  readonly state: StateStore;
  readonly gaps: GapReports;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** The dead-letter queue, and how many letters were visible in it when its attributes were last read. */
  readonly deadLetters: () => { readonly queueUrl: string; readonly visible: number } | undefined;
}

/**
 * Creates the search for moved letters. It reads the queue only if its depth has changed since the last time, so it misses a
 * letter that was moved while another one was removed, and it may miss one among more than 1,000 letters. It reports each moved letter once
 * and stores that by the letter's MessageId. Throws `queue.unreachable` and the store's faults; the rest is then reported by
 * the next call.
 */
export function createMovedLetters({
  browse,
  state,
  gaps,
  clock,
  deadLetters,
}: MovedLettersDependencies): (signal: AbortSignal) => Promise<void> {
  let lastVisible = 0;

  async function report(letter: QueueMessage): Promise<void> {
    const { messageId } = letter;
    if (letterNotes(letter.attributes).fault !== undefined || (await readRecord(state, refs.deadLetter(messageId))) !== undefined) return;
    for (const bucket of bucketsIn(letter.body)) {
      await gaps.report({ bucket, kind: 'loss', reason: `dead letter: ${MOVED.fault}`, seenAtMs: clock.nowMs() });
    }
    const firstReceived = new Date(letter.firstReceivedAtMs).toISOString();
    const context = { queue: '', messageId, firstReceived, records: [] };
    await updateRecord(state, refs.deadLetter(messageId), () => ({ messageId, ...MOVED, context }));
  }

  return async function reportMovedLetters(signal) {
    const queue = deadLetters();
    if (queue === undefined || queue.visible === lastVisible) return;
    await browse(
      queue.queueUrl,
      async (letters) => {
        for (const letter of letters) await report(letter);
        return { gone: [], isEnough: false };
      },
      signal,
    );
    lastVisible = queue.visible;
  };
}

/** Returns the buckets that the records of a body name, also those of records that could not be read. */
function bucketsIn(body: string): ReadonlySet<string> {
  const unwrapped = unwrap(body);
  if (unwrapped.kind !== 'records') return new Set();
  const named = unwrapped.records.map((result) => (result.ok ? result.record.bucket : (result.bucket ?? '')));
  return new Set(named.filter(isBucketName));
}
