import { expect, it } from 'vitest';
import { isScheduleDue } from '../../src/records/schedule.ts';

const NOW_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

it.each<[string, number | undefined, boolean]>([
  ['that never ran', undefined, true],
  ['at the very moment', NOW_MS, true],
  ['before its time', NOW_MS + 1, false],
  ['that a clock ahead by half an hour set', NOW_MS + HOUR_MS + 30 * MINUTE_MS, false],
  ['that no right clock can have set', NOW_MS + 2 * HOUR_MS, true],
])('a schedule %s is due or not', (_, dueAtMs, isDue) => {
  expect(isScheduleDue(dueAtMs === undefined ? undefined : { name: 'purge', dueAtMs }, NOW_MS, HOUR_MS)).toBe(isDue);
});
