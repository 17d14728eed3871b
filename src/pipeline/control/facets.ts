/** Sums the results of a search in groups. */
import type { Facet, Facets, FacetsRequest } from '../../api/facets.ts';
import type { Readable } from '../../domain/access/readable.ts';
import { RequestError } from '../../domain/request-error.ts';
import { facetClause, type FacetName } from '../../domain/search/facets.ts';
import type { Clock } from '../ports/clock.ts';
import type { FacetSums, ObjectUsage } from '../ports/object-usage.ts';
import type { StateStore } from '../ports/state.ts';
import { createUnderstand } from './search.ts';

interface FacetsDependencies {
  readonly usage: Pick<ObjectUsage, 'facets'>;
  readonly state: StateStore;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** A person waits for them beside the results. */
const TIME_LIMIT_MS = 5_000;

const NOTHING: FacetSums = { objects: 0, bytes: 0, facets: { bucket: [], extension: [], class: [], size: [], age: [] } };

/** Creates the function. Throws `request.invalid`, `bucket.not-connected`, `search.too-wide` and the store's faults. */
export function createGetFacets({ usage, state, clock }: FacetsDependencies) {
  const understand = createUnderstand(state);

  return async function getFacets(request: FacetsRequest, readable: Readable, signal?: AbortSignal): Promise<Facets> {
    const nowMs = clock.nowMs();
    const { filter, understood } = await understand(request, { nowMs, readable }, signal);
    if (filter?.deleted === true) throw new RequestError('request.invalid', 'query: facets are of live objects only');
    const query = { nowMs, groupsMax: request.limit, timeLimitMs: TIME_LIMIT_MS };
    const sums = filter === null ? NOTHING : await usage.facets({ ...filter, ...query }, signal);
    if (sums === 'too-slow') {
      throw new RequestError('search.too-wide', `the facets of this search take longer than ${TIME_LIMIT_MS / 1_000} s: narrow it`);
    }
    return {
      objects: sums.objects,
      bytes: sums.bytes,
      ...(understood !== undefined && { understood }),
      bucket: facetView('bucket', sums),
      extension: facetView('extension', sums),
      class: facetView('class', sums),
      size: facetView('size', sums),
      age: facetView('age', sums),
    };
  };
}

function facetView(facet: FacetName, { objects, bytes, facets }: FacetSums): Facet {
  const groups = facets[facet];
  const others = {
    objects: objects - groups.reduce((sum, group) => sum + group.objects, 0),
    bytes: bytes - groups.reduce((sum, group) => sum + group.bytes, 0),
  };
  return {
    groups: groups.map(({ name, ...sums }) => {
      const filter = facetClause(facet, name);
      return { ...(name !== '' && { name }), ...sums, ...(filter !== undefined && { filter }) };
    }),
    ...(others.objects > 0 && { others }),
  };
}
