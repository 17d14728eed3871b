import { describe, expect, it } from 'vitest';
import { FaultError } from '../../../src/base/fault.ts';
import { RequestError } from '../../../src/base/request-error.ts';
import { addBucket } from '../../../src/registry/operations/buckets.ts';
import { refs, updateRecord } from '../../../src/store/stored.ts';
import { theirs } from '../../connect/world.ts';
import { connectionsOn } from '../../support/fakes/aws-parts.ts';
import { recordOf } from '../../support/fakes/bucket-record.ts';
import { localActor } from '../../support/identity/actors.ts';
import { reindexRequest } from '../../support/requests.ts';
import { createControlWorld } from '../../support/worlds/control.ts';

const DAY_MS = 86_400_000;

describe('adding a bucket', () => {
  // Bug: `bucket add demo --source routed` in the embedded mode said that it was done, and the source stayed
  it('of the embedded storage with another source is refused', async () => {
    const { aws, ...world } = createControlWorld();
    const parts = { ...world, connections: connectionsOn(aws, { ...world, isEmbedded: true }) };
    const signal = new AbortController().signal;
    const added = addBucket(parts, { bucket: 'photos', source: 'routed' }, 'someone', signal);
    await expect(added).rejects.toMatchObject({ code: 'connect.embedded' });
    expect(await world.record()).toBeUndefined();
    expect((await addBucket(parts, { bucket: 'photos' }, 'someone', signal)).record.source).toBe('notification');
  });

  it('that asks for more enrichment than before wants it filled in, and one that asks for less or the same does not; neither starts a job', async () => {
    const world = createControlWorld();
    const wanted: boolean[] = [];
    for (const enrich of ['head', 'head', 'tags', 'none', 'tags', 'head', undefined] as const) {
      wanted.push((await world.add({ bucket: 'photos', ...(enrich && { enrich }) }, 'someone')).isFillWanted);
      // reports of one gap are stored at most once a second
      await world.clock.advance(1_000);
    }
    expect(wanted).toEqual([false, false, true, false, true, false, false]);
    // the first one
    expect(await world.allJobs()).toHaveLength(1);
  });

  it('while the job cannot be stored, leaves that to the calendar', async () => {
    const world = createControlWorld();
    const request = () => Promise.reject(new FaultError('index.blocked', 'disk full'));
    const parts = { ...world, jobs: { request } };
    expect(await addBucket(parts, { bucket: 'photos' }, 'someone', new AbortController().signal)).toMatchObject({ jobId: undefined });
    expect(world.telemetry.recorded('requestFailed')).toEqual([['start the first re-index', 'index.blocked', 'disk full']]);
    // once AWS has applied the change
    await world.after(480_000);
    expect(await world.allJobs()).toMatchObject([{ bucket: 'photos', requestedBy: 'gap' }]);
  });

  it('without a first re-index holds the gap until a re-index is requested', async () => {
    const world = createControlWorld();
    expect(await world.add({ bucket: 'photos', reindex: false }, 'someone')).toMatchObject({ jobId: undefined });
    for (let days = 0; days < 3; days += 1) await world.after(DAY_MS);
    expect(await world.allJobs()).toEqual([]);
    expect(await world.allGaps()).toMatchObject([{ held: {} }]);
    const { id } = await world.jobs.request(reindexRequest({ bucket: 'photos' }), 'someone');
    await world.after(15_000);
    const [closing] = await world.allGaps();
    expect(closing).toMatchObject({ jobId: id });
    expect(closing).not.toHaveProperty('held');
    await world.jobs.cancel(id);
    // from now on the calendar tries again, as with every gap
    for (let minutes = 0; minutes < 3; minutes += 1) await world.after(60_000);
    expect((await world.allJobs()).map(({ requestedBy }) => requestedBy)).toEqual(['someone', 'gap']);
  });
});

async function startConnected() {
  const world = { ...createControlWorld(), gap: async () => (await world.allGaps())[0] };
  await world.connectBucket.connect({ bucket: 'photos' }, 'test');
  await world.run(5);
  expect(await world.gap()).toBeUndefined();
  return { ...world, before: (await world.allJobs()).length };
}

