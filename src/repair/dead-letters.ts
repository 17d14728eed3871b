/** Dead letters: ingest sends them with their reason; people list them, send them back or discard them; and Tally notices those that SQS moved there. */
import {
  deadLetterAttributes,
  isTallys,
  letterNotes,
  letterReason,
  MESSAGE_BYTES_MAX,
  ownAttributes,
  type LetterNotes,
  bucketsNamedIn,
} from '../events/dead-letter.ts';
import { FaultError, faultOf, faults, type Fault, type FaultCode } from '../base/fault.ts';
import { RequestError } from '../base/request-error.ts';
import { type GapReports, bucketsFedBy, bucketsOfUnread, connectedBuckets } from '../observing/gaps.ts';
import type { QueueClient, QueueMessage } from '../aws/queues.ts';
import type { DeadLetterQueue, QueueWatch } from '../observing/queue-watch.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import { createLastFailure } from '../observing/readiness.ts';
import type { WithPorts } from '../store/store.ts';
import PQueue from 'p-queue';
import type { Telemetry } from '../process/telemetry.ts';
import type { QueueRecord } from '../records/receiving.ts';
import { createTakeLease } from '../store/lease.ts';

/** A letter as people see it. */
interface Letter {
  readonly id: string;
  readonly sentAtMs: number;
  readonly sizeBytes: number;
  /** What Tally knew about the message. */
  readonly notes: LetterNotes;
}

/** The named letters, or all. */
type LetterChoice = { readonly ids: readonly string[] } | { readonly all: true };

/** Each call reads at most 1,000 letters of each dead-letter queue, and throws `dead-letter.no-queue` if no such queue is known. */
export interface DeadLetters {
  /**
   * Sends the message's body to the dead-letter queue, with the fault and the positions of the records that failed. Resolves
   * when SQS has accepted it. Throws `queue.unreachable` if it cannot be sent, `queue.no-dead-letter` if no dead-letter
   * queue is known, and `message.too-large` if the dead-letter queue does not accept a body of this size.
   */
  readonly send: (message: QueueMessage, fault: Fault, records: readonly number[]) => Promise<void>;
  /** Why the last letter could not be sent; undefined if it was. */
  readonly sendFault: () => Fault | undefined;
  /** The only reader of dead-letter queues in this process, so that readings do not hide letters from each other. */
  readonly browse: BrowseLetters;
  /** About how many letters there are, as their queues were last read; undefined until then. Sends no request. */
  known(): number | undefined;
  /** Returns up to `limit` letters and removes none. */
  list(limit: number, signal?: AbortSignal): Promise<readonly Letter[]>;
  /** Returns one letter with its body. Throws `dead-letter.not-found`. */
  show(id: string, signal?: AbortSignal): Promise<Letter & { readonly body: string }>;
  /**
   * Sends the chosen letters' original bodies back to the bucket queue, then removes the letters. Letters that arrived after the call
   * began are left out: they may have been sent back and failed again. Once the others are done, throws `dead-letter.not-found`, which
   * names those that are not there.
   */
  replay(choice: LetterChoice, signal?: AbortSignal): Promise<LettersTaken>;
  /**
   * Removes the chosen letters. If SQS moved a letter and no worker has reported it yet, first opens gaps of the buckets that it may be
   * about. Throws as replay does.
   */
  discard(choice: LetterChoice, signal?: AbortSignal): Promise<LettersTaken>;
}

/** What a call did. `remaining`: about how many letters the queues hold afterwards, as SQS counts them. */
export interface LettersTaken {
  readonly count: number;
  readonly remaining: number;
}

interface DeadLetterDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly queues: QueueClient;
  readonly gaps: Pick<GapReports, 'report'>;
  readonly queueWatch: Pick<QueueWatch, 'deadLetterQueues' | 'deadLetterQueueOf'>;
  /** The queues to which letters may be sent back. The first one gets letters of unknown origin. */
  readonly bucketQueueUrls: readonly string[];
}

/** Handles letters of one queue. Returns those that are done. */
type Act = (letters: readonly QueueMessage[]) => Promise<readonly QueueMessage[]>;

