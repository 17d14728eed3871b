/** What takes rights away takes them from everyone who has them, at once, and for good. */
import { describe, expect, it } from 'vitest';
import { refusalOf } from '../../src/identity/authorise.rules.ts';
import { nameOfActor } from '../../src/base/actor.ts';
import type { LoginRules } from '../../src/identity/claims.rules.ts';
import { userIdOf } from '../../src/identity/user.rules.ts';
import { createPeople } from '../../src/identity/users.ts';
import { sessionActor } from '../support/identity/actors.ts';
import { ISSUER } from '../support/identity/fake-issuer.ts';
import { createKeyProcess, createKeyWorld } from '../support/identity/keys.ts';
import { createIdentityWorld, logIn, ORIGIN, queryOf, type IdentityWorld } from '../support/identity/world.ts';

const signal = new AbortController().signal;
/** Another process on the store of the keys, with these rules. */
const ruled = ({ store, clock }: Awaited<ReturnType<typeof createKeyWorld>>, rules: Partial<LoginRules>) =>
  createKeyProcess({ store, clock, rules: { allowed: [{ kind: 'any' }], adminEmails: [], ...rules } });
const peopleOf = ({ store: { state }, clock, rules }: IdentityWorld) => createPeople({ state, clock, rules });
const aliceId = userIdOf(ISSUER, 's-alice');

async function cookieOf(world: IdentityWorld): Promise<string> {
  const { cookie: name, location } = await world.logins.begin({ flow: 'browser', returnTo: '/' }, signal);
  const answered = await world.logins.answered(name, queryOf(world.issuer.answerTo(location)), ORIGIN, signal);
  if (answered.kind !== 'browser') throw new Error(answered.kind);
  return answered.cookie;
}

describe('the role of an administrator whom the settings name', () => {
  it('begins and ends at once for the sessions', async () => {
    const world = createIdentityWorld();
    const { token } = await logIn(world);
    world.rule({ adminEmails: ['alice@example.com'] });
    const cookie = await cookieOf(world);
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'admin' });
    world.rule({ adminEmails: [] });
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'user' });
    expect(await world.sessions.check('browser', cookie, signal)).toBe('of a user with another role');
    expect(await peopleOf(world).list({ limit: 10 }, signal)).toMatchObject({ items: [{ role: 'user', role_source: 'none' }] });
    expect(await peopleOf(world).change(aliceId, { disabled: true }, 'root')).toMatchObject({
      user: { role: 'user', role_source: 'none' },
    });
    expect(await peopleOf(world).change(aliceId, { disabled: false }, 'root')).toMatchObject({
      user: { role: 'user', role_source: 'none' },
    });
  });

  it('ends for the API keys too, and returns with the rule', async () => {
    const keys = await createKeyWorld();
    const { secret } = await keys.a.create(keys.ann, { name: 'ci', scopes: ['operate', 'admin'] });
    await keys.changeUser('u-ann', { roleSource: 'rule' });
    const named = ruled(keys, { adminEmails: ['ann@example.com'] });
    expect(await named.authenticate(secret)).toMatchObject({ role: 'admin', scopes: ['read', 'operate', 'admin'] });
    expect(await ruled(keys, {}).authenticate(secret)).toMatchObject({ role: 'user', scopes: ['read'] });
  });
});

describe('the role of an administrator that the claims of a login gave', () => {
  const hour = 3_600_000;

  it('counts for 12 hours in the session of a program, which then is that of a user until the next login', async () => {
    const world = createIdentityWorld({ adminClaim: 'email=alice@example.com' });
    const { token } = await logIn(world);
    await world.clock.advance(12 * hour - 1);
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'admin' });
    await world.clock.advance(1);
    const lapsed = await world.sessions.check('client', token, signal);
    expect(lapsed).toMatchObject({ role: 'user' });
    expect(typeof lapsed !== 'string' && refusalOf('operate', lapsed)?.detail).toMatch(/log in again: it counts for 12 hours/);
    const again = await logIn(world);
    expect(await world.sessions.check('client', again.token, signal)).toMatchObject({ role: 'admin' });
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'user' });
  });

  it('counts in a browser as long as its session, and a granted one in every session', async () => {
    const world = createIdentityWorld({ adminClaim: 'email=alice@example.com' });
    const cookie = await cookieOf(world);
    await world.clock.advance(12 * hour - 1);
    expect(await world.sessions.check('browser', cookie, signal)).toMatchObject({ role: 'admin' });
    await world.clock.advance(1);
    expect(await world.sessions.check('browser', cookie, signal)).toBe('ended');
    const { token } = await logIn(world);
    await peopleOf(world).change('sub:s-alice', { role: 'admin' }, 'root');
    await world.clock.advance(150 * hour);
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'admin' });
  });
});

