/**
 * Writes documents in bulk requests. First the writer of the live path and of sweeps: it fills a request up to a number of actions,
 * a number of bytes or a linger, whichever comes first, keeps a bounded number of requests in flight, and answers each write once.
 * Below it is the single request, which re-index's writer sends too.
 *
 *   waiting ──full, or lingered──► sent ─┬─ answered
 *      ▲                                 ├─ too large (413, 400) ──► both halves at once
 *      │                                 ├─ pushed back (429) as a whole ──► a pause, then each half
 *      └── a pause ◄─────────────────────┴─ single items pushed back by their index
 *
 * A write that has expired is never sent (rule 9).
 */
import PQueue from 'p-queue';
import { sameContent, type ObjectDocument } from '../ordering/document.ts';
import { circuitOf, faultOf, type Fault } from '../base/fault.ts';
import type { IndexWrite, IndexWriteAnswer, ObjectIndex, WithPorts, WriteAnswer } from '../store/store.ts';
import type { LiveLoad } from './live-load.ts';
import { enrichedBytes } from '../ordering/enrichment.ts';
import type { Circuits } from './circuits.ts';
import type { Clock } from '../process/clock.ts';

/** Writes one document. Never rejects. */
export type WriteDocument = (request: WriteRequest) => Promise<WriteAnswer>;

export interface BulkLimits {
  readonly actionsMax: number;
  readonly bytesMax: number;
  readonly lingerMs: number;
  readonly concurrency: number;
}

interface WriterDependencies extends RequestParts {
  readonly objects: ObjectIndex;
  readonly limits: BulkLimits;
  /** The load of the live path; absent: the writer serves something else. */
  readonly load?: Pick<LiveLoad, 'bulkQueue' | 'bulkSent'>;
}

/** A backlog fills requests faster than this; single events do not. */
const FAST_PER_MS = 1;
/** With the usual linger of 20 ms this is a tenth of a second, which does not matter in a backlog. */
const LINGERS_MAX = 5;
/** The waits after push-backs. They end when the writes expire (30 s), and then the push-back is a fault. */
const BACKOFF = { minMs: 100, maxMs: 5_000 };
/** If an index pushes everything back for this long, it has failed, and its circuit decides from then on. */
const INDEX_PUSH_BACK_MAX_MS = 1_500;

