/** API key operations: on the caller's own keys, by secret, and for administrators on all users' keys. */
import PQueue from 'p-queue';
import { anyKeyView, keyView, type ApiKey, type KeysRequest, type AllKeysRequest, type AnyApiKey } from '../registry/contract/api-keys.ts';
import type { CheckedOperations } from '../registry/contract/contract.ts';
import { decodeCursor } from '../base/cursor.ts';
import type { Actor, KeyActor, KeyScope, SessionActor } from '../base/actor.ts';
import {
  formOf,
  isSecretOf,
  keyIdOf,
  keyRecordOf,
  type KeyRecord,
  keyRecordSchema,
  isKeyId,
  KEYS_LISTED_MAX,
  KEYS_LIVE_MAX,
  KEYS_REVOKED_MAX,
  statusAt,
  type UserKeys,
  withoutKeys,
  scopesAsStored,
  scopesByDefault,
  scopesOfRole,
} from './api-key.rules.ts';
import { NO_ADMIN } from './authorise.rules.ts';
import type { KnownUser, LoginRules } from './claims.rules.ts';
import { printable } from '../base/texts.ts';
import { RequestError } from '../base/request-error.ts';
import { readPage, type Page, pagesOf, readRecord, removeRecord, updateRecord } from '../store/stored.ts';
import { type Audited, failedKeyOf, holderOf } from './audit.ts';
import { newKeySecret } from './random-texts.ts';
import { readUser } from './users.ts';
import type { WithPorts } from '../store/store.ts';
import { FaultError } from '../base/fault.ts';
import type { LiveKeys } from './authenticate-key.ts';
import { refs } from './refs.ts';

type KeyOperations = Pick<
  CheckedOperations,
  | 'createApiKey'
  | 'listApiKeys'
  | 'getApiKey'
  | 'revokeApiKey'
  | 'revokeApiKeyBySecret'
  | 'listAllApiKeys'
  | 'getAnyApiKey'
  | 'revokeAnyApiKey'
>;

interface KeyOperationsDependencies extends ListAllKeysDependencies, WithPorts<'telemetry'> {
  readonly audited: Audited;
  readonly liveKeys: Pick<LiveKeys, 'forget'>;
}

/** The longest id that an error repeats. */
const SHOWN_MAX = 64;

