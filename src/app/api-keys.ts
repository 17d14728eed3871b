/** What a process needs for API keys. Its parts are created and connected here. */
import { systemClock } from '../adapters/system-clock.ts';
import type { ExpiryRule } from '../domain/identity/api-key.ts';
import { createAuthenticateKey, createKeyStands, type AuthenticateKey, type KeyStands } from '../pipeline/identity/authenticate-key.ts';
import { createKeyUses, type KeyUses } from '../pipeline/identity/key-uses.ts';
import { createAbuseLimits, type AbuseLimits } from '../pipeline/identity/limits.ts';
import { createUsers } from '../pipeline/identity/users.ts';
import type { Store } from '../pipeline/ports/store.ts';
import type { Telemetry } from '../pipeline/ports/telemetry.ts';
import type { Settings } from '../settings/settings.ts';

export interface KeyParts {
  readonly rule: ExpiryRule;
  /** Shared by everything that checks credentials. */
  readonly limits: AbuseLimits;
  readonly uses: KeyUses;
  readonly authenticateKey: AuthenticateKey;
  /** For what stays open after a request was accepted. */
  readonly keyStands: KeyStands;
}

/** Creates the parts. */
export function createKeyParts({ state, audit }: Pick<Store, 'state' | 'audit'>, settings: Settings, telemetry: Telemetry): KeyParts {
  const clock = systemClock;
  const users = createUsers({ state });
  const rule = { ownerLoginDays: settings.TALLY_KEYS_OWNER_LOGIN_DAYS };
  const limits = createAbuseLimits({ clock });
  return {
    rule,
    limits,
    uses: createKeyUses({ audit, clock, telemetry }),
    authenticateKey: createAuthenticateKey({ state, users, clock, telemetry, rule, limits }),
    keyStands: createKeyStands({ state, users, clock, rule }),
  };
}
