/** The turn against a real S3; `random-reindexes` plays it on the real stores. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createS3Listing } from '../../../src/adapters/aws/s3-listing.ts';
import { createS3Storage } from '../../../src/adapters/aws/s3-storage.ts';
import { systemClock } from '../../../src/adapters/system-clock.ts';
import { documentOf } from '../../../src/domain/documents/document.ts';
import { clockOfMs } from '../../../src/domain/ordering/clock.ts';
import { createBackgroundWriter } from '../../../src/pipeline/compare/background-writer.ts';
import { createReconcileTurn } from '../../../src/pipeline/compare/reconcile-turn.ts';
import type { TestAws } from '../../support/servers/aws.ts';
import { createTestAws } from '../../support/servers/aws.ts';
import { createFakeTelemetry } from '../../support/fakes/ports.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { bucketRecord } from '../../support/worlds/reindex.ts';
import { awsEndpoint } from '../../support/servers/found.ts';
import { createTestCircuits } from '../../support/fakes/circuits.ts';

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
});
