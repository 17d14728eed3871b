import { describe, expect, it } from 'vitest';
import type { Actor } from '../../src/base/actor.ts';
import { readRecord, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { keyActor, localActor, sessionActor } from '../support/identity/actors.ts';
import { createKeyWorld, DAY_MS } from '../support/identity/keys.ts';
import { refs } from '../../src/identity/refs.ts';
import { purgeApiKeys } from '../../src/identity/purges.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';

const NO_ID = `k${'0'.repeat(22)}`;
type World = Awaited<ReturnType<typeof createKeyWorld>>;

/** What the key of a secret may do, as the actor of its requests. */
async function actorOf({ a }: Pick<World, 'a'>, secret: string): Promise<Extract<Actor, { kind: 'api_key' }>> {
  const actor = await a.authenticate(secret);
  if (actor === undefined) throw new Error('the key is refused');
  return actor;
}

async function idsOf(page: Promise<{ readonly items: readonly { readonly id: string }[] }>): Promise<readonly string[]> {
  return (await page).items.map(({ id }) => id);
}

describe('creating a key', () => {
  it('answers the record and, this once, the secret; it ends after 90 days unless another number is given', async () => {
    const { a, bob } = await createKeyWorld();
    const { key, secret } = await a.create(bob, { name: 'nightly export' });
    expect(secret).toMatch(/^qk_[0-9A-Za-z]{49}$/);
    expect(key).toEqual({
      id: expect.stringMatching(/^k[0-9A-Za-z]{22}$/),
      name: 'nightly export',
      user_email: 'bob@example.com',
      fingerprint: `qk_${secret.slice(3, 7)}…${secret.slice(-4)}`,
      status: 'ACTIVE',
      created_at: '2026-01-02T03:04:05.000Z',
      expires_at: '2026-04-02T03:04:05.000Z',
      last_used_at: null,
      scopes: ['read'],
    });
    expect(await a.operations.getApiKey({ params: { id: key.id } }, a.contextOf(bob))).toEqual(key);
  });

  it('gives what the owner may do without admin, and admin where it is requested', async () => {
    const { a, bob, ann } = await createKeyWorld();
    expect((await a.create(bob)).key.scopes).toEqual(['read']);
    expect((await a.create(ann)).key.scopes).toEqual(['read', 'operate']);
    expect((await a.create(ann, { name: 'ci', scopes: ['admin'] })).key.scopes).toEqual(['read', 'admin']);
    for (const scope of ['operate', 'admin'] as const) {
      await expect(a.create(bob, { name: 'ci', scopes: [scope] })).rejects.toMatchObject({
        code: 'authorization.denied',
        message: expect.stringContaining(`scope ${scope} needs the role admin, and you have the role user`),
      });
    }
  });

  it('needs a session: a key cannot create a key, nor can a local command', async () => {
    const { a } = await createKeyWorld();
    await expect(a.create(keyActor({ role: 'admin', scopes: ['read', 'operate', 'admin'] }))).rejects.toMatchObject({
      code: 'session.required',
      message: expect.stringContaining('an API key cannot create API keys: run `tally login https://HOST`'),
    });
    await expect(a.create(localActor)).rejects.toMatchObject({
      code: 'session.required',
      message: expect.stringContaining('run `tally login https://HOST`, then `tally keys create NAME`'),
    });
  });

  it('is refused above 50 live keys, and possible again when one was revoked or has expired', async () => {
    const { a, clock, bob } = await createKeyWorld();
    const first = await a.create(bob, { name: 'short', expires_in_days: 1 });
    for (let count = 1; count < 50; count += 1) await a.create(bob);
    const refusal = { code: 'api-key.limit', message: expect.stringContaining('50 ACTIVE API keys') };
    await expect(a.create(bob)).rejects.toMatchObject(refusal);
    await clock.advance(DAY_MS);
    const { key } = await a.create(bob);
    await expect(a.create(bob)).rejects.toMatchObject(refusal);
    await a.operations.revokeApiKey({ params: { id: key.id } }, a.contextOf(bob));
    await a.create(bob);
    // the expired one is still listed
    expect(await idsOf(a.operations.listApiKeys({ query: { status: 'EXPIRED' } }, a.contextOf(bob)))).toEqual([first.key.id]);
  });

  it('is at most possible for 50 live keys a user, however two processes race', async () => {
    const { a, b, ann } = await createKeyWorld();
    const created = await Promise.allSettled(Array.from({ length: 30 }, () => [a.create(ann), b.create(ann)]).flat());
    // ten lost rounds in a row are refused as well, and the user tries again
    for (let more = 0; more < 60; more += 1) await a.create(ann).catch(() => undefined);
    expect(created.length).toBe(60);
    expect(await idsOf(a.operations.listApiKeys({}, a.contextOf(ann)))).toHaveLength(50);
    await expect(b.create(ann)).rejects.toMatchObject({ code: 'api-key.limit' });
  });

  it('is refused above 500 keys with expired ones', async () => {
    const { a, bob, clock, store } = await createKeyWorld();
    const { key } = await a.create(bob, { name: 'old', expires_in_days: 1 });
    const record = (await readRecord(store.state, refs.apiKey(key.id)))!;
    const ids = Array.from({ length: 499 }, (_, at) => `k${String(at).padStart(22, '0')}`);
    for (const id of ids) await updateRecord(store.state, refs.apiKey(id), () => ({ ...record, id }));
    const entry = { createdAtMs: record.createdAtMs, expiresAtMs: record.expiresAtMs };
    await updateRecord(store.state, refs.userKeys('u-bob'), (current) => ({
      ...current!,
      keys: [...current!.keys, ...ids.map((id) => ({ id, ...entry }))],
    }));
    await clock.advance(2 * DAY_MS);
    await expect(a.create(bob)).rejects.toMatchObject({
      code: 'api-key.limit',
      message: expect.stringContaining('500 API keys, EXPIRED ones included'),
    });
    await a.operations.revokeApiKey({ params: { id: key.id } }, a.contextOf(bob));
    await a.create(bob);
  });

  it('finds room where a process was killed while it created or revoked keys', async () => {
    const { a, bob, clock, store } = await createKeyWorld();
    const keys = [];
    for (let count = 0; count < 50; count += 1) keys.push((await a.create(bob)).key);
    // one was never stored, and one was marked as revoked only
    await removeRecord(store.state, `api-key:${keys[0]!.id}`);
    await updateRecord(store.state, refs.apiKey(keys[1]!.id), (current) => ({ ...current!, revokedAtMs: clock.nowMs() }));
    expect(await idsOf(a.operations.listApiKeys({}, a.contextOf(bob)))).toHaveLength(48);
    await expect(a.create(bob)).rejects.toMatchObject({ code: 'api-key.limit' });
    await clock.advance(60_001);
    await a.create(bob);
    await a.create(bob);
    await expect(a.create(bob)).rejects.toMatchObject({ code: 'api-key.limit' });
  });
});

it('listing keys shows the own keys, the newest first, in pages, filtered by exact values that combine', async () => {
  const { a, clock, bob, ann } = await createKeyWorld();
  const created = [];
  for (const name of ['one', 'two', 'one', 'One']) {
    created.push((await a.create(bob, { name, expires_in_days: name === 'two' ? 1 : 90 })).key);
    await clock.advance(1_000);
  }
  await a.create(ann, { name: 'one' });
  await clock.advance(DAY_MS);
  const [first, second, third, fourth] = created.map(({ id }) => id);
  const list = (query: object) => idsOf(a.operations.listApiKeys({ query }, a.contextOf(bob)));
  expect(await list({})).toEqual([fourth, third, second, first]);
  expect(await list({ name: 'one' })).toEqual([third, first]);
  expect(await list({ status: 'EXPIRED' })).toEqual([second]);
  expect(await list({ status: 'ACTIVE', name: 'one', fingerprint: created[0]!.fingerprint })).toEqual([first]);
  expect(await list({ name: 'on' })).toEqual([]);
  expect(await list({ fingerprint: created[0]!.fingerprint.slice(0, -1) })).toEqual([]);
  await expect(list({ status: 'REVOKED' })).rejects.toMatchObject({ message: 'status: must be one of ACTIVE, EXPIRED' });
});

describe('a key that is not the own one', () => {
  it.each(['', NO_ID, '../user:u-bob', '😀'.repeat(255)])('is not found as %j', async (id) => {
    const { a, bob, ann } = await createKeyWorld();
    const expected = { code: id === '' ? 'request.invalid' : 'api-key.not-found' };
    await expect(a.operations.getApiKey({ params: { id } }, a.contextOf(bob))).rejects.toMatchObject(expected);
    await expect(a.operations.revokeApiKey({ params: { id } }, a.contextOf(bob))).rejects.toMatchObject(expected);
    await expect(a.operations.getAnyApiKey({ params: { id } }, a.contextOf(ann))).rejects.toMatchObject(expected);
    await expect(a.operations.revokeAnyApiKey({ params: { id } }, a.contextOf(ann))).rejects.toMatchObject(expected);
  });

  it('is not found if it is that of another user, and stays valid', async () => {
    const { a, bob, ann } = await createKeyWorld();
    const { key, secret } = await a.create(ann);
    const request = { params: { id: key.id } };
    await expect(a.operations.getApiKey(request, a.contextOf(bob))).rejects.toMatchObject({ code: 'api-key.not-found' });
    await expect(a.operations.revokeApiKey(request, a.contextOf(bob))).rejects.toMatchObject({ code: 'api-key.not-found' });
    expect(await a.authenticate(secret)).toMatchObject({ userId: 'u-ann' });
  });
});

describe('revoking', () => {
  it('with a key is possible for that key only, and with a session for all keys of the user', async () => {
    const world = await createKeyWorld();
    const { a, bob } = world;
    const [first, second, third] = [await a.create(bob), await a.create(bob), await a.create(bob)];
    const actor = await actorOf(world, first.secret);
    const revoke = (id: string, by: Actor) => a.operations.revokeApiKey({ params: { id } }, a.contextOf(by));
    await expect(revoke(second.key.id, actor)).rejects.toMatchObject({
      code: 'authorization.denied',
      message: expect.stringContaining('can revoke only itself'),
    });
    await revoke(first.key.id, actor);
    await revoke(second.key.id, sessionActor({ sessionId: 's-another' }));
    const gone = { params: { id: second.key.id } };
    await expect(a.operations.getApiKey(gone, a.contextOf(bob))).rejects.toMatchObject({ code: 'api-key.not-found' });
    await expect(revoke(second.key.id, bob)).rejects.toMatchObject({ code: 'api-key.not-found' });
    expect(await idsOf(a.operations.listApiKeys({}, a.contextOf(bob)))).toEqual([third.key.id]);
  });

  it('by secret answers the same whether or not there is such a key, and audits only what it revoked, by its key', async () => {
    const { a, bob, store, clock } = await createKeyWorld();
    const { key, secret } = await a.create(bob);
    await clock.advance(10);
    const anonymous: Actor = { kind: 'local', host: 'registry', address: '10.9.9.9' };
    const revoke = (text: string) => a.operations.revokeApiKeyBySecret({ body: { secret: text } }, a.contextOf(anonymous));
    const before = (await store.audit.list({ limit: 100 })).length;
    const wrong = `qk_${secret[3] === 'a' ? 'b' : 'a'}${secret.slice(4)}`;
    for (const text of ['nonsense', wrong, `qk_${'0'.repeat(49)}`, 'x'.repeat(1_000)]) expect(await revoke(text)).toBe(undefined);
    expect(await store.audit.list({ limit: 100 })).toHaveLength(before);
    expect(await revoke(`\n ${secret}\t`)).toBe(undefined);
    expect(await revoke(secret)).toBe(undefined);
    const records = (await store.audit.list({ limit: 100 })).slice(0, -before);
    const auth = { type: 'api_key', keyName: 'ci', keyFingerprint: key.fingerprint };
    const facts = { eventname: 'ApiKeyRevokeBySecret', useridentity: { email: 'bob@example.com', sessionContext: { auth } } };
    expect(records).toMatchObject([
      { ...facts, outcome: 'done', parameters: { id: key.id, name: 'ci', user_email: 'bob@example.com', fingerprint: key.fingerprint } },
      { ...facts, outcome: 'intended', sourceipaddress: '10.9.9.9', parameters: { id: key.id } },
    ]);
    expect(JSON.stringify(await store.audit.list({ limit: 100 }))).not.toContain(secret.slice(3, 20));
    await expect(revoke('')).rejects.toMatchObject({ code: 'request.invalid' });
  });

  it('keeps the records of the last 50 revoked keys of a user', async () => {
    const { a, bob, store } = await createKeyWorld();
    const secrets = [];
    for (let count = 0; count < 53; count += 1) {
      const { key, secret } = await a.create(bob);
      secrets.push(secret);
      await a.operations.revokeApiKey({ params: { id: key.id } }, a.contextOf(bob));
    }
    expect(await store.state.count('api-key')).toBe(50);
    expect(await a.check(secrets[0]!)).toEqual({ kind: 'refused', reason: 'unknown' });
    expect(await a.check(secrets[52]!)).toMatchObject({ kind: 'refused', reason: 'revoked' });
  });
});

describe('the keys of all users', () => {
  it('are listed in pages with filters that combine, disabled owners named', async () => {
    const { a, clock, bob, ann, changeUser } = await createKeyWorld();
    const keys = [
      await a.create(bob, { name: 'ci' }),
      await a.create(bob, { name: 'export', expires_in_days: 1 }),
      await a.create(ann, { name: 'ci' }),
    ].map(({ key }) => key);
    const revoked = await a.create(ann);
    await a.operations.revokeAnyApiKey({ params: { id: revoked.key.id } }, a.contextOf(localActor));
    await clock.advance(DAY_MS);
    /** In pages of one key, of which only the first one may have none. */
    async function list(query: object): Promise<readonly string[]> {
      const ids: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await a.operations.listAllApiKeys({ query: { ...query, limit: 1, ...(cursor && { cursor }) } }, a.contextOf(ann));
        expect(page.items).toHaveLength(cursor === undefined ? Math.min(page.items.length, 1) : 1);
        ids.push(...page.items.map(({ id }) => id));
        cursor = page.next;
      } while (cursor !== undefined);
      return ids;
    }
    const idsAt = (...places: number[]) => places.map((at) => keys[at]!.id).toSorted();
    expect(await list({})).toEqual(idsAt(0, 1, 2));
    expect(await list({ email: 'bob@example.com' })).toEqual(idsAt(0, 1));
    expect(await list({ key_name: 'ci' })).toEqual(idsAt(0, 2));
    expect(await list({ status: 'EXPIRED' })).toEqual(idsAt(1));
    expect(await list({ status: 'ACTIVE', email: 'bob@example.com', key_name: 'ci' })).toEqual(idsAt(0));
    expect(await list({ email: 'bob' })).toEqual([]);
    await changeUser('u-bob', { disabledAtMs: clock.nowMs() });
    const { items } = await a.operations.listAllApiKeys({}, a.contextOf(ann));
    expect(items.map(({ user_email, owner_disabled }) => `${user_email} ${owner_disabled}`).toSorted()).toEqual([
      'ann@example.com false',
      'bob@example.com true',
      'bob@example.com true',
    ]);
    await changeUser('u-bob', { emailVerified: false });
    const marked = (await a.operations.listAllApiKeys({ query: { key_name: 'ci' } }, a.contextOf(ann))).items;
    expect(marked.map(({ user_id, user_email_verified }) => `${user_id} ${user_email_verified}`).toSorted()).toEqual([
      'u-ann true',
      'u-bob false',
    ]);
    expect(await a.operations.getAnyApiKey({ params: { id: keys[0]!.id } }, a.contextOf(localActor))).toMatchObject({
      id: keys[0]!.id,
      owner_disabled: true,
    });
  });

  it('unused since a moment are those last used before it, and those created before it and never used', async () => {
    const { a, ann, bob, clock } = await createKeyWorld();
    const [never, long] = [await a.create(bob, { name: 'never' }), await a.create(bob, { name: 'long' })];
    const used = await a.create(bob, { name: 'used' });
    await a.authenticate(long.secret);
    await clock.advance(20 * DAY_MS);
    await a.authenticate(used.secret);
    await a.create(bob, { name: 'new' });
    await clock.advance(10_000);
    const list = (query: object) => a.operations.listAllApiKeys({ query: { status: 'ACTIVE', ...query } }, a.contextOf(ann));
    const namesSince = async (unused_since: string) => (await list({ unused_since })).items.map(({ name }) => name).toSorted();
    expect(await namesSince('2026-01-12')).toEqual(['long', 'never']);
    expect(await namesSince('2026-01-02T03:04:05.000Z')).toEqual([]);
    expect(await namesSince('2026-01-02T03:04:05.001Z')).toEqual(['long', 'never']);
    expect(await namesSince('2026-01-23')).toEqual(['long', 'never', 'new', 'used']);
    expect(never.key.last_used_at).toBe(null);
    await expect(list({ unused_since: 'yesterday' })).rejects.toMatchObject({ code: 'request.invalid' });
  });
});

