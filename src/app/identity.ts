/** How `tally serve` knows its callers: API keys, and with an issuer logins and sessions. Their parts are created and connected here. */
import { hostname } from 'node:os';
import { systemClock } from '../adapters/system-clock.ts';
import type { ExpiryRule } from '../domain/identity/api-key.ts';
import {
  type StoresWindows,
  createFailedAttempts,
  type FailedAttempts,
  createKeyUses,
  type KeyUses,
} from '../pipeline/identity/audit-windows.ts';
import {
  createAuthenticateKey,
  type AuthenticateKey,
  createAbuseLimits,
  createLiveKeys,
  type LiveKeys,
} from '../pipeline/identity/authenticate-key.ts';
import { createUsers, type Users, createSignIns } from '../pipeline/identity/users.ts';
import type { Store } from '../pipeline/ports/store.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import { loginRulesOf } from '../settings/identity.ts';
import type { Settings } from '../settings/settings.ts';
import type { ProxyVariables } from '../settings/proxy.ts';
import type { LoginParts } from '../http/login-routes.ts';
import { createAuditUser } from '../pipeline/identity/audited.ts';
import { createLogins } from '../pipeline/identity/logins.ts';
import { createSessions } from '../pipeline/identity/sessions.ts';

export interface KeyParts extends StoresWindows {
  readonly rule: ExpiryRule;
  /** Shared by everything that checks credentials. */
  readonly attempts: Pick<FailedAttempts, 'failed' | 'loginFailed'>;
  readonly keyUses: Pick<KeyUses, 'used'>;
  /** What this process knows of keys in use; the operations that change keys and users say so. */
  readonly liveKeys: Pick<LiveKeys, 'forget' | 'forgetAll'>;
  readonly users: Users;
  readonly authenticateKey: AuthenticateKey;
}

/** Creates the parts. */
export function createKeyParts({ state, audit }: Pick<Store, 'state' | 'audit'>, settings: Settings, telemetry: Telemetry): KeyParts {
  const clock = systemClock;
  const users = createUsers({ state, rules: loginRulesOf(settings) });
  const liveKeys = createLiveKeys({ state, users, clock });
  const rule = { ownerLoginDays: settings.TALLY_KEYS_OWNER_LOGIN_DAYS, claimsDays: settings.TALLY_KEYS_CLAIMS_DAYS };
  const limits = createAbuseLimits({ clock });
  const attempts = createFailedAttempts({ audit, clock, telemetry, host: hostname() });
  const uses = createKeyUses({ audit, clock, telemetry });
  return {
    rule,
    attempts,
    keyUses: uses,
    liveKeys,
    users,
    authenticateKey: createAuthenticateKey({ state, liveKeys, clock, telemetry, rule, limits, attempts }),
    storeEnded: async () => void (await Promise.all([uses.storeEnded(), attempts.storeEnded()])),
    flush: async (signal) => void (await Promise.all([uses.flush(signal), attempts.flush(signal)])),
  };
}

interface IdentityParts {
  readonly settings: Settings;
  readonly proxyEnv: ProxyVariables | undefined;
  readonly store: Pick<Store, 'state' | 'audit'>;
  readonly telemetry: Telemetry;
  /** What API keys are known by. */
  readonly keys: KeyParts;
  /** The address of the registry, as browsers reach it. */
  readonly publicUrl: () => string;
}

/** Creates the parts; undefined without an issuer: then callers are not authenticated. */
export async function createIdentity({
  settings,
  proxyEnv,
  store,
  telemetry,
  keys,
  publicUrl,
}: IdentityParts): Promise<LoginParts | undefined> {
  const { TALLY_OIDC_ISSUER: address, TALLY_OIDC_CLIENT_ID: clientId } = settings;
  if (address === undefined || clientId === undefined || !settings.TALLY_ROLES.includes('http')) return undefined;
  // loaded only where people log in
  const { createIssuer } = await import('../adapters/oidc/issuer.ts');
  const clock = systemClock;
  const { state } = store;
  const rules = loginRulesOf(settings);
  const issuer = createIssuer({
    issuer: address,
    clientId,
    clientSecret: settings.TALLY_OIDC_CLIENT_SECRET,
    scopes: settings.TALLY_OIDC_SCOPES,
    proxyEnv,
    clock,
  });
  const audit = createAuditUser({ audit: store.audit, clock, telemetry });
  const users = createSignIns({ state, clock, rules, liveKeys: keys.liveKeys });
  const sessions = createSessions({ state, clock, users, days: settings.TALLY_SESSION_DAYS });
  const logins = createLogins({ state, clock, issuer, users, sessions, rules, audit, attempts: keys.attempts, publicUrl });
  return { ...keys, sessions, logins, audit, trustedProxies: settings.TALLY_TRUSTED_PROXIES, publicUrl };
}
