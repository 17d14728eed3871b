/** The sums of the in-memory store, in the plainest form. */
import type { ObjectDocument } from '../../../src/domain/documents/document.ts';
import { compareKeys } from '../../../src/domain/documents/key-order.ts';
import { groupsInOrder, largestGroups, objectAges, objectSizes, type FacetSum } from '../../../src/domain/search/facets.ts';
import type { FacetsQuery, ObjectUsage, UsageQuery, UsageRow } from '../../../src/pipeline/ports/object-usage.ts';
import { matchesFilter } from './matching.ts';

export function createMemoryUsage(buckets: ReadonlyMap<string, ReadonlyMap<string, ObjectDocument>>): ObjectUsage {
  return {
    usage: async (query, signal) => {
      signal?.throwIfAborted();
      const documents = [...(buckets.get(query.bucket)?.values() ?? [])].filter((document) => matchesFilter(document, query));
      const groups = Map.groupBy(documents, (document) => nameOf(document, query));
      return [...groups]
        .map(([name, found]) => rowOf(name, found))
        .filter(({ name }) => query.after === undefined || compareKeys(name, query.after) > 0)
        .sort((a, b) => (query.by === 'age' ? rankOf(a.name) - rankOf(b.name) : compareKeys(a.name, b.name)))
        .slice(0, query.limit);
    },
    facets: async (query, signal) => {
      signal?.throwIfAborted();
      const documents = [...buckets.values()].flatMap((each) => [...each.values()]).filter((document) => matchesFilter(document, query));
      const by = (nameOfFacet: (document: ObjectDocument) => string): readonly FacetSum[] =>
        [...Map.groupBy(documents, nameOfFacet)].map(([name, found]) => ({ name, objects: found.length, bytes: bytesOf(found) }));
      return {
        objects: documents.length,
        bytes: bytesOf(documents),
        facets: {
          bucket: largestGroups(
            by(({ bucket }) => bucket),
            query.groupsMax,
          ),
          extension: largestGroups(
            by(({ extension = '' }) => extension),
            query.groupsMax,
          ),
          class: largestGroups(
            by(({ storage_class: storageClass = '' }) => storageClass),
            query.groupsMax,
          ),
          size: groupsInOrder(
            objectSizes,
            by(({ size }) => objectSizes.find(({ bytes }) => size !== undefined && size < bytes)?.name ?? ''),
          ),
          age: groupsInOrder(
            objectAges,
            by((document) => ageOf(document, query)),
          ),
        },
      };
    },
  };
}

function nameOf({ key, storage_class: storageClass, extension, last_modified: modified }: ObjectDocument, query: UsageQuery): string {
  switch (query.by) {
    case 'folder': {
      const slash = key.indexOf('/', query.prefix.length);
      return slash < 0 ? '' : key.slice(0, slash + 1);
    }
    case 'class':
      return storageClass ?? '';
    case 'extension':
      return extension ?? '';
    case 'age':
      return ageOf({ last_modified: modified }, query);
  }
}

function ageOf(
  { last_modified: modified }: { readonly last_modified?: string | undefined },
  { nowMs }: Pick<FacetsQuery, 'nowMs'>,
): string {
  if (modified === undefined) return '';
  const days = (nowMs - Date.parse(modified)) / 86_400_000;
  return objectAges.find((age) => days <= age.days)?.name ?? '';
}

function bytesOf(documents: readonly ObjectDocument[]): number {
  return documents.reduce((sum, { size = 0 }) => sum + size, 0);
}

function rowOf(name: string, documents: readonly ObjectDocument[]): UsageRow {
  const times = documents.flatMap(({ last_modified: modified }) => (modified === undefined ? [] : [Date.parse(modified)]));
  return {
    name,
    objects: documents.length,
    bytes: bytesOf(documents),
    ...(times.length > 0 && { oldestMs: Math.min(...times), newestMs: Math.max(...times) }),
  };
}

function rankOf(name: string): number {
  return objectAges.findIndex((age) => age.name === name);
}