/** Creates the functions on dead letters. */
export function createDeadLetters(dependencies: DeadLetterDependencies): DeadLetters {
  const { queues, telemetry, queueWatch } = dependencies;
  /** By dead-letter queue: why letters cannot be sent. */
  const sending = createLastFailure(dependencies.clock);
  const browse = createLetterBrowser(dependencies);

  const send: DeadLetters['send'] = async (message, fault, records) => {
    const queue = queueWatch.deadLetterQueueOf(message.queueUrl);
    if (queue === undefined) throw new FaultError('queue.no-dead-letter', `no dead-letter queue is known for ${message.queueUrl}`);
    refuseUnfit(message, queue);
    const { body, attributes: own, messageId } = message;
    const firstReceived = new Date(message.firstReceivedAtMs).toISOString();
    const context = { queue: message.queueUrl, messageId, firstReceived, records: [...records] };
    const attributes = deadLetterAttributes({ body, attributes: own, fault, context }, bytesMaxOf(queue));
    try {
      await queues.send(queue.queueUrl, { body, attributes });
      sending.succeeded(queue.queueUrl);
    } catch (error) {
      sending.failed(queue.queueUrl, faultOf(error));
      throw error;
    }
    telemetry.count('tally_dead_letters_total', 1, { fault: fault.code });
    // the body is never logged
    telemetry.error('message dead-lettered', {
      code: fault.code,
      reason: letterReason(fault),
      messageId,
      advice: faults[fault.code].advice,
    });
  };

  const list: DeadLetters['list'] = async (limit, signal) => {
    const letters = new Map<string, Letter>();
    await look(async (batch) => {
      for (const letter of batch.map(describe)) letters.set(letter.id, letter);
      return { gone: [], isEnough: letters.size >= limit };
    }, signal);
    return [...letters.values()].slice(0, limit);
  };

  const show: DeadLetters['show'] = async (id, signal) => {
    let found: QueueMessage | undefined;
    await look(async (batch) => {
      found ??= batch.find(({ messageId }) => messageId === id);
      return { gone: [], isEnough: found !== undefined };
    }, signal);
    if (found === undefined) throw notFound([id]);
    return { ...describe(found), body: found.body };
  };

  /** Handles the named letters, or all that are there now. `act` returns those of its letters that are done. */
  async function take(choice: LetterChoice, act: Act, signal?: AbortSignal): Promise<LettersTaken> {
    const wanted = new Set('all' in choice ? (await list(LETTERS_MAX, signal)).map(({ id }) => id) : choice.ids);
    // there may be more, and SQS shows them in any order: whichever it shows are taken
    const isAny = 'all' in choice && wanted.size === LETTERS_MAX;
    let count = 0;
    const visit: Visit = async (batch) => {
      const chosen = batch.filter(({ messageId }) => wanted.delete(messageId) || isAny).slice(0, LETTERS_MAX - count);
      const done = chosen.length === 0 ? [] : await act(chosen);
      count += done.length;
      return { gone: done, isEnough: count === LETTERS_MAX || wanted.size === 0 };
    };
    if (wanted.size > 0) await look(visit, signal);
    if ('ids' in choice && wanted.size > 0) throw notFound([...wanted], count);
    return { count, remaining: await remaining(signal) };
  }

  async function remaining(signal: AbortSignal | undefined): Promise<number> {
    const all = await Promise.all(queueWatch.deadLetterQueues().map(({ queueUrl }) => queues.attributes(queueUrl, signal)));
    return all.reduce((sum, { visible, inFlight }) => sum + visible + inFlight, 0);
  }

  /** Reads the dead-letter queues one after the other until the visitor has seen enough. */
  async function look(visit: Visit, signal: AbortSignal | undefined): Promise<void> {
    const all = queueWatch.deadLetterQueues();
    if (all.length === 0)
      throw new RequestError(
        'dead-letter.no-queue',
        'no dead-letter queue is known: set TALLY_DEAD_LETTER_QUEUE_URL, or give the bucket queue a redrive policy',
      );
    for (const { queueUrl } of all) if (await browse(queueUrl, visit, signal)) return;
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
    const { context } = letterNotes(letter.attributes);
    const origin = dependencies.bucketQueueUrls.find((queueUrl) => queueUrl === context?.queue);
    const queueUrl = origin ?? sourcesOf(letter, queueWatch)[0] ?? dependencies.bucketQueueUrls[0];
    if (queueUrl === undefined)
      throw new RequestError('dead-letter.no-queue', 'no bucket queue is known to send letters back to: set TALLY_QUEUE_URL');
    await queues.send(queueUrl, { body: letter.body, attributes: ownAttributes(letter.attributes) });
  }

  async function remove(letters: readonly QueueMessage[]): Promise<readonly QueueMessage[]> {
    // all letters of one visit are from the same queue
    const queueUrl = letters[0]?.queueUrl;
    if (queueUrl === undefined) return [];
    const handles = letters.map(({ receiptHandle }) => receiptHandle);
    const failures = await queues.deleteBatch(queueUrl, handles);
    for (const { code } of failures) telemetry.warn('SQS did not delete a dead letter', { code });
    return letters.filter(({ receiptHandle }) => failures.every((failure) => failure.receiptHandle !== receiptHandle));
  }

  return {
    send,
    sendFault: () => sending.current(),
    browse,
    known() {
      const read = queueWatch.deadLetterQueues().filter(({ attributes }) => attributes !== undefined);
      return read.length === 0 ? undefined : read.reduce((sum, queue) => sum + lettersIn(queue), 0);
    },
    list,
    show,
    replay: (choice, signal) => take(choice, sendBack, signal),
    discard(choice, signal) {
      const reportLosses = createLossReports(dependencies);
      // a crash in between leaves one gap too many, never one too few
      const discard: Act = async (letters) => {
        for (const letter of letters) await reportLosses(await unreportedOf(letter, dependencies), letter);
        return remove(letters);
      };
      return take(choice, discard, signal);
    },
  };
}

