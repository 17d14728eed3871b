/** The turn on the real stores, and against a real S3. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as letOthersRun } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createS3Listing } from '../../../src/adapters/aws/s3-listing.ts';
import { createS3Storage } from '../../../src/adapters/aws/s3-storage.ts';
import { createSqliteStore } from '../../../src/adapters/sqlite/store.ts';
import { systemClock } from '../../../src/adapters/system-clock.ts';
import { documentOf, type ObjectDocument } from '../../../src/domain/documents/document.ts';
import { clockOfMs } from '../../../src/domain/ordering/clock.ts';
import { createBackgroundWriter } from '../../../src/pipeline/compare/background-writer.ts';
import type { TurnEnd } from '../../../src/domain/reindex/range-transitions.ts';
import { createReconcileTurn } from '../../../src/pipeline/compare/reconcile-turn.ts';
import type { OpenStore } from '../../contracts/store-contract.ts';
import type { TestAws } from '../../support/servers/aws.ts';
import { createTestAws } from '../../support/servers/aws.ts';
import { createFakeTelemetry } from '../../support/fakes/ports.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { openTestStore } from '../../support/servers/opensearch.ts';
import { randomOf } from '../../domain/ordering/simulation/random.ts';
import { bucketRecord, createReindexWorld, type ReindexWorld } from '../../support/worlds/reindex.ts';
import { awsEndpoint, opensearchUrl } from '../../support/servers/found.ts';
import { createTestCircuits } from '../../support/fakes/circuits.ts';

const BITS = ['a', 'b', '/', ' ', '+', '%', '*', '\\', 'é', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{1f600}', '\u{10ffff}'];

/** A report looks at each difference again after five seconds. */
async function ended(world: ReindexWorld, running: Promise<TurnEnd>): Promise<TurnEnd> {
  const isOver = running.then(() => true);
  while (!(await Promise.race([isOver, letOthersRun(false)]))) await world.clock.advance(1_000);
  return running;
}

async function openSqlite(): Promise<OpenStore> {
  const folder = await mkdtemp(join(tmpdir(), 'tally-sqlite-'));
  const store = createSqliteStore({ path: join(folder, 'index.sqlite') });
  return { store, dispose: () => store.close().then(() => rm(folder, { recursive: true })) };
}

const stores = [
  { name: 'SQLite', open: openSqlite, isThere: () => true },
  { name: 'OpenSearch', open: async (): Promise<OpenStore> => openTestStore(), isThere: () => opensearchUrl() !== undefined },
];

describe.each(stores)('a turn on $name', ({ open, isThere }) => {
  let opened: OpenStore;

  beforeAll(async () => {
    if (!isThere()) return;
    opened = await open();
    await opened.store.setup.prepare();
  });
  afterAll(() => opened?.dispose());

  it.skipIf(!isThere())(
    'makes an index with holes, stale documents and phantoms equal to its bucket, awkward keys over page borders included',
    async () => {
      const world = await createReindexWorld({ store: opened.store, bucket: 'turn-real' });
      const random = randomOf(7);
      world.s3.pageSize = 97;
      const documents: ObjectDocument[] = [];
      for (let index = 0; index < 1_500; index += 1) {
        const key = Array.from({ length: random.int(1, 5) }, () => random.pick(BITS)).join('');
        const state = { present: true, etag: random.pick(['x', 'y']), sizeBytes: 1 } as const;
        if (random.chance(0.8)) world.put(key, state);
        if (random.chance(0.8)) documents.push(world.documentFor(key, random.chance(0.9) ? state : { present: false }));
      }
      await opened.store.objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
      await opened.store.scan.refresh('turn-real');
      const report = await ended(world, world.run({ mode: 'report' }, { durationMaxMs: Infinity }));
      const apply = await world.run();
      const { missing, stale, phantom } = report.counts;
      expect(Math.min(missing, stale, phantom)).toBeGreaterThan(10);
      expect(apply.counts).toMatchObject({
        listed: world.s3.objects.size,
        missing,
        stale,
        phantom,
        written: missing + stale,
        tombstones: phantom,
      });
      expect(apply.counts.headRequests).toBe(phantom);
      await opened.store.scan.refresh('turn-real');
      expect(await world.found()).toEqual(world.bucketHolds());
      expect((await world.run()).counts).toMatchObject({ missing: 0, stale: 0, phantom: 0, inFlight: 0, written: 0, tombstones: 0 });
    },
  );
});

