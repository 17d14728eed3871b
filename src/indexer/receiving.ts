/**
 * Decides when messages are received: not during back-pressure or an outage, and not while no bucket is connected. What is received,
 * or no longer received, shows which messages SQS may have deleted.
 */
import { faultOf } from '../base/fault.ts';
import type { Circuits } from '../observing/circuits.ts';
import type { HeldSet } from './held-set.ts';
import type { WithPorts } from '../store/store.ts';
import type { LabelsOf } from '../process/telemetry.ts';
import type { QueueWatch } from '../observing/queue-watch.ts';
import type { QueueRecord } from '../records/receiving.ts';
import type { QueueMessage } from '../aws/queues.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import { bucketsFedBy, type GapReports } from '../observing/gaps.ts';

/** How soon a condition that holds receiving back is checked again. */
const CHECK_AGAIN_MS = 200;
/** How long Tally relies on having read that some bucket is connected, or none; the store is read at most this often. */
const BUCKETS_AGE_MAX_MS = 5_000;

type ReceivingState = LabelsOf<'tally_receiving'>['state'];

export interface Admission {
  /** Resolves when a receive may begin; rejects with the signal's reason. */
  admit(signal: AbortSignal): Promise<void>;
  /** Why the last receive was held back, or failed; `on` if neither. */
  readonly state: ReceivingState;
  /** For how long receives have been held back; 0 if they are not. */
  readonly heldBackMs: () => number;
}

interface AdmissionDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly circuits: Pick<Circuits, 'openOf' | 'clusterFailed'>;
  readonly held: HeldSet;
  readonly queueWatch: QueueWatch;
  readonly inFlightMax: number;
  /** Whether the last receive of a queue failed. */
  readonly isFailing: () => boolean;
}

/** Creates the admission. */
export function createAdmission(dependencies: AdmissionDependencies): Admission {
  const { circuits, held, queueWatch, state: store, clock, telemetry, inFlightMax, isFailing } = dependencies;
  /** Undefined until the first receive, so that the first state is always reported. */
  let state: ReceivingState | undefined;
  let buckets: { readonly any: boolean; readonly atMs: number } | undefined;
  let reading: Promise<boolean> | undefined;
  /** The store could not say whether a bucket is connected. */
  let isUnknown = false;
  /** Since when receives are held back, by the monotonic clock. */
  let heldBackSinceMs: number | undefined;

  /** Only the index store as a whole holds receiving back: whatever else fails, other buckets' messages must be received. */
  function isPaused(): boolean {
    return circuits.openOf(['cluster']) !== undefined;
  }

  async function decide(): Promise<ReceivingState> {
    if (isPaused()) return 'paused';
    if (held.isFull) return 'held-full';
    if (queueWatch.inFlight > inFlightMax) return 'in-flight-cap';
    if (!(await anyBucket())) return isPaused() || isUnknown ? 'paused' : 'no-bucket';
    // the store may have failed while this poller waited
    return isPaused() ? 'paused' : 'on';
  }

  /** Whether any bucket is connected. Without one nothing is received, so that a mistyped index prefix can't drain the queue. */
  async function anyBucket(): Promise<boolean> {
    if (buckets !== undefined && clock.monotonicMs() - buckets.atMs < BUCKETS_AGE_MAX_MS) return buckets.any;
    reading ??= readAny().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  async function readAny(): Promise<boolean> {
    try {
      const any = (await store.list('bucket', { limit: 1 })).length > 0;
      buckets = { any, atMs: clock.monotonicMs() };
      isUnknown = false;
      return any;
    } catch (error) {
      circuits.clusterFailed(faultOf(error));
      isUnknown = true;
      return false;
    }
  }

  function report(next: ReceivingState): void {
    if (next === state) return;
    state = next;
    telemetry.setCounts('tally_receiving', [{ state }]);
    telemetry.info('the state of receiving changed', { state });
  }

  return {
    async admit(signal) {
      for (;;) {
        signal.throwIfAborted();
        const decided = await decide();
        report(decided === 'on' && isFailing() ? 'failing' : decided);
        heldBackSinceMs = decided === 'on' ? undefined : (heldBackSinceMs ?? clock.monotonicMs());
        if (decided === 'on') return;
        await clock.sleep(CHECK_AGAIN_MS, signal);
      }
    },
    get state() {
      return state ?? 'on';
    },
    heldBackMs: () => (heldBackSinceMs === undefined ? 0 : clock.monotonicMs() - heldBackSinceMs),
  };
}

// ── messages that may have expired before they were received ───────────────────────────────────────────────────────

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

/**
 * Notices that SQS may have deleted messages because they were older than the queue's retention: a message is received for
 * the first time when its retention is almost over, or no worker has received from the queue for almost that long. Each outage
 * opens one `loss` gap for each of the queue's buckets:
 *
 *   receiving ──a minute──► the time of the last receive is stored ──► receiving
 *       │ an old message, or a stored time that is too old
 *       └──► gaps stored ──► time and report stored ──► receiving
 *
 * Its memory has one entry for each bucket queue.
 */
export function createExpiredMessages(dependencies: ExpiredDependencies) {
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
    /** Notes that SQS answered a receive of this queue. The rest happens in the background. */
    polled(queueUrl: string): void {
      const queue = memoryOf(queueUrl);
      if (queue.running === undefined && clock.monotonicMs() >= queue.storeAtMs) void check(queueUrl, queue);
    },
    /**
     * Checks received messages. Usually returns undefined; if one of them shows a loss, a promise that resolves when the gaps are
     * stored, or when that failed and the next receive will try again. Never rejects.
     */
    received(messages: readonly QueueMessage[]): Promise<void> | undefined {
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
