/**
 * Writes documents in bulk requests. The writer of the live path and of sweeps comes first: it fills a request up to a number of
 * actions, a number of bytes or a linger, whichever comes first, keeps a bounded number of requests in flight, and answers each
 * write once. It resends only what the store pushed back (429), and never a write that has expired (rule 9). One request, as the
 * writer of re-index sends it too, comes after it.
 */
import PQueue from 'p-queue';
import { sameContent, type ObjectDocument } from '../ordering/document.ts';
import { circuitOf, faultOf, type Fault } from '../base/fault.ts';
import type { Clock } from '../process/clock.ts';
import type { IndexWrite, IndexWriteAnswer, ObjectIndex, WithPorts } from '../store/store.ts';
import type { LiveLoad } from './live-load.ts';
import { enrichedBytes } from '../ordering/enrichment.ts';
import { labelOf } from '../process/series.ts';
import type { Circuits } from './circuits.ts';

/** Writes one document. Never rejects. */
export type WriteDocument = (request: WriteRequest) => Promise<WriteAnswer>;

interface WriterDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly objects: ObjectIndex;
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
    if (!isWholePushedBack) waitForIndices(live, pushedBack);
    await Promise.all([answerEqual(equal), isWholePushedBack ? sendAgain(pushedBack) : undefined]);
    if (pushedBack.length === 0) pushBacks = 0;
  }

  /** Items that one index pushed back leave the request, so that its place serves the other indices, and wait for that index. */
  function waitForIndices(sent: readonly QueuedWrite[], pushedBack: readonly QueuedWrite[]): void {
    if (pushedBack.length === 0 && indexPushBacks.size === 0) return;
    const byBucket = Map.groupBy(pushedBack, ({ request }) => request.document.bucket);
    const waits = new Set(pushedBack);
    // an index that accepts a part is busy, and the push-backs slow its writes down
    for (const entry of sent) if (!waits.has(entry)) indexPushBacks.delete(entry.request.document.bucket);
    for (const [bucket, entries] of byBucket) void waitForIndex(bucket, entries);
  }

  async function waitForIndex(bucket: string, entries: readonly QueuedWrite[]): Promise<void> {
    const pushBacksOfIndex = indexPushBacks.get(bucket) ?? { sinceMs: clock.monotonicMs(), count: 0 };
    pushBacksOfIndex.count += 1;
    indexPushBacks.set(bucket, pushBacksOfIndex);
    if (clock.monotonicMs() - pushBacksOfIndex.sinceMs >= INDEX_PUSH_BACK_MAX_MS) {
      indexPushBacks.delete(bucket);
      for (const { answer, pushBack } of entries) {
        const fault = pushBack ?? PUSHED_BACK;
        circuits.indexFailed(bucket, fault, { sentAtMs: clock.monotonicMs(), isWhole: true });
        answer({ kind: 'fault', fault });
      }
      return;
    }
    await clock.sleep(backoffMs(pushBacksOfIndex.count, BACKOFF));
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
  // an unsettled document does not repeat a settled fact: another observation settles it
  return stored.settled && sameContent(stored, request.document);
}

// ── one request ────────────────────────────────────────────────────────────────────────────────────────────────────

export interface WriteRequest extends IndexWrite {
  /** The write is never sent at or after this moment of the monotonic clock (rule 9). */
  readonly expiresAtMs: number;
  /** The live document of the same object as the index holds it: if the index refuses what enrichment adds, it keeps what this one has. */
  readonly known?: ObjectDocument;
}

export type WriteAnswer =
  | { readonly kind: 'written' }
  /** The store holds something newer, or the same. */
  | { readonly kind: 'superseded' }
  /** The store holds other content at the same clock (rule 12). */
  | { readonly kind: 'tie' }
  /** The write became too old before it was ever sent: read S3 again. */
  | { readonly kind: 'expired' }
  | { readonly kind: 'fault'; readonly fault: Fault };