describe.skipIf(!awsEndpoint())('a turn against LocalStack', () => {
  let aws: TestAws;

  beforeAll(() => {
    aws = createTestAws(awsEndpoint()!);
  });
  afterAll(() => aws.dispose());

  async function turnOn(bucket: string) {
    const { objects, scan } = createMemoryStore();
    await objects.createBucket(bucket);
    const clock = systemClock;
    const telemetry = createFakeTelemetry();
    const limits = { actionsMax: 100, bytesMax: 1_000_000, concurrency: 2 };
    const circuits = createTestCircuits({ clock, telemetry });
    const writeAll = createBackgroundWriter({ objects, clock, telemetry, circuits, limits, liveIsBusy: () => false });
    const { s3For: clientFor } = aws.clients();
    const storage = createS3Storage({ clientFor, region: aws.region, clock });
    const turn = createReconcileTurn({
      objects,
      scan,
      listing: createS3Listing({ clientFor, clock }),
      storage,
      writeAll,
      clock,
      telemetry,
      circuits,
    });
    const request = {
      bucket: { ...bucketRecord, bucket, region: aws.region },
      prefix: '',
      after: '',
      mode: 'apply',
      fill: false,
      tags: false,
    } as const;
    const controls = {
      reserve: async (count: number) => count,
      shouldEnd: () => false,
      upTo: () => undefined,
      pagesMax: 10,
      durationMaxMs: 30_000,
    };
    return { objects, scan, run: () => turn(request, controls, new AbortController().signal) };
  }

  it.each([true, false])('ends with what the bucket shows, versioned: %s', async (versioned) => {
    const bucket = await aws.createBucket({ versioned });
    const keys = ['a b', 'a+b', 'dir/', 'é', '\uffee', '\u{1f600}'];
    for (const key of keys) await aws.put(bucket, key, 'hello');
    await aws.put(bucket, 'gone', 'hello');
    await aws.remove(bucket, 'gone');
    const { objects, scan, run } = await turnOn(bucket);
    const atMs = Date.now() - 3_600_000;
    const stale = { present: true, etag: 'old', sizeBytes: 1 } as const;
    for (const key of ['gone', 'never', 'é']) {
      const facts = {
        bucket,
        key,
        state: stale,
        clock: clockOfMs(atMs),
        settled: true,
        source: 'native',
        cause: {},
        stateAtMs: atMs,
        nowMs: atMs,
      } as const;
      await objects.write([{ document: documentOf(facts), equalClock: 'accept' }]);
    }
    const result = await run();
    expect(result).toMatchObject({
      done: true,
      counts: { listed: 6, missing: 5, stale: 1, phantom: 2, written: 6, tombstones: 2, headRequests: 2 },
    });
    const found = await scan.scan(bucket, { prefix: '', after: '', limit: 100 });
    expect(found.map(({ key }) => key)).toEqual(keys);
    expect(found[0]).toMatchObject({ etag: '5d41402abc4b2a76b9719d911017c592', size: 5, storage_class: 'STANDARD' });
    expect((await run()).counts).toMatchObject({ listed: 6, differed: 0, written: 0, headRequests: 0 });
  });

  it('deletes nothing where the bucket is gone', async () => {
    const { run } = await turnOn('tally-test-no-such-bucket');
    expect(await run()).toMatchObject({ done: false, cursor: '', fault: { code: 'bucket.missing' } });
  });
});
