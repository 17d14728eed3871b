import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  busiestIn,
  condensed,
  createHourCounts,
  HOUR_MS,
  hourOf,
  hourRecordSchema,
  MINUTE_MS,
  SLOT_MS,
  stepMsOf,
  stepsOf,
  stepsOfBuckets,
  type HourRecord,
} from '../../../src/domain/series/hour.ts';

const HOUR_AT_MS = hourOf(Date.UTC(2026, 10, 27, 3));
const event = fc.record({
  worker: fc.nat(2),
  bucket: fc.constantFrom('a', 'b', 'c'),
  passedMs: fc.nat(3 * HOUR_MS - 1),
  lagMs: fc.option(fc.nat(100_000), { nil: undefined }),
});

/** The records of three workers over three hours, as they are read again. */
function recordsOf(events: readonly { worker: number; bucket: string; passedMs: number; lagMs: number | undefined }[]) {
  const byPlace = Map.groupBy(events, ({ worker, passedMs }) => `${worker} ${hourOf(HOUR_AT_MS + passedMs)}`);
  return [...byPlace].map(([place, its]): HourRecord => {
    const [worker = '', hour] = place.split(' ');
    const counts = createHourCounts(Number(hour));
    for (const { bucket, passedMs, lagMs } of its) counts.event(bucket, HOUR_AT_MS + passedMs, lagMs);
    return hourRecordSchema.parse(JSON.parse(JSON.stringify(counts.record(worker))));
  });
}

const sumOf = (steps: readonly { readonly events: number }[]): number => steps.reduce((sum, { events }) => sum + events, 0);

describe('the records of hours', () => {
  it('lose and repeat no event, whatever the step and whichever worker counted it', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), fc.constantFrom(MINUTE_MS, SLOT_MS, HOUR_MS), (events, stepMs) => {
        const records = recordsOf(events);
        const window = { fromMs: HOUR_AT_MS, toMs: HOUR_AT_MS + 3 * HOUR_MS, stepMs };
        const steps = stepsOf(records, window);
        expect(steps.map(({ atMs, events: count }) => [atMs, count])).toEqual(
          [...Map.groupBy(events, ({ passedMs }) => HOUR_AT_MS + Math.floor(passedMs / stepMs) * stepMs)]
            .map(([atMs, its]) => [atMs, its.length])
            .toSorted(([a = 0], [b = 0]) => a - b),
        );
        expect(steps.flatMap(({ lags }) => Object.values(lags)).reduce((sum, count) => sum + count, 0)).toBe(
          events.filter(({ lagMs }) => lagMs !== undefined).length,
        );
        for (const bucket of ['a', 'b', 'c']) {
          const count = events.filter((each) => each.bucket === bucket).length;
          expect(sumOf(stepsOfBuckets(records, (name) => name === bucket, { ...window, stepMs: Math.max(SLOT_MS, stepMs) }))).toBe(count);
          expect(busiestIn(records, (name) => name === bucket, window)).toEqual(count === 0 ? [] : [{ bucket, events: count }]);
        }
      }),
    );
  });

  it('show the bucket with no event as 0 where a worker recorded anything', () => {
    const records = recordsOf([{ worker: 0, bucket: 'a', passedMs: 0, lagMs: 1 }]);
    const window = { fromMs: HOUR_AT_MS, toMs: HOUR_AT_MS + HOUR_MS, stepMs: SLOT_MS };
    expect(stepsOfBuckets(records, (name) => name === 'b', window)).toEqual([{ atMs: HOUR_AT_MS, events: 0, lags: {} }]);
  });

  it('show the statuses of the last look in a step, not the sum of all workers', () => {
    const [early, late] = [createHourCounts(HOUR_AT_MS), createHourCounts(HOUR_AT_MS)];
    early.statuses({ ok: 9 }, HOUR_AT_MS + 2 * MINUTE_MS);
    late.statuses({ ok: 8, waiting: 1 }, HOUR_AT_MS + 3 * MINUTE_MS);
    late.event('a', HOUR_AT_MS + 4 * MINUTE_MS, undefined);
    const records = [late.record('one'), early.record('two')];
    const window = { fromMs: HOUR_AT_MS, toMs: HOUR_AT_MS + HOUR_MS, stepMs: SLOT_MS };
    expect(stepsOf(records, window)).toEqual([{ atMs: HOUR_AT_MS, events: 1, lags: {}, statuses: { ok: 8, waiting: 1 } }]);
  });

  it('name the fifty busiest buckets, and stay small with a thousand', () => {
    const counts = createHourCounts(HOUR_AT_MS);
    const nameOf = (at: number): string => `acme-${'data-lake-'.repeat(5)}${String(at).padStart(4, '0')}`;
    for (let minute = 0; minute < 60; minute += 1) {
      counts.statuses({ ok: 980, waiting: 10, quiet: 10 }, HOUR_AT_MS + minute * MINUTE_MS);
      for (let at = 0; at < 1_000; at += 1) {
        for (let nth = 0; nth <= at % 3; nth += 1)
          counts.event(nameOf(at), HOUR_AT_MS + minute * MINUTE_MS, 50 * 2 ** ((at + nth + minute) % 5));
      }
    }
    const record = counts.record('worker');
    expect(record.busiest).toHaveLength(50);
    expect(new Set(record.busiest.map(({ slots }) => slots.reduce((sum, [, events]) => sum + events, 0)))).toEqual(new Set([180]));
    expect(JSON.stringify(record).length).toBeLessThan(48 * 1_024);
  });
});

it.each([
  [1, false, MINUTE_MS],
  [3, false, MINUTE_MS],
  [1, true, SLOT_MS],
  [24, false, SLOT_MS],
  [26, true, SLOT_MS],
  [27, false, HOUR_MS],
  [336, false, HOUR_MS],
])('a chart of %s hours, of single buckets %s, has steps of %s ms', (hours, isOfBuckets, stepMs) => {
  expect(stepMsOf(0, hours * HOUR_MS, isOfBuckets)).toBe(stepMs);
});

it('an hour of which all records are one has the same sums in steps of hours', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      const records = recordsOf(events);
      const hours = [0, 1, 2].map((at) => HOUR_AT_MS + at * HOUR_MS);
      const whole = hours.map((hourMs) =>
        condensed(
          hourMs,
          records.filter((record) => record.hourMs === hourMs),
        ),
      );
      const window = { fromMs: HOUR_AT_MS, toMs: HOUR_AT_MS + 3 * HOUR_MS, stepMs: HOUR_MS };
      const isWanted = (bucket: string): boolean => bucket !== 'c';
      expect(stepsOf(whole, window)).toEqual(stepsOf(records, window));
      expect(stepsOfBuckets(whole, isWanted, window)).toEqual(stepsOfBuckets(records, isWanted, window));
      expect(busiestIn(whole, isWanted, window)).toEqual(busiestIn(records, isWanted, window));
    }),
  );
});
