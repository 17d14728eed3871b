/** Sums objects and bytes of a bucket. */
import type { z } from 'zod';
import type { Readable } from '../../domain/access/readable.ts';
import type { Usage, usageRows, UsageRequest } from '../../api/usage.ts';
import { decodeCursor } from '../../domain/cursor.ts';
import { FOLDER_LEVELS } from '../../domain/documents/document.ts';
import { RequestError } from '../../domain/request-error.ts';
import { holds } from '../../domain/search/conditions.ts';
import { ageMomentOf, objectAges, facetClause, type FacetName } from '../../domain/search/facets.ts';
import { momentOfPart } from '../../domain/search/cursor.ts';
import { timeOf } from '../../api/fields.ts';
import type { ObjectFilter } from '../ports/object-index.ts';
import type { ObjectUsage, UsageRow, FacetSums } from '../ports/object-usage.ts';
import { readPage } from '../records/pages.ts';
import { createUnderstand } from './search.ts';
import type { Facet, Facets, FacetsRequest } from '../../api/facets.ts';
import type { WithPorts } from '../ports/ports.ts';

type UsageAnswer = z.output<(typeof usageRows)['GET /v1/usage']['answer']>;

/** Less than the 15 s of a request to OpenSearch. Ten million documents take about a second. */
const TIME_LIMIT_MS = 10_000;

/** Creates the function. Throws `request.invalid`, `bucket.not-connected`, `search.too-wide` and the store's faults. */
export function createGetUsage({ usage, state, clock }: WithPorts<'state' | 'clock'> & { readonly usage: Pick<ObjectUsage, 'usage'> }) {
  const understand = createUnderstand(state);

  return async function getUsage(request: UsageRequest, readable: Readable, signal?: AbortSignal): Promise<UsageAnswer> {
    const { by, limit, times, bucket } = request;
    const place = placeOf(request.cursor);
    // ages are counted from the first page on
    const nowMs = place.nowMs ?? clock.nowMs();
    const { filter, relative } = await understand(request, { nowMs, readable }, signal);
    if (filter === null) return { items: [] };
    checkFilter(filter, bucket);
    const narrowed = placeOfSums(filter, by);
    const now = relative || by === 'age' ? [String(nowMs)] : [];
    const page = await readPage({
      limit,
      after: place.after,
      async fetch(count, position) {
        const [name] = position ?? [];
        const ages = { nowMs: ageMomentOf(nowMs), limit: by === 'age' ? AGES_MAX : count };
        const sums = { by, ...ages, timeLimitMs: TIME_LIMIT_MS, withoutTimes: times !== 'true' };
        const query = { ...filter, ...narrowed, bucket, ...sums };
        const rows = await usage.usage({ ...query, ...(by !== 'age' && name !== undefined && { after: name }) }, signal);
        if (rows === 'too-slow') throw tooWide(bucket, narrowed.prefix);
        return by === 'age' ? afterAge(rows, name).slice(0, count) : rows;
      },
      positionOf: ({ name }) => [name, ...now],
    });
    return { ...page, items: page.items.map((row) => usageView(row, times === 'true')) };
  };
}

/** All ages, and what has none. */
const AGES_MAX = objectAges.length + 1;

/** The ages after this one. Their order is not that of their names, and they are so few that a store sums all of them for each page. */
function afterAge(rows: readonly UsageRow[], name: string | undefined): readonly UsageRow[] {
  const rankOf = (age: string): number => objectAges.findIndex((each) => each.name === age);
  return name === undefined ? rows : rows.filter((row) => rankOf(row.name) > rankOf(name));
}

/** The group after which a page begins, and the moment from which its ages are counted. */
function placeOf(cursor: string | undefined): { readonly after: readonly string[] | undefined; readonly nowMs?: number } {
  if (cursor === undefined) return { after: undefined };
  const [name = '', now] = decodeCursor(cursor, 1, 2);
  return { after: [name], ...(now !== undefined && { nowMs: momentOfPart(now) }) };
}

function checkFilter(filter: ObjectFilter, bucket: string): void {
  if (filter.deleted === true) throw new RequestError('request.invalid', 'query: usage sums live objects only');
  if (filter.bucket !== bucket) throw new RequestError('request.invalid', 'query: usage is of one bucket, and `bucket` names it');
}

/**
 * Where the sums are: the folder of the request, if they are by folder, else any prefix. The last part of a prefix that does not
 * end in a slash is the beginning of names within its folder, which is a condition like others.
 */
function placeOfSums({ prefix = '', where = [] }: ObjectFilter, by: UsageRequest['by']): Pick<ObjectFilter, 'where'> & { prefix: string } {
  if (by !== 'folder') return { prefix };
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1);
  if (folder.split('/').length > FOLDER_LEVELS) {
    throw new RequestError(
      'request.invalid',
      `prefix: folders are counted down to ${FOLDER_LEVELS} levels; list the objects below instead`,
    );
  }
  return folder === prefix ? { prefix } : { prefix: folder, where: [...where, holds({ kind: 'prefix', value: prefix })] };
}

function tooWide(bucket: string, prefix: string): RequestError {
  const limit = `${TIME_LIMIT_MS / 1_000} s`;
  return new RequestError('search.too-wide', `the sums of ${bucket}/${prefix} take longer than ${limit}: narrow them by a prefix`);
}

function usageView({ name, objects, bytes, oldestMs, newestMs }: UsageRow, times: boolean): Usage {
  return {
    ...(name !== '' && { name }),
    objects,
    bytes,
    ...(times && oldestMs !== undefined && { oldest: timeOf(oldestMs) }),
    ...(times && newestMs !== undefined && { newest: timeOf(newestMs) }),
  };
}

/** Sums the results of a search in groups. */

/** A person waits for them beside the results. */
const FACETS_TIME_LIMIT_MS = 5_000;

const NOTHING: FacetSums = { objects: 0, bytes: 0, facets: { bucket: [], extension: [], class: [], size: [], age: [] } };

/** Creates the function. Throws `request.invalid`, `bucket.not-connected`, `search.too-wide` and the store's faults. */
export function createGetFacets({ usage, state, clock }: WithPorts<'state' | 'clock'> & { readonly usage: Pick<ObjectUsage, 'facets'> }) {
  const understand = createUnderstand(state);

  return async function getFacets(request: FacetsRequest, readable: Readable, signal?: AbortSignal): Promise<Facets> {
    const nowMs = clock.nowMs();
    const { filter, understood } = await understand(request, { nowMs, readable }, signal);
    if (filter?.deleted === true) throw new RequestError('request.invalid', 'query: facets are of live objects only');
    const query = { nowMs, groupsMax: request.limit, timeLimitMs: FACETS_TIME_LIMIT_MS };
    const sums = filter === null ? NOTHING : await usage.facets({ ...filter, ...query }, signal);
    if (sums === 'too-slow') {
      throw new RequestError('search.too-wide', `the facets of this search take longer than ${FACETS_TIME_LIMIT_MS / 1_000} s: narrow it`);
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
