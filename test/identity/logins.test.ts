import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { userIdOf } from '../../src/identity/user.rules.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { createPeople } from '../../src/identity/users.ts';
import { purgeLogins } from '../../src/identity/purges.ts';
import type { StateEntry, Store } from '../../src/store/store.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { ISSUER } from '../support/identity/fake-issuer.ts';
import {
  CLIENT,
  createIdentityWorld,
  logIn,
  ORIGIN,
  PUBLIC_URL,
  queryOf,
  REDIRECT,
  VERIFIER,
  type IdentityWorld,
} from '../support/identity/world.ts';

const signal = new AbortController().signal;
const invalidGrant = { code: 'login.invalid-grant', extra: { error: 'invalid_grant' } };
const expired = { code: 'login.expired' };
const eventsOf = async (world: IdentityWorld) =>
  (await world.audited()).map(({ eventname, outcome, reason }) => [eventname, outcome, reason ?? '']);
const peopleOf = ({ store: { state }, clock, rules }: IdentityWorld) => createPeople({ state, clock, rules });
const aliceId = userIdOf(ISSUER, 's-alice');

/** A store whose lists never show what is not written for them, as OpenSearch's do for up to a second. */
function laggingStore(): Store {
  const store = createMemoryStore();
  const { state } = store;
  const listed = new Map<string, readonly StateEntry[]>();
  const listedOf = (entry: StateEntry): readonly StateEntry[] => listed.get(entry.id) ?? [entry];
  return {
    ...store,
    state: {
      ...state,
      async put(entry, ...rest) {
        const before = await state.get(entry.id);
        const stored = await state.put(entry, ...rest);
        if (stored === 'conflict') return stored;
        if (entry.listed === 'soon') listed.set(entry.id, before === undefined ? [] : listedOf(before));
        else listed.delete(entry.id);
        return stored;
      },
      list: async (...asked) => (await state.list(...asked)).flatMap(listedOf),
    },
  };
}

/** Up to the consent page. */
async function ask(world: IdentityWorld, request: Parameters<IdentityWorld['logins']['begin']>[0] = CLIENT) {
  const { cookie: name, location } = await world.logins.begin(request, signal);
  const answered = await world.logins.answered(name, queryOf(world.issuer.answerTo(location)), ORIGIN, signal);
  return { name, location, answered };
}

/** Up to the code. */
async function allow(world: IdentityWorld, request: Parameters<IdentityWorld['logins']['begin']>[0] = CLIENT) {
  const { name } = await ask(world, request);
  const { token } = await world.logins.consent(name, signal);
  const { redirect, code } = await world.logins.decide(name, { token, allow: true }, ORIGIN);
  return { name, redirect, code: code ?? new URL(redirect ?? 'x:').searchParams.get('code') ?? '' };
}

