/**
 * The shared bulk writer: fills a request to so many actions or bytes or so long a linger, whichever comes first, keeps
 * a bounded number of requests in flight, and answers each write once. Only what was pushed back (429) is sent again, and
 * never after it expired (rule 9).
 */
import PQueue from 'p-queue';
import { sameContent } from '../../domain/documents/document.ts';
import { enrichedBytes } from '../../domain/documents/enrichment.ts';
import type { Fault } from '../../domain/fault.ts';
import { faultOf } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { IndexWrite, IndexWriteAnswer, ObjectIndex } from '../ports/object-index.ts';
import type { Telemetry } from '../ports/telemetry.ts';

export interface WriteRequest extends IndexWrite {
  /** Monotonic: never sent at or after this moment. */
  readonly expiresAtMs: number;
}

export type WriteAnswer =
  | { readonly kind: 'written' }
  | { readonly kind: 'stale' }
  /** The store holds this very clock with other content (rule 12). */
  | { readonly kind: 'tie' }
  /** Too old to be sent, without ever having been: ask again. */
  | { readonly kind: 'expired' }
  | { readonly kind: 'fault'; readonly fault: Fault };

export interface BulkWriter {
  write(request: WriteRequest): Promise<WriteAnswer>;
}

export interface BulkLimits {
  readonly actionsMax: number;
  readonly bytesMax: number;
  readonly lingerMs: number;
  readonly concurrency: number;
}

interface WriterDependencies {
  readonly objects: ObjectIndex;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly limits: BulkLimits;
}

interface Pending {
  readonly request: WriteRequest;
  readonly sizeBytes: number;
  readonly answer: (answer: WriteAnswer) => void;
  /** Why it was sent and not taken, when it was. */
  pushBack: Fault | undefined;
}

/** What a document weighs beyond its key and its enrichment: field names, times, action line. An estimate; the adapter halves what is too large. */
const DOCUMENT_BYTES = 700;
/** A backlog fills requests faster than this; single events do not. */
const FAST_PER_MS = 1;
/** With the usual linger a tenth of a second, which in a backlog is nothing. */
const LINGERS_MAX = 5;
/** A push-back is waited out this long at first, doubling, with jitter; expiry (30 s) ends it, and then it is a fault. */
const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 5_000;

