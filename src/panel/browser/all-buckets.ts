/** All buckets with their status, which many parts of a page show: they are read once for all of them. */
import { call, type AnswerTo } from './api.ts';
import { useLoaded, type Loaded } from './load.ts';

/** The longest page. Of a larger installation the first ones by name are known here. */
const BUCKETS_MAX = 1_000;
/** Buckets change slowly. */
const EVERY_MS = 30_000;

export function useBuckets(): Loaded<AnswerTo<'GET /v1/buckets'>> {
  return useLoaded('all buckets', (signal) => call('GET /v1/buckets', { query: { limit: BUCKETS_MAX } }, signal), {
    everyMs: EVERY_MS,
    freshMs: 5_000,
  });
}
