import { describe, expect, it } from 'vitest';
import { documentOf } from '../../../src/domain/documents/document.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import { createConnectBucket } from '../../../src/pipeline/buckets/connect.ts';
import { createDisconnectBucket } from '../../../src/pipeline/control/disconnect-bucket.ts';
import { createGapReports, createListGaps, createReportUnconnected } from '../../../src/pipeline/gaps/reports.ts';
import { createListBuckets, requireBucket } from '../../../src/pipeline/buckets/list.ts';
import { createBucketStatuses } from '../../../src/pipeline/buckets/statuses.ts';
import type { StateStore } from '../../../src/pipeline/ports/state.ts';
import { createReindexJobs } from '../../../src/pipeline/control/reindex-jobs.ts';
import { readRecord, refs, removeRecord, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { racingState } from '../../support/fakes/racing-state.ts';
import { reindexRequest } from '../../support/requests.ts';

const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:uploads';

function setUp(wrap: (state: StateStore) => StateStore = (state) => state) {
  const { objects, state: plainState } = createMemoryStore();
  const state = wrap(plainState);
  const clock = createFakeClock({ autoAdvance: true });
  const telemetry = createFakeTelemetry();
  const storage = createFakeStorage(clock);
  storage.createBucket('photos', { region: 'eu-west-1', versioning: 'enabled' });
  const gaps = createGapReports({ state, clock, telemetry });
  const jobs = createReindexJobs({ state, clock, telemetry });
  return {
    objects,
    state,
    plainState,
    clock,
    telemetry,
    storage,
    gaps,
    jobs,
    reportUnconnected: createReportUnconnected({ state, clock, telemetry, gaps }),
    buckets: createConnectBucket({ state, objects, storage, gaps, clock, telemetry }),
    disconnect: createDisconnectBucket({ state, objects, jobs, gaps, clock }),
    list: createListBuckets({ state, statuses: createBucketStatuses({ state, clock, compareIntervalMs: 0 }) }),
    listGaps: createListGaps({ state }),
  };
}

type World = ReturnType<typeof setUp>;

async function write({ objects }: World, key: string) {
  const facts = { bucket: 'photos', key, state: { present: true }, clock: 1, settled: true, source: 'native' } as const;
  return objects.write([{ document: documentOf({ ...facts, cause: {}, stateAtMs: 0, nowMs: 0 }), equalClock: 'accept' }]);
}

describe('connecting a bucket', () => {
  it('stores what S3 says of it, and its documents can be written', async () => {
    const world = setUp();
    const record = await world.buckets.connect({ bucket: 'photos' }, 'someone');
    expect(record).toEqual({
      bucket: 'photos',
      region: 'eu-west-1',
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

  it('opens a loss gap: what it holds was never compared with the index', async () => {
    const world = setUp();
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    const { items } = await world.listGaps({ limit: 100 });
    expect(items).toMatchObject([{ bucket: 'photos', kind: 'loss', reason: 'never compared', count: 1, state: 'open' }]);
    expect(items[0]).not.toHaveProperty('held');
  });

  it('holds that gap where no first re-index is wanted', async () => {
    const world = setUp();
    await world.buckets.connect({ bucket: 'photos', reindex: false }, 'someone');
    expect((await world.listGaps({ limit: 100 })).items).toMatchObject([{ reason: 'never compared', held: true, state: 'open' }]);
  });

  it('opens no such gap again for a bucket that is connected', async () => {
    const world = setUp();
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    await removeRecord(world.state, 'gap:photos:loss');
    await world.buckets.connect({ bucket: 'photos', enrich: 'head' }, 'someone');
    expect(await world.listGaps({ limit: 100 })).toEqual({ items: [] });
  });

  it('never stores a record whose gap is not stored, and opens the gap though a worker removed it just before', async () => {
    const fault = new FaultError('index.unreachable', 'gone');
    const failing = setUp((state) => ({
      ...state,
      put: (entry, ...rest) => (entry.id === 'gap:photos:loss' ? Promise.reject(fault) : state.put(entry, ...rest)),
    }));
    await expect(failing.buckets.connect({ bucket: 'photos' }, 'someone')).rejects.toMatchObject({ code: 'index.unreachable' });
    expect(await failing.list({ limit: 100 }, 'everything')).toEqual({ connected: [], unconnected: [] });
    // the gap of a bucket that is not connected is removed by the round that closes gaps
    const interfere = (state: StateStore): Promise<void> => removeRecord(state, 'gap:photos:loss');
    const raced = setUp((state) => racingState(state, { times: 1, matches: (id) => id === 'bucket:photos', interfere }));
    await raced.buckets.connect({ bucket: 'photos' }, 'someone');
    expect((await raced.listGaps({ limit: 100 })).items).toMatchObject([{ reason: 'never compared' }]);
  });

  it('never stores a record whose index is not there', async () => {
    const world = setUp();
    const failing = { ...world.objects, createBucket: () => Promise.reject(new FaultError('index.unreachable', 'gone')) };
    const buckets = createConnectBucket({ ...world, objects: failing });
    await expect(buckets.connect({ bucket: 'photos' }, 'someone')).rejects.toMatchObject({ code: 'index.unreachable' });
    expect(await world.list({ limit: 100 }, 'everything')).toEqual({ connected: [], unconnected: [] });
  });

  it('are listed page by page, with the names that are not connected on the first page only', async () => {
    const world = setUp();
    const names = ['a1', 'a1-b', 'b1', 'b1.c', 'c1'].map((name) => `bucket-${name}`);
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    const photos = await requireBucket(world.state, 'photos');
    for (const bucket of names) await updateRecord(world.state, refs.bucket(bucket), () => ({ ...photos, bucket }));
    await removeRecord(world.state, 'bucket:photos');
    await updateRecord(world.state, refs.unconnected('stray'), () => ({ bucket: 'stray', count: 1, firstSeenMs: 0, lastSeenMs: 0 }));
    const found: string[] = [];
    const strays: number[] = [];
    let cursor: string | undefined;
    do {
      const page = await world.list({ limit: 2, ...(cursor !== undefined && { cursor }) }, 'everything');
      expect(page.connected.length).toBeLessThanOrEqual(2);
      found.push(...page.connected.map(({ record }) => record.bucket));
      strays.push(page.unconnected.length);
      cursor = page.next;
    } while (cursor !== undefined);
    expect(found).toEqual(names);
    expect(strays).toEqual([1, 0, 0]);
  });

  it('says that there is no such bucket', async () => {
    const world = setUp();
    await expect(world.buckets.connect({ bucket: 'nowhere' }, 'someone')).rejects.toMatchObject({ code: 'bucket.missing' });
    expect(await world.list({ limit: 100 }, 'everything')).toEqual({ connected: [], unconnected: [] });
  });

  it('refuses a topic that SNS does not know', async () => {
    const world = setUp();
    const buckets = createConnectBucket({ ...world, topics: { isMissing: async (topicArn) => topicArn === TOPIC } });
    const answer = buckets.connect({ bucket: 'photos', source: 'topic', topic_arn: TOPIC }, 'someone');
    await expect(answer).rejects.toMatchObject({ code: 'request.invalid', message: `topic_arn: there is no topic ${TOPIC}` });
    expect(await world.list({ limit: 100 }, 'everything')).toEqual({ connected: [], unconnected: [] });
    expect(await buckets.connect({ bucket: 'photos', source: 'topic', topic_arn: `${TOPIC}-2` }, 'someone')).toMatchObject({
      source: 'topic',
    });
  });

  it('refuses the source topic without a topic', async () => {
    const world = setUp();
    const answer = world.buckets.connect({ bucket: 'photos', source: 'topic' }, 'someone');
    await expect(answer).rejects.toMatchObject({ code: 'request.invalid', message: expect.stringContaining('topic_arn: ') });
    expect(await world.list({ limit: 100 }, 'everything')).toEqual({ connected: [], unconnected: [] });
  });

  it('again changes what is given and keeps the rest', async () => {
    const world = setUp();
    const first = await world.buckets.connect({ bucket: 'photos', source: 'topic', topic_arn: TOPIC }, 'someone');
    await world.clock.advance(5_000);
    const second = await world.buckets.connect({ bucket: 'photos', enrich: 'head' }, 'another');
    const nowMs = world.clock.nowMs();
    expect(second).toEqual({ ...first, enrich: 'head', versioning: { status: 'enabled', observedAtMs: nowMs }, checkedAtMs: nowMs });
    const { topicArn: _, ...rest } = second;
    expect(await world.buckets.connect({ bucket: 'photos', source: 'eventbridge' }, 'another')).toEqual({
      ...rest,
      source: 'eventbridge',
      // what was sent before says nothing about the new way
      waySinceMs: nowMs,
    });
    expect(world.telemetry.logged('bucket connected')).toHaveLength(1);
  });

  it('Fix: with another topic counts its events only once AWS no longer sends them by the topic of before', async () => {
    const world = setUp();
    const connect = (topicArn: string) => world.buckets.connect({ bucket: 'photos', source: 'topic', topic_arn: topicArn }, 'someone');
    await connect(TOPIC);
    const { waySinceMs } = await connect(`${TOPIC}-2`);
    expect(waySinceMs).toBe(world.clock.nowMs() + 6 * 60_000);
  });

  it('again is refused where the request is for a new bucket only, and nothing changes', async () => {
    const world = setUp();
    await world.buckets.connect({ bucket: 'photos', only_new: true, source: 'eventbridge', enrich: 'tags' }, 'someone');
    const before = await requireBucket(world.state, 'photos');
    await expect(world.buckets.connect({ bucket: 'photos', only_new: true, source: 'notification' }, 'other')).rejects.toMatchObject({
      code: 'bucket.already-connected',
    });
    expect(await requireBucket(world.state, 'photos')).toEqual(before);
  });

  it('again is refused also where another one connects the bucket at the same moment', async () => {
    const world = setUp();
    const wishes = (['eventbridge', 'notification'] as const).map((source) => ({ bucket: 'photos', only_new: true, source }));
    const ends = await Promise.allSettled(wishes.map((wish) => world.buckets.connect(wish, 'someone')));
    const [kept, ...others] = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value.source] : []));
    expect(others).toEqual([]);
    expect(await requireBucket(world.state, 'photos')).toMatchObject({ source: kept });
  });

  it('again makes a missing index anew', async () => {
    const world = setUp();
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    await world.objects.removeBucket('photos');
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    expect(await write(world, 'a')).toEqual([{ kind: 'written' }]);
  });

  it('Fix: again reads the region, since the bucket may have been created again in another one; then its changes are a gap', async () => {
    const world = setUp();
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    await removeRecord(world.state, 'gap:photos:loss');
    world.storage.createBucket('photos', { region: 'us-west-2' });
    expect(await world.buckets.connect({ bucket: 'photos' }, 'someone')).toMatchObject({ region: 'us-west-2' });
    expect(await requireBucket(world.state, 'photos')).toMatchObject({ region: 'us-west-2' });
    expect((await world.listGaps({ limit: 100 })).items).toMatchObject([{ reason: 'the bucket was created again in us-west-2', count: 1 }]);
  });

  it('again with another topic ends that the old one did not deliver, which is a gap', async () => {
    const world = setUp();
    await world.buckets.connect({ bucket: 'photos', source: 'topic', topic_arn: TOPIC }, 'someone');
    await updateRecord(world.state, refs.bucket('photos'), (record) => record && { ...record, unsubscribed: { topicArn: TOPIC, atMs: 1 } });
    expect(await world.buckets.connect({ bucket: 'photos', enrich: 'head' }, 'someone')).toMatchObject({ unsubscribed: { atMs: 1 } });
    expect((await world.listGaps({ limit: 100 })).items).toMatchObject([{ reason: 'never compared' }]);
    const after = await world.buckets.connect({ bucket: 'photos', topic_arn: `${TOPIC}-2` }, 'someone');
    expect(after).not.toHaveProperty('unsubscribed');
    expect((await world.listGaps({ limit: 100 })).items).toMatchObject([
      { reason: 'the bucket queue was unsubscribed from the topic of the bucket', count: 3 },
    ]);
  });

  it('changes the record of whoever connected it first at the same moment', async () => {
    const interfere = async (): Promise<void> => void (await other?.buckets.connect({ bucket: 'photos' }, 'the first'));
    const world = setUp((state) => racingState(state, { times: 1, matches: (id) => id === 'bucket:photos', interfere }));
    const other: World | undefined = { ...world, buckets: createConnectBucket({ ...world, state: world.plainState }) };
    expect(await world.buckets.connect({ bucket: 'photos', enrich: 'tags' }, 'the second')).toMatchObject({
      createdBy: 'the first',
      enrich: 'tags',
    });
  });

  it('covers by its gap the events that were dropped before', async () => {
    const world = setUp();
    await world.reportUnconnected('photos', 1);
    const { unconnected } = await world.list({ limit: 100 }, 'everything');
    expect(unconnected).toMatchObject([{ bucket: 'photos', count: 1 }]);
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    expect((await world.list({ limit: 100 }, 'everything')).unconnected).toEqual([]);
    expect((await world.listGaps({ limit: 100 })).items).toMatchObject([
      { bucket: 'photos', kind: 'loss', reason: 'never compared', state: 'open' },
    ]);
  });

  it('opens a gap for an event that a worker drops a moment later', async () => {
    const world = setUp();
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    await world.reportUnconnected('photos', 1);
    expect((await world.list({ limit: 100 }, 'everything')).unconnected).toEqual([]);
    expect((await world.listGaps({ limit: 100 })).items).toMatchObject([
      { bucket: 'photos', kind: 'loss', reason: 'events arrived before the bucket was connected', count: 2 },
    ]);
  });
});

describe('refreshing a bucket', () => {
  it('reads region and versioning again', async () => {
    const world = setUp();
    const before = await world.buckets.connect({ bucket: 'photos' }, 'someone');
    await world.clock.advance(86_400_000);
    world.storage.setVersioning('photos', 'suspended');
    const nowMs = world.clock.nowMs();
    const after = { ...before, versioning: { status: 'suspended', observedAtMs: nowMs }, checkedAtMs: nowMs };
    expect(await world.buckets.refresh('photos')).toEqual(after);
    expect(await requireBucket(world.state, 'photos')).toEqual(after);
  });

  it('opens a gap once a day while the queue is unsubscribed from its topic', async () => {
    const world = setUp();
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    const atMs = world.clock.nowMs();
    await updateRecord(world.state, refs.bucket('photos'), (record) => record && { ...record, unsubscribed: { topicArn: TOPIC, atMs } });
    await world.clock.advance(86_400_000);
    await world.buckets.refresh('photos');
    expect((await world.listGaps({ limit: 100 })).items).toMatchObject([{ lastSeenMs: world.clock.nowMs(), count: 2 }]);
  });

  it('keeps what was read before when versioning may no longer be read', async () => {
    const world = setUp();
    const before = await world.buckets.connect({ bucket: 'photos' }, 'someone');
    world.storage.setVersioning('photos', 'unknown');
    expect((await world.buckets.refresh('photos'))?.versioning).toEqual(before.versioning);
  });

  it('does not bring back a bucket that was disconnected', async () => {
    const world = setUp();
    expect(await world.buckets.refresh('photos')).toBeUndefined();
    expect((await world.list({ limit: 100 }, 'everything')).connected).toEqual([]);
  });
});

describe('disconnecting a bucket', () => {
  it('removes record, documents and gaps, cancels its job, and touches no other bucket', async () => {
    const world = setUp();
    world.storage.createBucket('photos-2');
    for (const bucket of ['photos', 'photos-2']) {
      await world.buckets.connect({ bucket }, 'someone');
      await world.gaps.report({ bucket, kind: 'loss', reason: 'test', seenAtMs: 1 });
    }
    const job = await world.jobs.request(reindexRequest({ bucket: 'photos' }), 'someone');
    await world.disconnect('photos');
    expect((await world.list({ limit: 100 }, 'everything')).connected.map(({ record }) => record.bucket)).toEqual(['photos-2']);
    expect((await world.listGaps({ limit: 100 })).items.map(({ bucket }) => bucket)).toEqual(['photos-2']);
    expect(await world.jobs.get(job.id)).toMatchObject({ state: 'cancelled' });
    expect(await write(world, 'a')).toMatchObject([{ kind: 'fault', code: 'bucket.index-missing' }]);
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    expect(await world.jobs.request(reindexRequest({ bucket: 'photos' }), 'someone')).toMatchObject({ state: 'queued' });
  });

  it('Fix: removes what names its last job, which must not close a gap of its next life, and leaves a job that occupies it since', async () => {
    const world = setUp();
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    await world.jobs.request(reindexRequest({ bucket: 'photos' }), 'someone');
    await world.disconnect('photos');
    expect(await readRecord(world.state, refs.jobSlot('photos'))).toBeUndefined();
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    const removeBucket = async (bucket: string) => {
      await world.buckets.autoConnect(bucket, 'notification', 10);
      await world.jobs.request(reindexRequest({ bucket }), 'someone');
      await world.objects.removeBucket(bucket);
    };
    await createDisconnectBucket({ ...world, objects: { ...world.objects, removeBucket } })('photos');
    const slot = await readRecord(world.state, refs.jobSlot('photos'));
    expect(await world.jobs.get(slot?.jobId ?? '')).toMatchObject({ state: 'queued' });
  });

  it('removes the record before the documents, and completes a removal that was cut short', async () => {
    const world = setUp();
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    const failing = { ...world.objects, removeBucket: () => Promise.reject(new FaultError('index.unreachable', 'gone')) };
    await expect(createDisconnectBucket({ ...world, objects: failing })('photos')).rejects.toMatchObject({ code: 'index.unreachable' });
    expect((await world.list({ limit: 100 }, 'everything')).connected).toEqual([]);
    await expect(world.disconnect('photos')).rejects.toMatchObject({ code: 'bucket.not-connected' });
    expect(await write(world, 'a')).toMatchObject([{ code: 'bucket.index-missing' }]);
  });

  it('leaves an index to a bucket that was connected again meanwhile', async () => {
    const world = setUp();
    await world.buckets.connect({ bucket: 'photos' }, 'someone');
    const removeBucket = async (bucket: string) => {
      await world.buckets.autoConnect(bucket, 'notification', 10);
      await world.objects.removeBucket(bucket);
    };
    await createDisconnectBucket({ ...world, objects: { ...world.objects, removeBucket } })('photos');
    expect(await readRecord(world.state, refs.bucket('photos'))).toBeDefined();
    expect((await world.listGaps({ limit: 100 })).items).toMatchObject([{ kind: 'loss', state: 'open' }]);
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