describe('a login', () => {
  it('leads through any number of processes to a session, and is audited', async () => {
    const world = createIdentityWorld();
    const { token, redirect } = await logIn(world);
    expect(redirect.startsWith(`${REDIRECT}?`)).toBe(true);
    expect(Object.fromEntries(new URL(redirect).searchParams)).toMatchObject({ state: 'mine', iss: PUBLIC_URL });
    expect(await world.sessions.check('client', token, signal)).toMatchObject({
      kind: 'session',
      userId: aliceId,
      email: 'alice@example.com',
      role: 'user',
    });
    expect(world.audit.records).toMatchObject([
      {
        eventname: 'Login',
        outcome: 'done',
        sourceipaddress: '192.0.2.1',
        useridentity: { email: 'alice@example.com', sessionContext: { auth: { type: 'session' } } },
        parameters: { role: 'user', machine: 'laptop' },
      },
    ]);
  });

  it('of another browser is refused: its answer, its page and its decision', async () => {
    const world = createIdentityWorld();
    const mine = await world.logins.begin(CLIENT, signal);
    const theirs = await world.logins.begin(CLIENT, signal);
    const answer = queryOf(world.issuer.answerTo(theirs.location));
    await expect(world.logins.answered(mine.cookie, answer, ORIGIN, signal)).rejects.toMatchObject(expired);
    await expect(world.logins.answered('x'.repeat(43), answer, ORIGIN, signal)).rejects.toMatchObject(expired);
    await world.logins.answered(theirs.cookie, answer, ORIGIN, signal);
    const { token, ...shown } = await world.logins.consent(theirs.cookie, signal);
    expect(shown).toMatchObject({ email: 'alice@example.com', machine: 'laptop', flow: 'client' });
    await expect(world.logins.consent(mine.cookie, signal)).rejects.toMatchObject(expired);
    await expect(world.logins.decide(mine.cookie, { token, allow: true }, ORIGIN)).rejects.toMatchObject(expired);
    await expect(world.logins.decide(theirs.cookie, { token: 'guessed', allow: true }, ORIGIN)).rejects.toMatchObject(expired);
    // nothing was spoilt by that
    expect(await world.logins.decide(theirs.cookie, { token, allow: true }, ORIGIN)).toHaveProperty('redirect');
  });

  it('Fix: that has only begun is stored nowhere, so that no number of them holds up anyone', async () => {
    const world = createIdentityWorld();
    for (let each = 0; each < 400; each += 1) await world.logins.begin(CLIENT, signal);
    const { cookie, location } = await world.logins.begin(CLIENT, signal);
    expect(await world.store.state.count('login')).toBe(0);
    // all processes share one key, whichever of them made it
    expect(await world.store.state.count('login-key')).toBe(1);
    expect(await world.process().answered(cookie, queryOf(world.issuer.answerTo(location)), ORIGIN, signal)).toEqual({ kind: 'asking' });
  });

  it.each([CLIENT, { flow: 'browser', returnTo: '/' } as const])(
    'takes each answer once, also of two at the same moment: %j',
    async (request) => {
      const world = createIdentityWorld();
      const { cookie, location } = await world.logins.begin(request, signal);
      const answer = () => world.process().answered(cookie, queryOf(world.issuer.answerTo(location)), ORIGIN, signal);
      const both = await Promise.allSettled([answer(), answer()]);
      expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
      await expect(answer()).rejects.toMatchObject(expired);
    },
  );

  it('that the person refuses leads back to the client, and gives no code', async () => {
    const world = createIdentityWorld();
    const { name } = await ask(world);
    const { token } = await world.logins.consent(name, signal);
    const { redirect = '' } = await world.logins.decide(name, { token, allow: false }, ORIGIN);
    expect(Object.fromEntries(new URL(redirect).searchParams)).toMatchObject({ error: 'access_denied', state: 'mine', iss: PUBLIC_URL });
    await expect(world.logins.consent(name, signal)).rejects.toMatchObject(expired);
    expect(await eventsOf(world)).toEqual([['LoginFailed', 'failed', expect.stringContaining('declined')]]);
  });
});

