/**
 * What OpenSearch takes when nothing is compared, listed or read: documents of the product's own shape, in bulk requests. Their
 * bodies are made before the clock starts and wait in files, which the system keeps in memory: two million take 2 GB.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createOpenSearchClient, type OpenSearchClient } from '../../../src/store/opensearch/client.ts';
import { bulkAction, linesOf } from '../../../src/store/opensearch/bulk.ts';
import { indexNames } from '../../../src/store/opensearch/setup.ts';
import { documentOf } from '../../../src/ordering/document.ts';
import type { KeySpace } from './listing/key-space.ts';

export interface Load {
  readonly url: string;
  readonly indexPrefix: string;
  readonly bucket: string;
  readonly space: KeySpace;
  readonly bulkActions: number;
  readonly concurrency: number;
  /** Called when the bodies are made, right before the clock starts. */
  readonly ready?: () => Promise<void>;
}

type Documents = Pick<Load, 'indexPrefix' | 'bucket' | 'space' | 'bulkActions'>;

/** Loads the documents of a whole key space; resolves with the wall time from the first request to the last answer. Throws when a document is refused. */
export async function loadBare({ url, concurrency, ready, ...made }: Load): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'tally-bench-'));
  const client = createOpenSearchClient({ urls: [url], requestTimeoutMs: 60_000 });
  try {
    const files = await writeBodies(folder, made);
    await ready?.();
    const beganMs = performance.now();
    await Promise.all(Array.from({ length: concurrency }, () => sendAll(client, files)));
    return performance.now() - beganMs;
  } finally {
    await client.close();
    await rm(folder, { recursive: true });
  }
}

/** Writes the body of each request into a file; the first is the last of the names, so that `pop` takes it. */
async function writeBodies(folder: string, made: Documents): Promise<string[]> {
  const { space, bulkActions } = made;
  const files: string[] = [];
  for (let at = 0; at < space.count; at += bulkActions) {
    let lines = '';
    for (let number = at; number < Math.min(space.count, at + bulkActions); number += 1) lines += linesAt(made, number);
    const file = join(folder, String(at));
    await writeFile(file, lines);
    files.push(file);
  }
  return files.reverse();
}

function linesAt({ space, bucket, indexPrefix }: Documents, number: number): string {
  const { etag, sizeBytes, lastModifiedMs, storageClass } = space.stateAt(number);
  const document = documentOf({
    bucket,
    key: space.keyAt(number),
    state: { present: true, etag, sizeBytes, lastModifiedMs, storageClass },
    // years before any listing's moment
    clock: lastModifiedMs * 1_000,
    settled: true,
    source: 'listing',
    cause: {},
    stateAtMs: lastModifiedMs,
    nowMs: Date.now(),
  });
  const action = bulkAction({ document, equalClock: 'accept' }, indexNames(indexPrefix));
  if ('kind' in action) throw new Error(action.fault.reason);
  return linesOf(action);
}

async function sendAll(client: OpenSearchClient, files: string[]): Promise<void> {
  for (let file = files.pop(); file !== undefined; file = files.pop()) {
    const { status, body } = await client.send({
      method: 'POST',
      path: '/_bulk',
      query: { require_alias: true, filter_path: 'errors' },
      lines: await readFile(file, 'utf8'),
    });
    if (status !== 200 || (body as { errors?: unknown }).errors !== false) throw new Error(`bulk: ${status} ${JSON.stringify(body)}`);
  }
}
