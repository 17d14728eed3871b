/** What a process needs for API keys. Its parts are created and connected here. */
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
import { createAuthenticateKey, type AuthenticateKey } from '../pipeline/identity/authenticate-key.ts';
import { createAbuseLimits } from '../pipeline/identity/limits.ts';
import { createLiveKeys, type LiveKeys } from '../pipeline/identity/live-keys.ts';
import { createUsers, type Users } from '../pipeline/identity/users.ts';
import type { Store } from '../pipeline/ports/store.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import { loginRulesOf } from '../settings/identity.ts';
import type { Settings } from '../settings/settings.ts';

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