it('the purge of API keys removes keys 90 days after their expiry, from everywhere, and no others', async () => {
  const { a, bob, clock, store } = await createKeyWorld();
  /** With a clock of its own, which does not wait. */
  const purgeAt = (nowMs: number, telemetry = createFakeTelemetry()) => {
    const at = { ...createFakeClock({ autoAdvance: true }), nowMs: () => nowMs };
    return purgeApiKeys({ state: store.state, clock: at, telemetry }, new AbortController().signal);
  };
  const [short, long, revoked] = [await a.create(bob, { name: 'short', expires_in_days: 1 }), await a.create(bob), await a.create(bob)];
  await a.operations.revokeApiKey({ params: { id: revoked.key.id } }, a.contextOf(bob));
  const endMs = Date.parse(short.key.expires_at) + 90 * DAY_MS;
  await purgeAt(endMs - 2 * DAY_MS);
  expect(await store.state.count('api-key')).toBe(3);
  // revoked 90 days ago
  await purgeAt(endMs - 1);
  expect(await store.state.count('api-key')).toBe(2);
  const telemetry = createFakeTelemetry();
  await purgeAt(endMs, telemetry);
  expect(telemetry.recorded('info')).toEqual([['API keys that ended 90 days ago are deleted', { count: 1 }]]);
  expect(await readRecord(store.state, refs.userKeys('u-bob'))).toMatchObject({ keys: [{ id: long.key.id }], revoked: [] });
  await clock.advance(endMs - clock.nowMs());
  const { items } = await a.operations.listApiKeys({}, a.contextOf(bob));
  expect(items).toMatchObject([{ id: long.key.id, status: 'EXPIRED' }]);
  expect(await a.check(short.secret)).toEqual({ kind: 'refused', reason: 'unknown' });
});