function bytesMaxOf({ attributes }: DeadLetterQueue): number {
  return Math.min(MESSAGE_BYTES_MAX, attributes?.messageBytesMax ?? Infinity);
}

/** How many letters the queue holds, including hidden ones, as last read. */
function lettersIn({ attributes }: DeadLetterQueue): number {
  return (attributes?.visible ?? 0) + (attributes?.inFlight ?? 0);
}

/** Throws for a message that SQS would not accept in the dead-letter queue. */
function refuseUnfit({ messageId, queueUrl, body }: QueueMessage, queue: DeadLetterQueue): void {
  const sizeBytes = Buffer.byteLength(body);
  const bytesMax = bytesMaxOf(queue);
  if (sizeBytes <= bytesMax) return;
  throw new FaultError(
    'message.too-large',
    `message ${messageId} of ${queueUrl} has ${sizeBytes} bytes, but its dead-letter queue ${queue.queueUrl} accepts ${bytesMax} at most`,
  );
}

function describe({ messageId: id, sentAtMs, body, attributes }: QueueMessage): Letter {
  return { id, sentAtMs, sizeBytes: Buffer.byteLength(body), notes: letterNotes(attributes) };
}

/** The bucket queues from which SQS moves messages to the letter's queue. */
function sourcesOf(letter: QueueMessage, queueWatch: DeadLetterDependencies['queueWatch']): readonly string[] {
  return queueWatch.deadLetterQueues().find(({ queueUrl }) => queueUrl === letter.queueUrl)?.bucketQueueUrls ?? [];
}

/** The buckets that the letter may be about, if no gap is stored for it yet. */
async function unreportedOf(letter: QueueMessage, dependencies: DeadLetterDependencies): Promise<readonly string[]> {
  if (isTallys(letter.attributes)) return [];
  const record = await readRecord(dependencies.state, refs.queue(letter.queueUrl));
  if (record?.moved?.includes(letter.messageId) === true) return [];
  return bucketsOfUnread(letter.body, sourcesOf(letter, dependencies.queueWatch), dependencies);
}

function notFound(ids: readonly string[], others = 0): RequestError {
  const names = ids.slice(0, 5).map((id) => id.slice(0, 128));
  return new RequestError(
    'dead-letter.not-found',
    `these letters are not in the dead-letter queue, or another reader has received them: ${names.join(', ')}${others === 0 ? '' : `; the other ${others} are done`}`,
  );
}

