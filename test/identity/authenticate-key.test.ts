import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { readRecord } from '../../src/store/stored.ts';
import { isLong } from '../support/breadth.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createKeyWorld, DAY_MS } from '../support/identity/keys.ts';
import { newKeySecret } from '../../src/identity/random-texts.ts';
import { refs } from '../../src/identity/refs.ts';

describe('authentication with a key', () => {
  it('makes the actor of the key, with what its owner may do now', async () => {
    const { a, ann, clock, changeUser } = await createKeyWorld();
    const { key, secret } = await a.create(ann, { name: 'deploy', scopes: ['operate', 'admin'] });
    const actor = {
      kind: 'api_key',
      userId: 'u-ann',
      email: 'ann@example.com',
      role: 'admin',
      keyId: key.id,
      keyName: 'deploy',
      keyFingerprint: key.fingerprint,
      scopes: ['read', 'operate', 'admin'],
    };
    expect(await a.authenticate(` \t${secret}\r\n`)).toEqual(actor);
    await changeUser('u-ann', { role: 'user', roleSource: 'none', email: 'ann@third.example.com' });
    await clock.advance(5_000);
    expect(await a.authenticate(secret)).toEqual({
      ...actor,
      role: 'user',
      email: 'ann@third.example.com',
      scopes: ['read'],
    });
    await changeUser('u-ann', { email: 'ann@elsewhere.example.com', lastLoginAtMs: clock.nowMs() - 8 * DAY_MS });
    await clock.advance(5_000);
    expect(await a.authenticate(secret)).toMatchObject({ scopes: ['read', 'operate'] });
  });

  it('refuses everything else, and says to the audit what it was', async () => {
    const { a, bob, clock, store, changeUser } = await createKeyWorld();
    const { key, secret } = await a.create(bob, { name: 'ci', expires_in_days: 1 });
    const typo = `${secret.slice(0, -1)}${secret.endsWith('a') ? 'b' : 'a'}`;
    const reasonOf = async (text: string) => {
      expect(await a.authenticate(text)).toBe(undefined);
      return a.check(text);
    };
    // whatever has another form: api-key.test.ts
    expect(await reasonOf(`${secret} ${secret}`)).toEqual({ kind: 'refused', reason: 'malformed' });
    expect(await reasonOf(typo)).toEqual({ kind: 'refused', reason: 'mistyped' });
    expect(await reasonOf(newKeySecret())).toEqual({ kind: 'refused', reason: 'unknown' });
    const named = { id: key.id, name: 'ci', fingerprint: key.fingerprint, userId: 'u-bob', userEmail: 'bob@example.com' };
    await changeUser('u-bob', { disabledAtMs: clock.nowMs() });
    expect(await reasonOf(secret)).toMatchObject({ reason: 'owner-disabled', key: named });
    await changeUser('u-bob', { disabledAtMs: undefined });
    // at this very moment, although it is remembered
    await clock.advance(DAY_MS - 1);
    expect(await a.authenticate(secret)).toMatchObject({ keyId: key.id });
    await clock.advance(1);
    expect(await reasonOf(secret)).toMatchObject({ reason: 'expired', key: named });
    await a.operations.revokeApiKey({ params: { id: key.id } }, a.contextOf(bob));
    await clock.advance(5_000);
    expect(await reasonOf(secret)).toMatchObject({ reason: 'revoked', key: named });
    const user = (await store.state.get('user:u-bob'))!;
    const another = await a.create(bob);
    await store.state.remove('user:u-bob', user.version);
    expect(await reasonOf(another.secret)).toMatchObject({ reason: 'owner-unknown' });
    // a secret whose id is stored with another hash
    const entry = (await store.state.get(`api-key:${another.key.id}`))!;
    await store.state.put({ ...entry, record: { ...(entry.record as object), secretHash: '0'.repeat(64) } }, entry.version);
    await clock.advance(5_000);
    expect(await a.check(another.secret)).toEqual({ kind: 'refused', reason: 'unknown' });
  });

  it('costs no read each time, whatever the number of requests at the same time', async () => {
    const { a, b, bob, clock } = await createKeyWorld();
    const { secret } = await a.create(bob);
    // the first use of the minute is stored, which reads once more
    await b.authenticate(secret);
    await clock.advance(3_500);
    const before = b.reads();
    for (let round = 0; round < 3; round += 1) {
      await Promise.all(Array.from({ length: 20 }, () => b.authenticate(secret)));
      await clock.advance(999);
    }
    expect(b.reads() - before).toBe(2);
    await clock.advance(503);
    await b.authenticate(secret);
    expect(b.reads() - before).toBe(4);
  });

  it('never accepts a key five seconds after its revocation, however long reads take', async () => {
    const secondsToMs = fc.integer({ min: 0, max: 9_000 });
    const plan = fc.record({
      readMs: secondsToMs,
      revokeAfterMs: secondsToMs,
      requestsMs: fc.array(secondsToMs, { minLength: 1, maxLength: 8 }),
    });
    await fc.assert(
      fc.asyncProperty(plan, async ({ readMs, revokeAfterMs, requestsMs }) => {
        const memory = createMemoryStore();
        let isSlow = false;
        const { a, b, bob, clock } = await createKeyWorld({
          store: {
            ...memory,
            state: {
              ...memory.state,
              async get(id, signal) {
                const entry = await memory.state.get(id, signal);
                // the answer is on its way for long
                if (isSlow) await clock.sleep(readMs, signal);
                return entry;
              },
            },
          },
        });
        const { key, secret } = await a.create(bob);
        isSlow = true;
        const startMs = clock.monotonicMs();
        let revokedAtMs = Infinity;
        const answers: Promise<void>[] = [];
        const moments = [...requestsMs.map((atMs) => ({ atMs, isRequest: true })), { atMs: revokeAfterMs, isRequest: false }];
        for (const { atMs, isRequest } of moments.toSorted((one, other) => one.atMs - other.atMs)) {
          await clock.advance(Math.max(0, startMs + atMs - clock.monotonicMs()));
          if (isRequest) {
            const sentAtMs = clock.monotonicMs();
            answers.push(
              b.authenticate(secret).then((actor) => {
                if (sentAtMs >= revokedAtMs + 5_000) expect(actor).toBe(undefined);
              }),
            );
            continue;
          }
          const entry = (await memory.state.get(`api-key:${key.id}`))!;
          await memory.state.put({ ...entry, record: { ...(entry.record as object), revokedAtMs: clock.nowMs() } }, entry.version);
          revokedAtMs = clock.monotonicMs();
        }
        await clock.advance(60_000);
        await Promise.all(answers);
      }),
      { numRuns: isLong ? 400 : 40 },
    );
  });

  it('remembers no more than 10,000 keys, and guesses displace none of them', async () => {
    const { a, b, bob } = await createKeyWorld();
    const { secret } = await a.create(bob);
    await b.authenticate(secret);
    const before = b.reads();
    for (let guess = 0; guess < 11_000; guess += 1) await b.authenticate(newKeySecret());
    expect(b.reads() - before).toBe(11_000);
    await b.authenticate(secret);
    expect(b.reads() - before).toBe(11_000);
  });

  it('is limited to 100 requests in a second for each key, and not for its neighbours', async () => {
    const { a, bob, clock } = await createKeyWorld();
    const [busy, calm] = [await a.create(bob), await a.create(bob)];
    for (let request = 0; request < 100; request += 1) await a.authenticate(busy.secret);
    await expect(a.authenticate(busy.secret)).rejects.toMatchObject({ code: 'request.rate-limited', extra: { retry_after_s: 1 } });
    expect(await a.authenticate(calm.secret)).toBeDefined();
    await clock.advance(1_000);
    expect(await a.authenticate(busy.secret)).toBeDefined();
  });
});

