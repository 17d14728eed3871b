import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createElapsed, createSetClock } from '../../src/process/clock.ts';
import { createFakeClock } from '../support/fakes/ports.ts';

function createMachine() {
  let [wallMs, steadyMs] = [1_800_000_000_000, 5_000];
  const elapsed = createElapsed({ wallMs: () => Math.floor(wallMs), steadyMs: () => steadyMs });
  const startMs = elapsed();
  return {
    /** What the clock of durations says since the start. */
    passedMs: () => elapsed() - startMs,
    runs(forMs: number) {
      wallMs += forMs;
      steadyMs += forMs;
    },
    /** Suspended: the steady clock stands still. */
    sleeps(forMs: number) {
      wallMs += forMs;
    },
    isSet(byMs: number) {
      wallMs += byMs;
    },
  };
}

describe('the clock of durations', () => {
  it('is not slower when the wall clock is set back, and sees a suspension after that', () => {
    const machine = createMachine();
    machine.isSet(-3_600_000);
    machine.runs(10_000);
    expect(machine.passedMs()).toBe(10_000);
    machine.sleeps(60_000);
    expect(machine.passedMs()).toBe(70_000);
  });

  it('does not add up what the wall clock rounds, however often it is read', () => {
    const machine = createMachine();
    for (let reads = 0; reads < 100_000; reads += 1) {
      machine.runs(0.37);
      machine.passedMs();
    }
    expect(machine.passedMs()).toBeCloseTo(37_000, 3);
  });

  it('never goes back, and is never a second or more behind either clock', () => {
    const step = fc.record({ runsMs: fc.nat(100_000), sleepsMs: fc.nat(100_000), setMs: fc.integer({ min: -100_000, max: 0 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        const machine = createMachine();
        let [before, truly] = [0, 0];
        for (const { runsMs, sleepsMs, setMs } of steps) {
          machine.runs(runsMs);
          machine.sleeps(sleepsMs);
          machine.passedMs();
          machine.isSet(setMs);
          truly += runsMs + sleepsMs;
          expect(machine.passedMs()).toBeGreaterThanOrEqual(before);
          before = machine.passedMs();
        }
        expect(before).toBeGreaterThanOrEqual(steps.reduce((sum, { runsMs }) => sum + runsMs, 0));
        if (steps.every(({ setMs }) => setMs === 0)) expect(before).toBeGreaterThan(truly - 1_002);
      }),
    );
  });
});

const DAY_MS = 86_400_000;

it.each([
  [-8 * DAY_MS, -8 * DAY_MS],
  [60_001, 60_001],
  [-60_000, 0],
  [0, 0],
])("keeps another's time only where the clocks differ by more than a minute: %d ms ahead", (aheadMs, setMs) => {
  const own = createFakeClock();
  const { clock, set } = createSetClock(own);
  set(aheadMs);
  expect(clock.nowMs() - own.nowMs()).toBe(setMs);
});

it("keeps its own time once it was set itself, until another's is known again", () => {
  const fake = createFakeClock();
  let setMs = -8 * DAY_MS;
  const own = { ...fake, nowMs: () => fake.nowMs() + setMs };
  const { clock, set } = createSetClock(own);
  set(8 * DAY_MS);
  expect(clock.nowMs()).toBe(fake.nowMs());
  setMs = 0;
  expect(clock.nowMs()).toBe(fake.nowMs());
  set(0);
  expect(clock.nowMs()).toBe(fake.nowMs());
});
