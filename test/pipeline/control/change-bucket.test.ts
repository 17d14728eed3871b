import { describe, expect, it } from 'vitest';
import { THEIR_TOPIC } from '../../support/fakes/aws-parts.ts';
import { createControlWorld } from '../../support/worlds/control.ts';

const signal = new AbortController().signal;
const MINUTE_MS = 60_000;

async function startConnected() {
  const world = { ...createControlWorld(), gap: async () => (await world.allGaps())[0] };
  await world.add({ bucket: 'photos' }, 'test');
  await world.run(5);
  expect(await world.gap()).toBeUndefined();
  return { ...world, before: (await world.allJobs()).length };
}

describe('a change of a bucket', () => {
  it('of its source opens a gap, which exactly one job of the whole bucket closes when the change has taken effect', async () => {
    const world = await startConnected();
    await world.change('photos', { source: 'eventbridge' }, 'test');
    expect(await world.record()).toMatchObject({ source: 'eventbridge' });
    await world.run(6);
    expect(await world.allJobs()).toHaveLength(world.before);
    await world.run(60);
    expect(await world.gap()).toBeUndefined();
    expect((await world.allJobs()).slice(world.before)).toMatchObject([{ prefix: '', mode: 'apply', requestedBy: 'gap' }]);
  });

  it('opens the same gap where it is added again with another source or topic, and none with the same', async () => {
    for (const [request, isOpen] of [
      [{ source: 'eventbridge' }, true],
      [{ source: 'topic', topic_arn: THEIR_TOPIC }, true],
      [{ source: 'notification' }, false],
    ] as const) {
      const world = await startConnected();
      await world.add({ bucket: 'photos', ...request }, 'test');
      const untilMs = isOpen ? world.clock.nowMs() + 7 * MINUTE_MS : undefined;
      expect({ request, untilMs: (await world.gap())?.waits?.untilMs }).toEqual({ request, untilMs });
    }
  });

  it('of its source and an apply within minutes need one job together', async () => {
    const world = await startConnected();
    const { madeFor } = await world.change('photos', { source: 'eventbridge' }, 'test');
    expect(madeFor).toBeUndefined();
    await world.run(2);
    const { token } = await world.connections.plan('photos', {}, signal);
    expect(await world.connections.apply('photos', { plan: token }, 'test', signal)).toMatchObject({
      state: 'applied',
      source: 'eventbridge',
    });
    await world.run(60);
    expect((await world.allJobs()).slice(world.before)).toHaveLength(1);
    expect((await world.change('photos', { source: 'notification' }, 'test')).madeFor).toBe('eventbridge');
  });

  it('leaves AWS alone, so that the earlier parts deliver until others are made', async () => {
    const world = await startConnected();
    await world.connections.apply('photos', {}, 'test', signal);
    const parts = world.aws.snapshot();
    await world.change('photos', { source: 'routed' }, 'test');
    expect(world.aws.snapshot()).toEqual(parts);
  });

  it('of its enrichment to head opens no gap, and says that documents lack it', async () => {
    const world = await startConnected();
    expect(await world.change('photos', { enrich: 'head' }, 'test')).toMatchObject({ isFillWanted: true, record: { enrich: 'head' } });
    expect(await world.gap()).toBeUndefined();
  });

  it('of its enrichment to tags opens the gap of the documents that have none, once', async () => {
    const world = await startConnected();
    await world.change('photos', { enrich: 'head' }, 'test');
    expect(await world.change('photos', { enrich: 'tags' }, 'test')).toMatchObject({ isFillWanted: true, record: { enrich: 'tags' } });
    expect(await world.gap()).toMatchObject({ readTags: true, reasons: [{ kind: 'tags', count: 1 }] });
    await world.change('photos', { enrich: 'tags' }, 'test');
    await world.change('photos', { enrich: 'none' }, 'test');
    expect(await world.gap()).toMatchObject({ reasons: [{ count: 1 }] });
  });

  it('forgets a topic on request', async () => {
    const world = await startConnected();
    await world.change('photos', { source: 'routed', topic_arn: THEIR_TOPIC }, 'test');
    expect(await world.record()).toMatchObject({ topicArn: THEIR_TOPIC });
    await world.change('photos', { topic_arn: null }, 'test');
    expect(await world.record()).not.toHaveProperty('topicArn');
  });

  it.each([
    [{ topic_arn: THEIR_TOPIC }, /with the source notification Tally makes the topic.*"topic" if S3.*"routed" if a rule/],
    [{ source: 'notification' as const, topic_arn: THEIR_TOPIC }, /with the source notification/],
    [{ source: 'eventbridge' as const, topic_arn: THEIR_TOPIC }, /with the source eventbridge/],
    [{ source: 'topic' as const }, /must be given/],
    [{ source: 'topic' as const, topic_arn: null }, /must be given/],
    [{ source: 'topic' as const, topic_arn: `${THEIR_TOPIC}.fifo` }, /standard topics only/],
    [{ source: 'topic' as const, topic_arn: `${THEIR_TOPIC}:missing` }, /there is no topic/],
  ])('is refused if it cannot be: %j', async (request, message) => {
    const world = await startConnected();
    const before = await world.record();
    await expect(world.change('photos', request, 'test')).rejects.toMatchObject({
      code: 'request.invalid',
      message: expect.stringMatching(message),
    });
    expect(await world.record()).toEqual(before);
  });
});

describe('a new bucket whose parts are made', () => {
  it('is made only as in the plan that was agreed to', async () => {
    const world = createControlWorld();
    await world.add({ bucket: 'photos', apply: true }, 'test');
    const { token } = await world.connections.plan('photos', {}, signal);
    const outdated = world.connections.applyAdded({ bucket: 'photos', plan: 'another' }, 'test', signal);
    await expect(outdated).rejects.toMatchObject({ code: 'connect.plan-outdated' });
    expect(await world.connections.applyAdded({ bucket: 'photos', plan: token }, 'test', signal)).toMatchObject({ state: 'applied' });
  });

  it('is indexed at once by a job that proves nothing, and proven by exactly one more when the change has taken effect', async () => {
    const world = createControlWorld();
    await world.add({ bucket: 'photos', apply: true }, 'test');
    expect(await world.allJobs()).toMatchObject([{ now: true, prefix: '', mode: 'apply' }]);
    expect(await world.connections.applyAdded({ bucket: 'photos' }, 'test', signal)).toMatchObject({ state: 'applied' });
    await world.run(6);
    expect(await world.allGaps()).toHaveLength(1);
    expect(await world.allJobs()).toHaveLength(1);
    await world.run(120);
    expect(await world.allGaps()).toEqual([]);
    expect(await world.allJobs()).toMatchObject([{ now: true }, { prefix: '', requestedBy: 'gap' }]);
  });
});
