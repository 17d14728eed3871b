/** Buckets of another region or account than the bucket queue. Those of another region, whole: flow/connections-story.test.ts. */
import { expect, it } from 'vitest';
import { fingerprintOf } from '../../src/connect/policy.rules.ts';
import { snsPrincipals } from '../../src/connect/names.rules.ts';
import { ACCOUNT, INSTALLATION, QUEUE_ARN, REGION } from '../support/fakes/aws-parts.ts';
import { allTo, startWorld } from './world.ts';

const FAR = 'af-south-1';
const OTHER = '999999999999';
const FAR_LETTERS = `arn:aws:sqs:${FAR}:${ACCOUNT}:tally-${INSTALLATION}-dead-letters`;
const topicOf = (use: string): string => `arn:aws:sns:${FAR}:${ACCOUNT}:tally-${INSTALLATION}-${use}`;

const sources = ['notification', 'eventbridge', 'routed'] as const;

it('a bucket of another region is refused with the command for its region where nothing was set up there', async () => {
  const world = await startWorld({ photos: { region: FAR } });
  for (const use of ['events', 'routed']) world.aws.parts.topics.delete(topicOf(use));
  await expect(world.agree({ source: 'eventbridge' })).rejects.toMatchObject({
    code: 'connect.blocked',
    message: expect.stringContaining(`\`tally setup --region ${FAR} --apply\``),
  });
  expect(world.aws.writes).toEqual([]);
});

// Bug: the rule of the region before stayed for ever. Fix: the region is a part of the way that a bucket had
it.each(['eventbridge', 'routed'] as const)(
  'a bucket that was made again in another region loses its rule in the old one: %s',
  async (source) => {
    for (const isRemoved of [false, true]) {
      const world = await startWorld({ photos: { region: FAR } });
      const before = fingerprintOf(world.aws.snapshot());
      await world.agree({ source });
      await world.setBucket({ region: REGION });
      world.notify([]);
      await world.agree({ source });
      expect(world.aws.parts.rules.size).toBe(2);
      await world.closeGap();
      if (!isRemoved) {
        await world.removeEarlier();
        expect([...world.aws.parts.rules.keys()].filter((key) => key.includes(FAR))).toEqual([]);
        expect((await world.plan({ source })).changes).toEqual([]);
      }
      await world.remove();
      world.notify([]);
      expect(fingerprintOf(world.aws.snapshot())).toBe(before);
    }
  },
);

it('a bucket of another region whose dead-letter queue is missing has a finding, which keeps no apply from going ahead', async () => {
  const world = await startWorld({ photos: { region: FAR } });
  world.aws.parts.queues.delete(FAR_LETTERS);
  expect(await world.apply()).toMatchObject({ state: 'applied' });
  expect(await world.diagnose()).toMatchObject([
    { code: 'connect.set-up-unsafe', severity: 'degraded', fix: `tally setup --region ${FAR} --apply` },
  ]);
});

it('a bucket of another account comes by a topic that its owner made, and Tally makes nothing there but the subscription', async () => {
  const world = await startWorld({ photos: { account: OTHER } });
  for (const source of sources) {
    await expect(world.connections.plan({ bucket: 'photos', source })).rejects.toMatchObject({ code: 'connect.blocked' });
    await expect(world.apply({ source })).rejects.toMatchObject({ code: 'connect.blocked' });
  }
  expect(world.aws.writes).toEqual([]);
  const topicArn = `arn:aws:sns:${REGION}:${OTHER}:changes`;
  world.aws.parts.topics.set(topicArn, { policy: '{"Statement":[]}', subscriptions: new Map() });
  world.notify([allTo(topicArn)]);
  expect(await world.apply({ source: 'topic', topic_arn: topicArn })).toMatchObject({ state: 'applied' });
  expect(new Set(world.aws.writes)).toEqual(new Set(['setQueue', 'subscribe']));
  expect(world.aws.parts.queues.get(QUEUE_ARN)?.policy).toContain(topicArn);
  expect(await world.codes({ source: 'topic', topicArn })).toEqual([]);
  await world.remove();
  expect(world.aws.parts.topics.get(topicArn)?.subscriptions.size).toBe(0);
  expect(world.aws.parts.queues.get(QUEUE_ARN)?.policy ?? '').not.toContain(OTHER);
});

it.each([
  [REGION, 'eu-west-1', []],
  [FAR, FAR, []],
  [FAR, REGION, [FAR]],
  [REGION, FAR, [FAR]],
  [FAR, 'eu-south-1', ['eu-south-1', FAR]],
])('SNS of %s calls a queue of %s by the regions that must be enabled first', (topicRegion, queueRegion, named) => {
  expect(snsPrincipals(topicRegion, queueRegion)).toEqual(['sns.amazonaws.com', ...named.map((region) => `sns.${region}.amazonaws.com`)]);
});

it('a directory bucket, which sends no events, is refused', async () => {
  const world = await startWorld();
  const refusal = { code: 'connect.blocked', message: expect.stringContaining('directory bucket') };
  await expect(world.plan({ bucket: 'photos--use1-az4--x-s3' })).rejects.toMatchObject(refusal);
});
