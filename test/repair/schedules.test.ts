import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createSchedules, type Schedule } from '../../src/repair/schedules.ts';
import type { Clock } from '../../src/process/clock.ts';
import type { StateStore } from '../../src/store/store.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { settled } from '../support/worlds/ingest.ts';

const MINUTE_MS = 60_000;
const purge: Schedule = { name: 'purge', intervalMs: 60 * MINUTE_MS, runMaxMs: 10 * MINUTE_MS };
const never = new AbortController().signal;

function setUp() {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();

  /** The schedules of one more process, whose wall clock is off by so much. One that was killed sleeps for ever. */
  function worker(skewMs = 0) {
    let isKilled = false;
    const its: Clock = {
      ...clock,
      nowMs: () => clock.nowMs() + skewMs,
      async sleep(delayMs, signal) {
        await clock.sleep(delayMs, signal);
        if (isKilled) await new Promise(() => {});
      },
    };
    const kill = (): void => void (isKilled = true);
    return { ...createSchedules({ state, clock: its, telemetry }), kill };
  }

  return { state, clock, telemetry, worker };
}

/** Work that runs until it is let go or aborted, and notes what happens. */
function createWork() {
  const runs: { readonly end: (error?: Error) => void; readonly signal: AbortSignal }[] = [];
  const work = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      runs.push({ signal, end: (error) => (error === undefined ? resolve() : reject(error)) });
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
  return { runs, work };
}

