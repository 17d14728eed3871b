import { expect, it } from 'vitest';
import { coversBefore } from '../../src/records/covers.ts';

it('a job sees every change before its first page by whichever clock is behind: that of S3 or that of its worker', () => {
  expect(coversBefore({ observedAtMs: 1_000, sentMs: 2_000 })).toBe(1_000);
  expect(coversBefore({ observedAtMs: 2_000, sentMs: 1_000 })).toBe(1_000);
});
