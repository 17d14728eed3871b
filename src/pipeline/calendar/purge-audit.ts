/** Deletes audit records past their retention, in small batches. */
import type { AuditStore } from '../ports/audit.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';

const DAY_MS = 86_400_000;
/** At most some 2,000 records a second on SQLite: more than are written, and a small load beside live events. */
const PAUSE_MS = 250;
/** The deletions of one run: on SQLite half a million records, in five minutes. The next run, an hour later, continues. */
const BATCHES_MAX = 1_000;

interface PurgeAuditDependencies {
  readonly audit: Pick<AuditStore, 'purge'>;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, 'info'>;
  readonly retentionDays: number;
}

/** Creates the work of one run. Throws the store's fault. */
export function createPurgeAudit({
  audit,
  clock,
  telemetry,
  retentionDays,
}: PurgeAuditDependencies): (signal: AbortSignal) => Promise<void> {
  return async function purgeAudit(signal) {
    const beforeMs = clock.nowMs() - retentionDays * DAY_MS;
    for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
      if ((await audit.purge(beforeMs, signal)) === 'none') return;
      if (batch === 0) telemetry.info('audit records past their retention are deleted', { before: new Date(beforeMs).toISOString() });
      await clock.sleep(PAUSE_MS, signal);
    }
  };
}