describe('a person', () => {
  it.each([
    [{ sub: 's', email: 'eve@elsewhere.example', email_verified: true }, 'eve@elsewhere.example may not log in'],
    [
      { sub: 's', email: 'alice@example.com', email_verified: false },
      'alice@example.com (not verified) may not log in here: the issuer says that this address is not verified',
    ],
    [{ sub: 's', email: 'alice@example.com' }, 'not verified'],
    [{ sub: 's' }, 's@id.example.com (not verified)'],
  ])('with %j has no session, no user record, and learns why', async (claims, text) => {
    const world = createIdentityWorld();
    world.issuer.personIs(claims);
    const { answered } = await ask(world);
    expect(answered).toMatchObject({ kind: 'failed', error: { code: 'login.refused', message: expect.stringContaining(text) } });
    if (answered.kind !== 'failed') throw new Error(answered.kind);
    expect(new URL(answered.redirect ?? '').searchParams.get('error_description')).toContain(text);
    expect(await world.store.state.count('user')).toBe(0);
    expect(await world.store.state.count('session')).toBe(0);
    expect(await eventsOf(world)).toEqual([['LoginFailed', 'failed', expect.stringContaining(text)]]);
  });

  it('who is disabled cannot log in or use a session; enabled again, a new login works', async () => {
    const world = createIdentityWorld();
    const { token } = await logIn(world);
    const { answered } = await ask(world, { flow: 'browser', returnTo: '/' });
    const { code } = await allow(world);
    const haveEnded = async () => {
      const cookie = answered.kind === 'browser' ? answered.cookie : '';
      const checks = [world.sessions.check('client', token, signal), world.sessions.check('browser', cookie, signal)];
      expect(new Set(await Promise.all(checks))).toEqual(new Set(['of a user who may not log in']));
    };
    await peopleOf(world).change(aliceId, { disabled: true }, 'root');
    await peopleOf(world).change(aliceId, { disabled: true }, 'root');
    await haveEnded();
    await expect(world.logins.redeem({ code, verifier: VERIFIER, redirectUri: REDIRECT }, ORIGIN)).rejects.toMatchObject(invalidGrant);
    expect((await ask(world)).answered).toMatchObject({
      kind: 'failed',
      error: { code: 'login.refused', message: expect.stringContaining('disabled') },
    });
    await peopleOf(world).change(aliceId, { disabled: false }, 'root');
    // no session of before comes back
    await haveEnded();
    expect(await world.sessions.check('client', (await logIn(world)).token, signal)).toMatchObject({ userId: aliceId });
  });

  it('whom no rule lets in any more is refused at the next request, and let in again with the rule', async () => {
    const world = createIdentityWorld();
    const { token } = await logIn(world);
    const { code } = await allow(world);
    world.rule({ allowed: ['domain=other.example'] });
    expect(await world.sessions.check('client', token, signal)).toBe('of a user who may not log in');
    await expect(world.logins.redeem({ code, verifier: VERIFIER, redirectUri: REDIRECT }, ORIGIN)).rejects.toMatchObject(invalidGrant);
    expect((await eventsOf(world)).at(-1)).toEqual(['LoginFailed', 'failed', expect.stringContaining('no rule')]);
    world.rule({});
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ userId: aliceId });
  });

  it('is let in by a claim, whose value is not stored', async () => {
    const world = createIdentityWorld({ allowed: ['claim:teams=tally'], adminClaim: 'teams=root' });
    world.issuer.personIs({ sub: 's-alice', teams: ['tally', 'root', 'very-private-team'] });
    const { token } = await logIn(world);
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'admin' });
    const kinds = ['user', 'appointment', 'login', 'session'] as const;
    const records = await Promise.all(kinds.map((kind) => world.store.state.list(kind, { limit: 1_000 })));
    expect(JSON.stringify([records, world.audit.records, world.telemetry.facts])).not.toContain('very-private-team');
    world.rule({ allowed: ['claim:teams=tally'] });
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'user' });
  });
});

it.each([
  [new RequestError('login.refused', "the issuer's token is not valid: nonce"), 'nonce'],
  [new FaultError('issuer.unreachable', 'connect ECONNREFUSED'), 'ECONNREFUSED'],
  [new FaultError('issuer.refused', 'invalid_client'), 'invalid_client'],
])('an issuer that does not vouch for the person ends the login: %s', async (error, text) => {
  const world = createIdentityWorld();
  world.issuer.failWith(error);
  const { answered, name } = await ask(world);
  expect(answered).toMatchObject({ kind: 'failed', error, redirect: expect.stringContaining('access_denied') });
  expect(await eventsOf(world)).toEqual([['LoginFailed', 'failed', expect.stringContaining(text)]]);
  await expect(world.logins.consent(name, signal)).rejects.toMatchObject(expired);
});

