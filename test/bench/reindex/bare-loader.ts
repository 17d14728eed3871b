/** What OpenSearch takes when nothing is compared, listed or read: documents of the product's own shape, ready in memory, in bulk requests. */
import { createOpenSearchClient } from '../../../src/adapters/opensearch/client.ts';
import { systemClock } from '../../../src/adapters/system-clock.ts';
import { bulkAction, linesOf } from '../../../src/adapters/opensearch/bulk.ts';
import { indexNames } from '../../../src/adapters/opensearch/names.ts';
import { documentOf } from '../../../src/domain/documents/document.ts';
import type { KeySpace } from '../../support/servers/listing/key-space.ts';

export interface Load {
  readonly url: string;
  readonly indexPrefix: string;
  readonly bucket: string;
  readonly space: KeySpace;
  readonly bulkActions: number;
  readonly concurrency: number;
}

/** Documents whose requests are in memory at once: some 100 MB. */
const READY_MAX = 100_000;

/** Loads the documents of a whole key space; resolves with how long the requests took, without their making. Throws when one is refused. */
export async function loadBare({ url, indexPrefix, bucket, space, bulkActions, concurrency }: Load): Promise<number> {
  const client = createOpenSearchClient({ urls: [url], requestTimeoutMs: 60_000, clock: systemClock });
  const names = indexNames(indexPrefix);
  let tookMs = 0;
  try {
    for (let from = 0; from < space.count; from += READY_MAX) {
      const ready = bodiesOf({ from, to: Math.min(space.count, from + READY_MAX) });
      const beganMs = performance.now();
      await Promise.all(Array.from({ length: concurrency }, () => sendAll(ready)));
      tookMs += performance.now() - beganMs;
    }
  } finally {
    await client.close();
  }
  return tookMs;

  function bodiesOf({ from, to }: { readonly from: number; readonly to: number }): string[] {
    const bodies: string[] = [];
    for (let at = from; at < to; at += bulkActions) {
      let lines = '';
      for (let number = at; number < Math.min(to, at + bulkActions); number += 1) lines += linesAt(number);
      bodies.push(lines);
    }
    return bodies.reverse();
  }

  function linesAt(number: number): string {
    const key = space.keyAt(number);
    const { etag, sizeBytes, lastModifiedMs, storageClass } = space.stateAt(number);
    const document = documentOf({
      bucket,
      key,
      state: { present: true, etag, sizeBytes, lastModifiedMs, storageClass },
      // years before any listing's moment
      clock: lastModifiedMs * 1_000,
      settled: true,
      source: 'listing',
      cause: {},
      stateAtMs: lastModifiedMs,
      nowMs: Date.now(),
    });
    const action = bulkAction({ document, equalClock: 'accept' }, names);
    if ('kind' in action) throw new Error(action.reason);
    return linesOf(action);
  }

  async function sendAll(ready: string[]): Promise<void> {
    for (let lines = ready.pop(); lines !== undefined; lines = ready.pop()) {
      const { status, body } = await client.send({
        method: 'POST',
        path: '/_bulk',
        query: { require_alias: true, filter_path: 'errors' },
        lines,
      });
      if (status !== 200 || (body as { errors?: unknown }).errors !== false) throw new Error(`bulk: ${status} ${JSON.stringify(body)}`);
    }
  }
}
