import { expect, it } from 'vitest';
import type { StateStore } from '../../src/store/store.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { createAllBuckets } from '../../src/observing/known-buckets.ts';

it('the metrics and the sweeps share one list of all buckets, of at most 14 s, and none that failed', async () => {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  let lists = 0;
  let isBroken = false;
  const counted: StateStore = {
    ...state,
    list: async (...args) => {
      lists += 1;
      if (isBroken) throw new Error('broken');
      return state.list(...args);
    },
  };
  const allBuckets = createAllBuckets({ state: counted, clock });
  await Promise.all([allBuckets(), allBuckets()]);
  await clock.advance(13_999);
  await allBuckets();
  expect(lists).toBe(1);
  isBroken = true;
  await clock.advance(1);
  await expect(allBuckets()).rejects.toThrow('broken');
  isBroken = false;
  expect(await allBuckets()).toEqual([]);
  expect(lists).toBe(3);
});