describe('a code', () => {
  it('that is redeemed twice ends its session', async () => {
    const world = createIdentityWorld();
    const { token, code } = await logIn(world);
    await expect(world.logins.redeem({ code, verifier: VERIFIER, redirectUri: REDIRECT }, ORIGIN)).rejects.toMatchObject(invalidGrant);
    expect(await world.sessions.check('client', token, signal)).toBe('not valid');
    expect((await eventsOf(world)).at(-1)).toEqual(['LoginFailed', 'failed', expect.stringContaining('redeemed twice')]);
  });

  it('that two processes redeem at the same moment gives at most one session, which the other ends', async () => {
    const world = createIdentityWorld();
    const { code } = await allow(world);
    const redeem = () => world.process().redeem({ code, verifier: VERIFIER, redirectUri: REDIRECT }, ORIGIN);
    const results = await Promise.allSettled([redeem(), redeem(), redeem()]);
    const tokens = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    expect(tokens.length).toBeLessThanOrEqual(1);
    for (const { token } of tokens) expect(await world.sessions.check('client', token, signal)).toBe('not valid');
    expect(await world.store.state.count('session')).toBe(0);
  });

  it.each([
    ['verifier', { verifier: 'w'.repeat(43) }],
    ['redirect', { redirectUri: 'http://127.0.0.1:1/callback' }],
    ['redirect, which is left out', { redirectUri: undefined }],
  ])('with another %s is spoilt for everyone', async (_, wrong) => {
    const world = createIdentityWorld();
    const { code } = await allow(world);
    const right = { code, verifier: VERIFIER, redirectUri: REDIRECT };
    await expect(world.logins.redeem({ ...right, ...wrong }, ORIGIN)).rejects.toMatchObject(invalidGrant);
    await expect(world.logins.redeem(right, ORIGIN)).rejects.toMatchObject(invalidGrant);
    expect(await world.store.state.count('session')).toBe(0);
    expect((await eventsOf(world))[0]).toEqual(['LoginFailed', 'failed', expect.stringContaining('a verifier or redirect URI other than')]);
  });

  it('that is unknown spoils nothing, and one that has ended after a minute says the same', async () => {
    const world = createIdentityWorld();
    const [first, { code }] = [await allow(world), await allow(world)];
    const outcomeOf = (each: string) =>
      world.logins.redeem({ code: each, verifier: VERIFIER, redirectUri: REDIRECT }, ORIGIN).then(() => 'redeemed', String);
    const unknown = [];
    for (const each of ['x'.repeat(44), '', `${first.code.slice(0, 22)}${'0'.repeat(22)}`]) unknown.push(await outcomeOf(each));
    await world.clock.advance(59_999);
    expect(await outcomeOf(first.code)).toBe('redeemed');
    await world.clock.advance(1);
    expect(new Set([...unknown, await outcomeOf(code)]).size).toBe(1);
    expect((await eventsOf(world)).map(([event]) => event)).toEqual(['Login']);
  });
});

it('a grant waits if the known user is disabled, is not verified or is one of another issuer', async () => {
  const world = createIdentityWorld({ allowed: ['any'] });
  const people = peopleOf(world);
  await logIn(world);
  await people.change(aliceId, { disabled: true }, 'root');
  expect(await people.change('sub:s-alice', { role: 'admin' }, 'root')).not.toHaveProperty('user');
  // a refused login uses it up neither
  await ask(world);
  expect(await world.users.get(aliceId)).toMatchObject({ role: 'user' });
  world.issuer.personIs({ sub: 's-eve', email: 'eve@example.com' });
  await logIn(world);
  expect(await people.change('eve@example.com', { role: 'admin' }, 'root')).not.toHaveProperty('user');
  const old = { issuer: 'https://old.example.com', subject: 's-old', email: 'old@example.com', emailVerified: true };
  world.rule({ allowed: ['any'], issuerOfRules: 'https://old.example.com' });
  await world.users.signedIn(old, {});
  world.rule({ allowed: ['any'] });
  expect(await people.change('old@example.com', { role: 'admin' }, 'root')).not.toHaveProperty('user');
  expect(await world.store.state.count('appointment')).toBe(3);
  await people.change(aliceId, { disabled: false }, 'root');
  world.issuer.personIs({ sub: 's-alice', email: 'alice@example.com', email_verified: true });
  await logIn(world);
  expect(await world.users.get(aliceId)).toMatchObject({ role: 'admin' });
});