export function createKeyOperations(parts: KeyOperationsDependencies): KeyOperations {
  const { clock, audited, liveKeys } = parts;
  const records = createKeyRecords(parts);

  const revoke = audited('ApiKeyRevoke', ({ params }: IdRequest, { actor, signal }) => revokeOwn(params.id, actor, signal), revokedFacts);
  const revokeAny = audited('ApiKeyRevoke', ({ params }: IdRequest) => revokeFound(params.id), revokedFacts);
  const revokeLeaked = audited('ApiKeyRevokeBySecret', ({ params }: IdRequest) => revokeFound(params.id), revokedFacts);

  async function revokeOwn(id: string, actor: Actor, signal: AbortSignal): Promise<KeyRecord> {
    await ownedBy(records, actor, id, signal);
    if (actor.kind === 'api_key' && actor.keyId !== id) {
      throw new RequestError('authorization.denied', 'an API key can revoke only itself: log in to revoke your other keys');
    }
    return revokeFound(id);
  }

  async function revokeFound(id: string): Promise<KeyRecord> {
    const revoked = await records.revoke(id);
    liveKeys.forget(id);
    if (revoked === undefined) throw notFound(id);
    return revoked;
  }

  async function findSecret(text: string, signal: AbortSignal): Promise<KeyRecord | undefined> {
    const secret = text.trim();
    const record = formOf(secret) === 'secret' ? await records.get(keyIdOf(secret), signal) : undefined;
    return record !== undefined && isSecretOf(record, secret) ? record : undefined;
  }

  return {
    createApiKey: audited(
      'ApiKeyCreate',
      async ({ body }, { actor }) => {
        const session = requireSession(actor);
        const { userId, email } = session;
        const scopes = scopesFor(session, body.scopes);
        const secret = newKeySecret();
        const record = keyRecordOf({
          secret,
          name: body.name,
          userId,
          userEmail: email,
          scopes,
          expiresInDays: body.expires_in_days,
          nowMs: clock.nowMs(),
        });
        await records.add(record);
        return { key: keyView(record, clock.nowMs()), secret };
      },
      ({ key: { id, fingerprint, expires_at, scopes } }) => ({ id, fingerprint, expires_at, scopes }),
    ),
    async listApiKeys({ query }, { actor, signal }) {
      const { userId } = requireUser(actor);
      const own = await records.ofUser(userId, signal);
      return { items: own.map((record) => keyView(record, clock.nowMs())).filter((key) => matchesOwn(key, query)) };
    },
    async getApiKey({ params }, { actor, signal }) {
      return keyView(await ownedBy(records, actor, params.id, signal), clock.nowMs());
    },
    revokeApiKey: async (request, context) => void (await revoke(request, context)),
    async revokeApiKeyBySecret({ body }, context) {
      const record = await findSecret(body.secret, context.signal);
      if (record === undefined) return;
      const owner = await readUser(parts, record.userId, context.signal);
      const actor = revokerOf(record, owner, context.actor);
      await revokeLeaked({ params: { id: record.id } }, { ...context, actor }).catch((error: unknown) => {
        // another request revoked it in the meantime
        if (!(error instanceof RequestError && error.code === 'api-key.not-found')) throw error;
      });
    },
    listAllApiKeys: ({ query }, { signal }) => listAllKeys(parts, query, signal),
    async getAnyApiKey({ params }, { signal }) {
      const record = await records.get(params.id, signal);
      if (record === undefined) throw notFound(params.id);
      return anyKeyView(record, await readUser(parts, record.userId, signal), clock.nowMs());
    },
    revokeAnyApiKey: async (request, context) => void (await revokeAny(request, context)),
  };
}

interface IdRequest {
  readonly params: { readonly id: string };
}

/** What the audit records about a revoked key besides its id. */
function revokedFacts({ name, userId, userEmail, fingerprint }: KeyRecord) {
  return { name, user_id: userId, user_email: userEmail, fingerprint };
}

function notFound(id: string): RequestError {
  return new RequestError('api-key.not-found', `there is no API key ${printable(id, SHOWN_MAX)}: it may have been revoked or deleted`);
}

/** Reads one of the caller's keys. Throws `api-key.not-found` for every other id, even of another user's key. */
async function ownedBy(records: Pick<KeyRecords, 'get'>, actor: Actor, id: string, signal: AbortSignal): Promise<KeyRecord> {
  const { userId } = requireUser(actor);
  const record = await records.get(id, signal);
  if (record?.userId !== userId) throw notFound(id);
  return record;
}

function requireUser(actor: Actor): SessionActor | KeyActor {
  if (actor.kind !== 'local') return actor;
  throw new RequestError(
    'session.required',
    "this caller is not a user, so it has no API keys: run `tally login https://HOST`, or list all users' keys with `tally admin keys list`",
  );
}

function requireSession(actor: Actor): SessionActor {
  switch (actor.kind) {
    case 'session':
      return actor;
    case 'api_key':
      throw new RequestError(
        'session.required',
        'an API key cannot create API keys: run `tally login https://HOST`, then `tally keys create NAME`',
      );
    case 'local':
      throw new RequestError(
        'session.required',
        'only a user who has logged in can create API keys: run `tally login https://HOST`, then `tally keys create NAME`',
      );
  }
}

