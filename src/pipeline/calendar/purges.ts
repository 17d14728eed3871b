/** What the calendar deletes by its age, slowly and in small batches: tombstones, audit records, API keys, logins and sessions. */
import type { z } from 'zod';
import { TOMBSTONE_LIFE_MS } from '../../domain/ordering/constants.ts';
import type { ObjectMaintenance } from '../ports/object-index.ts';
import type { Clock } from '../ports/clock.ts';
import { VISIT_MAX_MS, type Visit } from './sweep.ts';
import { isPurged, keyRecordSchema } from '../../domain/identity/api-key.ts';
import type { StateEntry } from '../ports/state.ts';
import { pagesOf } from '../records/stored.ts';
import { isLoginOver, loginRecordSchema } from '../../domain/identity/login.ts';
import { sessionRecordSchema } from '../../domain/identity/session.ts';
import type { StateKind } from '../../domain/state-kind.ts';
import type { AuditStore } from '../ports/audit.ts';
import type { WithPorts } from '../ports/ports.ts';
import { forgetPurged } from '../identity/key-operations.ts';
import { appointmentSchema, isAppointmentOver } from '../../domain/identity/user.ts';

/** At most some 2,000 tombstones or audit records a second, or 800 keys: more than are written, and a small load beside live events. */
const PAUSE_MS = 250;
/** One request lists this many records of logins or of keys. */
const PAGE = 200;

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
    for (let after = ''; ;) {
      const page = await maintenance.purge(bucket, { deletedBeforeMs, after, limit: BATCH_TOMBSTONES }, signal);
      purged += page.purged;
      if (page.next === undefined || clock.monotonicMs() >= untilMs) return purged;
      after = page.next;
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

/** The requests of one run: a million keys, in less than half an hour. The next run begins at the first key again, where the purged ones are gone. */
const REQUESTS_MAX = 5_000;

/** Creates the work of one run on API keys, whose records are deleted 90 days after they ended or were revoked. Throws the store's fault. */
export function createPurgeApiKeys({
  state,
  clock,
  telemetry,
}: WithPorts<'state' | 'clock' | 'telemetry'>): (signal: AbortSignal) => Promise<void> {
  /** Returns how many of the entries it deleted. */
  async function purge(entries: readonly StateEntry[], signal: AbortSignal): Promise<number> {
    const purged = new Map<string, Set<string>>();
    for (const { id: entryId, record, version } of entries) {
      const key = keyRecordSchema.safeParse(record).data;
      if (key === undefined || !isPurged(key, clock.nowMs())) continue;
      // a conflict: the key was used or revoked at this moment; the next run sees it again
      if ((await state.remove(entryId, version, signal, 'soon')) === 'conflict') continue;
      purged.set(key.userId, (purged.get(key.userId) ?? new Set()).add(key.id));
    }
    for (const [userId, ids] of purged) await forgetPurged(state, userId, ids);
    return [...purged.values()].reduce((sum, ids) => sum + ids.size, 0);
  }

  return async function purgeApiKeys(signal) {
    let count = 0;
    let requests = 0;
    for await (const entries of pagesOf(state, 'api-key', { limit: PAGE, signal })) {
      count += await purge(entries, signal);
      requests += 1;
      if (requests === REQUESTS_MAX) break;
      if (entries.length === PAGE) await clock.sleep(PAUSE_MS, signal);
    }
    if (count > 0) telemetry.info('API keys that ended 90 days ago are deleted', { count });
  };
}

/** Creates the work of one run on logins, sessions and grants of a role that have ended. Records of a newer version are left alone. Throws the store's fault. */
export function createPurgeLogins({ state, clock }: WithPorts<'state' | 'clock'>): (signal: AbortSignal) => Promise<void> {
  async function purge<Schema extends z.ZodType>(
    kind: StateKind,
    schema: Schema,
    isEnded: (record: z.infer<Schema>, nowMs: number) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    for await (const entries of pagesOf(state, kind, { limit: PAGE, signal }))
      for (const { id, record, version } of entries) {
        const parsed = schema.safeParse(record);
        if (parsed.success && isEnded(parsed.data, clock.nowMs())) await state.remove(id, version, signal, 'soon');
      }
  }

  return async function purgeLogins(signal) {
    await purge('login', loginRecordSchema, isLoginOver, signal);
    await purge('session', sessionRecordSchema, ({ endsAtMs }, nowMs) => nowMs >= endsAtMs, signal);
    await purge('appointment', appointmentSchema, isAppointmentOver, signal);
  };
}
