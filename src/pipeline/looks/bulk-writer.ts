/**
 * The bulk writer of the live path and of sweeps: fills a request up to a number of actions, a number of bytes or a linger,
 * whichever comes first, keeps a bounded number of requests in flight, and answers each write once. It resends only what the
 * store pushed back (429), and never a write that has expired (rule 9).
 */
import PQueue from 'p-queue';
import { sameContent, type ObjectDocument } from '../../domain/documents/document.ts';
import { circuitOf, faultOf, type Fault } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { LiveLoad } from '../serving/live-load.ts';
import {
  answerExpired,
  backoffMs,
  bytesOf,
  createBulkSender,
  fittingCount,
  sizeOf,
  type BulkLimits,
  type IndexReports,
  type QueuedWrite,
  type WriteAnswer,
  type WriteRequest,
} from './bulk-request.ts';

/** Writes one document. Never rejects. */
export type WriteDocument = (request: WriteRequest) => Promise<WriteAnswer>;

interface WriterDependencies {
  readonly objects: ObjectIndex;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly circuits: IndexReports;
  readonly limits: BulkLimits;
  /** The load of the live path; absent: the writer serves something else. */
  readonly load?: Pick<LiveLoad, 'bulkQueue' | 'bulkSent'>;
}

/** A backlog fills requests faster than this; single events do not. */
const FAST_PER_MS = 1;
/** With the usual linger this is a tenth of a second, which does not matter in a backlog. */
const LINGERS_MAX = 5;
/** The waits after push-backs. They end when the writes expire (30 s), and then the push-back is a fault. */
const BACKOFF = { minMs: 100, maxMs: 5_000 };
/** An index that pushes everything back for so long has failed: its circuit decides from then on. */
const INDEX_PUSH_BACK_MAX_MS = 1_500;

const PUSHED_BACK: Fault = { code: 'bucket.index-overloaded', reason: 'the index pushed the write back again and again' };

