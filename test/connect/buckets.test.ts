import { markId } from '../../src/records/dirty.ts';
import { describe, expect, it } from 'vitest';
import { documentOf } from '../../src/ordering/document.ts';
import { FaultError } from '../../src/base/fault.ts';
import { withWay } from '../../src/connect/apply.ts';
import { createConnectBucket, type ConnectBucket } from '../../src/connect/connect.ts';
import { watchIndices } from '../../src/connect/index-identity.ts';
import { listBuckets } from '../../src/registry/operations/lists.ts';
import { requireBucket, createBucketStatuses } from '../../src/observing/buckets.ts';
import { createProcesses } from '../../src/observing/processes.ts';
import { disconnectBucket } from '../../src/registry/operations/buckets.ts';
import { createReportUnconnected } from '../../src/observing/gaps.ts';
import type { StateStore } from '../../src/store/store.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { REGION } from '../support/fakes/aws-parts.ts';
import { racingState } from '../support/fakes/racing-state.ts';
import { reindexRequest } from '../support/requests.ts';
import { createControlWorld } from '../support/worlds/control.ts';

const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:uploads';

function setUp(wrap?: (state: StateStore) => StateStore) {
  const world = createControlWorld({ autoAdvance: true, ...(wrap && { wrap }) });
  world.storage.createBucket('photos', { region: REGION, versioning: 'enabled' });
  const { state, clock } = world;
  const statuses = createBucketStatuses({ state, clock, processes: createProcesses({ state, clock }), compareIntervalMs: 0 });
  return {
    ...world,
    connect: (request: Partial<Parameters<typeof world.connectBucket.connect>[0]> = {}, by = 'someone') =>
      world.connectBucket.connect({ bucket: 'photos', ...request }, by),
    reportUnconnected: createReportUnconnected(world),
    disconnect: (bucket: string) => disconnectBucket(world, bucket),
    list: (query = {}) => listBuckets({ state, statuses }, { limit: 100, ...query }, 'everything'),
  };
}

type World = ReturnType<typeof setUp>;

const NONE = { connected: [], unconnected: [] };

async function write({ objects }: World, key: string) {
  const facts = { bucket: 'photos', key, state: { present: true }, clock: 1, settled: true, source: 'native' } as const;
  return objects.write([{ document: documentOf({ ...facts, cause: {}, stateAtMs: 0, nowMs: 0 }), equalClock: 'accept' }]);
}

