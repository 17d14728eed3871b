/** Joins the parts that read single objects from S3 and write the answers. They share one bounded queue of requests. */
import { createObserver, type Observe } from './observer.ts';
import type { WriteDocument } from './bulk-writer.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectStorage } from '../ports/storage.ts';
import type { Store } from '../ports/store.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { Circuits } from '../serving/circuits.ts';
import type { LiveLoad } from '../serving/live-load.ts';
import { createEnricher, type Enricher } from './enricher.ts';
import { createAbsenceLimit } from './absence-limit.ts';
import { createHeadQueue } from './head-queue.ts';

interface LooksDependencies {
  readonly storage: ObjectStorage;
  readonly index: Pick<Store, 'objects' | 'scan'>;
  readonly write: WriteDocument;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly circuits: Circuits;
  /** How many HEADs and enrichment requests may run at the same time. */
  readonly concurrency: number;
  /** Aborted at the deadline of the stop; looks end then. */
  readonly stopped: AbortSignal;
  /** The load of the live path; absent: the looks serve something else. */
  readonly load?: Pick<LiveLoad, 'heads'>;
}

export interface Looks {
  readonly observe: Observe;
  readonly enricher: Enricher;
}

/** Joins the parts. */
export function createLooks({ storage, index, write, clock, telemetry, circuits, concurrency, stopped, load }: LooksDependencies): Looks {
  const heads = createHeadQueue({ concurrency, clock, load, isFailing: circuits.isFailing });
  const shared = { storage, heads, stopped, clock, telemetry, circuits };
  const enricher = createEnricher(shared);
  const absences = createAbsenceLimit({ ...shared, index });
  return { enricher, observe: createObserver({ ...shared, write, enricher, absences }) };
}