describe('the last administrator', () => {
  const refusal = { code: 'user.last-administrator', message: expect.stringMatching(/alice@example.com.*TALLY_OIDC_ADMIN_EMAILS/) };

  async function worldWithAdmin(options: Parameters<typeof createIdentityWorld>[0] = {}) {
    const world = createIdentityWorld(options);
    if (Object.keys(options).length === 0) await peopleOf(world).change('sub:s-alice', { role: 'admin' }, 'root');
    await logIn(world);
    return world;
  }

  it.each([
    ['a grant', {}],
    ['an address', { adminEmails: ['alice@example.com', 'root@example.com'] }],
    ['a claim', { adminClaim: 'email=alice@example.com' }],
  ])('Fix: by %s cannot be disabled before another one has logged in', async (_, options) => {
    const world = await worldWithAdmin(options);
    await expect(peopleOf(world).change(aliceId, { disabled: true }, 'root')).rejects.toMatchObject(refusal);
    expect(await world.users.get(aliceId)).not.toHaveProperty('disabledAtMs');
    world.rule({ ...options, adminEmails: ['alice@example.com', 'root@example.com'] });
    world.issuer.personIs({ sub: 's-root', email: 'root@example.com', email_verified: true });
    await logIn(world);
    expect(await peopleOf(world).change(aliceId, { disabled: true }, 'root')).toHaveProperty('user.disabled_at');
    await expect(peopleOf(world).change(userIdOf(ISSUER, 's-root'), { disabled: true }, 'root')).rejects.toMatchObject({
      code: 'user.last-administrator',
    });
  });

  it('stays also where lists of the store are a second behind its login', async () => {
    const world = await worldWithAdmin({ store: laggingStore(), adminEmails: ['alice@example.com'] });
    await expect(peopleOf(world).change(aliceId, { disabled: true }, 'root')).rejects.toMatchObject(refusal);
    expect(await world.users.get(aliceId)).not.toHaveProperty('disabledAtMs');
  });
});

describe('the role user', () => {
  async function withAdmins(rules: Parameters<typeof createIdentityWorld>[0] = {}) {
    const world = createIdentityWorld({ allowed: ['any'], ...rules });
    const people = peopleOf(world);
    for (const sub of ['s-bob', 's-alice']) {
      await people.change(`sub:${sub}`, { role: 'admin' }, 'root');
      world.issuer.personIs({ sub, email: `${sub.slice(2)}@example.com`, email_verified: true });
      await logIn(world);
    }
    return { world, people };
  }

  it.each([
    ['id', aliceId],
    ['address', 'Alice@example.com'],
    ['subject', 'sub:s-alice'],
  ])('by %s takes an appointment back at once, and for later logins', async (_, person) => {
    const { world, people } = await withAdmins();
    const { token } = await logIn(world);
    expect((await people.list({ limit: 10 }, signal)).items.find(({ id }) => id === aliceId)).toMatchObject({
      role: 'admin',
      role_source: 'appointment',
      appointed_by: 'root',
    });
    const { user } = await people.change(person, { role: 'user' }, 'bob');
    expect(user).toMatchObject({ id: aliceId, role: 'user', role_source: 'none' });
    expect(user?.appointed_by).toBeUndefined();
    expect(await world.sessions.check('client', token, signal)).toMatchObject({ role: 'user' });
    expect(await world.sessions.check('client', (await logIn(world)).token, signal)).toMatchObject({ role: 'user' });
  });

  it('is refused while a rule of the settings makes the administrator, and to the last one', async () => {
    const { people, world } = await withAdmins({ adminEmails: ['alice@example.com'] });
    await expect(people.change(aliceId, { role: 'user' }, 'root')).rejects.toMatchObject({ code: 'user.role-by-rule' });
    world.rule({ allowed: ['any'] });
    await people.change(userIdOf(ISSUER, 's-bob'), { role: 'user' }, 'root');
    await expect(people.change(aliceId, { role: 'user' }, 'root')).rejects.toMatchObject({ code: 'user.last-administrator' });
  });
});