function scopesFor({ role }: SessionActor, requested: readonly KeyScope[] | undefined): readonly KeyScope[] {
  const scopes = scopesAsStored(requested ?? scopesByDefault(role));
  const refused = scopes.filter((scope) => !scopesOfRole(role).includes(scope));
  if (refused.length === 0) return scopes;
  throw new RequestError(
    'authorization.denied',
    `an API key with the scope ${refused.join(', ')} needs the role admin, ${NO_ADMIN}. An API key never has more rights than its owner`,
  );
}

/** The secret itself permits the revocation, so the audit names its key, unless a user has logged in. */
function revokerOf(record: KeyRecord, owner: KnownUser | undefined, actor: Actor): Actor {
  if (actor.kind === 'session') return actor;
  return { ...holderOf(failedKeyOf({ record, owner })), ...(actor.address !== undefined && { address: actor.address }) };
}

function matchesOwn(key: ApiKey, { name, fingerprint, status }: KeysRequest): boolean {
  return (
    (name === undefined || key.name === name) &&
    (fingerprint === undefined || key.fingerprint === fingerprint) &&
    (status === undefined || key.status === status)
  );
}

interface ListAllKeysDependencies extends WithPorts<'state' | 'clock'> {
  readonly rules: LoginRules;
}

/** Lists a page of all users' keys, in the order of their ids. Throws `request.invalid` for a cursor that no page returned, and the store's faults. */
async function listAllKeys(
  { state, rules, clock }: ListAllKeysDependencies,
  query: AllKeysRequest,
  signal: AbortSignal,
): Promise<Page<AnyApiKey>> {
  /** Each owner is read once a page. */
  const owners = new Map<string, Promise<KnownUser | undefined>>();
  async function viewOf(record: KeyRecord): Promise<AnyApiKey> {
    const owner = owners.get(record.userId) ?? readUser({ state, rules }, record.userId, signal);
    owners.set(record.userId, owner);
    return anyKeyView(record, await owner, clock.nowMs());
  }

  return readPage({
    limit: query.limit,
    after: decodeCursor(query.cursor, 1),
    async fetch(count, position) {
      const found: AnyApiKey[] = [];
      for await (const entries of pagesOf(state, 'api-key', { after: position?.[0], limit: count, signal })) {
        const matching = entries.flatMap(({ record }) => matchOf(record, query) ?? []);
        const keys = await readMany(matching, viewOf);
        found.push(...keys.filter(({ status }) => query.status === undefined || status === query.status));
        if (found.length >= count) break;
      }
      return found.slice(0, count);
    },
    positionOf: ({ id }) => [refs.apiKey(id).id],
  });
}

/** An entry's record, if it matches as far as the record alone shows. A newer version's record must not hide the others. */
function matchOf(stored: unknown, { email, key_name, unused_since }: AllKeysRequest): KeyRecord | undefined {
  const record = keyRecordSchema.safeParse(stored).data;
  if (record === undefined || record.revokedAtMs !== undefined) return undefined;
  if (email !== undefined && record.userEmail !== email) return undefined;
  if (key_name !== undefined && record.name !== key_name) return undefined;
  if (unused_since !== undefined && !isUnusedSince(record, Date.parse(unused_since))) return undefined;
  return record;
}

/** A key that was never used counts from its creation, because a new key is not an unused one. */
function isUnusedSince({ createdAtMs, lastUsedAtMs = createdAtMs }: KeyRecord, sinceMs: number): boolean {
  return lastUsedAtMs < sinceMs;
}

/**
 * API keys in the state store: one record for each key, which is read by its id, and one for each user, which lists the ids.
 *
 *   create:  user-keys gets the id (here the limits are checked) ──► the record is stored
 *   revoke:  the record is marked (from here on the key is refused) ──► user-keys loses the id
 *
 * A process that is killed in between leaves an id without a valid record. Lists leave it out, and it is removed when the user has no
 * room for a new key.
 */

/** How many records are read at the same time: a list of 500 keys takes 32 rounds, and other requests have room beside it. */
const READS = 16;
/** How long another process may take between the two writes of a creation. */
const CREATION_MAX_MS = 60_000;

