/**
 * Enrichment: reads the metadata and tags that a bucket's record asks for and that events do not contain. It never delays what is
 * known: if S3 refuses an answer, or it is late or belongs to another object, it is left out and counted.
 *
 *   exact event   of a lasting version: HEAD of the version, then its tags
 *                 otherwise: the present tags, then HEAD with If-Match, which proves whose tags they were
 *   observation   of a lasting version: its tags
 *                 otherwise: the present tags, then another HEAD, which must see the same object
 */
import type { BucketRecord } from '../records/bucket.ts';
import type { ObjectState, PresentState } from '../ordering/document.ts';
import {
  asAskedFor,
  enrichedState,
  isEnriched,
  isLastingVersion,
  isSameObject,
  plainDocument,
  type EnrichRequestKind,
  type EnrichResult,
} from '../ordering/enrichment.ts';
import { circuitOf, faultOf, faults, isFaultCode, type Fault, type FaultCode } from '../base/fault.ts';
import type { ObjectStorage } from '../aws/storage.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { enrichmentCircuits, type Circuits, type Turns } from './circuits.ts';
import type { HeadQueue } from './head-queue.ts';
import type { WriteDocument, WriteRequest } from './bulk-writer.ts';
import type { WithPorts, WriteAnswer } from '../store/store.ts';

/** How much of an answer's or a decision's life (P) is left for the write, so that nothing expires because of enrichment. */
const WRITE_TIME_MS = 20_000;
const TIME_IS_OVER = new Error('the time for enrichment is over');
const PAUSED = { result: 'paused' } as const;
const LISTED = { result: 'listed' } as const;
const LISTED_FAULT: Fault = { code: 'object.denied', reason: 'S3 refuses HEAD requests, and only lists the objects' };
const NOT_ASKED_FOR = { result: 'ok' } as const;
const LATE_ANSWER: Fault = { code: 's3.unavailable', reason: 'S3 did not answer in time for enrichment' };

export interface EnrichRequest<State extends ObjectState> {
  readonly bucket: Pick<BucketRecord, 'bucket' | 'region' | 'account' | 'enrich'>;
  readonly key: string;
  readonly state: State;
  /** When the write of this decision or answer expires, by the monotonic clock (rule 9). */
  readonly expiresAtMs: number;
}

/** How reading an object's tags ended. */
export type TagsRead = { readonly result: 'ok' } | Refusal;

export interface Enricher {
  /** Returns an exact event's state with what S3 adds for that version. Waits for a place in the HEAD queue. Never rejects. */
  ofEvent(request: EnrichRequest<PresentState>): Promise<PresentState>;
  /**
   * Returns the observed state, limited to what the bucket asks for, with the tags, and how reading them ended: `ok` if the bucket does
   * not ask for them. The caller has a place in the HEAD queue. Never rejects.
   */
  ofObservation(request: EnrichRequest<ObjectState>): Promise<{ readonly state: ObjectState; readonly tags: TagsRead }>;
}

export interface EnricherDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly storage: Pick<ObjectStorage, 'readVersion' | 'readTags'>;
  readonly heads: HeadQueue;
  readonly circuits: Pick<Circuits, 'mayTry' | 'notTried' | 'storageAnswered' | 'enrichmentRefused' | 'openOf'>;
  /** Aborted at the deadline of the stop; running requests then count as late. */
  readonly stopped: AbortSignal;
}

type Refusal = { readonly result: Exclude<EnrichResult, 'ok'>; readonly reason?: string };
type Reading<Value> = { readonly result: 'ok'; readonly value: Value } | Refusal;
type Tags = NonNullable<PresentState['tags']>;

/** A request that may be sent, with the open circuits at which it is the attempt. */
type Permitted<Request> = Request & { readonly turns: Turns };

