/** The part of the in-memory store that looks after the index when nobody asks. */
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import { compareKeys } from '../../../src/base/key-order.ts';
import type { ObjectMaintenance } from '../../../src/store/store.ts';

/** The number of each document's write, in the feed's order; none: the feed does not have it. */
export const written = new WeakMap<ObjectDocument, number>();

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
    purge: async (bucket, { deletedBeforeMs, upTo, limit }, signal) => {
      signal?.throwIfAborted();
      const range = { after: '', limit };
      const mark = upTo['0']?.at ?? -1;
      const old = page(
        bucket,
        range,
        (document) => document.deleted && Date.parse(document.deleted_at ?? '') < deletedBeforeMs && (written.get(document) ?? 0) <= mark,
      );
      for (const { key } of old) buckets.get(bucket)?.delete(key);
      return old.length;
    },
  };
}
