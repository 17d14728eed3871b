/** Whether an index says what a bucket says: by sums over all objects, since two million do not stay in memory twice. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Contents } from './listing/contents.ts';

/** Of a set of objects, whatever their order. */
export interface Fingerprint {
  readonly objects: number;
  /** Modulo 2^48, of a digest of each key, etag and size. */
  readonly sum: number;
}

const SUM_MODULUS = 2 ** 48;
const PAGE = 10_000;

/** What the bucket holds. */
export function fingerprintOfContents(contents: Contents): Fingerprint {
  let total: Fingerprint = { objects: 0, sum: 0 };
  for (let after = ''; ;) {
    const { entries, isTruncated } = contents.slice({ prefix: '', after, limit: PAGE });
    for (const { key, state } of entries) total = added(total, [key, state.etag, state.sizeBytes]);
    after = entries.at(-1)?.key ?? after;
    if (!isTruncated) return total;
  }
}

const pageSchema = z.object({
  hits: z.object({
    hits: z.array(z.object({ _source: z.object({ key: z.string(), etag: z.string(), size: z.number() }), sort: z.array(z.unknown()) })),
  }),
});

/** What the live documents of an index say, by another way than the product's: unsorted, in a point in time. */
export async function fingerprintOfIndex(url: string, index: string): Promise<Fingerprint> {
  const ask = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  await ask('POST', `/${index}/_refresh`);
  const opened = await ask('POST', `/${index}/_search/point_in_time?keep_alive=5m`);
  const { pit_id: id } = z.object({ pit_id: z.string() }).parse(opened);
  let total: Fingerprint = { objects: 0, sum: 0 };
  try {
    for (let after: readonly unknown[] | undefined; ;) {
      const page = await ask('POST', '/_search', {
        size: PAGE,
        pit: { id, keep_alive: '5m' },
        query: { bool: { filter: [{ term: { deleted: false } }] } },
        _source: ['key', 'etag', 'size'],
        sort: [{ _shard_doc: 'asc' }],
        ...(after !== undefined && { search_after: after }),
        track_total_hits: false,
      });
      const { hits } = pageSchema.parse(page).hits;
      for (const { _source } of hits) total = added(total, [_source.key, _source.etag, _source.size]);
      if (hits.length < PAGE) return total;
      after = hits.at(-1)?.sort;
    }
  } finally {
    await ask('DELETE', '/_search/point_in_time', { pit_id: [id] });
  }
}

function added({ objects, sum }: Fingerprint, object: readonly [key: string, etag: string, sizeBytes: number]): Fingerprint {
  const digest = createHash('md5').update(object.join('\0')).digest();
  return { objects: objects + 1, sum: (sum + digest.readUIntBE(0, 6)) % SUM_MODULUS };
}
