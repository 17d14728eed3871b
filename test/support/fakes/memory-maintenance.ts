/** The part of the in-memory store that looks after the index when nobody asks. */
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import { compareKeys } from '../../../src/base/key-order.ts';
import type { ObjectMaintenance } from '../../../src/store/store.ts';

/** Creates it over the documents of each bucket, by key. */
export function createMemoryMaintenance(buckets: ReadonlyMap<string, Map<string, ObjectDocument>>): ObjectMaintenance {
  function page(
    bucket: string,
    { after, limit }: { readonly after: string; readonly limit: number },
    matches: (document: ObjectDocument) => boolean,
  ): readonly ObjectDocument[] {
    return [...(buckets.get(bucket)?.values() ?? [])]
      .filter((document) => matches(document) && compareKeys(document.key, after) > 0)
      .sort((a, b) => compareKeys(a.key, b.key))
      .slice(0, limit)
      .map((document) => structuredClone(document));
  }

  return {
    unsettled: async (bucket, { clockBelow, ...range }, signal) => {
      signal?.throwIfAborted();
      return page(bucket, range, ({ settled, clock }) => !settled && clock < clockBelow);
    },
    unsettledBuckets: async (clockBelow, signal) => {
      signal?.throwIfAborted();
      const has = (documents: Map<string, ObjectDocument>): boolean =>
        documents.values().some(({ settled, clock }) => !settled && clock < clockBelow);
      return new Set([...buckets].flatMap(([bucket, documents]) => (has(documents) ? [bucket] : [])));
    },
    expiring: async (bucket, { beforeMs, ...range }, signal) => {
      signal?.throwIfAborted();
      return page(bucket, range, ({ deleted, expires_at }) => !deleted && expires_at !== undefined && Date.parse(expires_at) < beforeMs);
    },
    purge: async (bucket, { deletedBeforeMs, limit }, signal) => {
      signal?.throwIfAborted();
      const range = { after: '', limit };
      const old = page(bucket, range, ({ deleted, deleted_at }) => deleted && Date.parse(deleted_at ?? '') < deletedBeforeMs);
      for (const { key } of old) buckets.get(bucket)?.delete(key);
      return old.length;
    },
  };
}
