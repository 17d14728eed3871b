/** Authentication with an API key: from a request's secret to its actor. */
import type { KeyActor } from '../base/actor.ts';
import { claimsCount, endsSoon, formOf, isSecretOf, keyIdOf, statusAt, type KeyRecord, effectiveScopes } from './api-key.rules.ts';
import type { KnownUser, LoginRules } from './claims.rules.ts';
import { failedKeyOf, type FailedAttempts, type FailedKey } from './audit.ts';
import { updateRecord, readRecord } from '../store/stored.ts';
import type { WithPorts } from '../store/store.ts';
import { LRUCache } from 'lru-cache';
import { RequestError } from '../base/request-error.ts';
import type { Clock } from '../process/clock.ts';
import { inTime } from '../base/in-time.ts';
import { readUser } from './users.ts';
import { refs } from './refs.ts';

/** Why a secret is refused. Callers are not told; the audit is. */
type KeyRefusal = 'malformed' | 'mistyped' | 'unknown' | 'revoked' | 'expired' | 'owner-disabled' | 'owner-not-allowed' | 'owner-unknown';

/**
 * Returns the actor of a secret; undefined if it is refused. White space around the secret does not matter. `address`: where the
 * request came from. Rejects with the store's fault, the signal's reason, and `request.rate-limited`.
 */
export type AuthenticateKey = (secret: string, signal: AbortSignal, address?: string) => Promise<KeyActor | undefined>;

interface AuthenticateDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly liveKeys: Pick<LiveKeys, 'read'>;
  readonly attempts: Pick<FailedAttempts, 'failed'>;
  /** For how many days after its owner's last login a key has what the owner has from claims. Default: as long as it lives. */
  readonly claimsDays?: number;
}

/** Creates the function. Refusals are counted and audited. */
export function createAuthenticateKey({ liveKeys, attempts, claimsDays = Infinity, ...ports }: AuthenticateDependencies): AuthenticateKey {
  const { clock } = ports;
  const noteUse = createNoteUse(ports);
  const countRequest = createCounter(clock, { windowMs: SECOND_MS, countMax: REQUESTS_PER_S });

  return async function authenticateKey(text, signal, address) {
    const secret = text.trim();
    const refuse = (reason: KeyRefusal, key?: FailedKey): undefined => {
      attempts.failed({ address, reason: `API key ${reason}`, key });
      return undefined;
    };
    const form = formOf(secret);
    if (form !== 'secret') return refuse(form);
    const live = await liveKeys.read(keyIdOf(secret), signal);
    if (live === undefined || !isSecretOf(live.record, secret)) return refuse('unknown');
    const actor = judged(live, claimsDays, clock.nowMs());
    if (typeof actor === 'string') return refuse(actor, failedKeyOf(live));
    noteUse(live.record, actor);
    const waitMs = countRequest(actor.keyId);
    if (waitMs === undefined) return actor;
    throw new RequestError(
      'request.rate-limited',
      `this API key sent more than ${REQUESTS_PER_S} requests in a second: send fewer, or use several keys`,
      { retry_after_s: Math.max(1, Math.ceil(waitMs / SECOND_MS)) },
    );
  };
}

function judged({ record, owner }: LiveKey, claimsDays: number, nowMs: number): KeyActor | KeyRefusal {
  if (record.revokedAtMs !== undefined) return 'revoked';
  if (owner === undefined) return 'owner-unknown';
  if (owner.disabledAtMs !== undefined) return 'owner-disabled';
  if (!owner.isAllowed) return 'owner-not-allowed';
  if (statusAt(record.expiresAtMs, nowMs) === 'EXPIRED') return 'expired';
  return actorOf(record, countedOwner(owner, claimsDays, nowMs), nowMs);
}

/** The owner with what counts of the issuer's statements at the last login. */
function countedOwner(owner: KnownUser, claimsDays: number, nowMs: number): KnownUser {
  if (claimsCount(owner.lastLoginAtMs, claimsDays, nowMs)) return owner;
  return { ...owner, groups: undefined, ...(owner.roleSource === 'rule' && { role: 'user' }) };
}

function actorOf(record: KeyRecord, owner: KnownUser, nowMs: number): KeyActor {
  const { expiresAtMs } = record;
  return {
    kind: 'api_key',
    userId: record.userId,
    email: owner.email,
    ...(!owner.emailVerified && { isUnverified: true }),
    role: owner.role,
    ...(owner.groups && { groups: owner.groups }),
    keyId: record.id,
    keyName: record.name,
    keyFingerprint: record.fingerprint,
    scopes: effectiveScopes(record.scopes, owner, nowMs),
    ...(endsSoon(expiresAtMs, nowMs) && { endsSoonAtMs: expiresAtMs }),
  };
}

/** Notes a key's use: the time in its record, and a warning in the log before the key ends. No request waits for either. */

/** A minute is exact enough to find unused keys, and costs a busy key one write, however many processes there are. */
const USED_EVERY_MS = 60_000;
/** How many writes run at a time. Beyond that, a key is noted at its next use. */
const WRITES_MAX = 100;
/** Once a day is often enough to be noticed, and does not flood the log. */
const WARNED_EVERY_MS = 86_400_000;

