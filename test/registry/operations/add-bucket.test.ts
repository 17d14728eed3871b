import { describe, expect, it } from 'vitest';
import { FaultError } from '../../../src/base/fault.ts';
import { addBucket } from '../../../src/registry/operations/buckets.ts';
import { readRecord, refs } from '../../../src/store/stored.ts';
import { connectionsOn, THEIR_TOPIC } from '../../support/fakes/aws-parts.ts';
import { reindexRequest } from '../../support/requests.ts';
import { createControlWorld } from '../../support/worlds/control.ts';

const DAY_MS = 86_400_000;

describe('adding a bucket', () => {
  // Bug: `bucket add demo --source routed` in the embedded mode said that it was done, and the source stayed
  it.each(['topic', 'routed', 'eventbridge', 'webhook'] as const)(
    'of the embedded storage with the source %s is refused',
    async (source) => {
      const { aws, ...world } = createControlWorld();
      const connections = connectionsOn(aws, { ...world, isEmbedded: true });
      const topic = source === 'topic' ? { topic_arn: THEIR_TOPIC } : {};
      const signal = new AbortController().signal;
      const added = addBucket({ ...world, connections }, { bucket: 'photos', source, ...topic }, 'someone', signal);
      await expect(added).rejects.toMatchObject({ code: 'connect.embedded' });
      expect(await readRecord(world.state, refs.bucket('photos'))).toBeUndefined();
      expect((await addBucket({ ...world, connections }, { bucket: 'photos' }, 'someone', signal)).record.source).toBe('notification');
    },
  );

  it('that is connected already starts none', async () => {
    const world = createControlWorld();
    await world.connectBucket.connect({ bucket: 'photos' }, 'someone');
    expect(await world.add({ bucket: 'photos', enrich: 'head' }, 'someone')).toMatchObject({ jobId: undefined });
    expect(await world.allJobs()).toEqual([]);
  });

  it('that asks for more enrichment than before wants it filled in, and one that asks for less or the same does not', async () => {
    const world = createControlWorld();
    const wanted: boolean[] = [];
    for (const enrich of ['head', 'head', 'tags', 'none', 'tags', 'head', undefined] as const) {
      wanted.push((await world.add({ bucket: 'photos', ...(enrich && { enrich }) }, 'someone')).isFillWanted);
      // reports of one gap are stored at most once a second
      await world.clock.advance(1_000);
    }
    expect(wanted).toEqual([false, false, true, false, true, false, false]);
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