/** Creates the writer. Its queue is bounded by its callers: each message in hand waits for its own writes. */
export function createBulkWriter(dependencies: WriterDependencies): WriteDocument {
  const { objects, clock, circuits, limits, load } = dependencies;
  const requests = new PQueue({ concurrency: limits.concurrency });
  let pending: QueuedWrite[] = [];
  let pendingBytes = 0;
  /** How many writes were ever added. */
  let addedTotal = 0;
  let isLingering = false;
  let isFast = false;
  let pushBacks = 0;
  /** By bucket: since when, and how often in a row, its index has pushed items back. */
  const indexPushBacks = new Map<string, { readonly sinceMs: number; count: number }>();

  function add(entry: QueuedWrite): void {
    pending.push(entry);
    pendingBytes += entry.sizeBytes;
    addedTotal += 1;
  }

  /** While a request is free, sends batches that are full, and what has lingered. Whatever waits for a free request fills the next batch. */
  function pump(lingered: boolean): void {
    let due = lingered;
    while (maySend() && (due || isFull())) {
      const batch = takeBatch();
      void requests.add(() => send(batch)).finally(() => pump(!isFast));
      due = false;
    }
    const mustWait = maySend() && !isLingering;
    if (mustWait) void linger();
    // not at each of the thousand writes during one linger
    if (mustWait || lingered) load?.bulkQueue({ actionsQueued: pending.length, requestsInFlight: requests.pending });
  }

  /** Lingers once, and again while the request fills fast: in a backlog no write is urgent, and large requests cost a store least. */
  async function linger(): Promise<void> {
    isLingering = true;
    for (let round = 1; round === 1 || isFast; round += 1) {
      const before = addedTotal;
      await clock.sleep(limits.lingerMs);
      isFast = round < LINGERS_MAX && addedTotal - before > FAST_PER_MS * limits.lingerMs;
    }
    isLingering = false;
    pump(true);
  }

  function maySend(): boolean {
    return pending.length > 0 && requests.pending < limits.concurrency;
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
    // the store pushed the write back until it expired
    const overloaded = batch.findLast((entry) => isExpired(entry, clock) && entry.pushBack?.fault.code === 'index.overloaded')?.pushBack;
    if (overloaded !== undefined) circuits.clusterFailed(overloaded.fault, { isLasting: true, sentAtMs: overloaded.sentAtMs });
    const live = withoutExpired(dependencies, batch);
    if (live.length === 0) return;
    const { pushedBack, equal, isWholePushedBack } = await sendBulk(dependencies, live);
    if (!isWholePushedBack) waitForIndices(live, pushedBack);
    await Promise.all([answerEqual(equal), isWholePushedBack ? sendAgain(pushedBack) : undefined]);
    if (pushedBack.length === 0) pushBacks = 0;
  }

  /** Items that their index pushed back leave the request, whose place then serves other indices, and wait for their index. */
  function waitForIndices(sent: readonly QueuedWrite[], pushedBack: readonly QueuedWrite[]): void {
    if (pushedBack.length === 0 && indexPushBacks.size === 0) return;
    const byBucket = Map.groupBy(pushedBack, ({ request }) => request.document.bucket);
    const waits = new Set(pushedBack);
    // an index that accepts some items is only busy, and the push-backs slow its writes down
    for (const entry of sent) if (!waits.has(entry)) indexPushBacks.delete(entry.request.document.bucket);
    for (const [bucket, entries] of byBucket) void waitForIndex(bucket, entries);
  }

  async function waitForIndex(bucket: string, entries: readonly QueuedWrite[]): Promise<void> {
    const pushBacksInARow = indexPushBacks.get(bucket) ?? { sinceMs: clock.monotonicMs(), count: 0 };
    pushBacksInARow.count += 1;
    indexPushBacks.set(bucket, pushBacksInARow);
    if (clock.monotonicMs() - pushBacksInARow.sinceMs < INDEX_PUSH_BACK_MAX_MS) {
      await clock.sleep(backoffMs(pushBacksInARow.count, BACKOFF));
      entries.forEach(add);
      return pump(false);
    }
    indexPushBacks.delete(bucket);
    for (const { answer, pushBack } of entries) {
      if (pushBack === undefined) continue;
      const { fault } = pushBack;
      circuits.indexFailed(bucket, fault, { sentAtMs: clock.monotonicMs(), isWhole: true });
      answer({ kind: 'fault', fault });
    }
  }

  /** Rule 12: the same content at an equal clock is a repeat; other content is a tie, which has no order. */
  async function answerEqual(equal: readonly QueuedWrite[]): Promise<void> {
    for (const [bucket, entries] of Map.groupBy(equal, (entry) => entry.request.document.bucket)) {
      const sentAtMs = clock.monotonicMs();
      const keys = entries.map((entry) => entry.request.document.key);
      try {
        const stored = await objects.getMany(bucket, keys);
        entries.forEach((entry, index) => entry.answer({ kind: isRepeat(entry.request, stored[index]) ? 'superseded' : 'equal' }));
      } catch (error) {
        const fault = faultOf(error);
        if (circuitOf(fault.code) === 'index') circuits.indexFailed(bucket, fault, { sentAtMs, isWhole: true });
        else circuits.clusterFailed(fault);
        for (const entry of entries) entry.answer({ kind: 'fault', fault });
      }
    }
  }

  /** Waits while keeping this request's slot, which slows the pollers down; then sends half of the batch at a time. */
  async function sendAgain(pushedBack: readonly QueuedWrite[]): Promise<void> {
    pushBacks += 1;
    await clock.sleep(backoffMs(pushBacks, BACKOFF));
    for (const half of halvesOf(pushedBack)) await send(half);
  }

  return (request) =>
    new Promise((answer) => {
      add({ request, sizeBytes: sizeOf(request.document), answer, pushBack: undefined });
      pump(false);
    });
}

function isRepeat(request: WriteRequest, stored: ObjectDocument | undefined): boolean {
  if (stored === undefined) return false;
  // if the clock has changed, something newer was written since
  if (stored.clock !== request.document.clock) return true;
  // an unsettled document does not repeat a settled fact: another observation settles it
  return stored.settled && sameContent(stored, request.document);
}

// ── one request ────────────────────────────────────────────────────────────────────────────────────────────────────

export interface WriteRequest extends IndexWrite {
  /** The write is never sent at or after this moment of the monotonic clock (rule 9). */
  readonly expiresAtMs: number;
}

