/** What a run left in its index, read through the product's own stores. */
import { createOpenSearchStore } from '../../../src/store/opensearch/store.ts';
import { createSqliteStore } from '../../../src/store/sqlite/store.ts';
import { systemClock } from '../../../src/process/clock.ts';
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import type { Store } from '../../../src/store/store.ts';

export interface BenchIndex {
  /** All live documents of the bucket, by key, at most one refresh behind. */
  documents(bucket: string): Promise<ReadonlyMap<string, ObjectDocument>>;
  /** Whether a search finds the key. */
  finds(bucket: string, key: string): Promise<boolean>;
  close(): Promise<void>;
}

const PAGE = 1_000;

/** Opens the index at `url` (`sqlite:PATH`, else OpenSearch) that a worker prepared. */
export function openIndex({ url, prefix }: { readonly url: string; readonly prefix: string }): BenchIndex {
  const store = openStore(url, prefix);
  return {
    async documents(bucket) {
      const found = new Map<string, ObjectDocument>();
      let after: { readonly bucket: string; readonly key: string } | undefined;
      for (;;) {
        const page = await store.objects.search({ bucket, limit: PAGE, ...(after !== undefined && { after }) });
        for (const document of page) found.set(document.key, document);
        after = page.at(-1);
        if (after === undefined) return found;
      }
    },
    finds: async (bucket, key) => (await store.objects.search({ bucket, key, limit: 1 })).length > 0,
    close: () => store.close(),
  };
}

function openStore(url: string, prefix: string): Store {
  if (url.startsWith('sqlite:')) return createSqliteStore(url.slice('sqlite:'.length));
  return createOpenSearchStore({ urls: [url], prefix, shards: 1, replicas: 0, clock: systemClock });
}