interface KeyRecords {
  /** Stores a new key. Throws `api-key.limit` if its user has too many, and the store's faults. */
  add(record: KeyRecord): Promise<void>;
  /** Reads an unrevoked key in realtime; undefined if there is none with this id. Any text may be looked up. */
  get(id: string, signal: AbortSignal): Promise<KeyRecord | undefined>;
  /** Reads a user's unrevoked keys, newest first. */
  ofUser(userId: string, signal: AbortSignal): Promise<readonly KeyRecord[]>;
  /** Revokes a key permanently. Resolves with its record, or with undefined if there is no such key or it is already revoked. */
  revoke(id: string): Promise<KeyRecord | undefined>;
}

function createKeyRecords({ state, clock, telemetry }: WithPorts<'state' | 'clock' | 'telemetry'>): KeyRecords {
  /** Adds a key's id to its user. Returns the limit that it would exceed. */
  async function reserve({ id, userId, createdAtMs, expiresAtMs }: KeyRecord): Promise<string | undefined> {
    let mistake: string | undefined;
    await updateRecord(state, refs.userKeys(userId), (current = { userId, keys: [], revoked: [] }) => {
      mistake = withoutRoom(current, clock.nowMs());
      return mistake === undefined ? { ...current, keys: [...current.keys, { id, createdAtMs, expiresAtMs }] } : undefined;
    });
    return mistake;
  }

  /** Removes ids without a valid record. */
  async function tidy(userId: string): Promise<void> {
    const stored = await readRecord(state, refs.userKeys(userId));
    const old = (stored?.keys ?? []).filter(({ createdAtMs }) => clock.nowMs() - createdAtMs > CREATION_MAX_MS);
    const records = await readMany(old, ({ id }) => readRecord(state, refs.apiKey(id)));
    const gone = new Set(old.filter((_, at) => !isValid(records[at])).map(({ id }) => id));
    if (gone.size === 0) return;
    await updateRecord(state, refs.userKeys(userId), (current) => current && withoutKeys(current, gone));
  }

  /** The key is already revoked. A failure here is only reported, because an id without a valid record does no harm. */
  async function forget({ id, userId }: KeyRecord): Promise<void> {
    try {
      let dropped: readonly string[] = [];
      await updateRecord(state, refs.userKeys(userId), (current = { userId, keys: [], revoked: [] }) => {
        const revoked = [...current.revoked, id];
        dropped = revoked.slice(0, -KEYS_REVOKED_MAX);
        return { ...withoutKeys(current, new Set([id])), revoked: revoked.slice(-KEYS_REVOKED_MAX) };
      });
      for (const each of dropped) await removeRecord(state, refs.apiKey(each).id);
    } catch (error) {
      telemetry.requestFailed("remove a revoked API key from its user's list", error);
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

/** Calls `read` for each item, a few at a time. The results are in the items' order. */
function readMany<Item, Result>(items: readonly Item[], read: (item: Item) => Promise<Result>): Promise<readonly Result[]> {
  return new PQueue({ concurrency: READS }).addAll(items.map((item) => () => read(item)));
}

function isValid(record: KeyRecord | undefined): record is KeyRecord {
  return record !== undefined && record.revokedAtMs === undefined;
}

function withoutRoom({ keys }: UserKeys, nowMs: number): string | undefined {
  const live = keys.filter(({ expiresAtMs }) => statusAt(expiresAtMs, nowMs) === 'ACTIVE').length;
  if (live >= KEYS_LIVE_MAX) return `you have ${KEYS_LIVE_MAX} ACTIVE API keys, which is the limit: revoke an unused one`;
  if (keys.length < KEYS_LISTED_MAX) return undefined;
  return `you have ${KEYS_LISTED_MAX} API keys, EXPIRED ones included, which is the limit: revoke some EXPIRED ones`;
}