/** A write that waits for its answer. */
export interface QueuedWrite {
  readonly request: WriteRequest;
  readonly sizeBytes: number;
  /** Called exactly once. */
  readonly answer: (answer: WriteAnswer) => void;
  /** The store's last push-back, and when the request that it answered was sent, by the monotonic clock; undefined if there was none. */
  pushBack: { readonly fault: Fault; readonly sentAtMs: number } | undefined;
}

/** What a bulk request shows about the index store. */
export type IndexReports = Pick<Circuits, 'accepted' | 'indexFailed' | 'clusterAnswered' | 'clusterFailed'>;

interface RequestParts extends WithPorts<'clock' | 'telemetry'> {
  readonly objects: Pick<ObjectIndex, 'write'>;
  readonly circuits: IndexReports;
  readonly load?: Pick<LiveLoad, 'bulkSent'>;
}

/** A request's writes that are not answered yet. */
interface Unfinished<Entry> {
  /** The store pushed them back (429): they may be sent again. */
  readonly pushedBack: readonly Entry[];
  /** Whether the store pushed back the whole request, and not single items of it. */
  readonly isWholePushedBack: boolean;
  /** The store holds the same clock. */
  readonly equal: readonly Entry[];
}

/** An estimate of a document's size without its key and its enrichment: field names, times and the action line. If it is too low, the request is halved. */
const DOCUMENT_BYTES = 700;
/** An estimate, too: the key itself, its id, its words, its folded form and its folders. */
const KEY_COPIES = 6;

/**
 * Sends one request, and halves it for as long as the server refuses it as too large, which says nothing about a single write.
 * Reports the request, and answers each write that is finished. Never rejects: if the request fails, each of its writes is answered with its fault.
 */
export async function sendBulk<Entry extends QueuedWrite>(parts: RequestParts, batch: readonly Entry[]): Promise<Unfinished<Entry>> {
  const { clock, telemetry, circuits, load } = parts;
  const sentAtMs = clock.monotonicMs();
  const { answers, fault } = await writeBatch(parts.objects, batch);
  const durationMs = clock.monotonicMs() - sentAtMs;
  const result = fault?.code ?? 'ok';
  telemetry.count('tally_bulk_requests_total', 1, { result });
  telemetry.observe('tally_bulk_duration_seconds', durationMs / 1_000);
  telemetry.debug('bulk request answered', { actions: batch.length, sizeBytes: bytesOf(batch), durationMs, result });
  load?.bulkSent({ durationMs, isTaken: fault === undefined });
  if (fault?.code === 'index.rejected' && batch.length > 1) return sendHalves(parts, batch);
  for (const [kind, alike] of Map.groupBy(answers, (answer) => answer.kind)) {
    telemetry.count('tally_bulk_actions_total', alike.length, { answer: kind });
  }
  // before the writes are answered, so that whatever waits for an answer finds the circuits up to date
  if (fault === undefined) reportItems(circuits, batch, answers, sentAtMs);
  else reportRequest(circuits, batch, fault, sentAtMs);
  return { ...deliver(batch, answers, sentAtMs), isWholePushedBack: fault?.code === 'index.overloaded' };
}

async function sendHalves<Entry extends QueuedWrite>(parts: RequestParts, batch: readonly Entry[]): Promise<Unfinished<Entry>> {
  let all: Unfinished<Entry> = { pushedBack: [], equal: [], isWholePushedBack: false };
  for (const half of halvesOf(batch)) {
    // the first half may have taken long
    const live = withoutExpired(parts, half);
    if (live.length > 0) all = joinUnfinished(all, await sendBulk(parts, live));
  }
  return all;
}

/** `fault`: the whole request failed. */
async function writeBatch(
  objects: RequestParts['objects'],
  batch: readonly QueuedWrite[],
): Promise<{ readonly answers: readonly IndexWriteAnswer[]; readonly fault?: Fault }> {
  try {
    return { answers: await objects.write(batch.map(({ request }) => request)) };
  } catch (error) {
    const { code, reason } = faultOf(error);
    const fault = { code, reason };
    return { answers: batch.map(() => ({ kind: 'fault', fault })), fault };
  }
}