it.each([
  ['a group was left', { groups: ['readers'] }, { groups: [] }, { groups: ['readers'] }, { groups: [] }],
  ['an address is not verified any more', {}, { email_verified: undefined }, {}, { isUnverified: true }],
  ['an address has changed', {}, { email: 'al@example.com' }, { email: 'alice@example.com' }, { email: 'al@example.com' }],
])('Fix: what the next login of its owner states counts for an API key at once: %s', async (_what, before, after, was, is) => {
  const rules: LoginRules = { issuer: ISSUER, allowed: [{ kind: 'any' }], adminEmails: [] };
  const process: { liveKeys?: { forgetAll(): void } } = {};
  const world = createIdentityWorld({
    allowed: ['any'],
    liveKeys: { forgetAll: () => process.liveKeys?.forgetAll() },
  });
  const keys = createKeyProcess({ store: world.store, clock: world.clock, rules });
  process.liveKeys = keys.liveKeys;
  const alice = { sub: 's-alice', email: 'alice@example.com', email_verified: true };
  world.issuer.personIs({ ...alice, ...before });
  await logIn(world);
  const { secret } = await keys.create(sessionActor({ userId: aliceId, email: 'alice@example.com' }));
  expect(await keys.authenticate(secret)).toMatchObject(was);
  world.issuer.personIs({ ...alice, ...after });
  await logIn(world);
  expect(await keys.authenticate(secret)).toMatchObject(is);
});

it('a user of whose address the issuer says nothing is one with a verified address only while the settings trust it: for sessions, roles and grants', async () => {
  const trusting = { adminEmails: ['alice@example.com'], trustsEmail: true };
  const world = createIdentityWorld(trusting);
  const bob = { sub: 's-bob', email: 'bob@example.com', email_verified: true };
  world.issuer.personIs(bob);
  const verified = await logIn(world);
  world.issuer.personIs({ sub: 's-alice', email: 'alice@example.com' });
  const { token } = await logIn(world);
  expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'admin' });
  world.rule({ ...trusting, trustsEmail: false });
  expect(await world.sessions.check('client', token, signal)).toBe('of a user who may not log in');
  expect(await world.sessions.check('client', verified.token, signal)).toMatchObject({ email: 'bob@example.com' });
  world.rule({ ...trusting, trustsEmail: false, allowed: ['any'] });
  expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'user', isUnverified: true });
  expect((await peopleOf(world).change('alice@example.com', { role: 'admin' }, 'root')).user).toBeUndefined();
  expect((await peopleOf(world).change('bob@example.com', { role: 'admin' }, 'root')).user?.id).toBe(userIdOf(ISSUER, 's-bob'));
  world.rule(trusting);
  expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'admin' });
});

it.each([{ trustsEmail: true }, { allowed: ['any'] }])(
  'a user of whose address the issuer said nothing at the login has a verified one after a login at which the issuer vouches for it: %j',
  async (rule) => {
    const world = createIdentityWorld(rule);
    world.issuer.personIs({ sub: 's-alice', email: 'alice@example.com' });
    await logIn(world);
    world.issuer.personIs({ sub: 's-alice', email: 'alice@example.com', email_verified: true });
    const { token } = await logIn(world);
    world.rule({});
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ userId: aliceId });
  },
);

