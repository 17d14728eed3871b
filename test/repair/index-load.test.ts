import { expect, it } from 'vitest';
import { createIndexLoad, measured } from '../../src/repair/index-load.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';

it('finds an index slow after a row of slow requests, and fast again after a row of fast ones', async () => {
  const clock = createFakeClock({ autoAdvance: true });
  const load = createIndexLoad(clock, 4);
  const { scan } = createMemoryStore();
  let tookMs = 50;
  const slowed = measured(load, {
    ...createMemoryStore(),
    scan: {
      ...scan,
      scan: async (...asked) => {
        await clock.sleep(tookMs);
        return scan.scan(...asked);
      },
    },
  });
  const ask = async (count: number): Promise<boolean> => {
    for (let asked = 0; asked < count; asked += 1) await slowed.scan.scan('b', { prefix: '', after: '', limit: 1 });
    return load.isSlow();
  };
  expect(await ask(50)).toBe(false);
  tookMs = 3_000;
  expect(await ask(1)).toBe(false);
  expect(await ask(10)).toBe(true);
  tookMs = 50;
  expect(await ask(1)).toBe(true);
  expect(await ask(20)).toBe(false);
});

it('measures requests that fail too', async () => {
  const clock = createFakeClock({ autoAdvance: true });
  const load = createIndexLoad(clock, 4);
  for (let asked = 0; asked < 20; asked += 1) {
    const failing = load.measure(async () => {
      await clock.sleep(30_000);
      throw new Error('timed out');
    });
    await expect(failing).rejects.toThrow('timed out');
  }
  expect(load.isSlow()).toBe(true);
});

it('finds an index slow while as many bulk requests run as may run, whatever becomes of them', async () => {
  const load = createIndexLoad(createFakeClock({ autoAdvance: true }), 2);
  const store = createMemoryStore();
  const answers = [Promise.withResolvers<never[]>(), Promise.withResolvers<never[]>()];
  let asked = 0;
  const { objects } = measured(load, { ...store, objects: { ...store.objects, write: () => answers[asked++]!.promise } });
  const first = objects.write([]);
  expect(load.isSlow()).toBe(false);
  const second = objects.write([]);
  expect(load.isSlow()).toBe(true);
  answers[0]!.reject(new Error('refused'));
  await expect(first).rejects.toThrow('refused');
  expect(load.isSlow()).toBe(false);
  answers[1]!.resolve([]);
  await second;
  expect(load.isSlow()).toBe(false);
});