// ── reading a queue without removing messages. SQS can only receive, so letters that were read are hidden for 30 s, and given back at
// the end. Two simultaneous readers would each see a part of the letters, so a process reads one queue at a time; another process can
// still hide letters from it ─────────────────────────────────────────────────────────────────────────────────────────────

/** As long as one reading may take. If the process is killed meanwhile, the letters stay hidden no longer than this. */
const HIDDEN_S = 30;
/** The most letters of one reading, which takes some 200 requests and a few seconds, and ends long before the first letters are visible again. Memory holds only their ids, never their bodies. */
export const LETTERS_MAX = 1_000;
const BATCH_MAX = 10;
/** A short poll asks only some of SQS's servers, so one empty answer does not mean that the queue is empty. */
const QUIET_ROUNDS_MAX = 3;

/** Gets up to ten letters that it has not seen yet. Returns which of them it removed, and whether it has seen enough. */
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
        // also for a letter that was received again, because only its newest receipt handle is valid
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
      // the letters become visible again anyway
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

// ── the watch of letters that SQS moved, or that a source could not deliver. Their events may never have been indexed, so the buckets
// that the body names get gaps, or else all of the queue's buckets. Tally's own letters carry its attributes, and their gaps were
// stored before they were sent ───────────────────────────────────────────────────────────────────────────────────────────

/**
 * How often a queue is read even if its number of letters is unchanged, because one letter may have been removed while another was
 * moved there. This bounds how late such a letter is found; 1,000 letters cost all workers together some 30,000 requests a day.
 */
const READ_EVERY_MS = 600_000;
/** Each reading counts as a receive, so frequent readings would drain a dead-letter queue that itself has a redrive policy. */
const READ_REDRIVEN_EVERY_MS = 86_400_000;
/** Letters that cannot be read, or name no bucket, cost their queue's buckets at most one re-index a day. */
const ALL_EVERY_MS = 86_400_000;

interface LetterWatchDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly browse: BrowseLetters;
  readonly gaps: Pick<GapReports, 'report'>;
  readonly deadLetterQueues: () => readonly DeadLetterQueue[];
  readonly bucketQueueUrls: readonly string[];
}

/**
 * Creates the watch, which is called often but reads seldom: one worker reads a dead-letter queue when its number of letters has
 * changed, and every ten minutes. A failure is reported, and a later call continues.
 */
export function createLetterWatch(dependencies: LetterWatchDependencies): (signal: AbortSignal) => Promise<void> {
  const { browse, state, clock, telemetry, deadLetterQueues, bucketQueueUrls } = dependencies;
  const takeLease = createTakeLease({ state, clock });

  async function look(queue: DeadLetterQueue, letters: number, signal: AbortSignal): Promise<void> {
    if (!isDue(queue, letters, await readRecord(state, refs.queue(queue.queueUrl), signal))) return;
    const lease = await takeLease(`letters:${queue.queueUrl}`, signal);
    if (lease === undefined) return;
    // two simultaneous readers do no harm: they report a gap twice
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
    // another reader may hide letters, so known ones are remembered. Letters without a name are left for a later day
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
      // hidden letters count, because another reader has them only for seconds
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

/**
 * Creates the function that opens gaps for the letters of one reading. It remembers its reports, because a bucket's report covers all
 * letters sent before it, and each report costs a write. Throws the store's fault.
 */
function createLossReports({ clock, gaps }: WithPorts<'clock'> & { readonly gaps: Pick<GapReports, 'report'> }) {
  const reportedMs = new Map<string, number>();

  return async function reportLosses(buckets: readonly string[], { sentAtMs }: Pick<QueueMessage, 'sentAtMs'>): Promise<void> {
    const due = buckets.filter((bucket) => (reportedMs.get(bucket) ?? -Infinity) < sentAtMs);
    // never before the event by SQS's clock: if this machine's clock is slow, an earlier reconcile would close the gap
    const seenAtMs = Math.max(clock.nowMs(), sentAtMs);
    await Promise.all(due.map((bucket) => gaps.report({ bucket, kind: 'loss', reason: `dead letter: ${MOVED}`, seenAtMs })));
    for (const bucket of due) reportedMs.set(bucket, seenAtMs);
  };
}

const MOVED = 'message.moved' satisfies FaultCode;
