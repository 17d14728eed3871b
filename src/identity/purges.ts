/** Deletes old API keys, logins, sessions and appointments for the calendar, slowly and in small batches. */
import type { z } from 'zod';
import { isPurged, keyRecordSchema, withoutKeys } from './api-key.rules.ts';
import { isLoginOver, loginRecordSchema } from './login.rules.ts';
import { sessionRecordSchema } from './session.rules.ts';
import { appointmentSchema, isAppointmentOver } from './user.rules.ts';
import type { StateKind } from '../records/state-kind.ts';
import type { WithPorts, StateEntry, StateStore } from '../store/store.ts';
import { pagesOf, updateRecord } from '../store/stored.ts';
import { refs } from './refs.ts';

/** At most some 800 keys a second: more than are made, and a small load beside live events. */
const PAUSE_MS = 250;
/** One request lists this many records of logins or of keys. */
const PAGE = 200;
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

/** Removes the ids of keys from their user, because the records of the keys were purged. */
async function forgetPurged(state: StateStore, userId: string, ids: ReadonlySet<string>): Promise<void> {
  await updateRecord(state, refs.userKeys(userId), (current) => current && withoutKeys(current, ids));
}