/** Creates the enricher. */
export function createEnricher(dependencies: EnricherDependencies): Enricher {
  const { storage, heads, circuits, clock, telemetry, stopped } = dependencies;

  async function ofEvent(request: EnrichRequest<PresentState>): Promise<PresentState> {
    // an enrichment request is an attempt too; while S3 does not answer, the document is written without it instead of waiting
    const turns: Turns = new Map();
    if (!circuits.mayTry(enrichmentCircuits(request.bucket), turns, true)) return withoutReading(request, PAUSED);
    return withinTime(request, async (signal) => {
      let begun: Promise<PresentState> | undefined;
      const begin = (): Promise<PresentState> => (begun = readEvent({ ...request, turns }, signal));
      return heads.run(request.bucket, begin, signal).catch(() => {
        // it ends by the same signal
        if (begun !== undefined) return begun;
        // no place was free in time
        circuits.notTried(turns);
        return withoutReading(request, { result: 'late' });
      });
    });
  }

  async function ofObservation(request: EnrichRequest<ObjectState>): ReturnType<Enricher['ofObservation']> {
    const { bucket, key, state } = request;
    if (!state.present) return { state, tags: NOT_ASKED_FOR };
    const asked = { ...request, state: asAskedFor(bucket.enrich, state) };
    if (bucket.enrich === 'none') return { state: asked.state, tags: NOT_ASKED_FOR };
    // only a HEAD has the user metadata, so this state is from a listing: S3 refused the HEAD, and would refuse another
    if (state.userMetadata === undefined) {
      circuits.enrichmentRefused(bucket.bucket, key, LISTED_FAULT);
      return { state: withoutReading(asked, LISTED), tags: bucket.enrich === 'tags' ? LISTED : NOT_ASKED_FOR };
    }
    report(bucket, 'head', { result: 'ok' });
    if (bucket.enrich === 'head') return { state: asked.state, tags: NOT_ASKED_FOR };
    const turns: Turns = new Map();
    if (!circuits.mayTry(enrichmentCircuits(bucket), turns, true)) return { state: withTags(asked, PAUSED), tags: PAUSED };
    const tags = await withinTime(request, (signal) => readObservedTags({ ...asked, turns }, signal));
    return { state: withTags(asked, tags), tags };
  }

  /** Runs the work with a signal that is aborted when the time for enrichment is over. */
  async function withinTime<Result>(
    { expiresAtMs }: EnrichRequest<ObjectState>,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const limit = new AbortController();
    const ended = new AbortController();
    const leftMs = expiresAtMs - WRITE_TIME_MS - clock.monotonicMs();
    if (leftMs <= 0) limit.abort(TIME_IS_OVER);
    else
      clock.sleep(leftMs, ended.signal).then(
        () => limit.abort(TIME_IS_OVER),
        () => undefined,
      );
    try {
      return await work(AbortSignal.any([stopped, limit.signal]));
    } finally {
      ended.abort(TIME_IS_OVER);
    }
  }

  async function readEvent(request: Permitted<EnrichRequest<PresentState>>, signal: AbortSignal): Promise<PresentState> {
    const { bucket, state } = request;
    const asksTags = bucket.enrich === 'tags';
    const before = asksTags && !isLastingVersion(state.versionId) ? await readTags(request, signal) : undefined;
    const head = await readHead(request, signal);
    report(bucket, 'head', head);
    const enriched = head.result === 'ok' ? { ...request, state: head.value } : request;
    if (!asksTags) return enriched.state;
    if (before === undefined) return withTags(enriched, await readTags(request, signal));
    // only the HEAD proves that the tags belong to the event's object
    return withTags(enriched, head.result === 'ok' ? before : head);
  }

  async function readObservedTags(request: Permitted<EnrichRequest<PresentState>>, signal: AbortSignal): Promise<Reading<Tags>> {
    const { bucket, key, state } = request;
    const { versionId, etag } = state;
    const tags = await readTags(request, signal);
    if (tags.result !== 'ok' || isLastingVersion(versionId)) return tags;
    const version = { key, ...(versionId !== undefined && { versionId }), ...(etag !== undefined && { etag }) };
    const again = await reading(request, signal, () => storage.readVersion(bucket, version, signal));
    if (again.result !== 'ok') return again;
    return isSameObject(state, again.value) ? tags : { result: 'gone' };
  }

  function readHead(request: Permitted<EnrichRequest<PresentState>>, signal: AbortSignal): Promise<Reading<PresentState>> {
    const { bucket, key, state } = request;
    const { versionId, etag } = state;
    const condition = isLastingVersion(versionId) || etag === undefined ? {} : { etag };
    const version = { key, ...condition, ...(versionId !== undefined && { versionId }) };
    return reading(request, signal, async () => {
      const seen = await storage.readVersion(bucket, version, signal);
      return seen === 'gone' ? seen : (enrichedState(state, seen) ?? 'gone');
    });
  }

  function readTags(request: Permitted<EnrichRequest<PresentState>>, signal: AbortSignal): Promise<Reading<Tags>> {
    const { bucket, key } = request;
    const { versionId } = request.state;
    const version = { key, ...(versionId !== undefined && { versionId }) };
    return reading(request, signal, () => storage.readTags(bucket, version, signal));
  }

  async function reading<Value extends object>(
    { bucket, key, turns }: Permitted<Pick<EnrichRequest<ObjectState>, 'bucket' | 'key'>>,
    signal: AbortSignal,
    ask: () => Promise<Value | 'gone'>,
  ): Promise<Reading<Value>> {
    if (signal.aborted) return { result: 'late' };
    // the circuit opened while this request waited, so it is not the permitted attempt
    if (turns.size === 0 && circuits.openOf(enrichmentCircuits(bucket)) !== undefined) return { result: 'paused' };
    const sentAtMs = clock.monotonicMs();
    try {
      const value = await ask();
      circuits.storageAnswered(bucket, { key, sentAtMs, enriches: true });
      return value === 'gone' ? { result: 'gone' } : { result: 'ok', value };
    } catch (error) {
      const fault = signal.aborted ? LATE_ANSWER : faultOf(error);
      if (!stopped.aborted) noteFault(circuits, bucket, { key, sentAtMs, fault });
      return signal.aborted ? { result: 'late' } : { result: fault.code, reason: fault.reason };
    }
  }

  function withTags({ bucket, state }: EnrichRequest<PresentState>, tags: Reading<Tags>): PresentState {
    report(bucket, 'tags', tags);
    return tags.result === 'ok' ? { ...state, tags: tags.value } : state;
  }

  /** Reports that none of the enrichment was read, and returns the state as it was. */
  function withoutReading<State>({ bucket, state }: EnrichRequest<ObjectState> & { readonly state: State }, refusal: Refusal): State {
    report(bucket, 'head', refusal);
    if (bucket.enrich === 'tags') report(bucket, 'tags', refusal);
    return state;
  }

  function report({ bucket }: EnrichRequest<ObjectState>['bucket'], enrich: EnrichRequestKind, how: TagsRead): void {
    reportEnriched(telemetry, { bucket, enrich, ...how });
  }

  return { ofEvent, ofObservation };
}

