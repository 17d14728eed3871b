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
const peopleOf = ({ store: { state }, clock }: IdentityWorld) =>
  createPeople({ state, clock, rules: { adminEmails: ['root@example.com'] } });
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

describe('a user whose address the issuer denied at the login', () => {
  it('keeps no session once the settings do not permit it any more, and a verified user does', async () => {
    const world = createIdentityWorld({ allowed: ['any'], allowsUnverified: true });
    const alice = await logIn(world);
    world.issuer.personIs({ sub: 's-eve', email: 'alice@example.com', email_verified: false });
    const eve = await logIn(world);
    const { refresh } = await world.sessions.refresh(eve.refresh, ORIGIN);
    world.rule({ allowed: ['any'] });
    await expect(world.sessions.refresh(refresh, ORIGIN)).rejects.toMatchObject(invalidGrant);
    expect(world.audit.records.at(-1)?.reason).toBe('the issuer says that this address is not verified, so the session was ended');
    expect(await world.sessions.refresh(alice.refresh, ORIGIN)).toHaveProperty('access');
  });

  it('is not denied any more after a login at which the issuer vouches for it', async () => {
    const world = createIdentityWorld({ allowed: ['any'], allowsUnverified: true });
    world.issuer.personIs({ sub: 's-alice', email: 'alice@example.com', email_verified: false });
    await logIn(world);
    expect(await world.users.get(aliceId)).toMatchObject({ emailDenied: true });
    world.issuer.personIs({ sub: 's-alice', email: 'alice@example.com', email_verified: true });
    const { refresh } = await logIn(world);
    world.rule({ allowed: ['any'] });
    expect(await world.sessions.refresh(refresh, ORIGIN)).toHaveProperty('access');
  });
});

describe('the users of another issuer than that of the settings', () => {
  it('have no session and no role, and come back with their issuer', async () => {
    const world = createIdentityWorld({ issuerOfRules: `${ISSUER}/` });
    await peopleOf(world).grant({ sub: 's-alice' }, 'root');
    const { access, refresh } = await logIn(world);
    const cookie = await cookieOf(world);
    expect(await world.sessions.byAccess(access, signal)).toMatchObject({ role: 'admin' });
    world.rule({ issuerOfRules: 'https://other.example.com' });
    expect(await world.sessions.byAccess(access, signal)).toBeUndefined();
    expect(await world.sessions.byCookie(cookie, signal)).toBeUndefined();
    world.rule({ issuerOfRules: ISSUER });
    expect(await world.sessions.byAccess(access, signal)).toMatchObject({ role: 'admin' });
    world.rule({ issuerOfRules: 'https://other.example.com' });
    await expect(world.sessions.refresh(refresh, ORIGIN)).rejects.toMatchObject(invalidGrant);
    expect(world.audit.records.at(-1)).toMatchObject({
      eventname: 'LoginFailed',
      reason: 'no user of TALLY_OIDC_ISSUER has this session, so the session was ended',
    });
  });

  it('are not meant where discovery leads from the setting to an issuer of another name', async () => {
    const world = createIdentityWorld({ issuerOfRules: 'https://alias.example.com' });
    const { access } = await logIn(world);
    expect(await world.users.get(aliceId)).toMatchObject({ issuer: ISSUER, issuerSetting: 'https://alias.example.com' });
    expect(await world.sessions.byAccess(access, signal)).toMatchObject({ userId: aliceId });
    world.rule({ issuerOfRules: 'https://other.example.com' });
    expect(await world.sessions.byAccess(access, signal)).toBeUndefined();
  });

  it('have no API key that works, and administrators see these keys as refused', async () => {
    const { store, clock, a, ann } = await createKeyWorld();
    const { secret, key } = await a.create(ann, { name: 'ci', scopes: ['admin'] });
    const same = createKeyProcess({ store, clock, rules: { issuer: 'https://issuer.example.com/', adminEmails: [] } });
    const other = createKeyProcess({ store, clock, rules: { issuer: 'https://other.example.com', adminEmails: [] } });
    expect(await same.authenticate(secret)).toMatchObject({ role: 'admin' });
    expect(await other.authenticate(secret)).toBeUndefined();
    const seenBy = ({ operations, contextOf }: typeof same) => operations.getAnyApiKey({ params: { id: key.id } }, contextOf(ann));
    expect(await seenBy(same)).toMatchObject({ owner_disabled: false, user_id: 'u-ann', user_email_verified: true });
    expect(await seenBy(other)).toMatchObject({ owner_disabled: true, user_id: 'u-ann', user_email_verified: false });
  });

  it('do not count as administrators, so that the last one of this issuer stays', async () => {
    const world = createIdentityWorld();
    const people = createPeople({ state: world.store.state, clock: world.clock, rules: { issuer: ISSUER, adminEmails: [] } });
    await people.grant({ sub: 's-alice' }, 'root');
    await logIn(world);
    await people.grant({ sub: 's-old' }, 'root');
    const old = { issuer: 'https://old.example.com', subject: 's-old', email: 'old@example.com', emailVerified: true };
    expect(await world.users.signedIn(old, {})).toMatchObject({ role: 'admin' });
    await expect(people.disable(aliceId)).rejects.toMatchObject({ code: 'user.last-administrator' });
  });
});

describe('administrators by a grant', () => {
  const granting = ({ store: { state }, clock }: IdentityWorld) => createPeople({ state, clock, rules: { adminEmails: [] } });
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
  const world = createIdentityWorld({ allowed: ['any'], allowsUnverified: true });
  world.issuer.personIs({ sub: 's-eve', email: 'alice@example.com', email_verified: false });
  const { access } = await logIn(world);
  const eve = await world.sessions.byAccess(access, signal);
  expect(eve && nameOfActor(eve)).toBe('alice@example.com (not verified)');
  world.issuer.personIs({ sub: 's-alice', email: 'alice@example.com', email_verified: true });
  const alice = await world.sessions.byAccess((await logIn(world)).access, signal);
  expect(alice && nameOfActor(alice)).toBe('alice@example.com');
  expect(world.audit.records.map(({ useridentity: { email, userId } }) => [email, userId])).toEqual([
    ['alice@example.com (not verified)', userIdOf(ISSUER, 's-eve')],
    ['alice@example.com', aliceId],
  ]);
  world.rule({ allowed: ['any'] });
  world.issuer.personIs({ sub: 's-eve', email: 'alice@example.com', email_verified: false });
  await expect(logIn(world)).rejects.toMatchObject({ code: 'login.refused' });
  expect((await world.audited()).at(-1)?.useridentity).toMatchObject({
    email: 'alice@example.com (not verified)',
    userId: userIdOf(ISSUER, 's-eve'),
  });

  const { clock, a, bob, changeUser } = await createKeyWorld();
  const { secret } = await a.create(bob);
  await changeUser('u-bob', { emailVerified: false });
  await clock.advance(5_000);
  const holder = await a.authenticate(secret);
  expect(holder && nameOfActor(holder)).toBe('bob@example.com (not verified)');
});
