/** The sums of the in-memory store, in the plainest form. */
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import { compareKeys } from '../../../src/base/key-order.ts';
import { objectAges, objectSizes, type UsageBy } from '../../../src/store/groups.rules.ts';
import type { SumUsage, UsageQuery } from '../../../src/store/store.ts';
import { matchesFilter } from './matching.ts';

export function createMemoryUsage(buckets: ReadonlyMap<string, ReadonlyMap<string, ObjectDocument>>): SumUsage {
  return async (query, signal) => {
    signal?.throwIfAborted();
    const documents = [...buckets.values()].flatMap((each) => [...each.values()]).filter((document) => matchesFilter(document, query));
    return {
      ...sumOf(documents),
      groups: query.by.map((by) => {
        const groups = [...Map.groupBy(documents, (document) => nameOf(by, document, query))].map(([name, found]) => ({
          name,
          ...sumOf(found),
        }));
        const own = by === 'size' ? objectSizes : by === 'age' ? objectAges : undefined;
        const order = own && [...own.map(({ name }) => name), ''];
        if (order !== undefined) return groups.toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
        return groups.toSorted((a, b) => b.objects - a.objects || compareKeys(a.name, b.name)).slice(0, query.limit);
      }),
    };
  };
}

function sumOf(documents: readonly ObjectDocument[]) {
  return { objects: documents.length, bytes: documents.reduce((sum, { size = 0 }) => sum + size, 0) };
}

function nameOf(by: UsageBy, document: ObjectDocument, { prefix = '', nowMs }: UsageQuery): string {
  const { bucket, key, storage_class: storageClass = '', extension = '', size, last_modified: modified } = document;
  switch (by) {
    case 'folder': {
      const slash = key.indexOf('/', prefix.length);
      return slash < 0 ? '' : key.slice(0, slash + 1);
    }
    case 'extension':
      return extension;
    case 'class':
      return storageClass;
    case 'bucket':
      return bucket;
    case 'size':
      return objectSizes.find(({ bytes }) => size !== undefined && size < bytes)?.name ?? '';
    case 'age': {
      if (modified === undefined) return '';
      const days = (nowMs - Date.parse(modified)) / 86_400_000;
      return objectAges.find((age) => days <= age.days)?.name ?? '';
    }
  }
}
