/**
 * Enrichment: reads what a bucket's record asks for beyond events and looks, and never holds back what is known. Whatever
 * is refused, late or about another object is left out and counted.
 *
 *   exact event   a lasting version: HEAD of it, its tags
 *                 else: the present tags, then HEAD with If-Match, which says whose they were
 *   look          a lasting version: its tags
 *                 else: the present tags, then HEAD again, which must see the same object
 */
import type { BucketRecord } from '../../domain/bucket.ts';
import type { ObjectState, PresentState } from '../../domain/documents/document.ts';
import type { EnrichResult, EnrichStep } from '../../domain/documents/enrichment.ts';
import { asAskedFor, enrichedState, isLastingVersion, isSameObject } from '../../domain/documents/enrichment.ts';
import { faultOf, scopeOf } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { Traced } from '../ports/tracing.ts';
import type { EnrichBreaker } from './enrich-breaker.ts';
import type { HeadQueue } from './head-queue.ts';

/** What the write keeps of the life of an answer or decision (30 s): so nothing expires by being enriched, and enrichment takes 10 s at most. */
const WRITE_TIME_MS = 20_000;
const LATE = new Error('enrichment took its whole time');

export interface EnrichRequest<State extends ObjectState> {
  readonly bucket: Pick<BucketRecord, 'bucket' | 'region' | 'enrich'> & Traced;
  readonly key: string;
  readonly state: State;
  /** Monotonic: when the write of this decision or answer expires (rule 9). */
  readonly expiresAtMs: number;
}

export interface Enricher {
  /** What an exact event stated, with what S3 adds to that version. Waits for a place among the HEADs. Never rejects. */
  ofEvent(request: EnrichRequest<PresentState>): Promise<PresentState>;
  /** What a look saw, as far as the bucket asks for it, with the tags. The caller holds a place among the HEADs. Never rejects. */
  ofLook(request: EnrichRequest<ObjectState>): Promise<ObjectState>;
}

interface EnricherDependencies {
  readonly storage: Pick<ObjectStorage, 'readVersion' | 'readTags'>;
  readonly heads: HeadQueue;
  readonly breaker: EnrichBreaker;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Aborted at the stop's deadline: what is asked for is late then. */
  readonly stopped: AbortSignal;
}

type Refusal = { readonly result: Exclude<EnrichResult, 'ok'>; readonly reason?: string };
type Reading<Value> = { readonly result: 'ok'; readonly value: Value } | Refusal;
type Tags = NonNullable<PresentState['tags']>;

