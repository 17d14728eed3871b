import { describe, expect, it } from 'vitest';
import type { Finding } from '../../../src/domain/provisioning/checks/finding.ts';
import type { Provisioning } from '../../../src/pipeline/provision/provisioning.ts';
import { readRecord, refs } from '../../../src/pipeline/records/stored.ts';
import { ACCOUNT, INSTALLATION, QUEUE_ARN, QUEUE_URL, REGION, THEIR_TOPIC, TOPIC_ARN } from '../../support/fakes/aws-parts.ts';
import { allTo, startWorld, theirs, wishes, type World } from './world.ts';

const NEW_URL = `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/another-queue`;
const NEW_ARN = `arn:aws:sqs:${REGION}:${ACCOUNT}:another-queue`;
const signal = new AbortController().signal;

/** A connected bucket, whose daemon then receives from another queue. */
async function startChanged(wish: object): Promise<World> {
  const world = await startWorld();
  world.populate();
  if ('topic_arn' in wish) world.notify([...theirs, allTo(THEIR_TOPIC)], { eventBridge: true });
  world.aws.parts.queues.set(NEW_ARN, { maxReceiveCount: 20 });
  await world.agree(wish);
  return world;
}

async function findingsOf(world: World, provisioning: Provisioning): Promise<readonly Finding[]> {
  return (await provisioning.diagnose((await readRecord(world.state, refs.bucket('photos')))!)).findings;
}

/** Without what is always said of a source. */
async function codesOf(world: World, provisioning: Provisioning): Promise<readonly string[]> {
  return (await findingsOf(world, provisioning)).map(({ code }) => code).filter((code) => code !== 'connect.trail-unchecked');
}

describe('after TALLY_QUEUE_URL was changed', () => {
  it.each(wishes)('the doctor of a bucket of the source %s finds it, an apply heals it, and the rest goes', async (_, wish) => {
    const world = await startChanged(wish);
    const before = JSON.stringify(world.aws.parts.queues.get(QUEUE_ARN));
    expect(before).toContain(INSTALLATION);
    const daemon = world.receivingFrom(NEW_URL);
    expect(await findingsOf(world, daemon)).toContainEqual(
      expect.objectContaining({ code: 'connect.queue-policy', severity: 'broken', what: expect.stringContaining(NEW_ARN) as string }),
    );
    const { plan } = await daemon.plan({ bucket: 'photos', ...wish });
    expect((await daemon.apply({ bucket: 'photos', ...wish }, { token: plan.token })).applied).toMatchObject({ state: 'applied' });
    expect(await codesOf(world, daemon)).toEqual([]);

    await world.closeGap();
    await daemon.removeEarlier('photos', signal);
    expect(await codesOf(world, daemon)).toEqual([]);
    expect((await daemon.plan({ bucket: 'photos', ...wish })).plan.changes).toEqual([]);
    expect(JSON.stringify(world.aws.parts.queues.get(QUEUE_ARN))).not.toContain(INSTALLATION);
    expect([...world.aws.parts.topics.values()].flatMap(({ subscriptions }) => [...subscriptions.keys()])).not.toContain(QUEUE_ARN);
  });

  it.each(wishes)('a removal for the source %s takes away what led to either queue', async (_, wish) => {
    const world = await startChanged(wish);
    const daemon = world.receivingFrom(NEW_URL);
    const { plan } = await daemon.plan({ bucket: 'photos', ...wish });
    await daemon.apply({ bucket: 'photos', ...wish }, { token: plan.token });
    const kept = await daemon.remove('photos', { keepAws: false });
    expect(kept?.filter(({ reason }) => !/TALLY_TRAIL_ARN|rules of others/.test(reason))).toEqual([]);
    expect(JSON.stringify(world.aws.snapshot())).not.toContain(INSTALLATION);
  });

  it('another bucket keeps what still leads to the old queue', async () => {
    const world = await startChanged({});
    await world.apply({ bucket: 'videos' });
    const daemon = world.receivingFrom(NEW_URL);
    const { plan } = await daemon.plan({ bucket: 'photos' });
    await daemon.apply({ bucket: 'photos' }, { token: plan.token });
    await daemon.remove('photos', { keepAws: false });
    expect([...world.aws.parts.topics.get(TOPIC_ARN)!.subscriptions.keys()]).toEqual([QUEUE_ARN]);
    expect(world.aws.parts.queues.get(QUEUE_ARN)!.policy).toContain(INSTALLATION);
    await daemon.remove('videos', { keepAws: false });
    expect(JSON.stringify(world.aws.snapshot())).not.toContain(INSTALLATION);
  });

  it('a queue that is only one of several is still right', async () => {
    const world = await startChanged({});
    expect(await codesOf(world, world.receivingFrom(NEW_URL, QUEUE_URL))).toEqual([]);
  });

  it('the old queue may be gone', async () => {
    const world = await startChanged({});
    const daemon = world.receivingFrom(NEW_URL);
    world.aws.parts.queues.delete(QUEUE_ARN);
    const { plan } = await daemon.plan({ bucket: 'photos' });
    await daemon.apply({ bucket: 'photos' }, { token: plan.token });
    expect(await daemon.remove('photos', { keepAws: false })).toEqual([]);
    expect(JSON.stringify(world.aws.snapshot())).not.toContain(INSTALLATION);
  });
});
