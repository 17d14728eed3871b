import { expect, it } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../../src/domain/series/hour.ts';
import { createSeries } from '../../../src/pipeline/control/series.ts';
import { createSeriesRecorder } from '../../../src/pipeline/series/recorder.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';

const FORTNIGHT = 336;

/** Two processes recorded for a fortnight, ending now. `listed`: how many records of the series were read since it was emptied. */
async function world() {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const recorders = ['worker-1', 'worker-2'].map((worker) => createSeriesRecorder({ state, clock, worker }));
  const hour = async (): Promise<void> => {
    for (const recorder of recorders) {
      recorder.event('photos', 400);
      recorder.statuses({ ok: 1 });
      await recorder.store();
    }
    await clock.advance(HOUR_MS);
  };
  for (let at = 0; at < FORTNIGHT; at += 1) await hour();
  const listed = { count: 0 };
  const counting = {
    ...state,
    list: async (...args: Parameters<typeof state.list>) => {
      const entries = await state.list(...args);
      listed.count += entries.length;
      return entries;
    },
  };
  const ask = async (series: ReturnType<typeof createSeries>, hours = FORTNIGHT) => {
    listed.count = 0;
    return series.getSeries({ hours }, 'everything');
  };
  return { clock, hour, listed, recorders, ask, create: () => createSeries({ state: counting, clock, recording: true }) };
}

it('a fortnight is read once by a process, and afterwards only its last hours, with the same answer', async () => {
  const { hour, listed, ask, create } = await world();
  const series = create();
  const first = await ask(series);
  expect(listed.count).toBeGreaterThan(600);
  expect(await ask(series)).toEqual(first);
  expect(listed.count).toBeLessThanOrEqual(8);
  for (let at = 0; at < 5; at += 1) await hour();
  const later = await ask(series);
  expect(listed.count).toBeLessThanOrEqual(20);
  expect(later).toEqual(await ask(create()));
  expect(later.points.at(-1)).toMatchObject({ events: 2, statuses: { ok: 1 } });
});

it('what a process stores an hour late is in the next answer', async () => {
  const { clock, recorders, ask, create } = await world();
  const [late] = recorders;
  const series = create();
  late?.event('photos');
  await clock.advance(HOUR_MS);
  const before = await ask(series);
  await clock.advance(MINUTE_MS);
  await late?.store();
  const after = await ask(series);
  const eventsOf = ({ points }: typeof before): number => points.reduce((sum, { events }) => sum + events, 0);
  expect(eventsOf(after) - eventsOf(before)).toBe(1);
});
