import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { until } from '../support/servers/aws.ts';
import { applyDrift } from '../support/servers/listing/drift.ts';
import { createKeySpace } from '../support/servers/listing/key-space.ts';
import { openReindexFlow } from '../support/worlds/reindex-flow.ts';
import type { TestBucket } from '../support/worlds/reindex-flow.ts';
import { awsEndpoint, opensearchUrl } from '../support/servers/found.ts';

const OBJECTS = 200_000;
/** Half of them the index knows, and every thirtieth is not what it knows. */
const INDEXED = 100_000;
const DRIFT_EVERY = 30;
/** The job of a killed process is due after 20 s, and watched for 60 s; it is killed three times. */
const JOB_TIMEOUT_MS = 380_000;

/** Searches again and again; each must find what it found before and what still exists. */
function watchSearches(bucket: TestBucket, prefixes: readonly string[]) {
  const ending = new AbortController();
  let searches = 0;
  const found = new Map<string, ReadonlySet<string>>();

  async function watch(): Promise<void> {
    for (let at = 0; !ending.signal.aborted; at += 1) {
      const prefix = prefixes[at % prefixes.length] ?? '';
      const keys = new Set(await bucket.search(prefix));
      const lost = [...(found.get(prefix) ?? [])].filter((key) => !keys.has(key) && bucket.contents.get(key) !== undefined);
      expect(lost).toEqual([]);
      found.set(prefix, keys);
      searches += 1;
      await delay(50);
    }
  }

  const watching = watch();
  return {
    async end(): Promise<number> {
      ending.abort();
      await watching;
      return searches;
    },
  };
}

describe.skipIf(awsEndpoint() === undefined || opensearchUrl() === undefined)('a re-index whose workers are killed', () => {
  test(`of ${OBJECTS} objects ends equal and counts each once, and searches find all that they found`, async () => {
    const flow = await openReindexFlow();
    try {
      const bucket = await flow.createBucket({ count: OBJECTS, indexed: INDEXED });
      applyDrift(bucket.contents, createKeySpace('deep', OBJECTS), DRIFT_EVERY);
      const searches = watchSearches(bucket, ['team-00000/day-00/', 'team-00004/day-50/', 'team-00009/day-99/']);
      const { list: before } = flow.listing.counts();
      const listedPages = (pages: number) => () => flow.listing.counts().list - before >= pages;

      const victims = [await flow.startWorker(), await flow.startWorker()];
      const { id } = await bucket.reindex();
      for (const pages of [30, 80, 130]) {
        await until(`${pages} pages listed`, listedPages(pages), JOB_TIMEOUT_MS);
        await victims.shift()?.kill();
        victims.push(await flow.startWorker());
      }

      const job = await bucket.ended(id, JOB_TIMEOUT_MS);
      expect(job).toMatchObject({ state: 'done', counts: { listed: bucket.contents.size() } });
      expect(await bucket.difference()).toBeUndefined();
      const { counts } = job;
      // what a killed worker wrote, and could not count, its successor finds equal
      expect(counts!.equal + counts!.missing + counts!.stale + counts!.in_flight).toBe(bucket.contents.size());
      expect(counts!.written).toBeLessThanOrEqual(counts!.missing + counts!.stale);
      // each kill left something undone: otherwise this test tests nothing
      expect(counts!.listed).toBeLessThan(flow.listing.counts().keysListed);
      expect(await searches.end()).toBeGreaterThan(10);
    } finally {
      await flow.close();
    }
  }, 400_000);
});