it('a grant that waits is listed, and makes an administrator at the next login, until it is used, is withdrawn or ends after seven days', async () => {
  const world = createIdentityWorld();
  const people = peopleOf(world);
  const waiting = async () => (await people.list({ limit: 100 }, signal)).waiting.map(({ email, sub }) => email ?? sub ?? '').toSorted();
  const roleAfterLogin = async (name: string) => {
    world.issuer.personIs({ sub: `s-${name}`, email: `${name}@example.com`, email_verified: true });
    await logIn(world);
    return (await world.users.get(userIdOf(ISSUER, `s-${name}`)))?.role;
  };
  await people.change('Bob@Example.com', { role: 'admin' }, 'root');
  await people.change('sub:s-alice', { role: 'admin' }, 'root');
  await people.change('sub:s-carol', { role: 'admin' }, 'root');
  expect(await waiting()).toEqual(['bob@example.com', 's-alice', 's-carol']);
  await logIn(world);
  expect(await waiting()).toEqual(['bob@example.com', 's-carol']);
  expect(await world.users.get(aliceId)).toMatchObject({ role: 'admin', roleSource: 'appointment' });
  expect(await people.change('BOB@example.com', { role: 'user' }, 'root')).toEqual({});
  expect(await waiting()).toEqual(['s-carol']);
  expect(await roleAfterLogin('bob')).toBe('user');
  await world.clock.advance(7 * 86_400_000 - 1);
  expect(await waiting()).toEqual(['s-carol']);
  await world.clock.advance(1);
  expect(await waiting()).toEqual([]);
  await expect(people.change('sub:s-carol', { role: 'user' }, 'root')).rejects.toMatchObject({ code: 'user.not-found' });
  expect(await roleAfterLogin('carol')).toBe('user');
});

it('users are listed in pages, and who waits for a login on the first', async () => {
  const world = createIdentityWorld();
  const people = peopleOf(world);
  for (const name of ['a', 'b', 'c']) {
    world.issuer.personIs({ sub: name, email: `${name}@example.com`, email_verified: true });
    await logIn(world);
    await people.change(`sub:later-${name}`, { role: 'admin' }, 'root');
  }
  const first = await people.list({ limit: 2 }, signal);
  const second = await people.list({ limit: 2, cursor: first.next! }, signal);
  const found = [...first.items, ...second.items].map(({ email }) => email);
  expect([first.items.length, new Set(found).size, second.next]).toEqual([2, 3, undefined]);
  expect(new Set(first.waiting.map(({ sub }) => sub))).toEqual(new Set(['later-a', 'later-b', 'later-c']));
  expect(second.waiting).toEqual([]);
  await expect(people.change('nobody', { disabled: true }, 'root')).rejects.toMatchObject({ code: 'user.not-found' });
});

it('what has ended by its age is removed, and nothing else', async () => {
  const world = createIdentityWorld();
  const { state } = world.store;
  const purge = (aborted: AbortSignal) => purgeLogins({ state, clock: world.clock }, aborted);
  const counts = async () => Promise.all((['login', 'session', 'appointment', 'user'] as const).map((kind) => state.count(kind)));
  await logIn(world);
  await ask(world, { flow: 'browser', returnTo: '/' });
  await world.logins.begin(CLIENT, signal);
  await peopleOf(world).change('sub:x', { role: 'admin' }, 'root');
  await purge(signal);
  expect(await counts()).toEqual([2, 2, 1, 1]);
  await world.clock.advance(600_000);
  await purge(signal);
  expect(await counts()).toEqual([0, 2, 1, 1]);
  await world.clock.advance(43_200_000);
  await purge(signal);
  expect(await counts()).toEqual([0, 1, 1, 1]);
  await world.clock.advance(7 * 86_400_000);
  await purge(signal);
  expect(await counts()).toEqual([0, 0, 0, 1]);
});
