/** Facets: the results of a search in groups. */
import { z } from 'zod';
import { count, must } from './fields.ts';
import type { Row, RowKey } from './row.ts';
import { clause, filterFields } from './search.ts';

const GROUPS_MAX = 100;

const sums = {
  objects: count.describe('How many objects.'),
  bytes: z.number().min(0).describe('Their bytes, as far as their sizes are known.'),
};

const group = z.object({
  name: z.string().exactOptional().describe('Absent: objects that have none.'),
  ...sums,
  filter: z.string().exactOptional().describe('The clauses that narrow `query` to this group. Absent: no clause does.'),
});

const facet = z
  .object({
    groups: z.array(group).readonly(),
    others: z.object(sums).exactOptional().describe('The objects of all other groups. Absent: there are none.'),
  })
  .meta({ id: 'Facet', description: 'Results in groups: the largest first, sizes and ages in their own order.' });
export type Facet = z.infer<typeof facet>;

const { deleted: _deleted, deleted_after: _after, deleted_before: _before, ...filters } = filterFields;

export const facetRows = {
  'GET /v1/objects/facets': {
    operation: 'getFacets',
    summary: 'Sums the results of a search by bucket, extension, storage class, size and age.',
    description:
      'It takes the filters of a search. It is another request than the search, so that the results need not wait for it. Sums are at most one index refresh behind. What takes longer than 5 seconds is refused with search.too-wide, never answered in part.',
    scope: 'read',
    query: z.strictObject({
      ...filters,
      limit: z
        .int(must(`must be a whole number from 1 to ${GROUPS_MAX}`))
        .min(1, 'must be at least 1')
        .max(GROUPS_MAX, `must be at most ${GROUPS_MAX}`)
        .default(10)
        .describe('Each facet has at most this many groups; those of sizes and ages are never left out.'),
    }),
    answer: z.object({
      ...sums,
      understood: z.array(clause).readonly().exactOptional().describe('The clauses of `query`.'),
      bucket: facet.describe('By bucket.'),
      extension: facet.describe('By extension, in lower case and without the dot.'),
      class: facet.describe('By storage class.'),
      size: facet.describe('By size: below 1K, 1M, 100M, 1G and 10G, and `larger`, each without the ones before it.'),
      age: facet.describe('By the time since the last modification: 1d, 7d, 30d, 90d, 365d and `older`, each without the ones before it.'),
    }),
    status: 200,
    errors: ['bucket.not-connected', 'index.denied', 'bucket.index-missing', 'search.too-wide', 'request.overloaded'],
    example: { query: { q: 'cat' } },
  },
} as const satisfies Record<RowKey, Row>;
export type FacetsRequest = z.output<(typeof facetRows)['GET /v1/objects/facets']['query']>;
export type Facets = z.output<(typeof facetRows)['GET /v1/objects/facets']['answer']>;
