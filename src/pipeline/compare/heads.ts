import PQueue from 'p-queue';
import type { BucketRecord } from '../../domain/bucket.ts';
import type { ObjectState } from '../../domain/documents/document.ts';
import type { EnrichResult } from '../../domain/enrichment.ts';
import { FaultError, faultOf, isFaultCode } from '../../domain/fault.ts';
import { ANSWER_LIFE_MS } from '../../domain/ordering/constants.ts';
import { createEnricher, type EnricherDependencies, type EnrichRequest } from '../looks/enricher.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectStorage, Observation } from '../ports/storage.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { Circuits } from '../serving/circuits.ts';

/** What a HEAD saw, and until when it may be written (monotonic, rule 9), counted from before the request. */
export interface Look extends Observation {
  readonly expiresAtMs: number;
}

/** Sends a HEAD for one key and enriches the answer as its bucket requires. Throws S3's fault, or the signal's reason. */
export type Head = (
  request: {
    readonly bucket: BucketRecord;
    readonly key: string;
    /** Whether an answer without the object's tags is a fault, unless S3 does not permit to read them. */
    readonly needsTags: boolean;
    /** Called when the request is sent. */
    readonly onRequest: () => void;
  },
  signal: AbortSignal,
) => Promise<Look>;

interface HeadsDependencies {
  readonly storage: ObjectStorage;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly circuits: Circuits;
  /** The number of HEADs that run at the same time over all turns of the process. The rest of the capacity is for the live path. */
  readonly concurrency: number;
}

/** Creates the HEADs of re-index. They are bounded in number and counted like the live path's. */
export function createHeads({ storage, clock, telemetry, circuits, concurrency }: HeadsDependencies): Head {
  const heads = new PQueue({ concurrency });
  const parts: EnricherParts = {
    storage,
    heads: { run: (_, task) => task(), report: () => undefined },
    clock,
    telemetry,
    // never aborted: one enrichment takes 10 s at most, so a stop waits no longer for it
    stopped: new AbortController().signal,
  };
  const enricher = createEnricher({ ...parts, circuits });

  return async function head({ bucket, key, needsTags, onRequest }, signal) {
    return heads.add(
      async () => {
        onRequest();
        // counted from here and not from the call: the last of hundreds of HEADs would be too old before it was sent
        const startedMs = clock.monotonicMs();
        const expiresAtMs = startedMs + ANSWER_LIFE_MS;
        const sent = (result: Parameters<Telemetry['headSent']>[0]['result']): void =>
          telemetry.headSent({ durationMs: clock.monotonicMs() - startedMs, result });
        try {
          const seen = await storage.observe(bucket, key, signal);
          sent(seen.state.present ? 'present' : 'absent');
          circuits.looked(bucket, { key, sentAtMs: startedMs });
          const request = { bucket, key, state: seen.state, expiresAtMs };
          const state = await (needsTags ? lookWithTags(parts, request) : enricher.ofLook(request));
          return { ...seen, state, expiresAtMs };
        } catch (error) {
          signal.throwIfAborted();
          const fault = faultOf(error);
          sent(fault.code);
          circuits.looked(bucket, { key, sentAtMs: startedMs, fault });
          throw error;
        }
      },
      { signal },
    );
  };
}

type EnricherParts = Omit<EnricherDependencies, 'circuits'>;

/** Every answer counts here, so no request is left out. */
const NO_CIRCUITS: EnricherDependencies['circuits'] = {
  take: () => ({ ids: [], leave: () => undefined }),
  openOf: () => undefined,
  looked: () => undefined,
};

/**
 * The state with the tags that S3 has now. Without the permission to read them it has none, as a document written for an event
 * has none. Throws what else kept them from being read.
 */
async function lookWithTags(parts: EnricherParts, request: EnrichRequest<ObjectState>): Promise<ObjectState> {
  let read: { readonly result: EnrichResult; readonly reason?: string } = { result: 'ok' };
  const telemetry: Telemetry = {
    ...parts.telemetry,
    enriched(fact) {
      parts.telemetry.enriched(fact);
      if (fact.enrich === 'tags') read = fact;
    },
  };
  const state = await createEnricher({ ...parts, telemetry, circuits: NO_CIRCUITS }).ofLook(request);
  const { result, reason = `the tags of ${request.key} could not be read in time` } = read;
  if (result === 'ok' || result === 'listed' || result === 'object.denied') return state;
  if (result === 'gone') throw new FaultError('object.failed', `${request.key} changed while its tags were read`);
  throw new FaultError(isFaultCode(result) ? result : 's3.unavailable', reason);
}
