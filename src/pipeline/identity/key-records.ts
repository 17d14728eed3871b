/**
 * API keys in the state store: one record for each key, which is read by its id, and one for each user, which lists the ids.
 *
 *   create:  user-keys gets the id (here the limits are checked) ──► the record is stored
 *   revoke:  the record is marked (from here on the key is refused) ──► user-keys loses the id
 *
 * A process that is killed in between leaves an id without a valid record. Lists leave it out, and it is removed when the
 * user has no room for a new key.
 */
import {
  isKeyId,
  KEYS_LISTED_MAX,
  KEYS_LIVE_MAX,
  KEYS_REVOKED_MAX,
  statusAt,
  type KeyRecord,
  type UserKeys,
} from '../../domain/identity/api-key.ts';
import { FaultError } from '../../domain/fault.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { StateStore } from '../ports/state.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';

/** How many records are read at the same time: a list of 500 keys takes 32 rounds, and other requests have room beside it. */
const READS = 16;
/** How long another process may take between the two writes of a creation. */
const CREATION_MAX_MS = 60_000;

export interface KeyRecords {
  /** Stores a new key. Throws `api-key.limit` if its user has no room for it, and the store's faults. */
  add(record: KeyRecord): Promise<void>;
  /** Reads a key that is not revoked, in realtime; undefined if there is none with this id. Any text may be looked up. */
  get(id: string, signal: AbortSignal): Promise<KeyRecord | undefined>;
  /** Reads all keys of a user that are not revoked, the newest first. */
  ofUser(userId: string, signal: AbortSignal): Promise<readonly KeyRecord[]>;
  /** Revokes a key for good. Resolves with its record, or with undefined if there was no such key, or it was revoked already. */
  revoke(id: string): Promise<KeyRecord | undefined>;
}

export function createKeyRecords({ state, clock, telemetry }: WithPorts<'state' | 'clock' | 'telemetry'>): KeyRecords {
  /** Adds the id of a key to its user. Returns what leaves no room for it. */
  async function reserve({ id, userId, createdAtMs, expiresAtMs }: KeyRecord): Promise<string | undefined> {
    let mistake: string | undefined;
    await updateRecord(state, refs.userKeys(userId), (current = { userId, keys: [], revoked: [] }) => {
      mistake = withoutRoom(current, clock.nowMs());
      return mistake === undefined ? { ...current, keys: [...current.keys, { id, createdAtMs, expiresAtMs }] } : undefined;
    });
    return mistake;
  }

  /** Removes the ids that stand for nothing any more. */
  async function tidy(userId: string): Promise<void> {
    const stored = await readRecord(state, refs.userKeys(userId));
    const old = (stored?.keys ?? []).filter(({ createdAtMs }) => clock.nowMs() - createdAtMs > CREATION_MAX_MS);
    const records = await readMany(old, ({ id }) => readRecord(state, refs.apiKey(id)));
    const gone = new Set(old.filter((_, at) => !isValid(records[at])).map(({ id }) => id));
    if (gone.size === 0) return;
    await updateRecord(state, refs.userKeys(userId), (current) => current && without(current, gone));
  }

  /** The key is revoked already. What fails here is only reported, because the id that stays stands for nothing. */
  async function forget({ id, userId }: KeyRecord): Promise<void> {
    try {
      let dropped: readonly string[] = [];
      await updateRecord(state, refs.userKeys(userId), (current = { userId, keys: [], revoked: [] }) => {
        const revoked = [...current.revoked, id];
        dropped = revoked.slice(0, -KEYS_REVOKED_MAX);
        return { ...without(current, new Set([id])), revoked: revoked.slice(-KEYS_REVOKED_MAX) };
      });
      for (const each of dropped) await removeRecord(state, refs.apiKey(each).id);
    } catch (error) {
      telemetry.requestFailed('remove a revoked API key from the list of its user', error);
    }
  }

  return {
    async add(record) {
      let mistake = await reserve(record);
      if (mistake !== undefined) {
        await tidy(record.userId);
        mistake = await reserve(record);
      }
      if (mistake !== undefined) throw new RequestError('api-key.limit', mistake);
      await updateRecord(state, refs.apiKey(record.id), (current) => {
        if (current !== undefined) throw new FaultError('record.contended', `an API key with the id ${record.id} exists already`);
        return record;
      });
    },
    async get(id, signal) {
      const record = isKeyId(id) ? await readRecord(state, refs.apiKey(id), signal) : undefined;
      return isValid(record) ? record : undefined;
    },
    async ofUser(userId, signal) {
      const stored = await readRecord(state, refs.userKeys(userId), signal);
      const records = await readMany(stored?.keys.toReversed() ?? [], ({ id }) => readRecord(state, refs.apiKey(id), signal));
      return records.filter(isValid);
    },
    async revoke(id) {
      if (!isKeyId(id)) return undefined;
      const revoked = await updateRecord(state, refs.apiKey(id), (current) =>
        isValid(current) ? { ...current, revokedAtMs: clock.nowMs() } : undefined,
      );
      if (revoked !== undefined) await forget(revoked);
      return revoked;
    },
  };
}

/** Removes the ids of keys from their user, because the records of the keys were purged. */
export async function forgetPurged(state: StateStore, userId: string, ids: ReadonlySet<string>): Promise<void> {
  await updateRecord(state, refs.userKeys(userId), (current) => current && without(current, ids));
}

/** Calls `read` for each, a few at the same time. The results have the order of the items. */
export async function readMany<Item, Result>(items: readonly Item[], read: (item: Item) => Promise<Result>): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (let start = 0; start < items.length; start += READS) {
    results.push(...(await Promise.all(items.slice(start, start + READS).map(read))));
  }
  return results;
}

function isValid(record: KeyRecord | undefined): record is KeyRecord {
  return record !== undefined && record.revokedAtMs === undefined;
}

function without(current: UserKeys, ids: ReadonlySet<string>): UserKeys {
  return {
    ...current,
    keys: current.keys.filter(({ id }) => !ids.has(id)),
    revoked: current.revoked.filter((id) => !ids.has(id)),
  };
}

function withoutRoom({ keys }: UserKeys, nowMs: number): string | undefined {
  const live = keys.filter(({ expiresAtMs }) => statusAt(expiresAtMs, nowMs) === 'ACTIVE').length;
  if (live >= KEYS_LIVE_MAX) return `you have ${KEYS_LIVE_MAX} API keys that are ACTIVE, which is the most: revoke one that is not used`;
  if (keys.length < KEYS_LISTED_MAX) return undefined;
  return `you have ${KEYS_LISTED_MAX} API keys, EXPIRED ones included, which is the most: revoke some that are EXPIRED`;
}
