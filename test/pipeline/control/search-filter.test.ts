import { expect, it } from 'vitest';
import { filterOf } from '../../../src/pipeline/control/search-filter.ts';

it.each([
  ['bucket:media', ['media'], ['media']],
  ['bucket:media,logs', ['media', 'logs'], ['media', 'logs']],
  // its documents are not among the results, so it does not matter how far they can be relied on
  ['-bucket:media', ['media'], []],
  ['bucket:media -bucket:logs report', ['media', 'logs'], ['media']],
])('a search for %s names the buckets %j, and finds documents of %j', (query, buckets, foundIn) => {
  expect(filterOf({ query }, 0)).toMatchObject({ buckets, foundIn });
});
