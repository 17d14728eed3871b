/** Identity of `tally serve`: the issuer, logins and sessions. Its parts are created and connected here. */
import { systemClock } from '../adapters/system-clock.ts';
import { loginRulesOf } from '../settings/identity.ts';
import type { ProxyVariables } from '../settings/proxy.ts';
import type { Settings } from '../settings/settings.ts';
import type { LoginParts } from '../http/login-routes.ts';
import { createAuditUser } from '../pipeline/identity/audited.ts';
import { createLogins } from '../pipeline/identity/logins.ts';
import { createSessions } from '../pipeline/identity/sessions.ts';
import { createSignIns } from '../pipeline/identity/users.ts';
import type { Store } from '../pipeline/ports/store.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import type { KeyParts } from './api-keys.ts';

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
