/** All that asks S3 about single objects and writes the answers, joined: one bounded queue of requests, whoever asks. */
import { createObserver, type Observe } from './observer.ts';
import type { BulkWriter } from './bulk-writer.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { createEnrichBreaker } from './enrich-breaker.ts';
import { createEnricher, type Enricher } from './enricher.ts';
import { createHeadQueue } from './head-queue.ts';

interface LooksDependencies {
  readonly storage: ObjectStorage;
  readonly writer: BulkWriter;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Requests at once. */
  readonly concurrency: number;
  /** Aborted at the stop's deadline: looks end. */
  readonly stopped: AbortSignal;
}

export interface Looks {
  readonly observe: Observe;
  readonly enricher: Enricher;
}

/** Joins the parts. */
export function createLooks({ storage, writer, clock, telemetry, concurrency, stopped }: LooksDependencies): Looks {
  const asking = { storage, heads: createHeadQueue({ concurrency, telemetry }), stopped, clock, telemetry };
  const enricher = createEnricher({ ...asking, breaker: createEnrichBreaker({ clock }) });
  return { enricher, observe: createObserver({ ...asking, writer, enricher }) };
}
