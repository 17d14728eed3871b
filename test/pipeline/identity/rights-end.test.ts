/** What takes rights away takes them from everyone who has them, at once, and for good. */
import { describe, expect, it } from 'vitest';
import { nameOfActor } from '../../../src/domain/identity/actor.ts';
import { userIdOf } from '../../../src/domain/identity/user.ts';
import { createPeople } from '../../../src/pipeline/identity/people.ts';
import { ISSUER } from '../../support/identity/fake-issuer.ts';
import { createKeyProcess, createKeyWorld } from '../../support/identity/keys.ts';
import { createIdentityWorld, logIn, ORIGIN, queryOf, type IdentityWorld } from '../../support/identity/world.ts';

const signal = new AbortController().signal;
const invalidGrant = { code: 'login.invalid-grant' };
const peopleOf = ({ store: { state }, clock }: IdentityWorld) => createPeople({ state, clock, hasAdminRule: true });
const aliceId = userIdOf(ISSUER, 's-alice');

async function cookieOf(world: IdentityWorld): Promise<string> {
  const { cookie: name, location } = await world.logins.begin({ flow: 'browser', returnTo: '/' }, signal);
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

describe('the role of an administrator whom the settings do not name any more', () => {
  it('ends at once for the sessions, which need no refresh for it', async () => {
    const world = createIdentityWorld({ adminEmails: ['alice@example.com'] });
    const { access, refresh } = await logIn(world);
    const cookie = await cookieOf(world);
    expect(await world.sessions.byAccess(access, signal)).toMatchObject({ role: 'admin' });
    world.rule({ adminEmails: [] });
    expect(await world.sessions.byAccess(access, signal)).toMatchObject({ role: 'user' });
    expect(await world.sessions.byCookie(cookie, signal)).toBeUndefined();
    await world.sessions.refresh(refresh, ORIGIN);
    expect(await peopleOf(world).list({ limit: 10 }, signal)).toMatchObject({ items: [{ role: 'user', role_source: 'none' }] });
  });

  it('ends for the API keys too, and returns with the rule', async () => {
    const { store, clock, a, ann, changeUser } = await createKeyWorld();
    const { secret } = await a.create(ann, { name: 'ci', scopes: ['operate', 'admin'] });
    await changeUser('u-ann', { roleSource: 'rule' });
    const ruled = createKeyProcess({ store, clock, rules: { adminEmails: ['ann@example.com'] } });
    expect(await ruled.authenticate(secret)).toMatchObject({ role: 'admin', scopes: ['read', 'operate', 'admin'] });
    const restarted = createKeyProcess({ store, clock, rules: { adminEmails: [] } });
    expect(await restarted.authenticate(secret)).toMatchObject({
      role: 'user',
      scopes: ['read'],
      withheld: { operate: 'role', admin: 'role' },
    });
  });
});

describe('administrators by a grant', () => {
  const granting = ({ store: { state }, clock }: IdentityWorld) => createPeople({ state, clock, hasAdminRule: false });
  const identity = (subject: string, email = `${subject}@example.com`) => ({ issuer: ISSUER, subject, email, emailVerified: true });

  it('who disable each other at the same moment do not leave the registry without one', async () => {
    const world = createIdentityWorld();
    for (const sub of ['ann', 'bob', 'eve']) {
      await granting(world).grant({ sub }, 'root');
      await world.users.signedIn(identity(sub), {});
    }
    const ids = ['ann', 'bob', 'eve'].map((sub) => userIdOf(ISSUER, sub));
    const results = await Promise.allSettled(ids.map((id) => granting(world).disable(id)));
    expect(results).toContainEqual({ status: 'rejected', reason: expect.objectContaining({ code: 'user.last-administrator' }) });
    const enabled = await Promise.all(ids.map(async (id) => (await world.users.get(id))?.disabledAtMs === undefined));
    expect(enabled).toContain(true);
  });

  it('are as many as grants: two people with one address who log in at the same moment do not share one', async () => {
    const world = createIdentityWorld();
    await granting(world).grant({ email: 'ann@example.com' }, 'root');
    const people = ['s-1', 's-2'].map((subject) => identity(subject, 'ann@example.com'));
    const users = await Promise.all(people.map((person) => world.users.signedIn(person, {})));
    expect(users.map(({ role }) => role).toSorted()).toEqual(['admin', 'user']);
    expect(await world.store.state.count('grant')).toBe(0);
  });
});

it('who chooses the address of another person does not act in the name of that one', async () => {
  const world = createIdentityWorld({ allowed: ['any'] });
  world.issuer.personIs({ sub: 's-eve', email: 'alice@example.com', email_verified: false });
  const { access } = await logIn(world);
  const eve = await world.sessions.byAccess(access, signal);
  expect(eve && nameOfActor(eve)).toBe('alice@example.com (not verified)');
  world.issuer.personIs({ sub: 's-alice', email: 'alice@example.com', email_verified: true });
  const alice = await world.sessions.byAccess((await logIn(world)).access, signal);
  expect(alice && nameOfActor(alice)).toBe('alice@example.com');
  expect(world.audit.records.map(({ useridentity }) => useridentity.email)).toEqual([
    'alice@example.com (not verified)',
    'alice@example.com',
  ]);

  const { clock, a, bob, changeUser } = await createKeyWorld();
  const { secret } = await a.create(bob);
  await changeUser('u-bob', { emailVerified: false });
  await clock.advance(5_000);
  const holder = await a.authenticate(secret);
  expect(holder && nameOfActor(holder)).toBe('bob@example.com (not verified)');
});
