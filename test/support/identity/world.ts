/** Users, sessions and logins on stores in memory, with an issuer in memory. */
import { type Claims, type Identity, allowedRuleOf, claimRuleOf, type LoginRules } from '../../../src/identity/claims.rules.ts';
import { challengeOf } from '../../../src/identity/tokens.rules.ts';
import { createFailedAttempts } from '../../../src/identity/audit.ts';
import { createLogins, createSessions } from '../../../src/identity/logins.ts';
import { readUser, signIn } from '../../../src/identity/users.ts';
import type { Store } from '../../../src/store/store.ts';
import { createMemoryAudit } from '../fakes/memory-audit.ts';
import { createMemoryStore } from '../fakes/memory-store.ts';
import { createFakeClock, createFakeTelemetry } from '../fakes/ports.ts';
import { createFakeIssuer, ISSUER } from './fake-issuer.ts';
import type { LiveKeys } from '../../../src/identity/authenticate-key.ts';

export const PUBLIC_URL = 'https://tally.example.com';
export const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
export const REDIRECT = 'http://127.0.0.1:49152/callback';

interface WorldOptions {
  readonly allowed?: readonly string[];
  readonly adminEmails?: readonly string[];
  readonly adminClaim?: string;
  /** Default: that of the fake issuer. */
  readonly issuerOfRules?: string;
  readonly trustsEmail?: boolean;
  readonly store?: Store;
  readonly liveKeys?: Pick<LiveKeys, 'forgetAll'>;
}

export function createIdentityWorld(options: WorldOptions = {}) {
  const store = options.store ?? createMemoryStore();
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const audit = createMemoryAudit();
  const issuer = createFakeIssuer();
  /** They may be replaced, as by a restart with other settings. */
  const rules: LoginRules = rulesOf(options);
  const known = { state: store.state, clock, rules, liveKeys: options.liveKeys };
  const users = {
    get: (userId: string) => readUser(known, userId),
    signedIn: (identity: Identity, claims: Claims) => signIn(known, identity, claims),
  };
  const sessions = createSessions({ ...known, days: 7 });
  let address = PUBLIC_URL;
  const publicUrl = () => address;
  /** Each call is another process on the same store. */
  const attempts = createFailedAttempts({ audit, clock, telemetry, host: 'registry' });
  const process = () => createLogins({ ...known, telemetry, audit, issuer, sessions, attempts, publicUrl });
  return {
    store,
    clock,
    telemetry,
    audit,
    issuer,
    users,
    sessions,
    rules,
    publicUrl,
    isAt: (url: string): void => void (address = url),
    process,
    logins: process(),
    attempts,
    /** The records of the audit, those of failures included, which are counted in windows. */
    async audited() {
      await attempts.flush(signal);
      return audit.records;
    },
    rule: (more: WorldOptions): void => void Object.assign(rules, rulesOf(more)),
  };
}

export type IdentityWorld = ReturnType<typeof createIdentityWorld>;

function rulesOf({
  allowed = ['domain=example.com'],
  adminEmails = [],
  adminClaim,
  issuerOfRules,
  trustsEmail = false,
}: WorldOptions): LoginRules {
  return {
    issuer: issuerOfRules ?? ISSUER,
    trustsEmail,
    allowed: allowed.map((text) => allowedRuleOf(text)!),
    adminEmails,
    adminClaim: adminClaim === undefined ? undefined : claimRuleOf(adminClaim),
  };
}

const signal = new AbortController().signal;
export const ORIGIN = { address: '192.0.2.1', requestId: 'request-1' };

export const CLIENT = {
  flow: 'client',
  challenge: challengeOf(VERIFIER),
  redirectUri: REDIRECT,
  clientState: 'mine',
  machine: 'laptop',
} as const;

/** Logs the issuer's person in, each step in another process, and resolves with the session. */
export async function logIn(world: IdentityWorld) {
  const { cookie: name, location } = await world.process().begin(CLIENT, signal);
  const answered = await world.process().answered(name, queryOf(world.issuer.answerTo(location)), ORIGIN, signal);
  if (answered.kind === 'failed') throw answered.error;
  const { token } = await world.process().consent(name, signal);
  const { redirect = '' } = await world.process().decide(name, { token, allow: true }, ORIGIN);
  const code = new URL(redirect).searchParams.get('code') ?? '';
  const session = await world.process().redeem({ code, verifier: VERIFIER, redirectUri: REDIRECT }, ORIGIN);
  return { ...session, name, code, consent: token, redirect };
}

export function queryOf(path: string): string {
  return path.slice(path.indexOf('?'));
}
