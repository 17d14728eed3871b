/**
 * One bulk request, as the live path's writer and re-index's writer send it: what fits into it, what each answer of the store
 * means, and how long to wait after a push-back (429).
 */
import type { ObjectDocument } from '../../domain/documents/document.ts';
import { enrichedBytes } from '../../domain/enrichment.ts';
import { circuitOf, faultOf, type Fault } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { IndexWrite, IndexWriteAnswer, ObjectIndex } from '../ports/object-index.ts';
import { labelOf } from '../ports/series.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { Circuits } from '../serving/circuits.ts';

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

export function bytesOf(batch: readonly QueuedWrite[]): number {
  return batch.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

/** Returns how long to wait after this many consecutive push-backs. The wait doubles each time and has jitter. */
export function backoffMs(pushBacks: number, { minMs, maxMs }: { readonly minMs: number; readonly maxMs: number }): number {
  return Math.min(maxMs, minMs * 2 ** Math.min(pushBacks - 1, 10)) * (0.5 + Math.random() / 2);
}

/** The writes of a request that are not answered yet. */
export interface Unfinished<Entry> {
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

interface SenderDependencies {
  readonly objects: Pick<ObjectIndex, 'write'>;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
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
      // push-backs first wait in the lane of their index
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
