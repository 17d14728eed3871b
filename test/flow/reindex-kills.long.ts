import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createRandom } from '../support/random/seeded.ts';
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

const OBJECTS_SLOW = 48_000;
const KILLS = 4;
/** So many keys of a page, and so long for each, that a job takes some minutes. */
const PAGE = { keysMax: 250, delayMs: 1_000 };
/** A process that dies leaves uncounted what it wrote since its progress was stored: five seconds, and the time that the store takes. */
const UNCOUNTED_MS = 7_000;

/** How many documents there were at which time, looked at again and again. */
function watchDocuments(bucket: TestBucket) {
  const ending = new AbortController();
  const seen: { readonly atMs: number; readonly count: number }[] = [{ atMs: 0, count: 0 }];
  async function watch(): Promise<void> {
    while (!ending.signal.aborted) {
      const atMs = Date.now();
      seen.push({ atMs, count: await bucket.documents() });
      await delay(200);
    }
  }
  const watching = watch();
  return {
    end: async (): Promise<void> => {
      ending.abort();
      await watching;
    },
    /** At most so many were written in this time. */
    writtenBetween: (fromMs: number, toMs: number): number => {
      const before = seen.findLast(({ atMs }) => atMs <= fromMs)?.count ?? 0;
      return (seen.find(({ atMs }) => atMs >= toMs)?.count ?? Infinity) - before;
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

  test(`by processes that are killed at random compares each key, and counts all but what each wrote last`, async () => {
    const flow = await openReindexFlow();
    const seed = Math.floor(Math.random() * 1_000_000);
    const random = createRandom(seed);
    try {
      const bucket = await flow.createBucket({ count: OBJECTS_SLOW });
      flow.listing.setPageMax(PAGE.keysMax);
      flow.listing.beforeAnswer(() => delay(PAGE.delayMs));
      const documents = watchDocuments(bucket);
      let worker = await flow.startWorker();
      const { id } = await bucket.reindex();
      const killedAtMs: number[] = [];
      for (let kills = 0; kills < KILLS; kills += 1) {
        const { listed: before = 0 } = (await bucket.job(id)).counts ?? {};
        await until('keys are compared', async () => ((await bucket.job(id)).counts?.listed ?? 0) > before, JOB_TIMEOUT_MS);
        await delay(random.integer(500, 4_000));
        await worker.kill();
        killedAtMs.push(Date.now());
        worker = await flow.startWorker();
      }
      const job = await bucket.ended(id, 600_000);
      await documents.end();
      expect({ seed, state: job.state, error: job.error }).toEqual({ seed, state: 'done', error: undefined });
      expect(await bucket.difference()).toBeUndefined();
      const { listed = 0, equal = 0, missing = 0, written = 0 } = job.counts ?? {};
      expect({ listed, sum: equal + missing }).toEqual({ listed: OBJECTS_SLOW, sum: OBJECTS_SLOW });
      expect(written).toBe(missing);
      const uncounted = killedAtMs.reduce((sum, atMs) => sum + documents.writtenBetween(atMs - UNCOUNTED_MS, atMs), 0);
      expect(OBJECTS_SLOW - missing).toBeLessThanOrEqual(uncounted);
      // the kills cost something: otherwise this test tests nothing
      expect(flow.listing.counts().keysListed).toBeGreaterThan(OBJECTS_SLOW);
    } finally {
      await flow.close();
    }
  }, 1_200_000);
});
