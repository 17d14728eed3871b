import { array, assert, integer, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import { createEmbeddedClock, sequencerOf } from '../../src/demo/clock.ts';
import { sequencerClock } from '../../src/ordering/hint.ts';

const START_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

test('a sequencer has S3’s form and reads as the moment it was made of', () => {
  expect(sequencerOf(START_MS * 1_000)).toBe('00695735A500000000');
  expect(sequencerOf(START_MS * 1_000 + 500_000)).toBe('00695735A580000000');
  assert(
    property(integer({ min: 0, max: 4_294_967_295_999_999 }), (moment) => {
      const sequencer = sequencerOf(moment);
      expect(sequencer).toMatch(/^00[0-9A-F]{16}$/);
      expect(sequencerClock(sequencer)).toBe(moment);
    }),
  );
});

test('moments increase whatever the machine’s clock does', () => {
  const step = record({ wallMs: integer({ min: -100_000, max: 100_000 }), elapsedMs: integer({ min: 0, max: 10_000 }) });
  assert(
    property(array(step, { maxLength: 50 }), (steps) => {
      const now = { wallMs: START_MS, monotonicMs: 0 };
      const moments = createEmbeddedClock({ nowMs: () => now.wallMs, monotonicMs: () => now.monotonicMs });
      let last = 0;
      for (const { wallMs, elapsedMs } of steps) {
        now.wallMs += wallMs;
        now.monotonicMs += elapsedMs;
        const moment = moments.next();
        expect(moment).toBeGreaterThan(last);
        expect(moments.nowMs()).toBeGreaterThanOrEqual(Math.floor(moment / 1_000));
        expect(moment).toBeGreaterThanOrEqual(now.wallMs * 1_000);
        last = moment;
      }
    }),
    { numRuns: 30 },
  );
});
