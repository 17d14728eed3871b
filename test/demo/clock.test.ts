import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { array, assert, constantFrom, integer, property, record } from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openEmbeddedClock, sequencerOf } from '../../src/demo/clock.ts';
import { sequencerClock } from '../../src/ordering/hint.ts';

const START_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tally-clock-'));
  file = join(folder, 'clock');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

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

test('moments increase whatever the machine’s clock does, over stops and crashes', () => {
  const step = record({
    wallMs: integer({ min: -100_000, max: 100_000 }),
    elapsedMs: integer({ min: 0, max: 10_000 }),
    end: constantFrom('go on', 'stop', 'crash'),
  });
  assert(
    property(array(step, { maxLength: 50 }), (steps) => {
      rmSync(file, { force: true });
      const now = { wallMs: START_MS, monotonicMs: 0 };
      const clock = { nowMs: () => now.wallMs, monotonicMs: () => now.monotonicMs };
      let moments = openEmbeddedClock(clock, file);
      let last = 0;
      for (const { wallMs, elapsedMs, end } of steps) {
        now.wallMs += wallMs;
        now.monotonicMs += elapsedMs;
        const moment = moments.next();
        expect(moment).toBeGreaterThan(last);
        expect(moments.nowMs()).toBeGreaterThanOrEqual(Math.floor(moment / 1_000));
        expect(moment).toBeGreaterThanOrEqual(now.wallMs * 1_000);
        last = moment;
        if (end === 'stop') moments.close();
        if (end !== 'go on') moments = openEmbeddedClock(clock, file);
      }
    }),
    { numRuns: 30 },
  );
});

test('a file that holds no moment is an error that says what to do', () => {
  writeFileSync(file, 'garbage');
  expect(() => openEmbeddedClock({ nowMs: () => 0, monotonicMs: () => 0 }, file)).toThrow(/remove the file/);
});