/** Creates the function that notes that a key was used now. It never throws. */
function createNoteUse({ state, clock, telemetry }: WithPorts<'state' | 'clock' | 'telemetry'>) {
  let writing = 0;
  /** This process's own writes, because callers' records may be some seconds older. */
  const isWrittenAlready = createCounter(clock, { windowMs: USED_EVERY_MS, countMax: 1 });
  const isWarnedAlready = createCounter(clock, { windowMs: WARNED_EVERY_MS, countMax: 1 });

  async function write(id: string, email: string): Promise<void> {
    const nowMs = clock.nowMs();
    await updateRecord(
      state,
      refs.apiKey(id),
      (current) => {
        if (current === undefined || current.revokedAtMs !== undefined || isRecent(current, nowMs)) return current;
        return { ...current, lastUsedAtMs: nowMs, userEmail: email };
      },
      'soon',
    );
  }

  return function noteUse(record: KeyRecord, { email, endsSoonAtMs }: KeyActor): void {
    const { id } = record;
    if (!isRecent(record, clock.nowMs()) && writing < WRITES_MAX && isWrittenAlready(id) === undefined) {
      writing += 1;
      write(id, email)
        .catch((error: unknown) => telemetry.requestFailed('store when an API key was last used', error))
        .finally(() => (writing -= 1));
    }
    if (endsSoonAtMs === undefined || isWarnedAlready(id) !== undefined) return;
    telemetry.warn('an API key in use ends soon', {
      name: record.name,
      fingerprint: record.fingerprint,
      owner: email,
      expiresAt: new Date(endsSoonAtMs).toISOString(),
      advice: 'Create a new key, switch to it, then revoke this one.',
    });
  };
}

function isRecent({ lastUsedAtMs = -Infinity }: KeyRecord, nowMs: number): boolean {
  return nowMs - lastUsedAtMs < USED_EVERY_MS;
}

/**
 * Limits against flooding. They count in this process only, so N processes permit N times as much. Failed credentials are not limited:
 * no number of guesses finds 256 random bits, and a caller whose credential has ended must learn just that, however often it is sent
 * and whatever its neighbours send.
 */

const SECOND_MS = 1_000;
/** Far more than a script needs, and all that a runaway loop can take of the store. */
const REQUESTS_PER_S = 100;
/** A few megabytes at most. Beyond it, the least recently used window is forgotten. */
const TABLE_MAX = 10_000;

/** Counts one more under this name. Returns undefined if it is permitted, otherwise the ms until the window ends. */
type Counter = (name: string) => number | undefined;

/** Creates a counter of events in windows, each of which permits `countMax`. A name's window begins with its first event. */
export function createCounter(
  clock: Pick<Clock, 'monotonicMs'>,
  { windowMs, countMax }: { readonly windowMs: number; readonly countMax: number },
): Counter {
  const windows = new LRUCache<string, { readonly endsAtMs: number; count: number }>({ max: TABLE_MAX });

  return function count(name) {
    const nowMs = clock.monotonicMs();
    const current = windows.get(name);
    if (current !== undefined && nowMs < current.endsAtMs) {
      current.count += 1;
      return current.count <= countMax ? undefined : current.endsAtMs - nowMs;
    }
    windows.set(name, { endsAtMs: nowMs + windowMs, count: 1 });
    return undefined;
  };
}

/**
 * A cache of keys in use, with their owners. Each key is read from the store at most every 3.5 s, so that authentication usually costs no
 * read, and a key that another process revoked is refused here within five seconds. What this process itself changes (a revocation, a
 * login, a disabled user) leaves the cache, so that the next request reads it again.
 */

/** Revocations count within 5 s. The rest is for the request that has just begun. */
const KNOWN_MS = 3_500;
/** The most keys in the cache: some 10 MB. Beyond it, the least recently used key is dropped, and its next use costs a read. */
const KEYS_MAX = 10_000;

interface LiveKey {
  /** May be revoked or expired. */
  readonly record: KeyRecord;
  readonly owner: KnownUser | undefined;
}

export interface LiveKeys {
  /** Returns the key with this id and its owner, no older than 3.5 s; undefined if there is none. Rejects with the store's fault or the signal's reason. */
  read(id: string, signal: AbortSignal): Promise<LiveKey | undefined>;
  /** Forgets a changed key. */
  forget(id: string): void;
  /** Forgets all keys, because a user has changed. This is rare, and costs each key in use one read. */
  forgetAll(): void;
}

/** Creates the cache. Unknown ids are not remembered, so that guesses displace no key in use. */
export function createLiveKeys({ state, rules, clock }: WithPorts<'state' | 'clock'> & { readonly rules: LoginRules }): LiveKeys {
  /** A read's age counts from its beginning, so what it returns is never older than it seems. */
  const known = new LRUCache<string, { readonly sinceMs: number; readonly read: Promise<LiveKey | undefined> }>({ max: KEYS_MAX });

  async function readKey(id: string): Promise<LiveKey | undefined> {
    const record = await readRecord(state, refs.apiKey(id));
    return record && { record, owner: await readUser({ state, rules }, record.userId) };
  }

  function remember(id: string): Promise<LiveKey | undefined> {
    // it serves every request that arrives in the meantime, so a caller that leaves must not end it
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