/** Creates the writer. Its queue is bounded by its callers: each message in hand waits for its own writes. */
export function createBulkWriter({ objects, clock, telemetry, limits }: WriterDependencies): BulkWriter {
  const requests = new PQueue({ concurrency: limits.concurrency });
  const linger = createLinger(clock, limits.lingerMs, () => pump(true));
  let pending: Pending[] = [];
  let pendingBytes = 0;
  let pushBacks = 0;

  function write(request: WriteRequest): Promise<WriteAnswer> {
    return new Promise((resolve) => {
      const sizeBytes = DOCUMENT_BYTES + 4 * request.document.key.length + enrichedBytes(request.document);
      add({ request, sizeBytes, answer: resolve, pushBack: undefined });
      pump(false);
    });
  }

  function add(entry: Pending): void {
    pending.push(entry);
    linger.added();
    pendingBytes += entry.sizeBytes;
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
    // not at each of a thousand writes, between which nothing begins or ends
    if ((mustWait && linger.begin()) || lingered)
      telemetry.bulkQueue({ actionsQueued: pending.length, requestsInFlight: requests.pending });
  }

  function isFull(): boolean {
    return pending.length >= limits.actionsMax || pendingBytes >= limits.bytesMax;
  }

  function takeBatch(): Pending[] {
    let count = 0;
    let bytes = 0;
    for (const { sizeBytes } of pending.slice(0, limits.actionsMax)) {
      if (count > 0 && bytes + sizeBytes > limits.bytesMax) break;
      bytes += sizeBytes;
      count += 1;
    }
    const batch = pending.slice(0, count);
    pending = pending.slice(count);
    pendingBytes -= bytes;
    return batch;
  }

  async function send(batch: readonly Pending[]): Promise<void> {
    const nowMs = clock.monotonicMs();
    const live = batch.filter((entry) => entry.request.expiresAtMs > nowMs);
    answerExpired(batch.filter((entry) => entry.request.expiresAtMs <= nowMs));
    if (live.length === 0) return;
    try {
      const answers = await objects.write(live.map((entry) => entry.request));
      bulkSent(live, nowMs, 'ok');
      await deliver(live, answers);
    } catch (error) {
      const fault = faultOf(error);
      bulkSent(live, nowMs, fault);
      await deliver(
        live,
        live.map(() => ({ kind: 'fault', ...fault }) as const),
      );
    }
  }

  async function deliver(batch: readonly Pending[], answers: readonly IndexWriteAnswer[]): Promise<void> {
    const pushedBack: Pending[] = [];
    const equal: Pending[] = [];
    batch.forEach((entry, index) => {
      const answer = answers[index] ?? {
        kind: 'fault',
        code: 'internal.unexpected',
        reason: 'the store answered fewer writes than it was sent',
      };
      if (answer.kind === 'equal') equal.push(entry);
      else if (answer.kind !== 'fault') entry.answer(answer);
      else if (answer.code === 'index.overloaded') pushedBack.push(pushBackOf(entry, answer));
      else entry.answer({ kind: 'fault', fault: faultIn(answer) });
    });
    countAnswers(answers, telemetry);
    await Promise.all([answerEqual(equal), sendAgain(pushedBack)]);
    if (pushedBack.length === 0) pushBacks = 0;
  }

  /** Rule 12: the same content at the same clock is a repeat; other content is a tie, which is not an order. */
  async function answerEqual(equal: readonly Pending[]): Promise<void> {
    for (const [bucket, entries] of Map.groupBy(equal, (entry) => entry.request.document.bucket)) {
      try {
        const stored = await objects.getMany(
          bucket,
          entries.map((entry) => entry.request.document.key),
        );
        entries.forEach((entry, index) => entry.answer({ kind: isRepeat(entry.request, stored[index]) ? 'stale' : 'tie' }));
      } catch (error) {
        for (const entry of entries) entry.answer({ kind: 'fault', fault: faultOf(error) });
      }
    }
  }

  /** Holds this request's place while backing off, which is what slows the pollers down; then half of the batch at a time. */
  async function sendAgain(pushedBack: readonly Pending[]): Promise<void> {
    if (pushedBack.length === 0) return;
    pushBacks += 1;
    const delayMs = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(pushBacks - 1, 10));
    await clock.sleep(delayMs * (0.5 + Math.random() / 2));
    const half = Math.ceil(pushedBack.length / 2);
    await send(pushedBack.slice(0, half));
    if (half < pushedBack.length) await send(pushedBack.slice(half));
  }

  function answerExpired(expired: readonly Pending[]): void {
    if (expired.length > 0) telemetry.bulkAnswered('expired', expired.length);
    for (const entry of expired) {
      // pushed back until it expired: the store as a whole takes nothing now
      entry.answer(entry.pushBack === undefined ? { kind: 'expired' } : { kind: 'fault', fault: entry.pushBack });
    }
  }

  function bulkSent(batch: readonly Pending[], startedMs: number, result: 'ok' | Fault): void {
    const sizeBytes = batch.reduce((sum, entry) => sum + entry.sizeBytes, 0);
    const durationMs = clock.monotonicMs() - startedMs;
    telemetry.bulkSent({ actions: batch.length, sizeBytes, durationMs, result: result === 'ok' ? 'ok' : result.code });
  }

  return { write };
}

function countAnswers(answers: readonly IndexWriteAnswer[], telemetry: Telemetry): void {
  for (const [kind, alike] of Map.groupBy(answers, (answer) => answer.kind)) telemetry.bulkAnswered(kind, alike.length);
}

interface Linger {
  /** Something is there to be sent. */
  added(): void;
  /** Begins to linger, unless it does already; answers whether it began. */
  begin(): boolean;
  /** Whether it lingers on because the request fills fast. */
  readonly isFast: boolean;
}

/** Lingers once, and on for as long as the request fills fast: then nobody waits for any one write, and large requests cost a store least. */
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

function pushBackOf(entry: Pending, fault: Fault): Pending {
  entry.pushBack = faultIn(fault);
  return entry;
}

function faultIn({ code, reason }: Fault): Fault {
  return { code, reason };
}

function isRepeat(request: WriteRequest, stored: IndexWrite['document'] | undefined): boolean {
  if (stored === undefined) return false;
  // another clock by now means that something newer was written since: as good as stale
  if (stored.clock !== request.document.clock) return true;
  // an unsettled document is no repeat of a settled fact: looking again settles it
  return stored.settled && sameContent(stored, request.document);
}
