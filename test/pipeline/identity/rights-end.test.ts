/** What takes rights away takes them from everyone who has them, at once, and for good. */
import { describe, expect, it } from 'vitest';
import { userIdOf } from '../../../src/domain/identity/user.ts';
import { createPeople } from '../../../src/pipeline/identity/people.ts';
import { ISSUER } from '../../support/identity/fake-issuer.ts';
import { createIdentityWorld, logIn, ORIGIN, queryOf, type IdentityWorld } from '../../support/identity/world.ts';

const signal = new AbortController().signal;
const invalidGrant = { code: 'login.invalid-grant' };
const peopleOf = ({ store: { state }, clock }: IdentityWorld) => createPeople({ state, clock, hasAdminRule: true });
const aliceId = userIdOf(ISSUER, 's-alice');

async function cookieOf(world: IdentityWorld): Promise<string> {
  const { name, location } = await world.logins.begin({ flow: 'browser', returnTo: '/' }, signal);
  const answered = await world.logins.answered(name, queryOf(world.issuer.answerTo(location)), ORIGIN, signal);
  if (answered.kind !== 'browser') throw new Error(answered.kind);
  return answered.cookie;
}

describe('a user who was disabled and is enabled again', () => {
  it('must log in again: no session of before comes back, of programs or of browsers', async () => {
    const world = createIdentityWorld();
    const { access, refresh } = await logIn(world);
    const cookie = await cookieOf(world);
    await peopleOf(world).disable(aliceId);
    await peopleOf(world).disable(aliceId);
    await peopleOf(world).enable(aliceId);
    expect(await world.sessions.byAccess(access, signal)).toBeUndefined();
    expect(await world.sessions.byCookie(cookie, signal)).toBeUndefined();
    await expect(world.sessions.refresh(refresh, ORIGIN)).rejects.toMatchObject(invalidGrant);
    const again = await logIn(world);
    expect(await world.sessions.byAccess(again.access, signal)).toMatchObject({ userId: aliceId });
    expect(await world.sessions.byAccess((await world.sessions.refresh(again.refresh, ORIGIN)).access, signal)).toBeDefined();
  });
});
