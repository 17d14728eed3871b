/**
 * Opens `loss` gaps (rule 4) for the letters that SQS itself moved to a dead-letter queue, because they were received too
 * often (a worker was killed each time, or another consumer received them): their events may never have been indexed. Every
 * letter that has no stored record counts as moved, whatever its attributes say: those may be the sender's.
 */
import { LRUCache } from 'lru-cache';
import { isBucketName } from '../../domain/bucket-name.ts';
import { unwrap } from '../../domain/events/envelope.ts';
import type { GapReport } from '../../domain/gaps/gap.ts';
import { deadLetterRecordSchema, letterNotes, type DeadLetterRecord } from '../../domain/messages/dead-letter.ts';
import { bucketsFedBy, type GapReports } from '../gaps/reports.ts';
import { LETTERS_MAX, type BrowseLetters } from './browser.ts';
import type { QueueMessage } from '../ports/queues.ts';
import type { DeadLetterQueue } from '../queues/watch.ts';
import { createTakeLease } from '../records/lease.ts';
import { parseEntry, readRecord, refs, removeRecord, updateRecord, pagesOf } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';

const MOVED = { fault: 'message.moved', reason: 'SQS moved the message after its last permitted receive' } as const;

/**
 * A queue is read this often although its number of letters is unchanged: one letter may have been removed while another was
 * moved. It bounds how late such a letter is found; 1,000 letters then cost some 30,000 requests a day for all workers together.
 */
const READ_EVERY_MS = 600_000;
/** Each reading counts as a receive. A dead-letter queue that has a redrive policy itself would lose its letters by frequent readings. */
const READ_REDRIVEN_EVERY_MS = 86_400_000;
/** More letters than can be read cost their buckets one re-index a day. */
const OVERFLOW_EVERY_MS = 86_400_000;
/** Tally stores the record of its letter after the letter was sent. */
const RECORD_LATE_MS = 60_000;
/** A record is younger than this when its letter may be too new to have been read. */
const RECORD_NEW_MS = 3_600_000;
/** The longest retention of SQS, and a day for clocks that differ. */
const RECORD_LIFE_MS = 15 * 86_400_000;
/** How many letters are remembered, so that their records are not read again each time: several full readings. */
const KNOWN_MAX = 10_000;

interface LettersMovedBySqsDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly browse: BrowseLetters;
  readonly gaps: GapReports;
  readonly deadLetterQueues: () => readonly DeadLetterQueue[];
  readonly bucketQueueUrls: readonly string[];
}

/**
 * Creates the search for letters that SQS moved, which is called often and seldom reads: a dead-letter queue is read by one of all
 * workers when its number of letters has changed, and every ten minutes. Each of them is reported once. If a queue has
 * more than 1,000 letters, a gap of all its buckets is opened instead, at most once a day. The search also removes the records
 * of letters that are gone. A failure is reported, and the rest follows with a later call.
 */
