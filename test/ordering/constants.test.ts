import { expect, test } from 'vitest';
import {
  ANSWER_LIFE_MS,
  BUCKET_RECORD_AGE_MAX_MS,
  EXACT_AGE_MAX_MS,
  FUTURE_MS,
  MARGIN_MS,
  PLAUSIBLE_MS,
  RECONCILE_WAIT_MS,
  REFRESH_INTERVAL_MS,
  SETTLE_MS,
  TOMBSTONE_LIFE_MS,
} from '../../src/ordering/constants.ts';

test('the constants of the ordering rules keep the distances that the rules rest on', () => {
  expect(SETTLE_MS).toBeGreaterThanOrEqual(PLAUSIBLE_MS + 2_000);
  expect(MARGIN_MS).toBeGreaterThanOrEqual(PLAUSIBLE_MS + 3_000);
  expect(RECONCILE_WAIT_MS).toBeGreaterThanOrEqual(BUCKET_RECORD_AGE_MAX_MS + ANSWER_LIFE_MS);
  expect(RECONCILE_WAIT_MS).toBeGreaterThanOrEqual(MARGIN_MS + PLAUSIBLE_MS + 3_000);
  expect(RECONCILE_WAIT_MS).toBeGreaterThanOrEqual(ANSWER_LIFE_MS + REFRESH_INTERVAL_MS);
  // and as much again as the largest of them, for clocks that are wrong
  expect(TOMBSTONE_LIFE_MS).toBeGreaterThanOrEqual(2 * EXACT_AGE_MAX_MS + FUTURE_MS + ANSWER_LIFE_MS);
});