/** Creates the writer. Its queue is bounded by its callers: each message in hand waits for its own writes. */
export function createBulkWriter({ objects, clock, telemetry, circuits, limits, load }: WriterDependencies): WriteDocument {
  const requests = new PQueue({ concurrency: limits.concurrency });
  const linger = createLinger(clock, limits.lingerMs, () => pump(true));
  const sendBulk = createBulkSender({ objects, clock, telemetry, circuits });
  let pending: QueuedWrite[] = [];
  let pendingBytes = 0;
  let pushBacks = 0;
  /** Since when and how often in a row the index of a bucket pushed items back. */
  const indexPushBacks = new Map<string, { readonly sinceMs: number; count: number }>();

  function write(request: WriteRequest): Promise<WriteAnswer> {
    return new Promise((resolve) => {
      add({ request, sizeBytes: sizeOf(request.document), answer: resolve, pushBack: undefined, pushedBackSentAtMs: 0 });
      pump(false);
    });
  }

  function add(entry: QueuedWrite): void {
    pending.push(entry);
    pendingBytes += entry.sizeBytes;
    linger.added();
  }

  /** Sends what is full, or what has lingered, while a request is free. What waits for a free request fills the next one. */
  function pump(lingered: boolean): void {
    let due = lingered;
    while (pending.length > 0 && requests.pending < limits.concurrency && (due || isFull())) {
      const batch = takeBatch();
      void requests.add(() => send(batch)).finally(() => pump(!linger.isFast));
      due = false;
    }
    const mustWait = pending.length > 0 && requests.pending < limits.concurrency;
    // not at each of a thousand writes between which no linger begins or ends
    if ((mustWait && linger.begin()) || lingered) load?.bulkQueue({ actionsQueued: pending.length, requestsInFlight: requests.pending });
  }

  function isFull(): boolean {
    return pending.length >= limits.actionsMax || pendingBytes >= limits.bytesMax;
  }

  function takeBatch(): readonly QueuedWrite[] {
    const batch = pending.slice(0, fittingCount(pending, limits));
    pending = pending.slice(batch.length);
    pendingBytes -= bytesOf(batch);
    return batch;
  }

  async function send(batch: readonly QueuedWrite[]): Promise<void> {
    const nowMs = clock.monotonicMs();
    const expired = batch.filter(({ request }) => request.expiresAtMs <= nowMs);
    if (expired.length > 0) telemetry.count('tally_bulk_actions_total', expired.length, { answer: 'expired' });
    // the store pushed the write back until it expired
    const overloaded = expired.findLast(({ pushBack }) => pushBack?.code === 'index.overloaded');
    if (overloaded?.pushBack !== undefined)
      circuits.clusterFailed(overloaded.pushBack, { isLasting: true, sentAtMs: overloaded.pushedBackSentAtMs });
    expired.forEach(answerExpired);
    const live = batch.filter(({ request }) => request.expiresAtMs > nowMs);
    if (live.length === 0) return;
    const { pushedBack, equal, isWholePushedBack, durationMs, isTaken } = await sendBulk(live);
    load?.bulkSent({ durationMs, isTaken });
    if (!isWholePushedBack) waitInLanes(live, pushedBack);
    await Promise.all([answerEqual(equal), isWholePushedBack ? sendAgain(pushedBack) : undefined]);
    if (pushedBack.length === 0) pushBacks = 0;
  }

  /** Items that one index pushed back leave the request, so that its place serves the other indices, and wait in the lane of their index. */
  function waitInLanes(sent: readonly QueuedWrite[], pushedBack: readonly QueuedWrite[]): void {
    if (pushedBack.length === 0 && indexPushBacks.size === 0) return;
    const lanes = Map.groupBy(pushedBack, ({ request }) => request.document.bucket);
    const waits = new Set(pushedBack);
    // an index that accepts a part is busy, and the push-backs slow its writes down
    for (const entry of sent) if (!waits.has(entry)) indexPushBacks.delete(entry.request.document.bucket);
    for (const [bucket, entries] of lanes) void waitInLane(bucket, entries);
  }

  async function waitInLane(bucket: string, entries: readonly QueuedWrite[]): Promise<void> {
    const lane = indexPushBacks.get(bucket) ?? { sinceMs: clock.monotonicMs(), count: 0 };
    lane.count += 1;
    indexPushBacks.set(bucket, lane);
    if (clock.monotonicMs() - lane.sinceMs >= INDEX_PUSH_BACK_MAX_MS) {
      indexPushBacks.delete(bucket);
      for (const { answer, pushBack } of entries) {
        const fault = pushBack ?? PUSHED_BACK;
        circuits.indexFailed(bucket, fault, { sentAtMs: clock.monotonicMs(), isWhole: true });
        answer({ kind: 'fault', fault });
      }
      return;
    }
    await clock.sleep(backoffMs(lane.count, BACKOFF));
    entries.forEach(add);
    pump(false);
  }

  /** Rule 12: the same content at the same clock is a repeat; other content is a tie, which is not an order. */
  async function answerEqual(equal: readonly QueuedWrite[]): Promise<void> {
    for (const [bucket, entries] of Map.groupBy(equal, (entry) => entry.request.document.bucket)) {
      const sentAtMs = clock.monotonicMs();
      try {
        const stored = await objects.getMany(
          bucket,
          entries.map((entry) => entry.request.document.key),
        );
        entries.forEach((entry, index) => entry.answer({ kind: isRepeat(entry.request, stored[index]) ? 'superseded' : 'tie' }));
      } catch (error) {
        const fault = faultOf(error);
        if (circuitOf(fault.code) === 'index') circuits.indexFailed(bucket, fault, { sentAtMs, isWhole: true });
        else circuits.clusterFailed(fault);
        for (const entry of entries) entry.answer({ kind: 'fault', fault });
      }
    }
  }

  /** Keeps this request's slot while it waits, which slows the pollers down; then sends half of the batch at a time. */
  async function sendAgain(pushedBack: readonly QueuedWrite[]): Promise<void> {
    if (pushedBack.length === 0) return;
    pushBacks += 1;
    await clock.sleep(backoffMs(pushBacks, BACKOFF));
    const half = Math.ceil(pushedBack.length / 2);
    await send(pushedBack.slice(0, half));
    if (half < pushedBack.length) await send(pushedBack.slice(half));
  }

  return write;
}

interface Linger {
  /** Counts a write that waits. */
  added(): void;
  /** Begins to linger if it does not linger already. Returns whether it began. */
  begin(): boolean;
  /** Whether it continues to linger because the request fills fast. */
  readonly isFast: boolean;
}

/** Lingers once, and again while the request fills fast (at most five times): in a backlog no single write is urgent, and large requests cost a store least. */
function createLinger(clock: Clock, lingerMs: number, over: () => void): Linger {
  let total = 0;
  let isOn = false;
  let isFast = false;

  async function run(): Promise<void> {
    for (let round = 1; round === 1 || isFast; round += 1) {
      const before = total;
      await clock.sleep(lingerMs);
      isFast = round < LINGERS_MAX && total - before > FAST_PER_MS * lingerMs;
    }
    isOn = false;
    over();
  }

  return {
    added() {
      total += 1;
    },
    begin() {
      if (isOn) return false;
      isOn = true;
      void run();
      return true;
    },
    get isFast() {
      return isFast;
    },
  };
}

function isRepeat(request: WriteRequest, stored: ObjectDocument | undefined): boolean {
  if (stored === undefined) return false;
  // another clock by now means that something newer was written since
  if (stored.clock !== request.document.clock) return true;
  // an unsettled document does not repeat a settled fact: another look settles it
  return stored.settled && sameContent(stored, request.document);
}