describe('schedules', () => {
  it('let exactly one of many workers run what all find due at one moment', async () => {
    const { clock, worker } = setUp();
    const workers = Array.from({ length: 20 }, () => worker());
    for (let round = 0; round < 3; round += 1) {
      const { runs, work } = createWork();
      const looks = workers.map((each) => each.runIfDue(purge, work, never));
      await settled();
      expect(runs).toHaveLength(1);
      runs[0]?.end();
      expect((await Promise.all(looks)).filter(Boolean)).toHaveLength(1);
      await clock.advance(purge.intervalMs);
    }
  });

  it('abort work that takes too long, give its lease back, tell the failure, and try again soon', async () => {
    const { state, clock, telemetry, worker } = setUp();
    const { runs, work } = createWork();
    const schedules = worker();
    const run = schedules.runIfDue(purge, work, never);
    await settled();
    await clock.advance(purge.runMaxMs);
    expect(runs[0]?.signal.aborted).toBe(true);
    expect(await run).toBe(true);
    expect(await state.get('lease:schedule:purge')).toBeUndefined();
    expect(telemetry.recorded('requestFailed')).toHaveLength(1);
    expect(await schedules.runIfDue(purge, work, never)).toBe(false);
    await clock.advance(MINUTE_MS);
    expect(await schedules.runIfDue(purge, async () => {}, never)).toBe(true);
  });

  it('are due an interval after a run began, sooner after one that failed, and still if the process stopped', async () => {
    const { clock, worker } = setUp();
    const often: Schedule = { ...purge, intervalMs: 20_000 };
    const stopping = new AbortController();
    const ran: boolean[] = [];
    const run = async (work: (signal: AbortSignal) => Promise<void>, signal = never) =>
      void ran.push(await worker().runIfDue(often, work, signal));
    const stopped = run((signal) => clock.sleep(60_000, signal), stopping.signal);
    await settled();
    stopping.abort();
    await stopped;
    await run(() => Promise.reject(new Error('fails')));
    for (const waitMs of [19_999, 1]) {
      await clock.advance(waitMs);
      await run(async () => {});
    }
    expect(ran).toEqual([true, true, false, true]);
  });

  it.each([
    ['had ended', 100],
    ['goes on', 30],
  ])('are due when their last worker says, not when one says that was suspended meanwhile, and whose work %s', async (end, resumesAt) => {
    const { state, clock, telemetry, worker } = setUp();
    const suspended = Promise.withResolvers<void>();
    let isSuspended = false;
    const its: Clock = {
      ...clock,
      async sleep(delayMs, signal) {
        await clock.sleep(delayMs, signal);
        if (isSuspended) await suspended.promise;
      },
    };
    const { runs, work } = createWork();
    const first = createSchedules({ state, clock: its, telemetry }).runIfDue(purge, work, never);
    await settled();
    isSuspended = true;
    const other = worker();
    const ranAt: number[] = [];
    for (let minute = 1; minute <= 150; minute += 1) {
      await clock.advance(MINUTE_MS);
      if (await other.runIfDue(purge, async () => {}, never)) ranAt.push(minute);
      if (minute !== resumesAt) continue;
      if (end === 'had ended') runs[0]!.end();
      isSuspended = false;
      suspended.resolve();
      await first;
    }
    expect(ranAt).toEqual([2, 62, 122]);
    // the work did not fail
    expect(telemetry.recorded('requestFailed')).toEqual([]);
  });

  it('go on looking after the store failed', async () => {
    const { state, clock, telemetry } = setUp();
    let isDown = true;
    const failing: StateStore = { ...state, get: (...args) => (isDown ? Promise.reject(new Error('down')) : state.get(...args)) };
    const schedules = createSchedules({ state: failing, clock, telemetry });
    const stopping = new AbortController();
    let runs = 0;
    schedules.every(
      purge,
      async () => {
        runs += 1;
      },
      stopping.signal,
    );
    await clock.advance(5 * MINUTE_MS);
    isDown = false;
    await clock.advance(5 * MINUTE_MS);
    stopping.abort();
    expect(runs).toBe(1);
  });

  it('Fix: go on as soon as the store answers again that could not store the end of a run', async () => {
    const { state, clock, telemetry } = setUp();
    let isDown = false;
    const failing: StateStore = { ...state, put: (...args) => (isDown ? Promise.reject(new Error('down')) : state.put(...args)) };
    const schedules = createSchedules({ state: failing, clock, telemetry });
    const ran: boolean[] = [];
    const fails = schedules.runIfDue(purge, async () => void (isDown = true), never);
    await expect(fails).rejects.toThrow('down');
    isDown = false;
    for (let looks = 0; looks < 2; looks += 1) {
      await clock.advance(MINUTE_MS);
      ran.push(await schedules.runIfDue(purge, async () => {}, never));
    }
    expect(ran).toEqual([true, false]);
  });

  it('never overlap and never end, whatever the workers’ clocks, deaths and pauses between looks', async () => {
    const step = fc.record({
      worker: fc.nat({ max: 3 }),
      waitMs: fc.oneof(fc.integer({ min: 1, max: 20 * MINUTE_MS }), fc.integer({ min: 1, max: 2 * MINUTE_MS })),
      // of the longest run
      runsFor: fc.constantFrom<number | 'dies'>(0.1, 0.5, 0.9, 'dies'),
    });
    const skews = fc.array(fc.integer({ min: -14 * MINUTE_MS, max: 14 * MINUTE_MS }), { minLength: 4, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(skews, fc.array(step, { minLength: 1, maxLength: 40 }), async (offsets, steps) => {
        const { clock, worker } = setUp();
        const workers = offsets.map((skewMs) => worker(skewMs));
        const busyUntilMs: number[] = [];
        let overlaps = 0;
        for (const { worker: at, waitMs, runsFor } of steps) {
          const begin = clock.monotonicMs();
          const run = workers[at]?.runIfDue(
            purge,
            (signal) => {
              overlaps += busyUntilMs.filter((untilMs) => untilMs > begin).length;
              busyUntilMs.push(begin + (runsFor === 'dies' ? 0 : runsFor) * purge.runMaxMs);
              if (runsFor !== 'dies') return clock.sleep(runsFor * purge.runMaxMs, signal);
              // a dead worker's lease ends by itself
              workers[at]?.kill();
              workers[at] = worker(offsets[at]);
              return new Promise(() => {});
            },
            never,
          );
          run?.catch(() => undefined);
          await clock.advance(waitMs);
        }
        let late = false;
        for (let minutes = 0; minutes < 300 && !late; minutes += 1) {
          late = (await workers[0]?.runIfDue(purge, async () => {}, never)) ?? false;
          await clock.advance(MINUTE_MS);
        }
        expect({ late, overlaps }).toEqual({ late: true, overlaps: 0 });
      }),
      { numRuns: 200 },
    );
  });
});
