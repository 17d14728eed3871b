/**
 * Letters that SQS itself moved to the dead-letter queue, because they were received too often (a worker was killed each
 * time, or another consumer took them): their events are lost to the index, so each opens a `loss` gap (rule 4).
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

const MOVED = { fault: 'message.moved', reason: 'SQS moved it after the last permitted receive' } as const;

interface MovedLettersDependencies {
  readonly browse: BrowseLetters;
  readonly state: StateStore;
  readonly gaps: GapReports;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** The queue, and how many letters were visible in it at the last reading. */
  readonly deadLetters: () => { readonly queueUrl: string; readonly visible: number } | undefined;
}

/**
 * Creates the look: it reads the queue only when its depth has changed since, tells each moved letter once, and keeps
 * that by the letter's MessageId. Throws `queue.unreachable` and the store's faults; what was not told is told next time.
 */
export function createMovedLetters({
  browse,
  state,
  gaps,
  clock,
  deadLetters,
}: MovedLettersDependencies): (signal: AbortSignal) => Promise<void> {
  let lastVisible = 0;

  async function tell(letter: QueueMessage): Promise<void> {
    const { messageId } = letter;
    if (letterNotes(letter.attributes).fault !== undefined || (await readRecord(state, refs.deadLetter(messageId))) !== undefined) return;
    for (const bucket of bucketsIn(letter.body)) {
      await gaps.report({ bucket, kind: 'loss', reason: `dead letter: ${MOVED.fault}`, seenAtMs: clock.nowMs() });
    }
    const firstReceived = new Date(letter.firstReceivedAtMs).toISOString();
    const context = { queue: '', messageId, firstReceived, records: [] };
    await updateRecord(state, refs.deadLetter(messageId), () => ({ messageId, ...MOVED, context }));
  }

  return async function tellMovedLetters(signal) {
    const queue = deadLetters();
    if (queue === undefined || queue.visible === lastVisible) return;
    await browse(
      queue.queueUrl,
      async (letters) => {
        for (const letter of letters) await tell(letter);
        return { gone: [], isEnough: false };
      },
      signal,
    );
    lastVisible = queue.visible;
  };
}

/** The buckets that a body's records name, broken ones included. */
function bucketsIn(body: string): ReadonlySet<string> {
  const unwrapped = unwrap(body);
  if (unwrapped.kind !== 'records') return new Set();
  const named = unwrapped.records.map((result) => (result.ok ? result.record.bucket : (result.bucket ?? '')));
  return new Set(named.filter(isBucketName));
}