describe('a change of a bucket', () => {
  it('of its source opens a gap, which exactly one job of the whole bucket closes when the change has taken effect', async () => {
    const world = await startConnected();
    const { token } = (await world.connections.plan({ bucket: 'photos', source: 'eventbridge' })).plan;
    await world.add({ bucket: 'photos', source: 'eventbridge', plan: token }, 'test');
    expect(await world.record()).toMatchObject({ source: 'eventbridge' });
    await world.run(6);
    expect(await world.allJobs()).toHaveLength(world.before);
    await world.run(60);
    expect(await world.gap()).toBeUndefined();
    expect((await world.allJobs()).slice(world.before)).toMatchObject([{ prefix: '', mode: 'apply', requestedBy: 'gap' }]);
  });

  it('of its enrichment to tags opens the gap of the documents that have none, once, and says that they lack it', async () => {
    const world = await startConnected();
    const change = (enrich: 'none' | 'tags') => world.add({ bucket: 'photos', enrich }, 'test');
    expect(await change('tags')).toMatchObject({ isFillWanted: true, record: { enrich: 'tags' } });
    const ofTags = { reasons: expect.arrayContaining([expect.objectContaining({ kind: 'tags', count: 1 })]) };
    expect(await world.gap()).toMatchObject({ readTags: true, ...ofTags });
    await change('tags');
    await change('none');
    expect(await world.gap()).toMatchObject(ofTags);
  });
});

describe('a new bucket whose parts are made', () => {
  // what is refused: connect/apply.test.ts
  it('is refused before anything is stored where its plan touches what others have', async () => {
    const world = createControlWorld();
    world.aws.parts.notifications.set('photos', { entries: theirs, eventBridge: false });
    await expect(world.add({ bucket: 'photos' }, 'test')).rejects.toMatchObject({ code: 'connect.plan-needed' });
    expect([await world.record(), await world.allGaps(), await world.allJobs()]).toEqual([undefined, [], []]);
    expect(world.aws.writes).toEqual([]);
  });

  it('keeps its record as it is until the parts of another source are made', async () => {
    const world = createControlWorld();
    await world.add({ bucket: 'photos' }, 'test');
    world.aws.before = (call) => {
      if (call === 'putRule') throw new RequestError('connect.denied', 'no');
    };
    const { token } = (await world.connections.plan({ bucket: 'photos', source: 'eventbridge' })).plan;
    const asked = { bucket: 'photos', source: 'eventbridge', plan: token } as const;
    await expect(world.add(asked, 'test')).rejects.toMatchObject({ code: 'connect.denied' });
    expect(await world.record()).toMatchObject({ source: 'notification' });
    world.aws.before = () => undefined;
    await world.add(asked, 'test');
    expect(await world.record()).toMatchObject({ source: 'eventbridge' });
    expect(await world.record()).not.toHaveProperty('topicArn');
  });

  it('is indexed at once by a job that proves nothing, and proven by exactly one more when the change has taken effect', async () => {
    const world = createControlWorld();
    await world.add({ bucket: 'photos' }, 'test');
    expect(await world.allJobs()).toMatchObject([{ now: true, prefix: '', mode: 'apply' }]);
    await world.run(6);
    expect(await world.allGaps()).toHaveLength(1);
    expect(await world.allJobs()).toHaveLength(1);
    await world.run(120);
    expect(await world.allGaps()).toEqual([]);
    expect(await world.allJobs()).toMatchObject([{ now: true }, { prefix: '', requestedBy: 'gap' }]);
  });
});

it('what goes on besides the buckets is the jobs that have not ended', async () => {
  const { state, jobs, operations } = createControlWorld();
  const context = { actor: localActor, signal: new AbortController().signal };
  const activity = async () => (await operations.listBuckets({}, context)).activity;
  expect(await activity()).toMatchObject({ jobs: 0 });
  for (const jobState of ['queued', 'running', 'paused', 'done', 'failed', 'cancelled'] as const) {
    await updateRecord(state, refs.bucket(jobState), () => recordOf(jobState));
    const { id } = await jobs.request(reindexRequest({ bucket: jobState }), 'someone');
    await updateRecord(state, refs.job(id), (job) => job && { ...job, state: jobState });
  }
  expect(await activity()).toMatchObject({ jobs: 3 });
});
