/** What the calendar deletes by its age, slowly and in small batches: tombstones and audit records. identity/purges.ts has API keys, logins and sessions. */
import { TOMBSTONE_LIFE_MS } from '../ordering/constants.ts';
import type { ObjectMaintenance, AuditStore, WithPorts } from '../store/store.ts';
import type { Clock } from '../process/clock.ts';
import { VISIT_MAX_MS, type Visit } from '../observing/sweep.ts';

/** At most some 2,000 tombstones or audit records a second: more than are written, and a small load beside live events. */
const PAUSE_MS = 250;

/** One transaction of SQLite, which blocks all other work for about 10 ms; on OpenSearch one request, whose refresh ends it. */
const BATCH_TOMBSTONES = 500;

/** Creates the visit of one bucket to its tombstones, which ends after five minutes at the latest. */
export function createVisitTombstones({
  maintenance,
  clock,
}: {
  readonly maintenance: Pick<ObjectMaintenance, 'purge'>;
  readonly clock: Clock;
}): Visit {
  return async function visitTombstones({ bucket }, signal) {
    const deletedBeforeMs = clock.nowMs() - TOMBSTONE_LIFE_MS;
    const untilMs = clock.monotonicMs() + VISIT_MAX_MS;
    let purged = 0;
    for (;;) {
      const count = await maintenance.purge(bucket, { deletedBeforeMs, limit: BATCH_TOMBSTONES }, signal);
      purged += count;
      if (count < BATCH_TOMBSTONES || clock.monotonicMs() >= untilMs) return purged;
      await clock.sleep(PAUSE_MS, signal);
    }
  };
}

const DAY_MS = 86_400_000;
/** The deletions of one run: on SQLite half a million records, in five minutes. The next run, an hour later, continues. */
const BATCHES_MAX = 1_000;

/** Creates the work of one run on audit records. Throws the store's fault. */
export function createPurgeAudit({
  audit,
  clock,
  telemetry,
  retentionDays,
}: WithPorts<'clock' | 'telemetry'> & { readonly audit: Pick<AuditStore, 'purge'>; readonly retentionDays: number }): (
  signal: AbortSignal,
) => Promise<void> {
  return async function purgeAudit(signal) {
    const beforeMs = clock.nowMs() - retentionDays * DAY_MS;
    for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
      if ((await audit.purge(beforeMs, signal)) === 'none') return;
      if (batch === 0) telemetry.info('audit records past their retention are deleted', { before: new Date(beforeMs).toISOString() });
      await clock.sleep(PAUSE_MS, signal);
    }
  };
}