function noteFault(
  circuits: EnricherDependencies['circuits'],
  bucket: EnrichRequest<ObjectState>['bucket'],
  request: { readonly key: string; readonly sentAtMs: number; readonly fault: Fault },
): void {
  const { code } = request.fault;
  // a refusal of one object says nothing about the bucket: an observation would list it instead
  if (circuitOf(code) !== 'object') circuits.storageAnswered(bucket, { ...request, enriches: true });
  else if (code === 'object.denied') circuits.enrichmentRefused(bucket.bucket, request.key, request.fault);
}

/** How one step of enriching one live document ended. */
interface EnrichFact {
  readonly bucket: string;
  readonly enrich: EnrichRequestKind;
  readonly result: EnrichResult;
  /** The reason of a fault. It may contain the key. */
  readonly reason?: string | undefined;
}

/** Counts a step of enrichment, and warns if the document is written without what it would have added. */
function reportEnriched(telemetry: Telemetry, { bucket, enrich, result, reason }: EnrichFact): void {
  telemetry.count('tally_enrich_total', 1, { enrich, result });
  // if the object was overwritten or deleted since, that has its own event
  if (result === 'ok' || result === 'gone') return;
  const advice = isFaultCode(result) ? { advice: faults[result].advice } : {};
  const fields = { bucket, enrich, result, reason, ...advice };
  telemetry.warnOnce('documents are written without enrichment', `${bucket} ${enrich} ${result}`, fields);
}

// ── documents that the index refuses because of their enrichment ───────────────────────────────────────────────────

/**
 * The faults of a field that the index does not accept, because of its value or because the mapping lacks it. If the index has
 * accepted no other document for a while, the refusal looks like a mistake in its configuration.
 */
const REFUSALS: ReadonlySet<FaultCode> = new Set(['index.rejected', 'bucket.index-misconfigured']);

/** Wraps the writer: if the index refuses an enriched document because of a field, that is counted, and the document is written without enrichment. */
export function withPlainFallback(write: WriteDocument, telemetry: Telemetry): WriteDocument {
  return async function writeOrPlain(request) {
    const answer = await write(request);
    const again = plainRetryOf(telemetry, request, answer);
    return again === undefined ? answer : write(again);
  };
}

type WriteDocuments = (writes: readonly WriteRequest[], signal?: AbortSignal) => Promise<readonly WriteAnswer[]>;

/** Wraps a writer of many documents in the same way. Those refused are written again together. */
export function withPlainFallbacks(writeAll: WriteDocuments, telemetry: Telemetry): WriteDocuments {
  return async function writeAllOrPlain(writes, signal) {
    const answers = await writeAll(writes, signal);
    const again = writes.map((request, at) => plainRetryOf(telemetry, request, answers[at]));
    const refused = again.filter((request) => request !== undefined);
    if (refused.length === 0) return answers;
    const others = (await writeAll(refused, signal)).values();
    return answers.map((answer, at) => (again[at] === undefined ? answer : (others.next().value ?? answer)));
  };
}

/** The write without enrichment, if the index refused a field of the document; undefined for any other answer. */
function plainRetryOf(telemetry: Telemetry, request: WriteRequest, answer: WriteAnswer | undefined): WriteRequest | undefined {
  const { document } = request;
  if (answer?.kind !== 'fault' || !REFUSALS.has(answer.fault.code) || !isEnriched(document)) return undefined;
  const { bucket, tags } = document;
  const { code: result, reason } = answer.fault;
  reportEnriched(telemetry, { bucket, enrich: 'head', result, reason });
  if (tags !== undefined) reportEnriched(telemetry, { bucket, enrich: 'tags', result, reason });
  return { ...request, document: plainDocument(document) };
}