export interface BulkLimits {
  readonly actionsMax: number;
  readonly bytesMax: number;
  readonly lingerMs: number;
  readonly concurrency: number;
}

/** A write that waits for its answer. */
export interface QueuedWrite {
  readonly request: WriteRequest;
  readonly sizeBytes: number;
  /** Called exactly once. */
  readonly answer: (answer: WriteAnswer) => void;
  /** The last push-back of the store; undefined if there was none. */
  pushBack: Fault | undefined;
  /** When the request was sent that the store pushed back last, by the monotonic clock. */
  pushedBackSentAtMs: number;
}

/** The size of a document without its key and its enrichment: field names, times and the action line. An estimate, as is the number of copies of the key; the adapter halves a request that is too large. */
const DOCUMENT_BYTES = 700;
/** The key itself, its id, its words, its folded form and its folders. */
const KEY_COPIES = 6;

const UNANSWERED: IndexWriteAnswer = {
  kind: 'fault',
  code: 'internal.unexpected',
  reason: 'the store answered fewer writes than it was sent',
};

/** Estimates the bytes that a document takes in a request. */
export function sizeOf(document: ObjectDocument): number {
  return DOCUMENT_BYTES + KEY_COPIES * document.key.length + enrichedBytes(document);
}

/** Returns how many writes at the front of the queue fit into one request; at least one, even if it is larger than the limit. */
export function fittingCount(queue: readonly QueuedWrite[], { actionsMax, bytesMax }: Pick<BulkLimits, 'actionsMax' | 'bytesMax'>): number {
  let count = 0;
  let bytes = 0;
  for (const { sizeBytes } of queue.slice(0, actionsMax)) {
    if (count > 0 && bytes + sizeBytes > bytesMax) break;
    bytes += sizeBytes;
    count += 1;
  }
  return count;
}

function bytesOf(batch: readonly QueuedWrite[]): number {
  return batch.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

/** Returns how long to wait after this many consecutive push-backs. The wait doubles each time and has jitter. */
export function backoffMs(pushBacks: number, { minMs, maxMs }: { readonly minMs: number; readonly maxMs: number }): number {
  return Math.min(maxMs, minMs * 2 ** Math.min(pushBacks - 1, 10)) * (0.5 + Math.random() / 2);
}

/** The writes of a request that are not answered yet. */
interface Unfinished<Entry> {
  /** The store pushed them back (429): they may be sent again. */
  readonly pushedBack: readonly Entry[];
  /** Whether the store pushed back the whole request, and not single items of it. */
  readonly isWholePushedBack: boolean;
  /** The store holds the same clock. */
  readonly equal: readonly Entry[];
  /** How long the store took, and whether it took the request as a whole. */
  readonly durationMs: number;
  readonly isTaken: boolean;
}

/** What a bulk request shows about the index store. */
export type IndexReports = Pick<Circuits, 'accepted' | 'indexFailed' | 'clusterAnswered' | 'clusterFailed'>;

interface SenderDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly objects: Pick<ObjectIndex, 'write'>;
  readonly circuits: IndexReports;
}

