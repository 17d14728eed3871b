import { describe, expect, it } from 'vitest';
import { readRecord } from '../../src/store/stored.ts';
import { refs } from '../../src/identity/refs.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createKeyProcess, createKeyWorld, DAY_MS } from '../support/identity/keys.ts';

describe('API keys of two processes on one store', () => {
  const store = createMemoryStore();

  async function world() {
    const { a, clock, bob, ann, changeUser } = await createKeyWorld({ store });
    return { a, b: createKeyProcess({ store, clock }), clock, bob, ann, changeUser };
  }

  it('are valid in both as soon as they are created', async () => {
    const { a, b, bob } = await world();
    const { key, secret } = await a.create(bob);
    const actor = { kind: 'api_key', keyId: key.id, keyName: 'ci', userId: 'u-bob', email: 'bob@example.com', scopes: ['read'] };
    expect(await b.authenticate(secret)).toMatchObject(actor);
    expect(await a.authenticate(` \t${secret}\r\n`)).toMatchObject(actor);
  });

  it('are in the lists of both as soon as they are created, and as soon as they are revoked in none', async () => {
    const { a, b, bob, ann } = await world();
    const { key } = await a.create(bob, { name: 'listed at once' });
    const named = async () => [
      await b.operations.listApiKeys({ query: { name: key.name } }, b.contextOf(bob)),
      await b.operations.listAllApiKeys({ query: { key_name: key.name } }, b.contextOf(ann)),
    ];
    expect((await named()).map(({ items }) => items.map(({ id }) => id))).toEqual([[key.id], [key.id]]);
    await a.operations.revokeApiKey({ params: { id: key.id } }, a.contextOf(bob));
    expect((await named()).map(({ items }) => items)).toEqual([[], []]);
  });

  it.each(['by id', 'by secret', 'by an administrator', 'by itself'])(
    'are refused in both within 5 s after one was revoked %s',
    async (how) => {
      const { a, b, clock, bob, ann } = await world();
      const { key, secret } = await a.create(bob);
      const actor = (await b.authenticate(secret))!;
      await a.authenticate(secret);
      // what B knows is as old as it can be when the key is revoked
      const request = { params: { id: key.id } };
      if (how === 'by id') await a.operations.revokeApiKey(request, a.contextOf(bob));
      if (how === 'by itself') await a.operations.revokeApiKey(request, a.contextOf(actor));
      if (how === 'by an administrator') await a.operations.revokeAnyApiKey(request, a.contextOf(ann));
      if (how === 'by secret')
        await a.operations.revokeApiKeyBySecret({ body: { secret: `  ${secret}\n` } }, a.contextOf({ kind: 'local', host: 'h' }));
      await clock.advance(4_999);
      expect([await a.authenticate(secret), await b.authenticate(secret)]).toEqual([undefined, undefined]);
      await expect(b.operations.getApiKey(request, b.contextOf(bob))).rejects.toMatchObject({ code: 'api-key.not-found' });
      await expect(b.operations.revokeApiKey(request, b.contextOf(bob))).rejects.toMatchObject({ code: 'api-key.not-found' });
      const listed = await b.operations.listApiKeys({ query: { fingerprint: key.fingerprint } }, b.contextOf(bob));
      expect(listed).toEqual({ items: [] });
      // what was refused stands in the audit
      expect(await b.check(secret)).toMatchObject({ kind: 'refused', reason: 'revoked', key: { id: key.id, name: 'ci' } });
    },
  );

  it('are refused in both at the moment of their expiry, although both remember them', async () => {
    const { a, b, clock, bob } = await world();
    const { key, secret } = await a.create(bob, { name: 'ci', expires_in_days: 1 });
    await clock.advance(DAY_MS - 1);
    expect([await a.authenticate(secret), await b.authenticate(secret)]).toEqual([
      expect.objectContaining({ keyId: key.id }),
      expect.objectContaining({ keyId: key.id }),
    ]);
    await clock.advance(1);
    expect([await a.authenticate(secret), await b.authenticate(secret)]).toEqual([undefined, undefined]);
    expect((await b.check(secret)).kind === 'refused' && (await b.check(secret))).toMatchObject({ reason: 'expired' });
    expect(await b.operations.getApiKey({ params: { id: key.id } }, b.contextOf(bob))).toMatchObject({ status: 'EXPIRED' });
  });

  it('are refused in both within 5 s after their owner was disabled, and valid again afterwards', async () => {
    const { a, b, clock, bob, changeUser } = await world();
    const { secret } = await a.create(bob);
    await Promise.all([a.authenticate(secret), b.authenticate(secret)]);
    await changeUser('u-bob', { disabledAtMs: clock.nowMs() });
    await clock.advance(4_999);
    expect([await a.authenticate(secret), await b.authenticate(secret)]).toEqual([undefined, undefined]);
    expect(await a.check(secret)).toMatchObject({ reason: 'owner-disabled' });
    await changeUser('u-bob', { disabledAtMs: undefined });
    await clock.advance(4_999);
    expect(await b.authenticate(secret)).toMatchObject({ userId: 'u-bob' });
  });

  it('are at most 50 live ones a user, however the processes race', async () => {
    const { a, b, ann } = await world();
    const created = await Promise.allSettled(Array.from({ length: 30 }, () => [a.create(ann), b.create(ann)]).flat());
    // ten lost rounds in a row are refused as well, and the user tries again
    for (let more = 0; more < 60; more += 1) await a.create(ann).catch(() => undefined);
    expect(created.length).toBe(60);
    const { items } = await a.operations.listApiKeys({}, a.contextOf(ann));
    expect(items).toHaveLength(50);
    await expect(b.create(ann)).rejects.toMatchObject({
      code: 'api-key.limit',
      message: expect.stringContaining('50 ACTIVE API keys'),
    });
  });

  it('are stored as hashes only', async () => {
    const { a, bob } = await world();
    const { key, secret } = await a.create(bob);
    await a.authenticate(secret);
    const kept = [
      await readRecord(store.state, refs.apiKey(key.id)),
      await store.state.list('api-key', { limit: 1_000 }),
      await store.state.list('user-keys', { limit: 1_000 }),
      await store.audit.list({ limit: 1_000 }),
      a.telemetry.recorded('audited'),
    ];
    expect(JSON.stringify(kept)).toContain(key.fingerprint);
    expect(JSON.stringify(kept)).not.toContain(secret.slice(3, 20));
    expect(JSON.stringify(kept)).not.toContain(secret.slice(-20));
  });
});
