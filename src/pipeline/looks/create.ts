/** Joins the parts that read single objects from S3 and write the answers. They share one bounded queue of requests. */
import { createObserver, type Observe } from './observer.ts';
import type { WriteDocument } from './bulk-writer.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { createEnrichBreaker } from './enrich-breaker.ts';
import { createEnricher, type Enricher } from './enricher.ts';
import { createHeadQueue } from './head-queue.ts';

interface LooksDependencies {
  readonly storage: ObjectStorage;
  readonly write: WriteDocument;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** How many HEADs and enrichment requests may run at the same time. */
  readonly concurrency: number;
  /** Aborted at the deadline of the stop; looks end then. */
  readonly stopped: AbortSignal;
}

export interface Looks {
  readonly observe: Observe;
  readonly enricher: Enricher;
}

/** Joins the parts. */
export function createLooks({ storage, write, clock, telemetry, concurrency, stopped }: LooksDependencies): Looks {
  const shared = { storage, heads: createHeadQueue({ concurrency, telemetry }), stopped, clock, telemetry };
  const enricher = createEnricher({ ...shared, breaker: createEnrichBreaker({ clock }) });
  return { enricher, observe: createObserver({ ...shared, write, enricher }) };
}
