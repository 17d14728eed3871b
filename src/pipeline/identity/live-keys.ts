/**
 * What is known about keys in use, with their owners: read from the store at most every 3.5 s for each key, so that an
 * authentication usually costs no read, and a key that was revoked by another process is refused here within five seconds. What
 * this process itself changes (a revocation, a login, a disabled user) it forgets, so that its next request reads it again.
 */
import { LRUCache } from 'lru-cache';
import type { KeyRecord } from '../../domain/identity/api-key.ts';
import type { KnownUser } from '../../domain/identity/login-rules.ts';
import { readRecord, refs } from '../records/stored.ts';
import { inTime } from '../../domain/in-time.ts';
import type { Users } from './users.ts';
import type { WithPorts } from '../ports/ports.ts';

/** Revocations count within 5 s. The rest is for the request that has just begun. */
const KNOWN_MS = 3_500;
/** Keys in use at the same time: some 10 MB. Above it the one that was used longest ago is forgotten, and costs a read at its next use. */
const KEYS_MAX = 10_000;

export interface LiveKey {
  /** May be revoked or expired. */
  readonly record: KeyRecord;
  readonly owner: KnownUser | undefined;
}

export interface LiveKeys {
  /** Returns the key with this id and its owner, no older than 3.5 s; undefined if there is none. Rejects with the store's fault or the signal's reason. */
  read(id: string, signal: AbortSignal): Promise<LiveKey | undefined>;
  /** A key has changed. */
  forget(id: string): void;
  /** A user has changed, and with it any number of keys. It happens rarely, and costs each key in use one read. */
  forgetAll(): void;
}

/** Creates the functions. Ids of keys that do not exist are not remembered, so that guesses displace no key in use. */
export function createLiveKeys({ state, users, clock }: WithPorts<'state' | 'clock'> & { readonly users: Users }): LiveKeys {
  /** A read is counted from its beginning, so what it returns is never older than it seems. */
  const known = new LRUCache<string, { readonly sinceMs: number; readonly read: Promise<LiveKey | undefined> }>({ max: KEYS_MAX });

  async function readKey(id: string): Promise<LiveKey | undefined> {
    const record = await readRecord(state, refs.apiKey(id));
    return record && { record, owner: await users.get(record.userId) };
  }

  function remember(id: string): Promise<LiveKey | undefined> {
    // it serves every request that comes meanwhile, so no caller that leaves ends it
    const entry = { sinceMs: clock.monotonicMs(), read: readKey(id) };
    known.set(id, entry);
    const forget = (): void => {
      if (known.get(id) === entry) known.delete(id);
    };
    entry.read.then((key) => key ?? forget(), forget);
    return entry.read;
  }

  return {
    async read(id, signal) {
      signal.throwIfAborted();
      const entry = known.get(id);
      const isFresh = entry !== undefined && clock.monotonicMs() - entry.sinceMs < KNOWN_MS;
      return inTime(isFresh ? entry.read : remember(id), signal);
    },
    forget: (id) => void known.delete(id),
    forgetAll: () => known.clear(),
  };
}
