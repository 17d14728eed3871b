/** The series and the growth of buckets, on any store: what several processes record, and what is read of it. */
import { beforeAll, describe, expect, it } from 'vitest';
import { seriesRows, type SeriesRequest } from '../../src/api/series.ts';
import { usageRows, type GrowthRequest } from '../../src/api/usage.ts';
import type { Readable } from '../../src/domain/access/readable.ts';
import { nameOf, type ObjectDocument } from '../../src/domain/documents/document.ts';
import { HOUR_MS, MINUTE_MS } from '../../src/domain/series/hour.ts';
import { createMeasureGrowth } from '../../src/pipeline/calendar/measure-growth.ts';
import { createPurgeSeries } from '../../src/pipeline/calendar/purges.ts';
import { createSeries } from '../../src/pipeline/control/series.ts';
import type { Store } from '../../src/pipeline/ports/store.ts';
import { readRecord, refs, updateRecord } from '../../src/pipeline/records/stored.ts';
import { createSeriesRecorder } from '../../src/pipeline/series/recorder.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createFakeClock, createFakeTelemetry, type FakeClock } from '../support/fakes/ports.ts';
import { contractWorld, DAY_MS, unique, type OpenStore } from './world.ts';

const { signal } = new AbortController();
const hourly = (query: object): SeriesRequest => seriesRows['GET /v1/series'].query.parse(query);
const daily = (query: object = {}): GrowthRequest => usageRows['GET /v1/usage/growth'].query.parse(query);
const whole = (...buckets: readonly string[]): Readable => buckets.map((bucket) => ({ bucket, prefix: '' }));

