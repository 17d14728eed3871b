import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clockOfMs } from '../../src/ordering/document.ts';
import { MARGIN_MS, SETTLE_MS } from '../../src/ordering/constants.ts';
import type { ObserveHint, ResolveHint } from '../../src/ordering/hint.ts';
import { planObservedWrite } from '../../src/ordering/observation.ts';

const T = 1_700_000_000_000;
const observe = (timeMs: number, settleFromMs = timeMs): ObserveHint => ({ kind: 'observe', clock: clockOfMs(timeMs), settleFromMs });
const resolve = (timeMs: number): ResolveHint => ({ kind: 'resolve', clock: clockOfMs(timeMs) });

describe('the write that follows an observation', () => {
  it.each([
    { sinceMs: 0, dueInS: 43 },
    { sinceMs: 1, dueInS: 43 },
    { sinceMs: 1_000, dueInS: 42 },
    { sinceMs: 39_999, dueInS: 4 },
    { sinceMs: -60_000, dueInS: 103 },
  ])('of an observe hint, $sinceMs ms after it: provisional at T, due in $dueInS s', ({ sinceMs, dueInS }) => {
    const provisional = { clock: clockOfMs(T), settled: false, equalClock: 'accept', leader: 0 };
    expect(planObservedWrite([observe(T)], T + sinceMs)).toEqual({ ...provisional, verdicts: [{ final: false, dueInS }] });
  });

  it.each([40_000, 40_001, 9e9])('of an observe hint, %i ms after it: settled at D − M', (sinceMs) => {
    const settled = { clock: clockOfMs(T + sinceMs - MARGIN_MS), settled: true, equalClock: 'accept', leader: 0 };
    expect(planObservedWrite([observe(T)], T + sinceMs)).toEqual({ ...settled, verdicts: [{ final: true }] });
  });

  it('of an event from the future counts from its own time once S3’s clock is there, and from that of sending before', () => {
    const fromFuture = { ...observe(T), futureMs: T + 900_000 };
    // S3's clock is 15 minutes ahead: the HEAD was answered at the moment of the event
    const provisional = { clock: clockOfMs(T + 900_000), settled: false, verdicts: [{ final: false, dueInS: 43 }] };
    expect(planObservedWrite([fromFuture], T + 900_000)).toMatchObject(provisional);
    expect(planObservedWrite([fromFuture], T + 940_000)).toMatchObject({ clock: clockOfMs(T + 920_000), settled: true });
    // the event is wrong: S3's own clock is far behind it
    const forged = { ...observe(T), futureMs: T + 900_000_000 };
    expect(planObservedWrite([forged], T)).toMatchObject({ clock: clockOfMs(T), settled: false });
    expect(planObservedWrite([forged], T + 40_000)).toMatchObject({ clock: clockOfMs(T + 20_000), settled: true });
  });

  const hint = fc.oneof(
    fc.integer({ min: -90_000, max: 90_000 }).map((ms) => resolve(T + ms)),
    fc
      .tuple(fc.integer({ min: -90_000, max: 90_000 }), fc.integer({ min: 0, max: 60_000 }))
      .map(([ms, later]) => observe(T + ms, T + ms + later)),
  );

  it('never lies below any hint’s own, is settled only when every hint is, and a due observation will settle', () => {
    fc.assert(
      fc.property(fc.array(hint, { minLength: 1, maxLength: 6 }), fc.integer({ min: -60_000, max: 120_000 }), (hints, sinceMs) => {
        const observedAtMs = T + sinceMs;
        const plan = planObservedWrite(hints, observedAtMs);
        const alone = hints.map((each) => planObservedWrite([each], observedAtMs));
        expect(plan.clock).toBe(Math.max(...alone.map(({ clock }) => clock)));
        expect(plan.verdicts).toEqual(alone.map(({ verdicts }) => verdicts[0]));
        expect(plan.settled).toBe(plan.verdicts.every((verdict) => verdict.final));
        expect(plan.clock).toBe(alone[plan.leader]?.clock);
        hints.forEach((each, index) => {
          const verdict = plan.verdicts[index];
          if (each.kind === 'resolve' || verdict?.final !== false) return;
          expect(observedAtMs + verdict.dueInS * 1_000 - MARGIN_MS).toBeGreaterThanOrEqual(each.settleFromMs + SETTLE_MS);
          expect(planObservedWrite([each], observedAtMs + verdict.dueInS * 1_000).settled).toBe(true);
        });
      }),
    );
  });
});