describe('connecting a bucket', () => {
  it('that does not exist is refused, and (Fix) a directory bucket without a question to S3, which embedded mode would ask for it', async () => {
    const world = setUp();
    // a topic that cannot be used is refused before: own-topic.test.ts
    await expect(world.connect({ bucket: 'nowhere' })).rejects.toMatchObject({ code: 'bucket.missing' });
    world.storage.failWith(new FaultError('s3.unavailable', 'asked'));
    const refused = world.connect({ bucket: 'photos--use1-az4--x-s3' });
    await expect(refused).rejects.toMatchObject({ code: 'request.invalid', message: expect.stringContaining('directory bucket') });
    expect(await world.list()).toEqual(NONE);
  });

  it('stores what S3 says of it, and its documents can be written', async () => {
    const world = setUp();
    const record = await world.connect();
    expect(record).toEqual({
      bucket: 'photos',
      region: REGION,
      versioning: { status: 'enabled', observedAtMs: world.clock.nowMs() },
      source: 'notification',
      enrich: 'none',
      floor: 0,
      indexId: expect.any(String),
      s3AheadMs: 0,
      createdAtMs: world.clock.nowMs(),
      createdBy: 'someone',
      checkedAtMs: world.clock.nowMs(),
    });
    expect(await requireBucket(world.state, 'photos')).toEqual(record);
    expect(await write(world, 'a')).toEqual([{ kind: 'written' }]);
    expect(world.telemetry.logged('bucket connected')).toEqual([{ bucket: 'photos', by: 'someone' }]);
  });

  it.each([
    [{}, {}],
    [{ reindex: false }, { held: { why: expect.any(String) as string } }],
  ])('opens a loss gap, as what it holds was never compared, and holds it where no first re-index is wanted: %j', async (request, held) => {
    const world = setUp();
    await world.connect(request);
    const [gap, ...others] = await world.allGaps();
    expect(others).toEqual([]);
    expect(gap).toMatchObject({ bucket: 'photos', reasons: [{ kind: 'new', count: 1 }] });
    expect(gap && 'held' in gap ? { held: gap.held } : {}).toEqual(held);
  });

  it('never stores a record whose index or gap is not there, and opens the gap though a worker removed it just before', async () => {
    const fault = new FaultError('index.unreachable', 'gone');
    const world = setUp();
    const buckets = createConnectBucket({ ...world, objects: { ...world.objects, createBucket: () => Promise.reject(fault) } });
    await expect(buckets.connect({ bucket: 'photos' }, 'someone')).rejects.toMatchObject({ code: 'index.unreachable' });
    expect(await world.list()).toEqual(NONE);
    const failing = setUp((state) => ({
      ...state,
      put: (entry, ...rest) => (entry.id === markId('photos') ? Promise.reject(fault) : state.put(entry, ...rest)),
    }));
    await expect(failing.connect()).rejects.toMatchObject({ code: 'index.unreachable' });
    expect(await failing.list()).toEqual(NONE);
    // the gap of a bucket that is not connected is removed by the round that closes gaps
    const interfere = (state: StateStore): Promise<void> => removeRecord(state, markId('photos'));
    const raced = setUp((state) => racingState(state, { times: 1, matches: (id) => id === 'bucket:photos', interfere }));
    await raced.connect();
    expect(await raced.allGaps()).toMatchObject([{ reasons: [{ kind: 'new' }] }]);
  });

  it('are listed page by page, with the names that are not connected on the first page only', async () => {
    const world = setUp();
    const names = ['a1', 'a1-b', 'b1', 'b1.c', 'c1'].map((name) => `bucket-${name}`);
    await world.connect();
    const photos = await requireBucket(world.state, 'photos');
    for (const bucket of names) await updateRecord(world.state, refs.bucket(bucket), () => ({ ...photos, bucket }));
    await removeRecord(world.state, 'bucket:photos');
    await updateRecord(world.state, refs.unconnected('stray'), () => ({ bucket: 'stray', count: 1, firstSeenMs: 0, lastSeenMs: 0 }));
    const found: string[] = [];
    const strays: number[] = [];
    let cursor: string | undefined;
    do {
      const page = await world.list({ limit: 2, ...(cursor !== undefined && { cursor }) });
      expect(page.connected.length).toBeLessThanOrEqual(2);
      found.push(...page.connected.map(({ record }) => record.bucket));
      strays.push(page.unconnected.length);
      cursor = page.next;
    } while (cursor !== undefined);
    expect(found).toEqual(names);
    expect(strays).toEqual([1, 0, 0]);
  });

  it('again changes what is given and keeps the rest', async () => {
    const world = setUp();
    const first = await world.connect({ source: 'topic', topic_arn: TOPIC });
    await world.clock.advance(5_000);
    const second = await world.connect({ enrich: 'head' }, 'another');
    const nowMs = world.clock.nowMs();
    expect(second).toEqual({ ...first, enrich: 'head', versioning: { status: 'enabled', observedAtMs: nowMs }, checkedAtMs: nowMs });
    const { topicArn: _, ...rest } = second;
    // what was sent before says nothing about the new way
    const proven = { ...second, provenAtMs: 1, arrived: ['created' as const] };
    expect(withWay(proven, { source: 'eventbridge' })).toEqual({ ...rest, source: 'eventbridge', waySinceMs: nowMs });
    expect(world.telemetry.logged('bucket connected')).toHaveLength(1);
  });

  it('Fix: with another topic counts its events only once AWS no longer sends them by the topic of before, and with its first one at once', async () => {
    const world = setUp();
    const record = await world.connect({ source: 'topic', topic_arn: TOPIC });
    expect(record).not.toHaveProperty('waySinceMs');
    const { waySinceMs } = withWay(record, { source: 'topic', topicArn: `${TOPIC}-2` });
    expect(waySinceMs).toBe(world.clock.nowMs() + 6 * 60_000);
  });

  it('has an index that is missing or another than before found, which opens a gap once and says why, or made anew, with a gap too', async () => {
    const world = setUp();
    await world.connect();
    await removeRecord(world.state, markId('photos'));
    const look = () => watchIndices(world, new AbortController().signal);
    await look();
    expect(await world.allGaps()).toEqual([]);
    await world.objects.removeBucket('photos');
    await look();
    expect(await world.allGaps()).toMatchObject([{ reasons: [{ example: expect.stringContaining('was found missing at ') as string }] }]);
    await world.objects.createBucket('photos');
    await look();
    await look();
    const example = expect.stringContaining('was found replaced') as string;
    expect(await world.allGaps()).toMatchObject([{ reasons: [{ kind: 'index', count: 2, example }] }]);
    // connected again, it has a new one
    await removeRecord(world.state, markId('photos'));
    await world.objects.removeBucket('photos');
    await world.connect();
    expect(await write(world, 'a')).toEqual([{ kind: 'written' }]);
    expect(await world.allGaps()).toMatchObject([{ reasons: [{ kind: 'index', count: 1 }] }]);
  });

  it('Fix: again reads the region, since the bucket may have been created again in another one; then its changes are a gap', async () => {
    const world = setUp();
    await world.connect();
    await removeRecord(world.state, markId('photos'));
    world.storage.createBucket('photos', { region: 'us-west-2' });
    expect(await world.connect()).toMatchObject({ region: 'us-west-2' });
    expect(await requireBucket(world.state, 'photos')).toMatchObject({ region: 'us-west-2' });
    expect(await world.allGaps()).toMatchObject([{ reasons: [{ example: 'the bucket was recreated in us-west-2', count: 1 }] }]);
  });

  it('changes the record of whoever connected it first at the same moment', async () => {
    const interfere = async (): Promise<void> => void (await other?.connect({ bucket: 'photos' }, 'the first'));
    const world = setUp((state) => racingState(state, { times: 1, matches: (id) => id === 'bucket:photos', interfere }));
    const other: ConnectBucket | undefined = createConnectBucket({ ...world, state: world.plainState });
    expect(await world.connect({ enrich: 'tags' }, 'the second')).toMatchObject({
      createdBy: 'the first',
      enrich: 'tags',
    });
  });

  it('covers by its gap the events that were dropped before', async () => {
    const world = setUp();
    await world.reportUnconnected('photos', 1);
    const { unconnected } = await world.list();
    expect(unconnected).toMatchObject([{ bucket: 'photos', count: 1 }]);
    await world.connect();
    expect((await world.list()).unconnected).toEqual([]);
    expect(await world.allGaps()).toMatchObject([{ bucket: 'photos', reasons: [{ kind: 'new' }] }]);
  });
});