function reportItems(circuits: IndexReports, batch: readonly QueuedWrite[], answers: readonly IndexWriteAnswer[], sentAtMs: number): void {
  circuits.clusterAnswered();
  let accepted: string | undefined;
  answers.forEach((answer, index) => {
    const bucket = batch[index]?.request.document.bucket;
    if (bucket === undefined) return;
    if (answer.kind !== 'fault') {
      // consecutive items of one bucket need only one report
      if (accepted !== bucket) circuits.accepted(bucket);
      accepted = bucket;
      return;
    }
    accepted = undefined;
    const { fault } = answer;
    const level = circuitOf(fault.code);
    // items that were pushed back first wait for their index
    if (isPushBack(fault)) return;
    if (level === 'cluster') circuits.clusterFailed(fault);
    else if (level === 'index') circuits.indexFailed(bucket, fault, { sentAtMs });
  });
}

/** If a request fails as a whole, the cluster has failed, unless the fault is an index's and the request is for only one index. */
function reportRequest(circuits: IndexReports, batch: readonly QueuedWrite[], fault: Fault, sentAtMs: number): void {
  const [first, ...others] = new Set(batch.map(({ request }) => request.document.bucket));
  const isOneIndex = circuitOf(fault.code) === 'index' && first !== undefined && others.length === 0;
  if (isOneIndex) circuits.indexFailed(first, fault, { sentAtMs, isWhole: true });
  // a push-back only slows down, until its writes expire
  else if (fault.code !== 'index.overloaded') circuits.clusterFailed(fault);
}

function deliver<Entry extends QueuedWrite>(
  batch: readonly Entry[],
  answers: readonly IndexWriteAnswer[],
  sentAtMs: number,
): Pick<Unfinished<Entry>, 'pushedBack' | 'equal'> {
  const pushedBack: Entry[] = [];
  const equal: Entry[] = [];
  answers.forEach((answer, index) => {
    const entry = batch[index];
    if (entry === undefined) return;
    if (answer.kind === 'equal') equal.push(entry);
    else if (answer.kind === 'fault' && isPushBack(answer.fault)) {
      entry.pushBack = { fault: answer.fault, sentAtMs };
      pushedBack.push(entry);
    } else entry.answer(answer);
  });
  return { pushedBack, equal };
}

function joinUnfinished<Entry>(first: Unfinished<Entry>, second: Unfinished<Entry>): Unfinished<Entry> {
  return {
    pushedBack: [...first.pushedBack, ...second.pushedBack],
    equal: [...first.equal, ...second.equal],
    isWholePushedBack: first.isWholePushedBack || second.isWholePushedBack,
  };
}

/** The two halves of a batch. For a single write the second is empty. */
function halvesOf<Entry>(batch: readonly Entry[]): readonly [readonly Entry[], readonly Entry[]] {
  const middle = Math.ceil(batch.length / 2);
  return [batch.slice(0, middle), batch.slice(middle)];
}

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

/** Returns how long to wait after this many push-backs in a row: twice as long each time, with jitter. */
export function backoffMs(pushBacks: number, { minMs, maxMs }: { readonly minMs: number; readonly maxMs: number }): number {
  return Math.min(maxMs, minMs * 2 ** Math.min(pushBacks - 1, 10)) * (0.5 + Math.random() / 2);
}

/** Whether the store pushed a write back (429), with its whole request or alone. */
function isPushBack({ code }: Fault): boolean {
  return code === 'index.overloaded' || code === 'bucket.index-overloaded';
}

function isExpired({ request }: QueuedWrite, clock: Pick<Clock, 'monotonicMs'>): boolean {
  return request.expiresAtMs <= clock.monotonicMs();
}

/** The writes that may still be sent (rule 9). The others are answered. */
export function withoutExpired<Entry extends QueuedWrite>({ clock, telemetry }: RequestParts, batch: readonly Entry[]): readonly Entry[] {
  const { live = [], expired = [] } = Object.groupBy(batch, (entry) => (isExpired(entry, clock) ? 'expired' : 'live'));
  if (expired.length > 0) telemetry.count('tally_bulk_actions_total', expired.length, { answer: 'expired' });
  expired.forEach(answerExpired);
  return live;
}

/** Answers a write that expired before it could be sent. If the store had pushed it back, the answer is that fault, because the store is taking nothing. */
function answerExpired({ answer, pushBack }: QueuedWrite): void {
  answer(pushBack === undefined ? { kind: 'expired' } : { kind: 'fault', fault: pushBack.fault });
}
