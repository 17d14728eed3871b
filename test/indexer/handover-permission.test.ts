import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { createHandoverPermission } from '../../src/indexer/handover.ts';
import type { StateStore } from '../../src/store/store.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const never = new AbortController().signal;

function setUp({ wrap = (state: StateStore) => state } = {}) {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const permission = createHandoverPermission({ state: wrap(state), clock, telemetry });
  const ref = refs.schedule('close-gaps');
  /** A re-index worker begins a round; its clock is this far ahead. */
  const round = (aheadMs = 0) =>
    updateRecord(state, ref, (current) => ({
      ...current,
      name: 'close-gaps',
      dueAtMs: clock.nowMs() + aheadMs + 15_000,
      lastStartedAtMs: clock.nowMs() + aheadMs,
      claim: { holder: 'worker', renewals: (current?.claim?.renewals ?? 0) + 1 },
    }));
  return { permission, clock, telemetry, round };
}

describe('handover is permitted', () => {
  it('while a re-index worker was there within an hour', async () => {
    const { permission, clock, round } = setUp();
    expect(permission.isPermitted).toBe(false);
    await round();
    await permission.watch(never);
    expect(permission.isPermitted).toBe(true);
    await clock.advance(HOUR_MS - 60_000);
    expect(permission.isPermitted).toBe(true);
    await clock.advance(60_000);
    expect(permission.isPermitted).toBe(false);
    await round();
    await clock.advance(60_000);
    expect(permission.isPermitted).toBe(true);
  });

  it.each([-DAY_MS, DAY_MS])('by a worker whose clock is %d ms off, once it was seen to do something', async (aheadMs) => {
    const { permission, clock, round } = setUp();
    await round(aheadMs);
    await permission.watch(never);
    expect(permission.isPermitted).toBe(false);
    await round(aheadMs);
    await clock.advance(60_000);
    expect(permission.isPermitted).toBe(true);
  });

  it('as last known while the store does not answer, for an hour at most', async () => {
    let isDown = false;
    const fault = new FaultError('index.unreachable', 'gone');
    const wrap = (state: StateStore): StateStore => ({ ...state, get: (...args) => (isDown ? Promise.reject(fault) : state.get(...args)) });
    const { permission, clock, telemetry, round } = setUp({ wrap });
    await round();
    await permission.watch(never);
    isDown = true;
    await clock.advance(HOUR_MS - 1);
    expect(permission.isPermitted).toBe(true);
    expect(telemetry.recorded('requestFailed').length).toBeGreaterThan(0);
    await clock.advance(1);
    expect(permission.isPermitted).toBe(false);
  });
});
