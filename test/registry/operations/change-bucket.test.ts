import { describe, expect, it } from 'vitest';
import { THEIR_TOPIC } from '../../support/fakes/aws-parts.ts';
import { RequestError } from '../../../src/base/request-error.ts';
import { allTo, theirs } from '../../connect/world.ts';
import { createControlWorld } from '../../support/worlds/control.ts';

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

  it.each([
    [{ topic_arn: THEIR_TOPIC }, /with the source notification, Tally creates the topic.*"topic" if S3.*"routed" if an EventBridge rule/],
    [{ source: 'eventbridge' as const, topic_arn: THEIR_TOPIC }, /with the source eventbridge/],
    [{ source: 'topic' as const }, /needs the ARN/],
    [{ source: 'topic' as const, topic_arn: `${THEIR_TOPIC}.fifo` }, /standard topics only/],
  ])('is refused if it cannot be: %j', async (request, message) => {
    const world = await startConnected();
    const before = await world.record();
    await expect(world.add({ bucket: 'photos', ...request }, 'test')).rejects.toMatchObject({
      code: 'request.invalid',
      message: expect.stringMatching(message),
    });
    expect(await world.record()).toEqual(before);
  });
});

describe('a new bucket whose parts are made', () => {
  it.each<[string, (world: ReturnType<typeof createControlWorld>) => unknown, object, string]>([
    ['of which another plan was agreed to', () => undefined, { plan: 'another' }, 'connect.plan-outdated'],
    [
      'that touches what others have',
      ({ aws }) => aws.parts.notifications.set('photos', { entries: theirs, eventBridge: false }),
      {},
      'connect.plan-needed',
    ],
    [
      'whose plan is blocked',
      ({ aws }) => aws.parts.notifications.set('photos', { entries: [allTo(THEIR_TOPIC)], eventBridge: false }),
      {},
      'connect.overlap',
    ],
  ])('is refused, and nothing is stored: one %s', async (_, prepare, request, code) => {
    const world = createControlWorld();
    prepare(world);
    await expect(world.add({ bucket: 'photos', ...request }, 'test')).rejects.toMatchObject({ code });
    expect([await world.record(), await world.allGaps(), await world.allJobs()]).toEqual([undefined, [], []]);
    expect(world.aws.writes).toEqual([]);
  });

  it('is left to the person who wired it, and nothing is written', async () => {
    const world = createControlWorld();
    expect(await world.add({ bucket: 'photos', wired_by_hand: true }, 'test')).toMatchObject({ connection: { state: 'applied' } });
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
