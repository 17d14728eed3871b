/** What others made beside Tally's parts: it stays, and it is named where it stands in the way. */
import { describe, expect, it } from 'vitest';
import { refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { fingerprintOf } from '../../src/connect/policy.rules.ts';
import { LETTERS_ARN, QUEUE_ARN, REGION, THEIR_TOPIC } from '../support/fakes/aws-parts.ts';
import { allTo, interruptAt, newRecord, startWorld, type World } from './world.ts';

/** A subscription that a person made. */
const theirs = { arn: `${THEIR_TOPIC}:by-hand`, isPending: false, isRaw: false, deadLetterArn: LETTERS_ARN };
const byTopic = { source: 'topic', topic_arn: THEIR_TOPIC } as const;

/** These buckets send everything to the topic of others. */
async function startWithTopic(...buckets: readonly string[]): Promise<World> {
  const world = await startWorld();
  world.populate();
  for (const bucket of buckets) world.notify([allTo(THEIR_TOPIC)], { bucket });
  return world;
}

const subscriptions = ({ aws }: World) => [...aws.parts.topics.get(THEIR_TOPIC)!.subscriptions.keys()];

/** As the registry disconnects a bucket: its record goes after its parts. */
async function disconnect(world: World, bucket: string) {
  const kept = await world.remove(bucket);
  await removeRecord(world.state, refs.bucket(bucket).id);
  return kept;
}

it('the switch by which a bucket sends its events to EventBridge stays, and a removal names it as long as it is on', async () => {
  const world = await startWorld();
  world.populate();
  await world.agree({ source: 'eventbridge' });
  await world.agree({ source: 'eventbridge', bucket: 'videos' });
  const left = [{ name: 'the EventBridge switch of photos', reason: 'other rules may need it' }];
  expect(await disconnect(world, 'photos')).toEqual(left);
  expect(world.aws.parts.notifications.get('photos')).toMatchObject({ eventBridge: true });
  world.notify([], { bucket: 'videos' });
  expect(await disconnect(world, 'videos')).toEqual([]);
});

describe('the subscription of the bucket queue to a topic of others', () => {
  it('stays if a person made it before, and is named', async () => {
    const world = await startWithTopic('photos', 'videos');
    world.aws.parts.topics.get(THEIR_TOPIC)!.subscriptions.set(QUEUE_ARN, theirs);
    await world.agree(byTopic);
    await world.agree({ ...byTopic, bucket: 'videos' });
    await disconnect(world, 'photos');
    expect(await disconnect(world, 'videos')).toEqual([
      { name: theirs.arn, reason: expect.stringContaining('nothing shows that Tally created this subscription') },
    ]);
    expect(subscriptions(world)).toEqual([QUEUE_ARN]);
  });

  it("is Tally's if the one that a person had made was gone", async () => {
    const world = await startWithTopic('photos');
    world.aws.parts.topics.get(THEIR_TOPIC)!.subscriptions.set(QUEUE_ARN, theirs);
    await world.agree(byTopic);
    world.aws.parts.topics.get(THEIR_TOPIC)!.subscriptions.clear();
    await world.agree(byTopic);
    expect(await disconnect(world, 'photos')).toEqual([]);
    expect(subscriptions(world)).toEqual([]);
  });
});

describe('a subscription of the bucket queue', () => {
  it('goes if an apply was killed right after it had made it', async () => {
    const world = await startWithTopic('photos');
    world.aws.after = interruptAt(1, (call) => call === 'subscribe');
    await expect(world.agree(byTopic)).rejects.toThrow('killed');
    world.aws.after = () => undefined;
    expect(await world.remove()).toEqual([]);
    expect(subscriptions(world)).toEqual([]);
  });

  it.each([
    ['FilterPolicy', { filterPolicy: '{"a":["b"]}' }],
    ['RawMessageDelivery', { isRaw: true }],
  ])('whose %s others have set is left, and keeps an apply from going ahead', async (name, change) => {
    const world = await startWithTopic('photos');
    await world.apply(byTopic);
    await world.setBucket({ source: 'topic', topicArn: THEIR_TOPIC });
    const { subscriptions: all } = world.aws.parts.topics.get(THEIR_TOPIC)!;
    all.set(QUEUE_ARN, { ...all.get(QUEUE_ARN)!, ...change });
    const before = world.aws.snapshot();
    await expect(world.agree()).rejects.toMatchObject({ code: 'connect.blocked', extra: { finding: 'connect.subscription' } });
    expect(await world.diagnose()).toMatchObject([{ severity: 'broken', fix: expect.stringContaining(`--attribute-name ${name}`) }]);
    expect(world.aws.snapshot()).toEqual(before);
  });

  it('stays for a bucket that a person wired to the same topic, and goes where the other one names another topic', async () => {
    for (const [topic_arn, stays] of [
      [THEIR_TOPIC, true],
      [`${THEIR_TOPIC}-2`, false],
    ] as const) {
      const world = await startWithTopic('photos', 'videos');
      world.aws.parts.topics.set(`${THEIR_TOPIC}-2`, { policy: '{"Statement":[]}', subscriptions: new Map() });
      await world.agree(byTopic);
      await world.agree({ bucket: 'videos', source: 'topic', topic_arn, wired_by_hand: true });
      expect(await world.remove()).toEqual([]);
      expect(subscriptions(world)).toEqual(stays ? [QUEUE_ARN] : []);
      expect(world.aws.parts.queues.get(QUEUE_ARN)!.policy?.includes(`${THEIR_TOPIC}"`)).toBe(stays);
    }
  });
});

it('of six buckets that are removed at once, each of them again while it is busy, the last one takes the subscription and the statement', async () => {
  const buckets = ['a-1', 'a-2', 'a-3', 'a-4', 'a-5', 'a-6'];
  const world = await startWithTopic(...buckets);
  const before = fingerprintOf(world.aws.snapshot());
  for (const bucket of buckets) {
    world.storage.createBucket(bucket, { region: REGION });
    await updateRecord(world.state, refs.bucket(bucket), () => newRecord(bucket, world.clock.nowMs()));
    await world.agree({ ...byTopic, bucket });
  }
  for (let left: readonly string[] = buckets, round = 0; left.length > 0; round += 1) {
    expect(round).toBeLessThan(buckets.length);
    const ends = await Promise.allSettled(left.map((bucket) => disconnect(world, bucket)));
    for (const end of ends) if (end.status === 'rejected') expect(end.reason).toMatchObject({ code: 'connect.busy' });
    left = left.filter((_, at) => ends[at]?.status === 'rejected');
  }
  expect(fingerprintOf(world.aws.snapshot())).toBe(before);
  for (const bucket of buckets) expect(await world.connection(bucket)).toBeUndefined();
});

it('a removal is refused while the record of another connection cannot be read: what that one needs is not known', async () => {
  const world = await startWithTopic('photos', 'videos');
  for (const bucket of ['photos', 'videos']) await world.agree({ ...byTopic, bucket });
  await world.state.put(
    { id: 'bucket:videos', kind: 'bucket', record: { source: 'newer' } },
    (await world.state.get('bucket:videos'))!.version,
  );
  await expect(world.remove()).rejects.toMatchObject({ code: 'record.newer' });
  expect(subscriptions(world)).toEqual([QUEUE_ARN]);
  expect(await world.connection()).toMatchObject({ state: 'applied' });
});

it('a removal that leaves the parts in AWS waits for whoever changes connections now, who would store the record again', async () => {
  const world = await startWorld();
  await world.apply();
  const held = { claim: { holder: 'another process', renewals: 0 } };
  const lock = await world.state.put({ id: 'lease:connection:photos', kind: 'lock', record: held }, null);
  if (lock === 'conflict') throw new Error('the lock is held');
  await expect(world.remove('photos', { keepAws: true })).rejects.toMatchObject({ code: 'connect.busy' });
  expect(await world.connection()).toMatchObject({ state: 'applied' });
  await world.state.remove('lease:connection:photos', lock.version);
  const before = world.aws.snapshot();
  await world.remove('photos', { keepAws: true });
  expect(await world.connection()).toBeUndefined();
  expect(world.aws.snapshot()).toEqual(before);
});
