/**
 * A registry with grants: its control plane over HTTP with the operations of the program, on any store, and people who have logged in
 * at an issuer in memory.
 */
import type { KeyActor } from '../../../src/base/actor.ts';
import type { Claims } from '../../../src/identity/claims.rules.ts';
import type { Store } from '../../../src/store/store.ts';
import { localActor } from './actors.ts';
import { get, type BrowserAnswer } from './browser.ts';
import { bearer, jsonOf, startHttpWorld } from './http-world.ts';
import { createKeyProcess } from './keys.ts';
import { createIdentityWorld, logIn } from './world.ts';

/** After as many days without a login the groups of an owner do not count for keys. */
export const CLAIMS_DAYS = 30;
export const ADMIN = 'ann@example.com';
const { signal } = new AbortController();

export async function startReadersWorld(store?: Store) {
  const settings = { allowed: ['any'], adminEmails: [ADMIN], adminClaim: 'role=boss' };
  const world = createIdentityWorld({ ...settings, ...(store !== undefined && { store }) });
  const process = createKeyProcess({ store: world.store, clock: world.clock, rules: world.rules, claimsDays: CLAIMS_DAYS });
  const { operations, ownAccess, attempts, storage } = process;
  const context = process.contextOf(localActor);
  // without the limit of requests, whose own tests are elsewhere
  async function authenticateKey(secret: string): Promise<KeyActor | undefined> {
    const verdict = await process.check(secret);
    return verdict.kind === 'accepted' ? verdict.actor : undefined;
  }
  const { url, close } = await startHttpWorld({ world, operations, ownAccess, identity: { authenticateKey, attempts } });

  /** Sends a request of a caller; without a token, of one who is not known. */
  function send(token: string | undefined, path: string, body?: unknown): Promise<BrowserAnswer> {
    return get(`${url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        ...(token !== undefined && bearer(token)),
        ...(body !== undefined && { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }

  return {
    store: world.store,
    clock: world.clock,
    process,
    storage,
    operations,
    context,
    signal,
    send,
    /** Logs a person in, and resolves with the token. */
    async logIn(email: string, claims: Claims = {}): Promise<string> {
      world.issuer.personIs({ sub: `s-${email}`, email, email_verified: true, ...claims });
      return (await logIn(world)).token;
    },
    async grant(who: string, ...wheres: readonly string[]): Promise<void> {
      for (const where of wheres) await operations.addGrant({ body: { who, where } }, context);
    },
    async revoke(who: string, where: string): Promise<void> {
      await operations.removeGrant({ body: { who, where } }, context);
    },
    /** Creates an API key in a session, and resolves with its secret. */
    async keyOf(token: string): Promise<string> {
      const { status, ...answer } = await send(token, '/v1/api-keys', { name: 'ci' });
      if (status !== 201) throw new Error(`${status}: ${answer.text}`);
      return String(jsonOf({ status, ...answer })['secret']);
    },
    close,
  };
}

export type ReadersWorld = Awaited<ReturnType<typeof startReadersWorld>>;
