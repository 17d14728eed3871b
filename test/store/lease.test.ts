import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StateStore } from '../../src/store/store.ts';
import { createTakeLease, LEASE_MS, RENEW_MS, type Lease } from '../../src/store/lease.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';

const NAME = 'connections';

function setUp() {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  /** One more process, whose wall clock is off by so much. */
  const process = (skewMs = 0, store: StateStore = state) =>
    createTakeLease({ state: store, clock: { ...clock, nowMs: () => clock.nowMs() + skewMs } });
  return { state, clock, process };
}

describe('a lease', () => {
  it('is had by one process, and by the next one at once when it is released', async () => {
    const { process } = setUp();
    const [one, other] = [process(), process()];
    const lease = await one(NAME);
    expect(await other(NAME)).toBeUndefined();
    expect(await other('another')).toBeDefined();
    await lease?.release();
    expect(await other(NAME)).toBeDefined();
  });

  it.each([0, 3_600_000, -3_600_000])(
    'of a process that was killed is taken after one life, though its clock was %i ms off',
    async (skewMs) => {
      const { clock, process } = setUp();
      await process(skewMs)(NAME);
      const heir = process();
      expect(await heir(NAME)).toBeUndefined();
      await clock.advance(LEASE_MS - 1);
      expect(await heir(NAME)).toBeUndefined();
      await clock.advance(1);
      expect(await heir(NAME)).toBeDefined();
    },
  );

  it('that is renewed is never taken', async () => {
    const { clock, process } = setUp();
    const lease = await process()(NAME);
    lease?.keep();
    const other = process();
    for (let times = 0; times < 30; times += 1) {
      expect(await other(NAME)).toBeUndefined();
      await clock.advance(RENEW_MS);
    }
    expect(lease?.lost.aborted).toBe(false);
  });

  it('is lost when it was not renewed for its life, although no other process wanted it', async () => {
    const { clock, process } = setUp();
    const lease = await process()(NAME);
    await clock.advance(LEASE_MS);
    expect(await lease?.renew()).toBe(false);
    expect(lease?.lost.aborted).toBe(true);
  });

  it('that is kept is lost by the end of its life, however long the store takes to refuse a renewal', async () => {
    const { state, clock, process } = setUp();
    let isSlow = false;
    const slow: StateStore = {
      ...state,
      async put(...args) {
        if (!isSlow) return state.put(...args);
        await clock.sleep(14_000);
        throw new Error('no answer');
      },
    };
    const lease = await process(0, slow)(NAME);
    const other = process();
    lease?.keep();
    isSlow = true;
    expect(await other(NAME)).toBeUndefined();
    await clock.advance(LEASE_MS);
    expect(lease?.lost.aborted).toBe(true);
    expect(await other(NAME)).toBeDefined();
  });

  it('is not taken by a process that stood still itself between two looks', async () => {
    const { clock, process } = setUp();
    await process()(NAME);
    const other = process();
    await other(NAME);
    await clock.advance(10 * LEASE_MS);
    expect(await other(NAME)).toBeUndefined();
    await clock.advance(LEASE_MS);
    expect(await other(NAME)).toBeDefined();
  });

  it('that is renewed is not taken by a process whose wall clock is set forward', async () => {
    const { state, clock, process } = setUp();
    const lease = await process()(NAME);
    let setMs = 0;
    const other = createTakeLease({ state, clock: { ...clock, monotonicMs: () => clock.monotonicMs() + setMs } });
    expect(await other(NAME)).toBeUndefined();
    setMs = LEASE_MS;
    expect(await other(NAME)).toBeUndefined();
    expect(await lease?.renew()).toBe(true);
  });

  it('survives a renewal that was stored although its answer was lost', async () => {
    const { state, process } = setUp();
    let loses = false;
    const losing: StateStore = {
      ...state,
      async put(...args) {
        const stored = await state.put(...args);
        if (loses) throw new Error('the answer was lost');
        return stored;
      },
    };
    const lease = await process(0, losing)(NAME);
    loses = true;
    await expect(lease?.renew()).rejects.toThrow('lost');
    loses = false;
    expect(await lease?.renew()).toBe(true);
    await lease?.release();
    expect(await process()(NAME)).toBeDefined();
  });

  it('is had by one process at a time, however they look, renew, release and die', async () => {
    const step = fc.record({
      of: fc.nat({ max: 2 }),
      does: fc.constantFrom('take', 'renew', 'release', 'die'),
      waitMs: fc.nat({ max: 30_000 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { clock, process } = setUp();
        const processes = [process(), process(7_200_000), process(-900_000)];
        const held: (Lease | undefined)[] = [undefined, undefined, undefined];
        for (const { of, does, waitMs } of steps) {
          if (does === 'take') held[of] ??= await processes[of]?.(NAME);
          if (does === 'release') await held[of]?.release();
          if (does === 'release' || does === 'die') held[of] = undefined;
          if (does === 'renew' && (await held[of]?.renew()) === false) held[of] = undefined;
          await clock.advance(waitMs);
          // who may still believe to have it learns otherwise right before a change
          const sure = await Promise.all(held.map(async (lease) => (await lease?.renew()) === true));
          expect(sure.filter(Boolean).length).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 100 },
    );
  });
});
