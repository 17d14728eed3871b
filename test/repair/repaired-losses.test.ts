/** Losses that only a gap stands for, from their report until the index is right again, with the jobs that close the gaps. */
import { describe, expect, it } from 'vitest';
import { type PresentState, documentOf, clockOfMs } from '../../src/ordering/document.ts';
import type { EnrichMode } from '../../src/records/bucket.ts';
import { markSchema } from '../../src/records/dirty.ts';
import { createConnectBucket } from '../../src/connect/connect.ts';
import { watchIndices } from '../../src/connect/index-identity.ts';
import { createGapReports } from '../../src/observing/gaps.ts';
import { createLetterWatch, createLetterBrowser } from '../../src/repair/dead-letters.ts';
import { readNow } from '../support/fakes/dead-letter-queues.ts';
import { closeGapsOf } from '../support/worlds/gaps.ts';
import { listAllRecords, refs, updateRecord } from '../../src/store/stored.ts';
import { createFakeQueues, createFakeTelemetry } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { BUCKET, nativeRecord, settled } from '../support/worlds/ingest.ts';
import { createJobsWorld } from '../support/worlds/jobs.ts';

const DLQ = 'http://queues/dead';
const QUEUE = 'http://queues/bucket';

async function createWorld({ enrich = 'none' }: { readonly enrich?: EnrichMode } = {}) {
  const store = createMemoryStore();
  const world = await createJobsWorld({ store });
  const { clock, s3, state } = world;
  const queues = createFakeQueues(clock);
  const telemetry = createFakeTelemetry();
  await updateRecord(state, refs.bucket(BUCKET), (bucket) => bucket && { ...bucket, enrich });
  const gaps = createGapReports({ state, clock, telemetry });
  const closeGaps = closeGapsOf({ ...world, telemetry });
  const worker = world.startWorker();
  const never = new AbortController().signal;
  async function second(): Promise<void> {
    await clock.advance(1_000);
    await settled();
    const seconds = Math.floor(clock.nowMs() / 1_000);
    if (seconds % 15 === 0) await closeGaps(never).catch(() => undefined);
    if (seconds % 60 === 0) await world.tidy().catch(() => undefined);
  }
  const run = async (seconds: number): Promise<void> => {
    for (let n = 0; n < seconds; n += 1) await second();
  };
  const openGaps = () => listAllRecords(state, 'gap', markSchema);
  /** The live path did its work for this object an hour ago. */
  async function has(key: string, s: Partial<PresentState>, documentTags?: Record<string, string>): Promise<void> {
    const atMs = Math.floor(clock.nowMs() / 1_000) * 1_000 - 3_600_000;
    const present: PresentState = {
      present: true,
      etag: `e-${key}`,
      sizeBytes: 1,
      lastModifiedMs: atMs,
      lastModifiedExact: true,
      userMetadata: {},
      ...s,
    };
    s3.objects.set(key, present);
    const document = documentOf({
      bucket: BUCKET,
      key,
      state: { ...present, ...(documentTags !== undefined && { tags: documentTags }) },
      clock: clockOfMs(atMs),
      settled: true,
      source: 'native',
      cause: {},
      stateAtMs: atMs,
      nowMs: atMs,
    });
    await store.objects.write([{ document, equalClock: 'accept' }]);
  }
  const stored = async (key: string) => (await store.objects.getMany(BUCKET, [key]))[0];
  return { ...world, store, gaps, run, openGaps, has, stored, telemetry, queues, stop: () => worker.stop(), never };
}

describe('tags of a bucket that asks for them', () => {
  it('are right once the gap of a letter is closed that SQS moved, though the letter was a change of tags', async () => {
    const world = await createWorld({ enrich: 'tags' });
    await world.has('kept', { tags: {} });
    await world.has('k', { tags: { colour: 'red' } }, { colour: 'red' });
    // the tags change; the worker that received the event was killed twenty times, so SQS moved the message
    world.s3.objects.set('k', { ...world.s3.objects.get('k')!, tags: { colour: 'blue' } });
    const eventTimeMs = world.clock.nowMs();
    const record = nativeRecord('k', { eventName: 'ObjectTagging:Put', eventTimeMs, sequencer: null, object: { etag: 'e-k' } });
    const body = JSON.stringify({ Records: [record] });
    await world.queues.send(DLQ, { body, attributes: {} });
    const known = await readNow(world.queues, { queueUrl: DLQ, of: [QUEUE] });
    const moved = createLetterWatch({
      browse: createLetterBrowser({ queues: world.queues, telemetry: world.telemetry }),
      state: world.state,
      gaps: world.gaps,
      clock: world.clock,
      telemetry: world.telemetry,
      deadLetterQueues: () => known,
      bucketQueueUrls: [QUEUE],
    });
    const looking = moved(world.never);
    await world.run(20);
    await looking;
    expect(await world.openGaps()).toMatchObject([{ reasons: [{ kind: 'loss', example: 'dead letter: message.moved' }] }]);
    await world.run(1_200);
    expect(await world.openGaps()).toEqual([]);
    const job = (await world.allJobs()).at(-1);
    expect(job).toMatchObject({ state: 'done' });
    await world.stop();
    expect((await world.stored('k'))?.tags).toEqual({ colour: 'blue' });
  });
});

describe('the index of a connected bucket', () => {
  it('is deleted, and made again by `bucket add`, as the fault advises: a gap stands for what it held', async () => {
    const world = await createWorld();
    await world.has('a', {});
    await updateRecord(world.state, refs.bucket(BUCKET), (bucket) => bucket && { ...bucket, indexId: 'the one before' });
    const connect = createConnectBucket({
      state: world.state,
      objects: world.store.objects,
      gaps: world.gaps,
      clock: world.clock,
      telemetry: world.telemetry,
      storage: {
        ...world.s3,
        regionOf: async () => 'us-east-1',
        versioningOf: async () => ({ status: 'never', observedAtMs: world.clock.nowMs() }),
      },
    });
    await world.store.objects.removeBucket(BUCKET);
    const connecting = connect.connect({ bucket: BUCKET, enrich: 'none' }, 'admin');
    await world.run(5);
    await connecting;
    await world.run(1_200);
    await world.stop();
    expect({ open: (await world.openGaps()).length, jobs: (await world.allJobs()).length, found: await world.found() }).toEqual({
      open: 0,
      jobs: 1,
      found: ['a'],
    });
  });

  it('is replaced by another and nobody tells: the watch of all buckets opens the gap, once, and says why', async () => {
    const world = await createWorld();
    const watch = (signal: AbortSignal) => watchIndices({ ...world, objects: world.store.objects }, signal);
    const looked = async (): Promise<void> => {
      const looking = watch(world.never);
      await world.run(2);
      await looking;
    };
    await looked();
    await world.run(200);
    expect(await world.openGaps()).toEqual([]);
    await world.store.objects.removeBucket(BUCKET);
    await looked();
    expect(await world.openGaps()).toMatchObject([{ reasons: [{ example: expect.stringContaining('was found missing at ') as string }] }]);
    await world.store.objects.createBucket(BUCKET);
    await looked();
    await looked();
    expect(await world.openGaps()).toMatchObject([
      { reasons: [{ count: 2, example: expect.stringContaining('was found replaced') as string }] },
    ]);
    await world.stop();
  });
});
