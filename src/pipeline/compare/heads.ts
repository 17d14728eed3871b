import PQueue from 'p-queue';
import type { BucketRecord } from '../../domain/bucket.ts';
import { faultOf } from '../../domain/fault.ts';
import { ANSWER_LIFE_MS } from '../../domain/ordering/constants.ts';
import { createEnrichBreaker } from '../looks/enrich-breaker.ts';
import { createEnricher } from '../looks/enricher.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectStorage, Observation } from '../ports/storage.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** What a look saw, and until when that may be written (monotonic, rule 9): its life is counted from before it was asked for. */
export interface Look extends Observation {
  readonly expiresAtMs: number;
}

/** Looks at one key, as far as its bucket is enriched. Throws S3's fault, or the signal's reason. */
export type Head = (
  request: {
    readonly bucket: BucketRecord;
    readonly key: string;
    /** Told when the request is made. */
    readonly asked: () => void;
  },
  signal: AbortSignal,
) => Promise<Look>;

interface HeadsDependencies {
  readonly storage: ObjectStorage;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** At once, of all turns of the process: the live path's looks must find room beside them. */
  readonly concurrency: number;
}

/** Creates the looks of re-index: bounded in number, counted as the live path's are. */
export function createHeads({ storage, clock, telemetry, concurrency }: HeadsDependencies): Head {
  const heads = new PQueue({ concurrency });
  // as the live path's looks; 10 s at most, so no stop waits for it longer
  const enricher = createEnricher({
    storage,
    heads: { run: (task) => task(), tell: () => undefined },
    breaker: createEnrichBreaker({ clock }),
    clock,
    telemetry,
    stopped: new AbortController().signal,
  });

  return async function head({ bucket, key, asked }, signal) {
    return heads.add(
      async () => {
        asked();
        // not while it waited for its place: of hundreds of looks the last would be too old when it began
        const startedMs = clock.monotonicMs();
        const expiresAtMs = startedMs + ANSWER_LIFE_MS;
        const sent = (result: Parameters<Telemetry['headSent']>[0]['result']): void =>
          telemetry.headSent({ durationMs: clock.monotonicMs() - startedMs, result });
        try {
          const seen = await storage.observe(bucket, key, signal);
          sent(seen.state.present ? 'present' : 'absent');
          const state = await enricher.ofLook({ bucket, key, state: seen.state, expiresAtMs });
          return { ...seen, state, expiresAtMs };
        } catch (error) {
          signal.throwIfAborted();
          sent(faultOf(error).code);
          throw error;
        }
      },
      { signal },
    );
  };
}
