/** The list of all users' API keys, for administrators. It reads the store in the order of the ids, and filters what it reads. */
import { anyKeyView, type AllKeysRequest, type AnyApiKey } from '../../api/api-keys.ts';
import { decodeCursor, encodeCursor } from '../../domain/cursor.ts';
import { keyRecordSchema, type ExpiryRule, type KeyRecord } from '../../domain/identity/api-key.ts';
import type { KnownUser } from '../../domain/identity/login-rules.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateEntry, StateStore } from '../ports/state.ts';
import type { Page } from '../records/pages.ts';
import { readMany } from './key-records.ts';
import type { Users } from './users.ts';

/** Entries of one request to the store. With filters few of them may match. */
const ENTRIES_MAX = 500;
/** Entries that one page looks at: a few seconds at most. The next page continues there. */
const LOOKED_AT_MAX = 20_000;
/** Owners that one page reads before it ends, for the same reason. */
const OWNERS_MAX = 1_000;

interface ListAllKeysDependencies {
  readonly state: Pick<StateStore, 'list'>;
  readonly users: Users;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly rule: ExpiryRule;
}

type ListAllKeys = (request: AllKeysRequest, signal: AbortSignal) => Promise<Page<AnyApiKey>>;

/** Creates the function. Throws `request.invalid` for a cursor that no page returned, and the store's faults. */
export function createListAllKeys(dependencies: ListAllKeysDependencies): ListAllKeys {
  return async function listAllKeys(query, signal) {
    const { limit, cursor } = query;
    const { judge, ownersRead } = createJudge(dependencies, query, signal);
    const page: FillingPage = { items: [], last: positionOf(cursor) };
    for (let looked = 0; ;) {
      const { items, last } = page;
      const wanted = isFiltered(query) ? ENTRIES_MAX : Math.min(ENTRIES_MAX, limit - items.length + 1);
      const entries = await dependencies.state.list('api-key', { limit: wanted, ...(last !== undefined && { after: last }) }, signal);
      const hasMore = fill(page, limit, { entries, keys: await judge(entries) });
      looked += entries.length;
      if (!hasMore && entries.length < wanted) return { items };
      if (hasMore || looked >= LOOKED_AT_MAX || ownersRead() >= OWNERS_MAX) return { items, next: encodeCursor([page.last ?? '']) };
    }
  };
}

/** The id after which a page begins. */
function positionOf(cursor: string | undefined): string | undefined {
  return cursor === undefined ? undefined : decodeCursor(cursor, 1)[0];
}

interface FillingPage {
  readonly items: AnyApiKey[];
  /** The entry after which the next page, or the next request, continues. */
  last: string | undefined;
}

interface Judged {
  readonly entries: readonly StateEntry[];
  /** The key of each entry, or undefined where it does not match. */
  readonly keys: readonly (AnyApiKey | undefined)[];
}

/** Adds what matches. Returns whether there is a key that the page has no room for. */
function fill(page: FillingPage, limit: number, { entries, keys }: Judged): boolean {
  for (const [at, { id }] of entries.entries()) {
    const key = keys[at];
    if (key !== undefined) {
      if (page.items.length === limit) return true;
      page.items.push(key);
    }
    page.last = id;
  }
  return false;
}

/** Judges entries by the filters. Each owner is read once for a page. */
function createJudge({ users, clock, rule }: ListAllKeysDependencies, query: AllKeysRequest, signal: AbortSignal) {
  const owners = new Map<string, KnownUser | undefined>();

  async function readOwners(records: readonly KeyRecord[]): Promise<void> {
    const unknown = new Set(records.map(({ userId }) => userId).filter((userId) => !owners.has(userId)));
    await readMany([...unknown], async (userId) => owners.set(userId, await users.get(userId, signal)));
  }

  async function judge(entries: readonly StateEntry[]): Promise<Judged['keys']> {
    const matching = entries.map(({ record }) => matchOf(record, query));
    await readOwners(matching.filter((record) => record !== undefined));
    return matching.map((record) => {
      const key = record && anyKeyView(record, { owner: owners.get(record.userId), rule, nowMs: clock.nowMs() });
      return query.status === undefined || key?.status === query.status ? key : undefined;
    });
  }

  return { judge, ownersRead: () => owners.size };
}

function isFiltered({ email, key_name, status, unused_since }: AllKeysRequest): boolean {
  return [email, key_name, status, unused_since].some((filter) => filter !== undefined);
}

/** The record of an entry if it matches as far as the record alone shows. A record that a newer version wrote must not hide the others. */
function matchOf(stored: unknown, { email, key_name, unused_since }: AllKeysRequest): KeyRecord | undefined {
  const record = keyRecordSchema.safeParse(stored).data;
  if (record === undefined || record.revokedAtMs !== undefined) return undefined;
  if (email !== undefined && record.userEmail !== email) return undefined;
  if (key_name !== undefined && record.name !== key_name) return undefined;
  if (unused_since !== undefined && !isUnusedSince(record, Date.parse(unused_since))) return undefined;
  return record;
}

/** A key that was never used counts from its creation: a new key is not an unused one. */
function isUnusedSince({ createdAtMs, lastUsedAtMs = createdAtMs }: KeyRecord, sinceMs: number): boolean {
  return lastUsedAtMs < sinceMs;
}