/** Declares the contract's tests for one store. */
export function seriesContract(name: string, open: () => Promise<OpenStore>): void {
  describe(`series on ${name}`, () => {
    const [photos, videos] = [unique('photos'), unique('videos')];
    const startMs = Date.UTC(2026, 0, 2, 3, 58, 30);
    /** The ends of what is recorded before the tests. Each test begins at one of them with a clock of its own. */
    const [recordedMs, grownMs] = [startMs + 4 * MINUTE_MS, startMs + 4 * MINUTE_MS + DAY_MS];
    const world = contractWorld(open);
    let store: Store;
    const series = (atMs: number) => createSeries({ state: store.state, clock: createFakeClock({ startMs: atMs }), recording: true });
    const objectsOf = (points: readonly { readonly events: number }[]): number => points.reduce((sum, { events }) => sum + events, 0);

    beforeAll(async () => {
      ({ store } = world);
      for (const bucket of [photos, videos]) {
        await store.objects.createBucket(bucket);
        await updateRecord(store.state, refs.bucket(bucket), () => recordOf(bucket, { createdAtMs: startMs - 2 * DAY_MS }));
      }
      const clock = createFakeClock({ startMs });
      await recordMinutes(clock);
      await measureDays(clock);
      await world.refresh();
    });

    /** Two workers, for four minutes. */
    async function recordMinutes(clock: FakeClock): Promise<void> {
      const workers = ['worker-1', 'worker-2'].map((worker) => createSeriesRecorder({ state: store.state, clock, worker }));
      for (let minute = 0; minute < 4; minute += 1) {
        for (const worker of workers) {
          worker.event(photos, 400);
          worker.event(photos, 400);
          worker.event(videos);
          worker.statuses({ ok: 2 });
        }
        await clock.advance(MINUTE_MS);
        for (const worker of workers) await worker.store();
      }
    }

    /** Two processes on two days, of which the first measure stays. */
    async function measureDays(clock: FakeClock): Promise<void> {
      const fields = { bucket: photos, clock: 1_000, deleted: false, settled: true, source: 'check' } as const;
      const add = async (key: string): Promise<void> => {
        const document: ObjectDocument = { ...fields, key, ...nameOf(key), size: 10, indexed_at: new Date(startMs).toISOString() };
        await store.objects.write([{ document, equalClock: 'accept' }]);
        await store.scan.refresh(photos);
      };
      const processes = [1, 2].map(() => createMeasureGrowth({ ...store, clock, telemetry: createFakeTelemetry() }));
      const measure = async (): Promise<void> => {
        for (const { visit, dueOf } of processes) {
          const isDue = await dueOf(signal);
          for (const bucket of [photos, videos]) {
            const record = await readRecord(store.state, refs.bucket(bucket));
            if (record !== undefined && isDue(record)) await visit(record, signal);
          }
        }
      };
      await add('a');
      await measure();
      await add('b');
      await measure();
      await clock.advance(DAY_MS);
      await measure();
    }

    it('adds what several workers record each minute, over the change of the hour', async () => {
      expect(await store.state.count('series')).toBe(4);
      const found = await series(recordedMs).getSeries(hourly({ hours: 1 }), 'everything', signal);
      expect(found).toMatchObject({ step_s: 60, recording: true, to: new Date(recordedMs).toISOString() });
      const minutes = ['03:58', '03:59', '04:00', '04:01'].map((time) => `2026-01-02T${time}:00.000Z`);
      // as evenly spread within their class of durations
      const lags = { lag_p50_ms: 341, lag_p95_ms: 394 };
      expect(found.points).toEqual(minutes.map((at) => ({ at, events: 6, ...lags, statuses: { ok: 2 } })));
      expect(found.busiest).toEqual([
        { bucket: photos, events: 16 },
        { bucket: videos, events: 8 },
      ]);
      const ofBucket = await series(recordedMs).getSeries(hourly({ hours: 1, bucket: photos }), 'everything', signal);
      expect([ofBucket.step_s, objectsOf(ofBucket.points), ofBucket.points.some(({ statuses }) => statuses !== undefined)]).toEqual([
        300,
        16,
        false,
      ]);
    });

    it('shows readers the buckets that they may read wholly, and nothing of others', async () => {
      const { getSeries } = series(recordedMs);
      const ofReader = await getSeries(hourly({ hours: 24 }), whole(videos), signal);
      expect([objectsOf(ofReader.points), ofReader.busiest]).toEqual([8, [{ bucket: videos, events: 8 }]]);
      expect(JSON.stringify(ofReader)).not.toMatch(/photos|statuses/);
      const part: Readable = [{ bucket: photos, prefix: '2026/' }];
      for (const query of [{}, { bucket: photos }]) {
        expect(await getSeries(hourly(query), part, signal)).toMatchObject({ points: [], busiest: [] });
      }
      await expect(getSeries(hourly({ bucket: photos }), whole(videos), signal)).rejects.toMatchObject({ code: 'bucket.not-connected' });
    });

    it('records each bucket once a day, though many processes try, and shows the days', async () => {
      const grown = [
        { day: '2026-01-02', objects: 1, bytes: 10 },
        { day: '2026-01-03', objects: 2, bytes: 20 },
      ];
      const empty = grown.map(({ day }) => ({ day, objects: 0, bytes: 0 }));
      const { getGrowth } = series(grownMs);
      const items = [
        { bucket: photos, days: grown, missed: [] },
        { bucket: videos, days: empty, missed: [] },
      ];
      expect(await getGrowth(daily(), 'everything', signal)).toEqual({ items, recording: true });
      expect((await getGrowth(daily({ days: 1, bucket: photos }), 'everything', signal)).items).toEqual([
        { bucket: photos, days: grown.slice(1), missed: [] },
      ]);
      const first = await getGrowth(daily({ limit: 1 }), 'everything', signal);
      expect(first.items).toEqual(items.slice(0, 1));
      expect((await getGrowth(daily({ limit: 1, cursor: first.next }), 'everything', signal)).items).toEqual(items.slice(1));
      expect((await getGrowth(daily(), whole(videos), signal)).items).toEqual(items.slice(1));
      expect((await getGrowth(daily(), [{ bucket: photos, prefix: 'a' }], signal)).items).toEqual([]);
      expect((await getGrowth(daily({ bucket: photos }), [{ bucket: photos, prefix: 'a' }], signal)).items).toEqual([]);
    });

    it('keeps both when the index of a bucket is rebuilt, and names the days without sums', async () => {
      const clock = createFakeClock({ startMs: grownMs });
      const { getGrowth, getSeries } = createSeries({ state: store.state, clock, recording: true });
      const before = await getGrowth(daily(), 'everything', signal);
      await store.objects.removeBucket(photos);
      await clock.advance(DAY_MS);
      const record = await readRecord(store.state, refs.bucket(photos));
      if (record === undefined) throw new Error('the bucket is not connected');
      await createMeasureGrowth({ ...store, clock, telemetry: createFakeTelemetry() }).visit(record, signal);
      await store.objects.createBucket(photos);
      await clock.advance(DAY_MS);
      const slow = { ...store, clock, telemetry: createFakeTelemetry(), usage: { usage: async () => 'too-slow' as const } };
      await createMeasureGrowth(slow).visit(record, signal);
      await world.refresh();
      const { items } = await getGrowth(daily(), 'everything', signal);
      expect(items.map(({ days }) => days)).toEqual(before.items.map(({ days }) => days));
      expect(items.map(({ missed }) => missed)).toEqual([
        [
          { day: '2026-01-04', reason: 'index-missing' },
          { day: '2026-01-05', reason: 'too-slow' },
        ],
        [],
      ]);
      expect(objectsOf((await getSeries(hourly({ hours: 96 }), 'everything', signal)).points)).toBe(24);
    });

    it('removes the hours that are older than a fortnight, and no others', async () => {
      const clock = createFakeClock({ startMs: startMs + 14 * DAY_MS });
      const purge = createPurgeSeries({ state: store.state, clock });
      await purge(signal);
      await world.refresh();
      expect(await store.state.count('series')).toBe(4);
      await clock.advance(HOUR_MS);
      await purge(signal);
      await world.refresh();
      expect(await store.state.count('series')).toBe(2);
      expect(
        (await series(clock.nowMs()).getSeries(hourly({ from: '2026-01-02', to: '2026-01-03' }), 'everything', signal)).points,
      ).toMatchObject([{ at: '2026-01-02T04:00:00.000Z', events: 12 }]);
    });
  });
}