/** Sends one request, reports it, and answers each write that is finished. Never rejects: a failure of the request is the answer to each of its writes. */
export function createBulkSender({ objects, clock, telemetry, circuits }: SenderDependencies) {
  return async function sendBulk<Entry extends QueuedWrite>(batch: readonly Entry[]): Promise<Unfinished<Entry>> {
    const startedMs = clock.monotonicMs();
    const { result, answers } = await write(batch);
    const durationMs = clock.monotonicMs() - startedMs;
    const sizeBytes = bytesOf(batch);
    telemetry.count('tally_bulk_requests_total', 1, { result });
    telemetry.observe('tally_bulk_duration_seconds', durationMs / 1_000);
    telemetry.observe('tally_bulk_size_bytes', sizeBytes);
    telemetry.debug('bulk request answered', { actions: batch.length, sizeBytes, durationMs, result });
    for (const [kind, alike] of Map.groupBy(answers, (answer) => answer.kind)) {
      telemetry.count('tally_bulk_actions_total', alike.length, { answer: labelOf(kind) });
    }
    if (result === 'ok') reportItems(batch, answers, startedMs);
    else reportRequest(batch, answers[0] ?? UNANSWERED, startedMs);
    const isWholePushedBack = result === 'index.overloaded';
    return { ...deliver(batch, answers, startedMs), isWholePushedBack, durationMs, isTaken: result === 'ok' };
  };

  /** Before the writes are answered: whatever waits for an answer finds the circuits as this answer leaves them. */
  function reportItems(batch: readonly QueuedWrite[], answers: readonly IndexWriteAnswer[], sentAtMs: number): void {
    circuits.clusterAnswered();
    let accepted: string | undefined;
    batch.forEach(({ request }, index) => {
      const { bucket } = request.document;
      const answer = answers[index] ?? UNANSWERED;
      if (answer.kind !== 'fault') {
        // one report for many items of one bucket in a row
        if (accepted !== bucket) circuits.accepted(bucket);
        accepted = bucket;
        return;
      }
      accepted = undefined;
      const level = circuitOf(answer.code);
      // push-backs first wait for their index
      if (isPushBack(answer)) return;
      if (level === 'cluster') circuits.clusterFailed(answer);
      else if (level === 'index') circuits.indexFailed(bucket, answer, { sentAtMs });
    });
  }

  /** A request that failed as a whole is the cluster's failure, unless it is about an index and names one index alone. */
  function reportRequest(batch: readonly QueuedWrite[], answer: IndexWriteAnswer, sentAtMs: number): void {
    if (answer.kind !== 'fault') return;
    const [first, ...others] = new Set(batch.map(({ request }) => request.document.bucket));
    const isOneIndex = circuitOf(answer.code) === 'index' && first !== undefined && others.length === 0;
    if (isOneIndex) circuits.indexFailed(first, answer, { sentAtMs, isWhole: true });
    // a push-back only slows down, until the writes of it expire
    else if (answer.code !== 'index.overloaded') circuits.clusterFailed(answer);
  }

  async function write(
    batch: readonly QueuedWrite[],
  ): Promise<{ readonly result: 'ok' | Fault['code']; readonly answers: readonly IndexWriteAnswer[] }> {
    try {
      return { result: 'ok', answers: await objects.write(batch.map(({ request }) => request)) };
    } catch (error) {
      const { code, reason } = faultOf(error);
      return { result: code, answers: batch.map(() => ({ kind: 'fault', code, reason })) };
    }
  }
}

function deliver<Entry extends QueuedWrite>(
  batch: readonly Entry[],
  answers: readonly IndexWriteAnswer[],
  sentAtMs: number,
): Pick<Unfinished<Entry>, 'pushedBack' | 'equal'> {
  const pushedBack: Entry[] = [];
  const equal: Entry[] = [];
  batch.forEach((entry, index) => {
    const answer = answers[index] ?? UNANSWERED;
    switch (answer.kind) {
      case 'written':
      case 'superseded':
        return entry.answer(answer);
      case 'equal':
        return void equal.push(entry);
      case 'fault': {
        const fault = { code: answer.code, reason: answer.reason };
        if (!isPushBack(fault)) return entry.answer({ kind: 'fault', fault });
        entry.pushBack = fault;
        entry.pushedBackSentAtMs = sentAtMs;
        pushedBack.push(entry);
      }
    }
  });
  return { pushedBack, equal };
}

/** Whether the store pushed a write back (429), with its whole request or alone. */
function isPushBack({ code }: Pick<Fault, 'code'>): boolean {
  return code === 'index.overloaded' || code === 'bucket.index-overloaded';
}

/** Answers a write that expired before it could be sent. If the store pushed it back until then, the answer is that fault, since the store takes nothing now. */
export function answerExpired({ answer, pushBack }: QueuedWrite): void {
  answer(pushBack === undefined ? { kind: 'expired' } : { kind: 'fault', fault: pushBack });
}
