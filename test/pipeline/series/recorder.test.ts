import { expect, it } from 'vitest';
import { listBuckets } from '../../../src/pipeline/buckets/all-buckets.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import { HOUR_MS, hourOf, hourRecordSchema, MINUTE_MS } from '../../../src/domain/series/hour.ts';
import { watchState } from '../../../src/pipeline/buckets/watch.ts';
import { createSeries } from '../../../src/pipeline/control/series.ts';
import { listAllRecords } from '../../../src/pipeline/records/stored.ts';
import { createSeriesRecorder, noSeries } from '../../../src/pipeline/series/recorder.ts';
import { repeat } from '../../../src/pipeline/serving/repeat.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import { createIngestWorld } from '../../support/worlds/ingest.ts';

function world() {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const broken = { value: false };
  const puts = { count: 0 };
  const recorder = createSeriesRecorder({
    state: {
      ...state,
      put: async (...args) => {
        puts.count += 1;
        if (broken.value) throw new FaultError('index.unreachable', 'broken by the test');
        return state.put(...args);
      },
    },
    clock,
    worker: 'worker',
  });
  const events = async (): Promise<readonly number[]> =>
    (await listAllRecords(state, 'series', hourRecordSchema)).map(({ minutes }) =>
      minutes.reduce((sum, { slot: [, count] }) => sum + count, 0),
    );
  return { clock, broken, puts, recorder, events };
}

it('a minute costs one write, whatever arrived', async () => {
  const { clock, puts, recorder, events } = world();
  for (let minute = 0; minute < 10; minute += 1) {
    for (let count = 0; count < 100; count += 1) recorder.event(`bucket-${count}`, count);
    await recorder.store();
    await clock.advance(MINUTE_MS);
  }
  expect(puts.count).toBe(10);
  expect(await events()).toEqual([1_000]);
});

it('what could not be stored is stored with the next minute, as far back as the hour before', async () => {
  const { clock, broken, recorder, events } = world();
  broken.value = true;
  for (let hour = 0; hour < 3; hour += 1) {
    for (let count = 0; count <= hour; count += 1) recorder.event('photos');
    await expect(recorder.store()).rejects.toMatchObject({ code: 'index.unreachable' });
    await clock.advance(HOUR_MS);
  }
  await clock.advance(hourOf(clock.nowMs()) - MINUTE_MS - clock.nowMs());
  broken.value = false;
  await recorder.store();
  expect(await events()).toEqual([2, 3]);
  // an hour that is over is not written again
  await clock.advance(2 * MINUTE_MS);
  await recorder.store();
  recorder.event('photos');
  await recorder.store();
  expect(await events()).toEqual([2, 3, 1]);
});

it('an event is counted once, when it is received first, and the series shows it after a minute', async () => {
  let recorder = noSeries;
  const ingest = await createIngestWorld({
    series: ({ state, clock }) => (recorder = createSeriesRecorder({ state, clock, worker: 'worker' })),
  });
  const { clock, telemetry, stopping } = ingest;
  const state = ingest.store.plainState;
  const each = { name: 'store the series', intervalMs: MINUTE_MS, signal: stopping.signal };
  repeat({ clock, telemetry }, each, () => recorder.store());
  const watched = { state, clock, telemetry, connect: { refresh: async () => undefined }, unclaimed: { see: () => undefined } };
  watchState({ ...watched, allBuckets: () => listBuckets(state), compareIntervalMs: 0, series: recorder }, stopping.signal);
  const points = async () => {
    const answer = await createSeries({ state, clock, recording: true }).getSeries({ hours: 1 }, 'everything');
    return answer.points.filter(({ events }) => events > 0);
  };

  ingest.storage.createBucket('never-connected');
  ingest.store.broken.buckets.set('photos', 'bucket.index-missing');
  await ingest.send(ingest.put('a'), ingest.put('b'), ingest.put('c', { bucket: 'never-connected' }));
  await ingest.run(2 * MINUTE_MS);
  ingest.store.broken.buckets.clear();
  await ingest.run(10 * MINUTE_MS);
  const [early] = await points();
  expect(early?.events).toBe(2);
  const sentAt = new Date(Math.floor(clock.nowMs() / MINUTE_MS) * MINUTE_MS).toISOString();
  await ingest.send(ingest.put('d'));
  await ingest.run(MINUTE_MS);
  const lag = expect.any(Number) as number;
  expect(await points()).toEqual([early, { at: sentAt, events: 1, lag_p50_ms: lag, lag_p95_ms: lag, statuses: { events_unproven: 1 } }]);
  stopping.abort(new Error('the test is over'));
});
