import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createHourCounts, DAY_MS, HOUR_MS, hourOf, lagClassOf, percentileMs, STEP_MS, stepsOf } from '../../src/records/event-hours.ts';
import { FaultError } from '../../src/base/fault.ts';
import { getEvents } from '../../src/registry/operations/lists.ts';
import { createEventCounter } from '../../src/indexer/arrivals.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { createIngestWorld } from '../support/worlds/ingest.ts';

const MINUTE_MS = 60_000;

function world() {
  const { state } = createMemoryStore();
  const clock = createFakeClock({ startMs: Date.UTC(2026, 0, 2, 3) });
  const broken = { value: false };
  const puts = { count: 0 };
  const put: typeof state.put = async (...args) => {
    puts.count += 1;
    if (broken.value) throw new FaultError('index.unreachable', 'broken by the test');
    return state.put(...args);
  };
  const counterOf = (worker: string) => createEventCounter({ state: { ...state, put }, clock, worker });
  const steps = async () => (await getEvents({ state, clock })).steps;
  return { state, clock, broken, puts, counterOf, steps };
}

it('a minute costs one write, whatever arrived', async () => {
  const { clock, puts, counterOf, steps } = world();
  const counter = counterOf('a');
  for (let minute = 0; minute < 10; minute += 1) {
    for (let count = 0; count < 100; count += 1) counter.event(count);
    await counter.store();
    await clock.advance(MINUTE_MS);
  }
  expect(puts.count).toBe(10);
  expect((await steps()).map(({ events }) => events)).toEqual([500, 500]);
});

it('events of all processes are added, and a step in which none ran is missing, other than one without events', async () => {
  const { clock, counterOf, steps } = world();
  const [one, other] = [counterOf('one'), counterOf('other')];
  one.event(100);
  other.event(200);
  await one.store();
  await other.store();
  await clock.advance(2 * STEP_MS);
  await other.store();
  const [first, last] = await steps();
  expect([first?.events, first?.lag_p95_ms !== undefined]).toEqual([2, true]);
  expect(last).toEqual({ at: '2026-01-02T03:10:00.000Z', events: 0 });
});

it('what could not be stored is stored with the next minute, as far back as the hour before', async () => {
  const { clock, broken, counterOf, steps } = world();
  const counter = counterOf('a');
  broken.value = true;
  for (let hour = 1; hour <= 3; hour += 1) {
    for (let count = 0; count < hour; count += 1) counter.event();
    await expect(counter.store()).rejects.toMatchObject({ code: 'index.unreachable' });
    if (hour < 3) await clock.advance(HOUR_MS);
  }
  broken.value = false;
  await counter.store();
  expect((await steps()).map(({ events }) => events)).toEqual([2, 3]);
});

it('records are kept for a day', async () => {
  const { state, clock, counterOf, steps } = world();
  const counter = counterOf('a');
  for (let hour = 0; hour < 30; hour += 1) {
    counter.event();
    await counter.store();
    await clock.advance(HOUR_MS);
  }
  await counter.store();
  expect(await state.count('event-hour')).toBe(25);
  expect((await steps()).length).toBe(25);
});

it('an event is counted once, when it is received first, and with its lag once a search finds it', async () => {
  let counted = createEventCounter({ ...createMemoryStore(), clock: createFakeClock(), worker: 'none' });
  const ingest = await createIngestWorld({
    counter: ({ state, clock }) => (counted = createEventCounter({ state, clock, worker: 'worker' })),
  });
  const { clock, stopping } = ingest;
  const steps = async () => {
    await counted.store();
    return (await getEvents({ state: ingest.store.plainState, clock })).steps.filter(({ events }) => events > 0);
  };
  ingest.storage.createBucket('never-connected');
  ingest.store.broken.buckets.set('photos', 'bucket.index-missing');
  await ingest.send(ingest.put('a'), ingest.put('b'), ingest.put('c', { bucket: 'never-connected' }));
  await ingest.run(2 * MINUTE_MS);
  ingest.store.broken.buckets.clear();
  await ingest.run(10 * MINUTE_MS);
  const [early] = await steps();
  expect(early?.events).toBe(2);
  await ingest.send(ingest.put('d'));
  await ingest.run(MINUTE_MS);
  const lag = expect.any(Number) as number;
  expect(await steps()).toEqual([early, { at: expect.any(String) as string, events: 1, lag_p50_ms: lag, lag_p95_ms: lag }]);
  stopping.abort(new Error('the test is over'));
});

describe('the percentiles of lags', () => {
  const durations = fc.array(fc.oneof(fc.nat(2_000), fc.nat(14 * DAY_MS)), { minLength: 1, maxLength: 200 });
  const hourMs = hourOf(DAY_MS);
  const recordOf = (lags: readonly number[]) => {
    const counts = createHourCounts(hourMs);
    for (const lagMs of lags) counts.event(hourMs, lagMs);
    return counts.record('worker');
  };

  it('are at most √2 of the true ones of all processes, up or down; what takes less than 50 ms is not told apart', () => {
    fc.assert(
      fc.property(durations, durations, fc.constantFrom(0.5, 0.95, 1), (one, other, share) => {
        const all = [...one, ...other];
        const trueMs = all.toSorted((a, b) => a - b)[Math.ceil(share * all.length) - 1] ?? 0;
        const [step] = stepsOf([recordOf(one), recordOf(other)], hourMs);
        const found = percentileMs(step?.lags ?? [], share) ?? Number.NaN;
        expect(found).toBeLessThanOrEqual(Math.max(50, Math.ceil(trueMs * Math.SQRT2)));
        expect(found).toBeGreaterThanOrEqual(trueMs <= 50 ? 0 : Math.floor(trueMs / Math.SQRT2));
      }),
    );
  });

  it('are not known of nothing, and longer than any queue keeps is the longest', () => {
    expect(percentileMs([], 0.5)).toBeUndefined();
    expect(lagClassOf(1e15)).toBe(lagClassOf(15 * DAY_MS));
  });
});
