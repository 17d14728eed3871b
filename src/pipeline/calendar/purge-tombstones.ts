/** Deletes tombstones that are no longer needed, slowly and in small batches, since there may be millions. */
import { TOMBSTONE_LIFE_MS } from '../../domain/ordering/constants.ts';
import type { ObjectMaintenance } from '../ports/object-index.ts';
import type { Clock } from '../ports/clock.ts';
import { VISIT_MAX_MS, type Visit } from './sweep.ts';

/** One transaction of SQLite, which blocks all other work for about 10 ms. */
const BATCH_TOMBSTONES = 500;
/** At most about 2,000 a second or seven million an hour: more than are written, and a small load beside live events. */
const PAUSE_MS = 250;

/** Creates the visit of one bucket, which ends after five minutes at the latest. */
export function createVisitTombstones({
  maintenance,
  clock,
}: {
  readonly maintenance: Pick<ObjectMaintenance, 'tombstones' | 'purge'>;
  readonly clock: Clock;
}): Visit {
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
