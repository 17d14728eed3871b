import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyScopes, roles } from '../../src/base/actor.ts';
import { effectiveScopes, scopesAsStored, scopesOfRole } from '../../src/identity/api-key.rules.ts';
import { roleSources } from '../../src/identity/user.rules.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 10, 22);

describe('the scopes of a key', () => {
  it('are stored once each, in one order, with read', () => {
    expect(scopesAsStored(['admin', 'admin', 'operate'])).toEqual(['read', 'operate', 'admin']);
    expect(scopesAsStored(['operate'])).toEqual(['read', 'operate']);
  });

  it('are never more than the role of the owner, nor more than the key was created with', () => {
    const owners = fc.record({
      role: fc.constantFrom(...roles),
      roleSource: fc.constantFrom(...roleSources),
      lastLoginAtMs: fc.integer({ min: NOW_MS - 30 * DAY_MS, max: NOW_MS }),
    });
    fc.assert(
      fc.property(fc.subarray([...keyScopes]), owners, (stored, owner) => {
        const scopes = effectiveScopes(stored, owner, NOW_MS);
        for (const scope of scopes)
          expect([stored, scopesOfRole(owner.role)]).toEqual([expect.arrayContaining([scope]), expect.arrayContaining([scope])]);
        const isOld = owner.roleSource === 'rule' && NOW_MS - owner.lastLoginAtMs > 7 * DAY_MS;
        if (isOld) expect(scopes).not.toContain('admin');
        else expect(scopes).toEqual(stored.filter((scope) => scopesOfRole(owner.role).includes(scope)));
      }),
    );
  });

  it('lose admin when a role from a claim is older than seven days, and no granted one does', () => {
    const at = (roleSource: 'rule' | 'appointment', ageMs: number) =>
      effectiveScopes(['read', 'operate', 'admin'], { role: 'admin', roleSource, lastLoginAtMs: NOW_MS - ageMs }, NOW_MS);
    expect(at('rule', 7 * DAY_MS)).toEqual(['read', 'operate', 'admin']);
    expect(at('rule', 7 * DAY_MS + 1)).toEqual(['read', 'operate']);
    expect(at('appointment', 400 * DAY_MS)).toContain('admin');
  });
});