describe('the use of a key', () => {
  it('is stored at most once a minute, by all processes together', async () => {
    const { a, b, bob, clock, store } = await createKeyWorld();
    const { key, secret } = await a.create(bob);
    let writes = 0;
    let last: string | undefined;
    for (let second = 0; second < 300; second += 1) {
      await Promise.all([a.authenticate(secret), b.authenticate(secret)]);
      await clock.advance(1_000);
      const { last_used_at } = await a.operations.getApiKey({ params: { id: key.id } }, a.contextOf(bob));
      if (last_used_at !== null && last_used_at !== last) writes += 1;
      last = last_used_at ?? undefined;
      // a minute of memory, and the moment between two processes
      if (second > 0) expect(clock.nowMs() - Date.parse(last ?? '')).toBeLessThanOrEqual(66_000);
    }
    expect(writes).toBeGreaterThanOrEqual(4);
    expect(writes).toBeLessThanOrEqual(5);
    expect(await readRecord(store.state, refs.apiKey(key.id))).toMatchObject({ userEmail: 'bob@example.com' });
  });

  it('is not hindered when it cannot be stored, which is reported', async () => {
    const memory = createMemoryStore();
    let isBlocked = false;
    const put: typeof memory.state.put = (...asked) =>
      isBlocked ? Promise.reject(new FaultError('index.blocked', 'the disk is full')) : memory.state.put(...asked);
    const { a, bob, clock } = await createKeyWorld({ store: { ...memory, state: { ...memory.state, put } } });
    const { secret } = await a.create(bob);
    isBlocked = true;
    expect(await a.authenticate(secret)).toBeDefined();
    await clock.advance(0);
    expect(a.telemetry.recorded('requestFailed')).toEqual([['store when an API key was last used', 'index.blocked', 'the disk is full']]);
  });

  it('brings no revoked key back', async () => {
    const { a, b, bob, clock } = await createKeyWorld();
    const { key, secret } = await a.create(bob);
    await b.authenticate(secret);
    await clock.advance(60_000);
    await Promise.all([b.authenticate(secret), a.operations.revokeApiKey({ params: { id: key.id } }, a.contextOf(bob))]);
    await clock.advance(5_000);
    expect(await b.check(secret)).toMatchObject({ reason: 'revoked' });
  });

  it('warns from 14 days before the end, in the actor each time and in the log once a day', async () => {
    const { a, bob, clock } = await createKeyWorld();
    const { key, secret } = await a.create(bob, { name: 'ci', expires_in_days: 16 });
    await clock.advance(2 * DAY_MS - 1);
    expect(await a.authenticate(secret)).not.toHaveProperty('endsSoonAtMs');
    expect(a.telemetry.recorded('warn')).toEqual([]);
    await clock.advance(1);
    for (let request = 0; request < 3; request += 1) {
      expect(await a.authenticate(secret)).toMatchObject({ endsSoonAtMs: Date.parse(key.expires_at) });
    }
    const fields = { name: 'ci', fingerprint: key.fingerprint, owner: 'bob@example.com', expiresAt: key.expires_at };
    expect(a.telemetry.recorded('warn')).toEqual([['an API key in use ends soon', expect.objectContaining(fields)]]);
    await clock.advance(DAY_MS);
    await a.authenticate(secret);
    expect(a.telemetry.recorded('warn')).toHaveLength(2);
  });
});
