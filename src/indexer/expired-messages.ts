/**
 * Notices that SQS may have deleted messages because they were older than the queue's retention: a message is received for
 * the first time when its retention is almost over, or no worker had received from the queue for as long. Then a `loss` gap of
 * the queue's buckets is opened, once per outage:
 *
 *   receiving ──a minute──► the time of the last receive is stored ──► receiving
 *       │ an old message, or a stored time that is too old
 *       └──► gaps stored ──► time and report stored ──► receiving
 */
import type { QueueRecord } from '../records/queue-record.ts';
import type { QueueMessage } from '../aws/queues.ts';
import type { QueueWatch } from '../observing/queue-watch.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import { bucketsFedBy, type GapReports } from '../observing/gaps.ts';
import type { WithPorts } from '../store/store.ts';

/** The part of the retention that may pass: what SQS deletes now was sent only a little earlier than this message. */
const RETENTION_PART = 0.9;
/**
 * One report covers the messages that expire within half of the retention after it, since they were sent long before it. So a
 * backlog that is worked off for hours is reported once.
 */
const REPORT_PART = 0.5;
/** How often a queue's time of receiving is stored: the shortest retention of SQS is a minute, the usual ones are days. */
const STORE_EVERY_MS = 60_000;
/** The next attempt after the store failed. */
const RETRY_MS = 5_000;

export interface ExpiredMessages {
  /** SQS answered a receive of this queue. What follows from it is done in the background. */
  polled(queueUrl: string): void;
  /**
   * Messages were received. Returns undefined if nothing follows from it, as is usual; else a promise that resolves when the
   * gaps are stored, or when that has failed and will be tried again at the next receive. It never rejects.
   */
  received(messages: readonly QueueMessage[]): Promise<void> | undefined;
}

interface ExpiredDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly gaps: Pick<GapReports, 'report'>;
  /** While a retention is not known, nothing is concluded. */
  readonly queueWatch: Pick<QueueWatch, 'retentionMs'>;
  readonly bucketQueueUrls: readonly string[];
}

interface QueueMemory {
  /** When the record is to be stored next, by the monotonic clock. */
  storeAtMs: number;
  /** An old message was received, and no gap is stored for it yet. */
  isOwed: boolean;
  /** Until then old messages are covered by a report, by the monotonic clock. */
  coveredUntilMs: number;
  running: Promise<void> | undefined;
}

/** Creates the watch. Its memory has one entry for each bucket queue. */
export function createExpiredMessages(dependencies: ExpiredDependencies): ExpiredMessages {
  const { state, gaps, clock, telemetry, queueWatch, bucketQueueUrls } = dependencies;
  const memory = new Map<string, QueueMemory>();

  function memoryOf(queueUrl: string): QueueMemory {
    const known = memory.get(queueUrl);
    if (known !== undefined) return known;
    const fresh = { storeAtMs: 0, isOwed: false, coveredUntilMs: 0, running: undefined };
    memory.set(queueUrl, fresh);
    return fresh;
  }

  /** One check of a queue at a time. */
  function check(queueUrl: string, queue: QueueMemory): Promise<void> {
    queue.running ??= checkNow(queueUrl, queue)
      .catch((error: unknown) => {
        telemetry.requestFailed('store when a queue was last received from', error);
        queue.storeAtMs = clock.monotonicMs() + RETRY_MS;
      })
      .finally(() => {
        queue.running = undefined;
      });
    return queue.running;
  }

  async function checkNow(queueUrl: string, queue: QueueMemory): Promise<void> {
    const keptMs = queueWatch.retentionMs(queueUrl);
    const nowMs = clock.nowMs();
    const record = await readRecord(state, refs.queue(queueUrl));
    const silentMs = nowMs - (record?.receivedAtMs ?? nowMs);
    const isLoss = keptMs !== undefined && (queue.isOwed || silentMs > keptMs * RETENTION_PART) && !isReported(record, keptMs, nowMs);
    if (isLoss) await reportLoss(queueUrl, nowMs);
    await updateRecord(state, refs.queue(queueUrl), (current) => ({
      ...current,
      queueUrl,
      // not the later of two: a time that a fast clock stored would hide the next outage
      receivedAtMs: nowMs,
      ...(isLoss && { expiredAtMs: nowMs }),
    }));
    if (queue.isOwed) queue.coveredUntilMs = clock.monotonicMs() + (keptMs ?? 0) * REPORT_PART;
    queue.isOwed = false;
    queue.storeAtMs = clock.monotonicMs() + STORE_EVERY_MS;
  }

  async function reportLoss(queueUrl: string, nowMs: number): Promise<void> {
    const reason = 'messages may have expired in the bucket queue before they were received';
    const buckets = await bucketsFedBy(state, { queueUrls: [queueUrl], bucketQueueUrls, nowMs });
    await Promise.all(buckets.map((bucket) => gaps.report({ bucket, kind: 'loss', reason, seenAtMs: nowMs })));
  }

  function isOld({ queueUrl, receiveCount, sentAtMs, firstReceivedAtMs }: QueueMessage): boolean {
    const keptMs = queueWatch.retentionMs(queueUrl);
    // both times are by the clock of SQS
    return receiveCount === 1 && keptMs !== undefined && firstReceivedAtMs - sentAtMs > keptMs * RETENTION_PART;
  }

  return {
    polled(queueUrl) {
      const queue = memoryOf(queueUrl);
      if (queue.running === undefined && clock.monotonicMs() >= queue.storeAtMs) void check(queueUrl, queue);
    },
    received(messages) {
      const old = messages.find(isOld);
      if (old === undefined) return undefined;
      const queue = memoryOf(old.queueUrl);
      if (queue.isOwed || clock.monotonicMs() < queue.coveredUntilMs) return queue.running;
      queue.isOwed = true;
      queue.storeAtMs = 0;
      // a check that is running may have begun without knowing of this message
      return (queue.running ?? Promise.resolve()).then(() => check(old.queueUrl, queue));
    },
  };
}

function isReported(record: QueueRecord | undefined, retentionMs: number, nowMs: number): boolean {
  return record?.expiredAtMs !== undefined && Math.abs(nowMs - record.expiredAtMs) < retentionMs * REPORT_PART;
}
