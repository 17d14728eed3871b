/** Deletes tombstones that nothing can need any more, in small batches, slowly: there may be millions. */
import { TOMBSTONE_LIFE_MS } from '../../domain/ordering/constants.ts';
import type { ObjectMaintenance } from '../ports/object-index.ts';
import type { Clock } from '../ports/clock.ts';
import type { Visit } from './sweep.ts';

/** One transaction of SQLite, which nothing is served beside: some 10 ms. */
const BATCH_TOMBSTONES = 500;
/** At most some 2,000 a second, seven million an hour: more than are made, and far below what live events need. */
const PAUSE_MS = 250;
/** What one visit may take, so that each bucket has its turn within the hour's claim; the next run goes on. */
const VISIT_MAX_MS = 300_000;

interface PurgeDependencies {
  readonly maintenance: Pick<ObjectMaintenance, 'tombstones' | 'purge'>;
  readonly clock: Clock;
}

/** Creates the visit to one bucket: five minutes at most. */
export function createVisitTombstones({ maintenance, clock }: PurgeDependencies): Visit {
  return async function visitTombstones({ bucket }, signal) {
    const deletedBeforeMs = clock.nowMs() - TOMBSTONE_LIFE_MS;
    const untilMs = clock.monotonicMs() + VISIT_MAX_MS;
    let purged = 0;
    let after = '';
    for (;;) {
      const tombstones = await maintenance.tombstones(bucket, { deletedBeforeMs, after, limit: BATCH_TOMBSTONES }, signal);
      purged += await maintenance.purge(bucket, tombstones, signal);
      after = tombstones.at(-1)?.key ?? '';
      if (tombstones.length < BATCH_TOMBSTONES || clock.monotonicMs() >= untilMs) return purged;
      await clock.sleep(PAUSE_MS, signal);
    }
  };
}
