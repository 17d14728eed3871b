/** Deletes the records of API keys 90 days after they have ended or were revoked. */
import { isPurged, keyRecordSchema } from '../../domain/identity/api-key.ts';
import { forgetPurged } from '../identity/key-records.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateEntry, StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** Entries of one request to the store. */
const ENTRIES = 200;
/** At most some 800 keys a second: a small load beside live events. */
const PAUSE_MS = 250;
/** The requests of one run: a million keys, in less than half an hour. The next run begins at the first key again, where the purged ones are gone. */
const REQUESTS_MAX = 5_000;

interface PurgeApiKeysDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, 'info'>;
}

/** Creates the work of one run. Throws the store's fault. */
export function createPurgeApiKeys({ state, clock, telemetry }: PurgeApiKeysDependencies): (signal: AbortSignal) => Promise<void> {
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
    let after: string | undefined;
    for (let request = 0; request < REQUESTS_MAX; request += 1) {
      const entries = await state.list('api-key', { limit: ENTRIES, ...(after !== undefined && { after }) }, signal);
      count += await purge(entries, signal);
      after = entries.at(-1)?.id;
      if (entries.length < ENTRIES) break;
      await clock.sleep(PAUSE_MS, signal);
    }
    if (count > 0) telemetry.info('API keys that ended 90 days ago are deleted', { count });
  };
}