/** Creates the enricher. */
export function createEnricher(dependencies: EnricherDependencies): Enricher {
  const { storage, heads, breaker, clock, telemetry, stopped } = dependencies;

  async function ofEvent(request: EnrichRequest<PresentState>): Promise<PresentState> {
    if (breaker.isPaused(request.bucket.bucket)) return left(request, { result: 'paused' });
    return withinTime(request, async (signal) => {
      let begun: Promise<PresentState> | undefined;
      const begin = (): Promise<PresentState> => (begun = readEvent(request, signal));
      // no place in time; what has begun notices the end of its time by itself
      return heads.run(begin, signal).catch(() => begun ?? left(request, { result: 'late' }));
    });
  }

  async function ofLook(request: EnrichRequest<ObjectState>): Promise<ObjectState> {
    const { bucket, state } = request;
    if (!state.present) return state;
    const asked = { ...request, state: asAskedFor(bucket.enrich, state) };
    if (bucket.enrich === 'none') return asked.state;
    // a HEAD always says which user metadata there is; a listing never does, and what it saw cannot be seen again by a HEAD
    if (state.userMetadata === undefined) return left(asked, { result: 'listed' });
    tell(bucket, 'head', { result: 'ok' });
    if (bucket.enrich === 'head') return asked.state;
    const tags = breaker.isPaused(bucket.bucket)
      ? ({ result: 'paused' } as const)
      : await withinTime(request, (signal) => readLookTags(asked, signal));
    return withTags(asked, tags);
  }

  /** Gives the work the time that there is, and the signal that ends with it. */
  async function withinTime<Result>(
    { expiresAtMs }: EnrichRequest<ObjectState>,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const limit = new AbortController();
    const ended = new AbortController();
    const leftMs = expiresAtMs - WRITE_TIME_MS - clock.monotonicMs();
    if (leftMs <= 0) limit.abort(LATE);
    else
      clock.sleep(leftMs, ended.signal).then(
        () => limit.abort(LATE),
        () => undefined,
      );
    try {
      return await work(AbortSignal.any([stopped, limit.signal]));
    } finally {
      ended.abort(LATE);
    }
  }

  async function readEvent(request: EnrichRequest<PresentState>, signal: AbortSignal): Promise<PresentState> {
    const { bucket, state } = request;
    const asksTags = bucket.enrich === 'tags';
    const before = asksTags && !isLastingVersion(state.versionId) ? await readTags(request, signal) : undefined;
    const head = await readHead(request, signal);
    tell(bucket, 'head', head);
    const enriched = head.result === 'ok' ? { ...request, state: head.value } : request;
    if (!asksTags) return enriched.state;
    if (before === undefined) return withTags(enriched, await readTags(request, signal));
    // that they are the event's is known from the HEAD only
    return withTags(enriched, head.result === 'ok' ? before : head);
  }

  async function readLookTags(request: EnrichRequest<PresentState>, signal: AbortSignal): Promise<Reading<Tags>> {
    const { bucket, key, state } = request;
    const { versionId, etag } = state;
    const tags = await readTags(request, signal);
    if (tags.result !== 'ok' || isLastingVersion(versionId)) return tags;
    const version = { key, ...(versionId !== undefined && { versionId }), ...(etag !== undefined && { etag }) };
    const again = await reading(bucket.bucket, signal, () => storage.readVersion(bucket, version, signal));
    if (again.result !== 'ok') return again;
    return isSameObject(state, again.value) ? tags : { result: 'gone' };
  }

  function readHead({ bucket, key, state }: EnrichRequest<PresentState>, signal: AbortSignal): Promise<Reading<PresentState>> {
    const { versionId, etag } = state;
    const condition = isLastingVersion(versionId) || etag === undefined ? {} : { etag };
    const version = { key, ...condition, ...(versionId !== undefined && { versionId }) };
    return reading(bucket.bucket, signal, async () => {
      const seen = await storage.readVersion(bucket, version, signal);
      return seen === 'gone' ? seen : (enrichedState(state, seen) ?? 'gone');
    });
  }

  function readTags({ bucket, key, state: { versionId } }: EnrichRequest<PresentState>, signal: AbortSignal): Promise<Reading<Tags>> {
    const version = { key, ...(versionId !== undefined && { versionId }) };
    return reading(bucket.bucket, signal, () => storage.readTags(bucket, version, signal));
  }

  async function reading<Value extends object>(
    bucket: string,
    signal: AbortSignal,
    ask: () => Promise<Value | 'gone'>,
  ): Promise<Reading<Value>> {
    if (signal.aborted) return { result: 'late' };
    if (!breaker.admits(bucket)) return { result: 'paused' };
    try {
      const value = await ask();
      breaker.answered(bucket);
      return value === 'gone' ? { result: 'gone' } : { result: 'ok', value };
    } catch (error) {
      const { code, reason } = faultOf(error);
      if (signal.aborted || scopeOf(code) !== 'own') breaker.failed(bucket);
      else breaker.answered(bucket);
      return signal.aborted ? { result: 'late' } : { result: code, reason };
    }
  }

  function withTags({ bucket, state }: EnrichRequest<PresentState>, tags: Reading<Tags>): PresentState {
    tell(bucket, 'tags', tags);
    return tags.result === 'ok' ? { ...state, tags: tags.value } : state;
  }

  /** Nothing of what the bucket asks for was read. */
  function left<State>({ bucket, state }: EnrichRequest<ObjectState> & { readonly state: State }, refusal: Refusal): State {
    tell(bucket, 'head', refusal);
    if (bucket.enrich === 'tags') tell(bucket, 'tags', refusal);
    return state;
  }

  function tell({ bucket }: EnrichRequest<ObjectState>['bucket'], enrich: EnrichStep, how: Refusal | { readonly result: 'ok' }): void {
    const reason = 'reason' in how && how.reason !== undefined ? { reason: how.reason } : {};
    telemetry.enriched({ bucket, enrich, result: how.result, ...reason });
  }

  return { ofEvent, ofLook };
}