it('refreshing a bucket reads region and versioning again, and keeps what was read before when versioning may no longer be read', async () => {
  const world = setUp();
  const before = await world.connect();
  await world.clock.advance(86_400_000);
  world.storage.setVersioning('photos', 'suspended');
  const nowMs = world.clock.nowMs();
  const after = { ...before, versioning: { status: 'suspended', observedAtMs: nowMs }, checkedAtMs: nowMs };
  expect(await world.connectBucket.refresh('photos')).toEqual(after);
  expect(await requireBucket(world.state, 'photos')).toEqual(after);
  world.storage.setVersioning('photos', 'unknown');
  expect((await world.connectBucket.refresh('photos'))?.versioning).toEqual(after.versioning);
  // a bucket that was disconnected is not brought back
  await world.disconnect('photos');
  expect(await world.connectBucket.refresh('photos')).toBeUndefined();
  expect(await world.list()).toEqual(NONE);
});

describe('disconnecting a bucket', () => {
  it('removes record, documents and gaps, cancels its job, and touches no other bucket', async () => {
    const world = setUp();
    world.storage.createBucket('photos-2');
    for (const bucket of ['photos', 'photos-2']) {
      await world.connect({ bucket });
      await world.gaps.report({ bucket, kind: 'loss', reason: 'test', seenAtMs: 1 });
    }
    const job = await world.jobs.request(reindexRequest({ bucket: 'photos' }), 'someone');
    await world.disconnect('photos');
    expect((await world.list()).connected.map(({ record }) => record.bucket)).toEqual(['photos-2']);
    expect((await world.allGaps()).map(({ bucket }) => bucket)).toEqual(['photos-2']);
    expect(await world.jobs.get(job.id)).toMatchObject({ state: 'cancelled' });
    expect(await write(world, 'a')).toMatchObject([{ kind: 'fault', fault: { code: 'bucket.index-missing' } }]);
    // its last job must not close a gap of its next life
    expect(await world.connect()).not.toHaveProperty('applyJobId');
    expect(await world.jobs.request(reindexRequest({ bucket: 'photos' }), 'someone')).toMatchObject({ state: 'queued' });
  });

  it('removes the record before the documents, and completes a removal that was cut short', async () => {
    const world = setUp();
    await world.connect();
    const failing = { ...world.objects, removeBucket: () => Promise.reject(new FaultError('index.unreachable', 'gone')) };
    await expect(disconnectBucket({ ...world, objects: failing }, 'photos')).rejects.toMatchObject({ code: 'index.unreachable' });
    expect((await world.list()).connected).toEqual([]);
    await expect(world.disconnect('photos')).rejects.toMatchObject({ code: 'bucket.not-connected' });
    expect(await write(world, 'a')).toMatchObject([{ fault: { code: 'bucket.index-missing' } }]);
  });

  it('leaves an index to a bucket that was connected again meanwhile', async () => {
    const world = setUp();
    await world.connect();
    const removeBucket = async (bucket: string) => {
      await world.connect();
      await world.objects.removeBucket(bucket);
    };
    await disconnectBucket({ ...world, objects: { ...world.objects, removeBucket } }, 'photos');
    expect(await readRecord(world.state, refs.bucket('photos'))).toBeDefined();
    expect(await world.allGaps()).toMatchObject([{ bucket: 'photos' }]);
    expect(await write(world, 'a')).toEqual([{ kind: 'written' }]);
    const [indexId] = await world.objects.identities(['photos']);
    expect(await readRecord(world.state, refs.bucket('photos'))).toMatchObject({ indexId });
  });

  it.each(['other', 'no/name', 'x'.repeat(5_000)])('answers bucket.not-connected for %s', async (bucket) => {
    const world = setUp();
    await expect(world.disconnect(bucket)).rejects.toMatchObject({ code: 'bucket.not-connected' });
    await expect(requireBucket(world.state, bucket)).rejects.toMatchObject({ code: 'bucket.not-connected' });
  });
});
