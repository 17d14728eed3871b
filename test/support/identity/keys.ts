/** Processes with API keys on one store: each has its own operations and its own memory of keys, and all share a virtual clock. */
import type { Context, Operations } from '../../../src/registry/contract/contract.ts';
import { checkingRequests } from '../requests.ts';
import type { Actor } from '../../../src/base/actor.ts';
import type { LoginRules } from '../../../src/identity/claims.rules.ts';
import type { UserRecord } from '../../../src/identity/user.rules.ts';
import { createAuthenticateKey, createLiveKeys } from '../../../src/identity/authenticate-key.ts';
import { createSubjects } from '../worlds/operations.ts';
import { createFailedAttempts, type FailedAttempt } from '../../../src/identity/audit.ts';
import type { StateStore, Store } from '../../../src/store/store.ts';
import { updateRecord } from '../../../src/store/stored.ts';
import { createMemoryStore } from '../fakes/memory-store.ts';
import { createFakeClock, createFakeTelemetry, type FakeClock } from '../fakes/ports.ts';
import { sessionActor, userRecord } from './actors.ts';
import { refs } from '../../../src/identity/refs.ts';

export const DAY_MS = 86_400_000;

/** Stores a user. */
export async function putUser(state: StateStore, clock: FakeClock, more: Partial<UserRecord> & { readonly userId: string }): Promise<void> {
  const nowMs = clock.nowMs();
  const seen = { createdAtMs: nowMs, lastLoginAtMs: nowMs };
  const user = userRecord({ issuer: 'https://issuer.example.com', subject: more.userId, ...seen, ...more });
  await updateRecord(state, refs.user(more.userId), () => user);
}

/** Settings that name ann, by either of the addresses that tests give her. */
const annRules: LoginRules = { allowed: [{ kind: 'any' }], adminEmails: ['ann@example.com', 'ann@elsewhere.example.com'] };

interface ProcessParts {
  readonly store: Pick<Store, 'state' | 'objects' | 'audit' | 'usage'>;
  readonly clock: FakeClock;
  readonly claimsDays?: number;
  /** What the settings say about users. */
  readonly rules?: LoginRules;
}

/** One process: the operations for any actor, and the authentication of keys. It counts its reads of the store. */
export function createKeyProcess({ store, clock, claimsDays, rules = annRules }: ProcessParts) {
  const telemetry = createFakeTelemetry();
  let reads = 0;
  const state: StateStore = {
    ...store.state,
    get: (id, signal) => {
      reads += 1;
      return store.state.get(id, signal);
    },
  };
  const liveKeys = createLiveKeys({ state, rules, clock });
  const keyParts = { state, liveKeys, clock, telemetry, ...(claimsDays !== undefined && { claimsDays }) };
  const { storage, operations: checked } = createSubjects({ store, clock, telemetry, keys: { clock, liveKeys, rules } });
  const operations: Operations = checkingRequests(checked);
  const attempts = createFailedAttempts({ audit: store.audit, clock, telemetry, host: 'registry' });
  const authenticateKey = createAuthenticateKey({ ...keyParts, attempts });
  const signal = new AbortController().signal;
  const context = (actor: Actor): Context => ({ actor, signal });
  return {
    telemetry,
    store,
    storage,
    operations,
    ownAccess: checked.ownAccess,
    contextOf: context,
    attempts,
    liveKeys,
    authenticateKey,
    authenticate: (secret: string, address?: string) => authenticateKey(secret, signal, address),
    /** The actor of a secret, or what the audit learns about it. */
    async check(secret: string) {
      const refusals: { readonly reason: string; readonly key: unknown }[] = [];
      const failed = ({ reason, key }: FailedAttempt) => void refusals.push({ reason: reason.replace('API key ', ''), key });
      const actor = await createAuthenticateKey({ ...keyParts, attempts: { failed } })(secret, signal);
      return actor === undefined ? { kind: 'refused' as const, ...refusals[0] } : { kind: 'accepted' as const, actor };
    },
    reads: () => reads,
    async create(actor: Actor, body: Parameters<Operations['createApiKey']>[0]['body'] = { name: 'ci' }) {
      return operations.createApiKey({ body }, context(actor));
    },
  };
}

/** Two processes on one store in memory, with the users bob (user) and ann (granted administrator), who have logged in. */
export async function createKeyWorld({ store = createMemoryStore() }: { readonly store?: Store } = {}) {
  const clock = createFakeClock();
  await putUser(store.state, clock, { userId: 'u-bob', email: 'bob@example.com' });
  await putUser(store.state, clock, { userId: 'u-ann', email: 'ann@example.com', role: 'admin', roleSource: 'appointment' });
  return {
    store,
    clock,
    a: createKeyProcess({ store, clock }),
    b: createKeyProcess({ store, clock }),
    bob: sessionActor({ address: '10.0.0.7' }),
    ann: sessionActor({ userId: 'u-ann', email: 'ann@example.com', role: 'admin', sessionId: 's-ann', address: '10.0.0.8' }),
    changeUser: async (userId: string, more: Partial<UserRecord>): Promise<void> => {
      await updateRecord(store.state, refs.user(userId), (current) => current && { ...current, ...more });
    },
  };
}
