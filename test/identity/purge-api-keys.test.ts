import { describe, expect, it } from 'vitest';
import { purgeApiKeys } from '../../src/identity/purges.ts';
import { readRecord } from '../../src/store/stored.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createKeyWorld, DAY_MS } from '../support/identity/keys.ts';
import { refs } from '../../src/identity/refs.ts';

const signal = new AbortController().signal;

/** The purge runs with its own clock, which does not wait; it stands where the other clock stands. */
function purgeAt(nowMs: number, store: Awaited<ReturnType<typeof createKeyWorld>>['store'], telemetry = createFakeTelemetry()) {
  const clock = { ...createFakeClock({ autoAdvance: true }), nowMs: () => nowMs };
  return purgeApiKeys({ state: store.state, clock, telemetry }, signal);
}

describe('the purge of API keys', () => {
  it('removes keys 90 days after their expiry, from everywhere, and no others', async () => {
    const { a, bob, clock, store } = await createKeyWorld();
    const [short, long, revoked] = [await a.create(bob, { name: 'short', expires_in_days: 1 }), await a.create(bob), await a.create(bob)];
    await a.operations.revokeApiKey({ params: { id: revoked.key.id } }, a.contextOf(bob));
    const endMs = Date.parse(short.key.expires_at) + 90 * DAY_MS;
    await purgeAt(endMs - 2 * DAY_MS, store);
    expect(await store.state.count('api-key')).toBe(3);
    // revoked 90 days ago
    await purgeAt(endMs - 1, store);
    expect(await store.state.count('api-key')).toBe(2);
    const telemetry = createFakeTelemetry();
    await purgeAt(endMs, store, telemetry);
    expect(telemetry.recorded('info')).toEqual([['API keys that ended 90 days ago are deleted', { count: 1 }]]);
    expect(await readRecord(store.state, refs.userKeys('u-bob'))).toMatchObject({ keys: [{ id: long.key.id }], revoked: [] });
    await clock.advance(endMs - clock.nowMs());
    const { items } = await a.operations.listApiKeys({}, a.contextOf(bob));
    expect(items).toMatchObject([{ id: long.key.id, status: 'EXPIRED' }]);
    expect(await a.check(short.secret)).toEqual({ kind: 'refused', reason: 'unknown' });
  });
});
