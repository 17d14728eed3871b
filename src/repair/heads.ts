import PQueue from 'p-queue';
import type { BucketRecord } from '../records/bucket.ts';
import { compareStored } from '../ordering/agreement.ts';
import type { ObjectDocument, ObjectState } from '../ordering/document.ts';
import type { JobMode } from '../records/job.ts';
import { lackingEnrichment, type EnrichmentField, type EnrichResult } from '../ordering/enrichment.ts';
import { circuitOf, FaultError, faultOf, isFaultCode } from '../base/fault.ts';
import { ANSWER_LIFE_MS } from '../ordering/constants.ts';
import { createEnricher, type EnricherDependencies, type TagsRead } from '../observing/enricher.ts';
import { reportHead, type HeadResult } from '../observing/head-queue.ts';
import type { ObjectStorage, ObservedState } from '../aws/storage.ts';
import type { Circuits } from '../observing/circuits.ts';
import type { WithPorts } from '../store/store.ts';

/** A HEAD's answer, and until when it may be written (monotonic, rule 9), counted from before the request. */
export interface HeadAnswer extends ObservedState {
  readonly expiresAtMs: number;
}

/** Sends a HEAD for one key and enriches the answer as its bucket requires. Throws S3's fault, or the signal's reason. */
export type Head = (
  request: {
    readonly bucket: BucketRecord;
    readonly key: string;
    /** Whether an answer without the object's tags is a fault. */
    readonly tags: TagsNeed;
    /** Called when the request is sent. */
    readonly onRequest: () => void;
  },
  signal: AbortSignal,
) => Promise<HeadAnswer>;

/**
 * Whether it is a fault if tags cannot be read. `required`: always, unless S3 does not permit reading them. `wanted`: not if only
 * this object is affected, which is then answered without its tags. `optional`: never.
 */
type TagsNeed = 'required' | 'wanted' | 'optional';

interface HeadsDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly storage: ObjectStorage;
  readonly circuits: Circuits;
  /** How many HEADs run at the same time in all turns of the process. The rest of the capacity is for the live path. */
  readonly concurrency: number;
}

/** Creates re-index's HEADs, whose number is bounded, and which count in metrics like the live path's. */
export function createHeads({ storage, clock, telemetry, circuits, concurrency }: HeadsDependencies): Head {
  const heads = new PQueue({ concurrency });
  const parts: Omit<EnricherDependencies, 'circuits'> = {
    storage,
    heads: { run: (_, task) => task(), report: () => undefined },
    clock,
    telemetry,
    // never aborted: one enrichment takes at most 10 s, so a stop waits no longer for it
    stopped: new AbortController().signal,
  };
  const enricher = createEnricher({ ...parts, circuits });
  const enricherOfAll = createEnricher({ ...parts, circuits: NO_CIRCUITS });

  return async function head({ bucket, key, tags, onRequest }, signal) {
    return heads.add(
      async () => {
        onRequest();
        // counted from here, because the last of hundreds of HEADs would otherwise be too old before it was sent
        const startedMs = clock.monotonicMs();
        const expiresAtMs = startedMs + ANSWER_LIFE_MS;
        const sent = (result: HeadResult): void => reportHead(telemetry, clock.monotonicMs() - startedMs, result);
        try {
          const seen = await storage.readState(bucket, key, signal);
          sent(seen.state.present ? 'present' : 'absent');
          circuits.storageAnswered(bucket, { key, sentAtMs: startedMs });
          const request = { bucket, key, state: seen.state, expiresAtMs };
          if (tags === 'optional') return { ...seen, state: (await enricher.ofObservation(request)).state, expiresAtMs };
          return { ...seen, state: withTags(await enricherOfAll.ofObservation(request), key, tags), expiresAtMs };
        } catch (error) {
          signal.throwIfAborted();
          const fault = faultOf(error);
          sent(fault.code);
          circuits.storageAnswered(bucket, { key, sentAtMs: startedMs, fault });
          throw error;
        }
      },
      { signal },
    );
  };
}