describe('the users of another issuer than that of the settings', () => {
  it('have no session and no role, and come back with their issuer', async () => {
    const world = createIdentityWorld({ issuerOfRules: `${ISSUER}/` });
    await peopleOf(world).change('sub:s-alice', { role: 'admin' }, 'root');
    const { token } = await logIn(world);
    const cookie = await cookieOf(world);
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'admin' });
    world.rule({ issuerOfRules: 'https://other.example.com' });
    for (const [kind, sent] of [
      ['client', token],
      ['browser', cookie],
    ] as const)
      expect(await world.sessions.check(kind, sent, signal)).toBe('of a user who may not log in');
    world.rule({ issuerOfRules: ISSUER });
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'admin' });
  });

  it('are not meant where discovery leads from the setting to an issuer of another name', async () => {
    const world = createIdentityWorld({ issuerOfRules: 'https://alias.example.com' });
    const { token } = await logIn(world);
    expect(await world.users.get(aliceId)).toMatchObject({ issuer: ISSUER, issuerSetting: 'https://alias.example.com' });
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ userId: aliceId });
    world.rule({ issuerOfRules: 'https://other.example.com' });
    expect(await world.sessions.check('client', token, signal)).toBe('of a user who may not log in');
  });

  it('have no API key that works, and administrators see these keys as refused', async () => {
    const keys = await createKeyWorld();
    const { secret, key } = await keys.a.create(keys.ann, { name: 'ci', scopes: ['admin'] });
    const same = ruled(keys, { issuer: 'https://issuer.example.com/' });
    const other = ruled(keys, { issuer: 'https://other.example.com' });
    expect(await same.authenticate(secret)).toMatchObject({ role: 'admin' });
    expect(await other.authenticate(secret)).toBeUndefined();
    const seenBy = ({ operations, contextOf }: typeof same) => operations.getAnyApiKey({ params: { id: key.id } }, contextOf(keys.ann));
    expect(await seenBy(same)).toMatchObject({ owner_disabled: false, user_id: 'u-ann', user_email_verified: true });
    expect(await seenBy(other)).toMatchObject({ owner_disabled: true, user_id: 'u-ann', user_email_verified: false });
    // as those of a user whom no rule lets in any more
    const narrowed = ruled(keys, { allowed: [{ kind: 'domain', domain: 'other.example' }] });
    expect(await narrowed.check(secret)).toMatchObject({ kind: 'refused', reason: 'owner-not-allowed' });
    expect(await seenBy(narrowed)).toMatchObject({ owner_disabled: true, user_email_verified: true });
  });

  it('do not count as administrators, so that the last one of this issuer stays', async () => {
    const world = createIdentityWorld();
    const people = createPeople({
      state: world.store.state,
      clock: world.clock,
      rules: { issuer: ISSUER, allowed: [{ kind: 'any' }], adminEmails: [] },
    });
    await people.change('sub:s-alice', { role: 'admin' }, 'root');
    await logIn(world);
    await people.change('sub:s-old', { role: 'admin' }, 'root');
    const old = { issuer: 'https://old.example.com', subject: 's-old', email: 'old@example.com', emailVerified: true };
    world.rule({ issuerOfRules: old.issuer });
    expect(await world.users.signedIn(old, {})).toMatchObject({ role: 'admin' });
    await expect(people.change(aliceId, { disabled: true }, 'root')).rejects.toMatchObject({ code: 'user.last-administrator' });
  });
});

it('administrators by a grant are as many as grants: two people with one address who log in at the same moment do not share one', async () => {
  const world = createIdentityWorld();
  await peopleOf(world).change('ann@example.com', { role: 'admin' }, 'root');
  const people = ['s-1', 's-2'].map((subject) => ({ issuer: ISSUER, subject, email: 'ann@example.com', emailVerified: true }));
  const users = await Promise.all(people.map((person) => world.users.signedIn(person, {})));
  expect(users.map(({ role }) => role).toSorted()).toEqual(['admin', 'user']);
  expect(await world.store.state.count('appointment')).toBe(0);
});

it('who chooses the address of another person does not act in the name of that one', async () => {
  const world = createIdentityWorld({ allowed: ['any'] });
  world.issuer.personIs({ sub: 's-eve', email: 'alice@example.com' });
  const { token } = await logIn(world);
  const actorOf = async (sent: string) => {
    const actor = await world.sessions.check('client', sent, signal);
    return typeof actor === 'string' ? undefined : actor;
  };
  const eve = await actorOf(token);
  expect(eve && nameOfActor(eve)).toBe('alice@example.com (not verified)');
  world.issuer.personIs({ sub: 's-alice', email: 'alice@example.com', email_verified: true });
  const alice = await actorOf((await logIn(world)).token);
  expect(alice && nameOfActor(alice)).toBe('alice@example.com');
  expect(world.audit.records.map(({ useridentity: { email, userId } }) => [email, userId])).toEqual([
    ['alice@example.com (not verified)', userIdOf(ISSUER, 's-eve')],
    ['alice@example.com', aliceId],
  ]);
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
