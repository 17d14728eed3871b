/**
 * Watches the dead-letter queues for what SQS moved there, or a source could not deliver: its events may never have been indexed,
 * so gaps are opened of the buckets that its body names, else of all buckets of the queue. Tally's own letters carry its
 * attributes, and their gaps were stored before they were sent.
 */
import { bucketsNamedIn, isTallys } from '../events/dead-letter.ts';
import type { QueueRecord } from '../records/queue-record.ts';
import { bucketsFedBy, type GapReports } from '../observing/reports.ts';
import { LETTERS_MAX, type BrowseLetters } from './letter-browser.ts';
import { connectedBuckets, createLossReports } from '../observing/losses.ts';
import type { QueueMessage } from '../aws/queues.ts';
import type { DeadLetterQueue } from '../observing/queue-watch.ts';
import { createTakeLease } from '../store/lease.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import type { WithPorts } from '../store/store.ts';

/**
 * A queue is read this often although its number of letters is unchanged: one letter may have been removed while another was
 * moved. It bounds how late such a letter is found; 1,000 letters then cost some 30,000 requests a day for all workers together.
 */
const READ_EVERY_MS = 600_000;
/** Each reading counts as a receive. A dead-letter queue that has a redrive policy itself would lose its letters by frequent readings. */
const READ_REDRIVEN_EVERY_MS = 86_400_000;
/** Letters that cannot be read, or that name no bucket, cost the buckets of their queue one re-index a day. */
const ALL_EVERY_MS = 86_400_000;

interface LetterWatchDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly browse: BrowseLetters;
  readonly gaps: Pick<GapReports, 'report'>;
  readonly deadLetterQueues: () => readonly DeadLetterQueue[];
  readonly bucketQueueUrls: readonly string[];
}

/**
 * Creates the watch, which is called often and seldom reads: a dead-letter queue is read by one of all workers when its number of
 * letters has changed, and every ten minutes. A failure is reported, and the rest follows with a later call.
 */
export function createLetterWatch(dependencies: LetterWatchDependencies): (signal: AbortSignal) => Promise<void> {
  const { browse, state, clock, telemetry, deadLetterQueues, bucketQueueUrls } = dependencies;
  const takeLease = createTakeLease({ state, clock });

  async function look(queue: DeadLetterQueue, letters: number, signal: AbortSignal): Promise<void> {
    if (!isDue(queue, letters, await readRecord(state, refs.queue(queue.queueUrl), signal))) return;
    const lease = await takeLease(`letters:${queue.queueUrl}`, signal);
    if (lease === undefined) return;
    // two readers at once do no harm: a gap is reported twice
    try {
      await read(queue, letters, signal);
    } finally {
      await lease.release();
    }
  }

  function isDue({ attributes }: DeadLetterQueue, letters: number, known: QueueRecord | undefined): boolean {
    const everyMs = attributes?.maxReceiveCount === undefined ? READ_EVERY_MS : READ_REDRIVEN_EVERY_MS;
    // a time in the future was stored by a wrong clock
    return known?.readAtMs === undefined || letters !== known.letters || Math.abs(clock.nowMs() - known.readAtMs) >= everyMs;
  }

  async function read({ queueUrl, bucketQueueUrls: sources }: DeadLetterQueue, letters: number, signal: AbortSignal): Promise<void> {
    const ref = refs.queue(queueUrl);
    const { moved = [], allAtMs = -Infinity } = (await readRecord(state, ref)) ?? {};
    const known = new Set(moved);
    const connected = await connectedBuckets(state);
    const reportLosses = createLossReports(dependencies);
    const present = new Set<string>();
    const nameless = new Set<string>();
    let seen = 0;
    const visit = async (batch: readonly QueueMessage[]) => {
      seen += batch.length;
      for (const letter of batch) {
        if (isTallys(letter.attributes)) continue;
        present.add(letter.messageId);
        if (known.has(letter.messageId)) continue;
        const named = bucketsNamedIn(letter.body, connected);
        if (named.length === 0) nameless.add(letter.messageId);
        await reportLosses(named, letter);
      }
      return { gone: [], isEnough: false };
    };
    const canRead = letters <= LETTERS_MAX;
    if (canRead && letters > 0) await browse(queueUrl, visit, signal);
    const nowMs = clock.nowMs();
    const isAll = (!canRead || nameless.size > 0) && Math.abs(nowMs - allAtMs) >= ALL_EVERY_MS;
    if (isAll) {
      await reportLosses(await bucketsFedBy(state, { queueUrls: sources, bucketQueueUrls, nowMs }), { sentAtMs: nowMs });
      nameless.clear();
    }
    // another reader may hide letters: what was reported of them is remembered. What names no bucket waits for its day
    const all = seen < letters ? known.union(present) : present;
    const reported = [...all.difference(nameless)].slice(-LETTERS_MAX);
    await updateRecord(state, ref, (current) => ({
      ...current,
      queueUrl,
      letters,
      readAtMs: clock.nowMs(),
      moved: reported,
      ...(isAll && { allAtMs: nowMs }),
    }));
  }

  return async function watchLetters(signal) {
    for (const queue of deadLetterQueues()) {
      const { attributes } = queue;
      // hidden letters count: another reader has them only for seconds
      if (attributes === undefined) continue;
      try {
        await look(queue, attributes.visible + attributes.inFlight, signal);
      } catch (error) {
        signal.throwIfAborted();
        telemetry.requestFailed('look for letters that SQS moved', error);
      }
    }
  };
}