/** Here every answer is needed, so no request is skipped. */
const NO_CIRCUITS: EnricherDependencies['circuits'] = {
  mayTry: () => true,
  notTried: () => undefined,
  openOf: () => undefined,
  storageAnswered: () => undefined,
  enrichmentRefused: () => undefined,
};

/**
 * The state with S3's present tags; without tags if reading them is not permitted, as for a document written for an event. Throws
 * whatever else kept needed tags from being read.
 */
function withTags({ state, tags }: { readonly state: ObjectState; readonly tags: TagsRead }, key: string, need: TagsNeed): ObjectState {
  if (tags.result === 'ok' || tags.result === 'listed' || tags.result === 'object.denied') return state;
  if (need === 'wanted' && isOfObject(tags.result)) return state;
  if (tags.result === 'gone') throw new FaultError('object.failed', `${key} changed while its tags were read`);
  const { result, reason = `the tags of ${key} could not be read in time` } = tags;
  throw new FaultError(isFaultCode(result) ? result : 's3.unavailable', reason);
}

/** Whether the result is about this object alone: it changed in the meantime, or S3 refuses its tags. */
function isOfObject(result: EnrichResult): boolean {
  return result === 'gone' || (isFaultCode(result) && circuitOf(result) === 'object');
}

// ── what is read from S3 besides the listing, because the bucket's documents contain more than a listing does ───────────

/** What decides whether an object is read. */
export interface Wishes {
  readonly bucket: BucketRecord;
  /** `report` writes nothing. */
  readonly mode: JobMode;
  /** Whether to read every object's tags, if the bucket's documents have tags. */
  readonly tags: boolean;
  /** Whether to write documents that only lack a field of the listing, or their bucket's enrichment. */
  readonly fill: boolean;
}

/** Whether new and changed objects are written from a HEAD: in buckets whose documents contain more than a listing does. */
export function writesFromHead({ bucket, mode }: Pick<Wishes, 'bucket' | 'mode'>): boolean {
  return mode === 'apply' && bucket.enrich !== 'none';
}

/**
 * Whether every object's tags are read, even if it agrees with its document. A job that fills in reads them too, because a document's
 * tags may be from before its bucket asked for tags again.
 */
export function readsTags({ bucket, mode, tags, fill }: Wishes): boolean {
  return mode === 'apply' && (tags || fill) && bucket.enrich === 'tags';
}

/** Whether a HEAD is sent for each object whose document lacks enrichment. */
export function fillsEnrichment({ bucket, mode, fill }: Pick<Wishes, 'bucket' | 'mode' | 'fill'>): boolean {
  return mode === 'apply' && fill && bucket.enrich !== 'none';
}

/** How much an object's tags are needed: they may be the reason for its HEAD. */
export function needOfTags(work: Wishes): TagsNeed {
  if (!readsTags(work)) return 'optional';
  return work.tags ? 'required' : 'wanted';
}

/** What the stored document lacks of its bucket's enrichment; nothing if there is no live document. */
export function lackingOf({ bucket }: Pick<Wishes, 'bucket'>, stored: ObjectDocument | undefined): readonly EnrichmentField[] {
  return stored === undefined || stored.deleted ? [] : lackingEnrichment(bucket.enrich, stored);
}

/** Whether the answer adds something that the stored document lacks, and that the job is to fill in. */
export function fillsIn(work: Wishes, seen: ObjectState, stored: ObjectDocument | undefined): boolean {
  if (!fillsEnrichment(work) || !seen.present || stored === undefined || stored.deleted) return false;
  const { userMetadata, tags } = seen;
  const read = { user_metadata: userMetadata, tags };
  return lackingOf(work, stored).some((field) => read[field] !== undefined) || compareStored(seen, stored).kind === 'incomplete';
}
