/**
 * Notices that SQS may have deleted messages because they were older than the queue's retention: a message is received for
 * the first time when its retention is almost over, or no worker has received from the queue for almost that long. Each outage
 * opens one `loss` gap for each of the queue's buckets:
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

/** The share of the retention after which losses are likely: SQS now deletes messages sent only a little earlier than this one. */
const RETENTION_PART = 0.9;
/**
 * One report covers the messages that expire within half of the retention after it, because they were sent long before it. So a
 * backlog that takes hours to work off is reported once.
 */
const REPORT_PART = 0.5;
/** How often the time of a queue's last receive is stored: SQS's shortest retention is a minute, and usual ones are days. */
const STORE_EVERY_MS = 60_000;
/** When to try again after the store failed. */
const RETRY_MS = 5_000;

export interface ExpiredMessages {
  /** Notes that SQS answered a receive of this queue. The rest happens in the background. */
  polled(queueUrl: string): void;
  /**
   * Checks received messages. Usually returns undefined; if one of them shows a loss, a promise that resolves when the gaps are
   * stored, or when that failed and the next receive will try again. Never rejects.
   */
  received(messages: readonly QueueMessage[]): Promise<void> | undefined;
}

interface ExpiredDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly gaps: Pick<GapReports, 'report'>;
  /** While a queue's retention is unknown, nothing is concluded about it. */
  readonly queueWatch: Pick<QueueWatch, 'retentionMs'>;
  readonly bucketQueueUrls: readonly string[];
}

interface QueueMemory {
  /** When to store the record next, by the monotonic clock. */
  storeAtMs: number;
  /** Whether an old message was received whose gap is not stored yet. */
  isOwed: boolean;
  /** Until when a report covers old messages, by the monotonic clock. */
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
    const sinceReceivedMs = nowMs - (record?.receivedAtMs ?? nowMs);
    const isLoss =
      keptMs !== undefined && (queue.isOwed || sinceReceivedMs > keptMs * RETENTION_PART) && !isReported(record, keptMs, nowMs);
    if (isLoss) await reportLoss(queueUrl, nowMs);
    await updateRecord(state, refs.queue(queueUrl), (current) => ({
      ...current,
      queueUrl,
      // not the later of the two: a time stored by a fast clock would hide the next outage
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
      // a running check may have begun before this message was noted
      return (queue.running ?? Promise.resolve()).then(() => check(old.queueUrl, queue));
    },
  };
}

function isReported(record: QueueRecord | undefined, retentionMs: number, nowMs: number): boolean {
  return record?.expiredAtMs !== undefined && Math.abs(nowMs - record.expiredAtMs) < retentionMs * REPORT_PART;
}