export function createLettersMovedBySqs(dependencies: LettersMovedBySqsDependencies): (signal: AbortSignal) => Promise<void> {
  const { browse, state, gaps, clock, telemetry, deadLetterQueues, bucketQueueUrls } = dependencies;
  const known = new LRUCache<string, true>({ max: KNOWN_MAX });
  const takeLease = createTakeLease({ state, clock });

  async function look(queue: DeadLetterQueue, letters: number, signal: AbortSignal): Promise<void> {
    if (letters > LETTERS_MAX) return reportOverflow(queue, letters);
    if (!(await isDue(queue, letters, signal))) return;
    const lease = await takeLease(`letters:${queue.queueUrl}`, signal);
    if (lease === undefined) return;
    // two readers at once do no harm: each letter has one record
    try {
      await read(queue, letters, signal);
    } finally {
      await lease.release();
    }
  }

  async function read(queue: DeadLetterQueue, letters: number, signal: AbortSignal): Promise<void> {
    const seen = new Set<string>();
    const visit = async (batch: readonly QueueMessage[]) => {
      for (const letter of batch) {
        seen.add(letter.messageId);
        await report(letter);
      }
      return { gone: [], isEnough: false };
    };
    if (letters > 0) await browse(queue.queueUrl, visit, signal);
    await removeRecords(({ messageId, queueUrl, keptAtMs = 0 }) => {
      const isOfQueue = queueUrl === queue.queueUrl && clock.nowMs() - keptAtMs > RECORD_NEW_MS;
      // if not all letters were seen, the record may be that of one of the others
      return isOfQueue && seen.size >= letters && !seen.has(messageId);
    });
    await updateRecord(state, refs.queue(queue.queueUrl), (current) => ({
      ...current,
      queueUrl: queue.queueUrl,
      letters,
      readAtMs: clock.nowMs(),
    }));
  }

  async function isDue({ queueUrl, attributes }: DeadLetterQueue, letters: number, signal: AbortSignal): Promise<boolean> {
    const current = await readRecord(state, refs.queue(queueUrl), signal);
    const everyMs = attributes?.maxReceiveCount === undefined ? READ_EVERY_MS : READ_REDRIVEN_EVERY_MS;
    // a time in the future was stored by a wrong clock
    return current?.readAtMs === undefined || letters !== current.letters || Math.abs(clock.nowMs() - current.readAtMs) >= everyMs;
  }

  async function report(letter: QueueMessage): Promise<void> {
    const { messageId, queueUrl, sentAtMs } = letter;
    if (known.has(messageId)) return;
    const ref = refs.deadLetter(messageId);
    if ((await readRecord(state, ref)) === undefined) {
      const isOursPerhaps = letterNotes(letter.attributes).fault !== undefined;
      if (isOursPerhaps && clock.nowMs() - sentAtMs < RECORD_LATE_MS) return;
      await Promise.all(lossesOf(letter, clock.nowMs()).map((loss) => gaps.report(loss)));
      const firstReceived = new Date(letter.firstReceivedAtMs).toISOString();
      const context = { queue: '', messageId, firstReceived, records: [] };
      await updateRecord(state, ref, () => ({ messageId, ...MOVED, context, queueUrl, keptAtMs: clock.nowMs() }));
    }
    known.set(messageId, true);
  }

  async function reportOverflow({ queueUrl, bucketQueueUrls: sources }: DeadLetterQueue, letters: number): Promise<void> {
    const nowMs = clock.nowMs();
    const { overflowAtMs = -Infinity } = (await readRecord(state, refs.queue(queueUrl))) ?? {};
    if (Math.abs(nowMs - overflowAtMs) < OVERFLOW_EVERY_MS) return;
    const reason = `the dead-letter queue holds ${letters} letters, too many to find those that SQS moved`;
    const buckets = await bucketsFedBy(state, { queueUrls: sources, bucketQueueUrls, nowMs });
    await Promise.all(buckets.map((bucket) => gaps.report({ bucket, kind: 'loss', reason, seenAtMs: nowMs })));
    await updateRecord(state, refs.queue(queueUrl), (current) => ({ ...current, queueUrl, overflowAtMs: nowMs }));
    await removeRecords(() => false);
  }

  /** Removes the records that `isGone` names, and those that are older than any letter can be. */
  async function removeRecords(isGone: (record: DeadLetterRecord) => boolean): Promise<void> {
    for await (const page of pagesOf(state, 'dead-letter'))
      for (const entry of page) {
        const record = parseEntry(entry, deadLetterRecordSchema);
        const { keptAtMs = Date.parse(record.context.firstReceived) } = record;
        if (isGone(record) || clock.nowMs() - keptAtMs > RECORD_LIFE_MS) await removeRecord(state, entry.id);
      }
  }

  return async function reportLettersMovedBySqs(signal) {
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

/** The losses that a letter stands for which SQS moved: one of each bucket that its body names. */
export function lossesOf({ body, sentAtMs }: QueueMessage, nowMs: number): readonly GapReport[] {
  const facts = { kind: 'loss', reason: `dead letter: ${MOVED.fault}`, seenAtMs: Math.max(nowMs, sentAtMs) } as const;
  return [...bucketsIn(body)].map((bucket) => ({ bucket, ...facts }));
}

/** Returns the buckets that the records of a body name, also those of records that could not be read. */
function bucketsIn(body: string): ReadonlySet<string> {
  const unwrapped = unwrap(body);
  if (unwrapped.kind !== 'records') return new Set();
  const named = unwrapped.records.map((result) => (result.ok ? result.record.bucket : (result.bucket ?? '')));
  return new Set(named.filter(isBucketName));
}
