/** The sums of the in-memory store, in the plainest form. */
import type { ObjectDocument } from '../../../src/domain/documents/document.ts';
import { usageAges, type ObjectUsage, type UsageQuery, type UsageRow } from '../../../src/pipeline/ports/object-usage.ts';
import { matchesFilter } from './matching.ts';

export function createMemoryUsage(buckets: ReadonlyMap<string, ReadonlyMap<string, ObjectDocument>>): ObjectUsage {
  return {
    usage: async (query, signal) => {
      signal?.throwIfAborted();
      const documents = [...(buckets.get(query.bucket)?.values() ?? [])].filter((document) => matchesFilter(document, query));
      const groups = Map.groupBy(documents, (document) => nameOf(document, query));
      return [...groups]
        .map(([name, found]) => rowOf(name, found))
        .filter(({ name }) => query.after === undefined || compareUtf8(name, query.after) > 0)
        .sort((a, b) => (query.by === 'age' ? rankOf(a.name) - rankOf(b.name) : compareUtf8(a.name, b.name)))
        .slice(0, query.limit);
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
    case 'age': {
      if (modified === undefined) return '';
      const days = (query.nowMs - Date.parse(modified)) / 86_400_000;
      return usageAges.find((age) => days <= age.days)?.name ?? '';
    }
  }
}

function rowOf(name: string, documents: readonly ObjectDocument[]): UsageRow {
  const times = documents.flatMap(({ last_modified: modified }) => (modified === undefined ? [] : [Date.parse(modified)]));
  return {
    name,
    objects: documents.length,
    bytes: documents.reduce((sum, { size = 0 }) => sum + size, 0),
    ...(times.length > 0 && { oldestMs: Math.min(...times), newestMs: Math.max(...times) }),
  };
}

function rankOf(name: string): number {
  return usageAges.findIndex((age) => age.name === name);
}

function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
