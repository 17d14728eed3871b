/** Buckets of another region or account than the bucket queue. test/adapters/aws/iam-policy.test.ts shows with which credentials each request is sent. */
import { describe, expect, it } from 'vitest';
import { fingerprintOf } from '../../../src/domain/provisioning/canonical.ts';
import { prefixOf, ruleNameOf, snsPrincipals } from '../../../src/domain/provisioning/names.ts';
import { entriesWithout } from '../../../src/domain/provisioning/notification.ts';
import { foreignStatements, parsePolicy } from '../../../src/domain/provisioning/policy.ts';
import { sidsOf } from '../../../src/domain/provisioning/wiring.ts';
import { LEASE_MS } from '../../../src/pipeline/records/lease.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { onlyInLong } from '../../support/breadth.ts';
import { ACCOUNT, INSTALLATION, LETTERS_ARN, MARK, QUEUE_ARN, REGION, REGISTRY } from '../../support/fakes/aws-parts.ts';
import { interruptAt, newRecord, startWorld, theirs, type World } from './world.ts';

const FAR = 'af-south-1';
const OTHER = '999999999999';
const ROLE = `arn:aws:iam::${OTHER}:role/tally-connect`;
const roles = new Map([[OTHER, ROLE]]);
const UNDELIVERED = `arn:aws:sqs:${FAR}:${ACCOUNT}:${MARK}-undelivered`;

const places = [
  ['another region', { region: FAR }],
  ['another account', { account: OTHER }],
  ['another region and account', { region: FAR, account: OTHER }],
] as const;
const sources = ['notification', 'eventbridge', 'routed'] as const;
const rows = places.flatMap(([name, photos]) => sources.map((source) => [name, source, photos] as const));

type Photos = (typeof places)[number][1];

/** A topic and a rule of others beside the bucket. */
function theirsBeside({ region = REGION, account = ACCOUNT }: { readonly region?: string; readonly account?: string }) {
  return { topic: `arn:aws:sns:${region}:${account}:theirs`, rule: 'their-rule' };
}

async function startElsewhere(photos: Photos): Promise<World> {
  const world = await startWorld({ photos, roles });
  world.populate();
  const { topic, rule } = theirsBeside(photos);
  world.aws.parts.topics.set(topic, { policy: '{"Statement":[{"Sid":"Theirs"}]}', subscriptions: new Map() });
  world.aws.parts.rules.set(rule, { pattern: '{"source":["theirs"]}', isEnabled: false, targets: [{ id: 'x', arn: topic }], tags: {} });
  return world;
}

/** Everything that is not Tally's. */
function foreignOf({ aws, notified }: World, photos: Photos) {
  const ours = sidsOf({ installation: INSTALLATION, registry: REGISTRY }).all;
  const { topic, rule } = theirsBeside(photos);
  return {
    entries: entriesWithout(notified(), MARK),
    statements: [QUEUE_ARN, LETTERS_ARN].map((arn) => foreignStatements(parsePolicy(aws.parts.queues.get(arn)?.policy)!, ours)),
    topic: aws.parts.topics.get(topic),
    rule: aws.parts.rules.get(rule),
  };
}

/** The name of the one rule of Tally. */
function ourRule({ aws }: World): string {
  return [...aws.parts.rules.keys()].find((name) => name.startsWith(prefixOf(INSTALLATION))) ?? '';
}

/** Calls that change AWS, or what is stored. */
const isEffect = (call: string): boolean => !/Of$|^queueAt$|^topicTags$|^rules(?:About|Named)$/.test(call);

describe.each(rows)('a bucket of %s, source %s', (place, source, photos: Photos) => {
  const { region = REGION, account = ACCOUNT } = photos as { readonly region?: string; readonly account?: string };

  it('gets its topic and rule beside it, and the queue stays where it is', async () => {
    const world = await startElsewhere(photos);
    const before = foreignOf(world, photos);
    expect(await world.agree({ source })).toMatchObject({ state: 'applied' });
    expect(foreignOf(world, photos)).toEqual(before);
    const plan = await world.plan({ source });
    expect(plan.changes).toEqual([]);
    expect(plan.findings.map(({ code }) => code)).toEqual(source === 'routed' ? ['connect.trail-unchecked'] : []);
    const use = source === 'notification' ? 'events' : 'routed';
    const topicArn = `arn:aws:sns:${region}:${account}:tally-${INSTALLATION}-${use}`;
    const deadLetterArn = region === REGION ? LETTERS_ARN : UNDELIVERED;
    const topic = world.aws.parts.topics.get(topicArn);
    expect([...(topic?.subscriptions ?? [])]).toMatchObject([[QUEUE_ARN, { deadLetterArn }]]);
    expect(world.aws.parts.queues.has(UNDELIVERED)).toBe(region === FAR);
    const name = ourRule(world);
    const targets = [{ id: 'routed-topic', arn: topicArn, deadLetterArn }];
    expect(world.aws.parts.rules.get(name)?.targets).toEqual(source === 'notification' ? undefined : [expect.objectContaining(targets[0])]);
    const queuePolicy = world.aws.parts.queues.get(QUEUE_ARN)?.policy ?? '';
    expect(queuePolicy).toContain(`arn:aws:sns:*:${account}:tally-${INSTALLATION}-*`);
    expect(queuePolicy.includes(`sns.${FAR}.amazonaws.com`)).toBe(region === FAR);
    // no confirmation is needed: the account of the queue may subscribe this queue, and nothing else
    expect(topic?.policy.includes(`arn:aws:iam::${ACCOUNT}:root`)).toBe(account === OTHER);
    expect(await world.codes()).toEqual([]);
  });

  // the place that has the parts of both others
  const inItsTurn = place === 'another region and account' ? it : onlyInLong(it);
  inItsTurn('continues wherever it was killed, to the same end, and is taken away to what was there', { timeout: 120_000 }, async () => {
    const whole = await startElsewhere(photos);
    const before = foreignOf(whole, photos);
    let effects = 0;
    whole.aws.before = (call) => void (effects += isEffect(call) ? 1 : 0);
    await whole.agree({ source });
    whole.aws.before = () => undefined;
    const made = fingerprintOf(whole.aws.snapshot());
    expect(effects).toBeGreaterThan(10);
    // reads change nothing: a kill between two of them is one before the next effect
    for (let at = 1; at <= effects; at += 1) {
      const world = await startElsewhere(photos);
      const plan = await world.plan({ source });
      const end = await world.killed(['before', at], () => world.apply({ source }, { token: plan.token }), isEffect);
      if (end === undefined) continue;
      expect({ at, ...end }).toMatchObject({ state: 'applied' });
      expect(fingerprintOf(world.aws.snapshot())).toBe(made);
    }
    for (let at = 1; at <= 40; at += 1) {
      whole.aws[at % 2 === 0 ? 'before' : 'after'] = interruptAt(at, isEffect);
      const done = await whole.provisioning.remove('photos', { keepAws: false }).catch(() => 'killed');
      whole.aws.before = () => undefined;
      whole.aws.after = () => undefined;
      if (done !== 'killed') break;
      await whole.clock.advance(LEASE_MS);
    }
    expect(await whole.connection()).toBeUndefined();
    expect(foreignOf(whole, photos)).toEqual(before);
    expect(JSON.stringify(whole.aws.snapshot())).not.toContain(`tally-${INSTALLATION}`);
  });

  it('is planned and checked with a side for each step and each finding', async () => {
    const world = await startElsewhere(photos);
    await world.agree({ source });
    for (const found of world.aws.parts.topics.values()) found.subscriptions.clear();
    world.aws.parts.queues.get(QUEUE_ARN)!.policy = '{"Statement":[]}';
    world.notify(theirs);
    world.aws.parts.rules.delete(ourRule(world));
    const findings = await world.diagnose();
    const sides = new Map(findings.map(({ code, side }) => [code, side]));
    const beside = { of: 'bucket', account, region, ...(account === OTHER && { role: ROLE }) };
    expect(sides.get(source === 'notification' ? 'connect.notification-missing' : 'connect.rule-missing')).toEqual(beside);
    expect(sides.get('connect.queue-policy')).toEqual({ of: 'queue', account: ACCOUNT, region: REGION });
    expect(sides.get('connect.subscription-missing')).toEqual({ of: 'queue', account: ACCOUNT, region });
  });
});

describe('a bucket of another account', () => {
  it('is not planned without a role of that account, and not touched', async () => {
    const world = await startWorld({ photos: { account: OTHER } });
    for (const source of sources) {
      await expect(world.provisioning.plan({ bucket: 'photos', source })).rejects.toMatchObject({ code: 'connect.no-role' });
      await expect(world.apply({ source })).rejects.toMatchObject({ code: 'connect.no-role' });
    }
    expect(world.aws.writes).toEqual([]);
  });

  it('leaves what a bucket of the account of the queue needs', async () => {
    const world = await startWorld({ photos: { account: OTHER, region: FAR }, roles });
    await world.apply();
    await world.apply({ bucket: 'videos' });
    await world.remove();
    const plan = await world.plan({ bucket: 'videos' });
    expect(plan.changes).toEqual([]);
    const policy = world.aws.parts.queues.get(QUEUE_ARN)?.policy ?? '';
    expect(policy).toContain(`:${ACCOUNT}:tally-${INSTALLATION}-*`);
    expect(policy).not.toContain(OTHER);
    expect(world.aws.parts.queues.has(UNDELIVERED)).toBe(false);
  });

  it('is not connected to a trail or a topic of the account of the queue', async () => {
    const trailArn = `arn:aws:cloudtrail:${REGION}:${ACCOUNT}:trail/audit`;
    const world = await startWorld({ photos: { account: OTHER }, roles, trailArn });
    const plan = await world.plan({ source: 'routed' });
    expect(plan.findings).toContainEqual(expect.objectContaining({ code: 'connect.trail-account', blocks: false }));
    expect(await world.apply({ source: 'routed' })).toMatchObject({ state: 'applied', unproven: [{ code: 'connect.trail-account' }] });
    const topic = `arn:aws:sns:${REGION}:${ACCOUNT}:uploads`;
    const named = await world.provisioning.plan({ bucket: 'photos', source: 'routed', topic_arn: topic });
    expect(named.plan.findings).toContainEqual(expect.objectContaining({ code: 'connect.topic-account', blocks: true }));
  });
});

describe('what could not be delivered to a bucket of another region', () => {
  it('is reported, and its queue is not removed with its messages', async () => {
    const world = await startWorld({ photos: { region: FAR } });
    await world.apply();
    world.aws.parts.queues.get(UNDELIVERED)!.messages = 3;
    expect(await world.diagnose()).toEqual([
      expect.objectContaining({ code: 'connect.undelivered', side: { of: 'queue', account: ACCOUNT, region: REGION } }),
    ]);
    expect(await world.remove()).toEqual([{ name: UNDELIVERED, reason: 'it holds 3 messages that could not be delivered' }]);
    expect(world.aws.parts.queues.has(UNDELIVERED)).toBe(true);
  });

  it('has a queue again after it was deleted', async () => {
    const world = await startWorld({ photos: { region: FAR } });
    await world.apply();
    world.aws.parts.queues.delete(UNDELIVERED);
    expect(await world.codes()).toContain('connect.undelivered-missing');
    await world.apply();
    expect(world.aws.parts.queues.has(UNDELIVERED)).toBe(true);
  });
});

it.each(['eventbridge', 'routed'] as const)(
  'a removal leaves what a person made for another bucket of the account, also if one of the account of the queue comes first: %s',
  async (source) => {
    const world = await startWorld({ photos: { account: OTHER }, roles });
    await world.agree({ source });
    const rule = world.aws.parts.rules.get(ourRule(world))!;
    for (const [bucket, account] of [['archive', ACCOUNT] as const, ['videos', OTHER] as const]) {
      await updateRecord(world.state, refs.bucket(bucket), () => ({ ...newRecord(bucket, world.clock.nowMs()), account, source }));
      world.aws.parts.rules.set(ruleNameOf(INSTALLATION, bucket, source), rule);
    }
    await world.remove();
    const topic = `arn:aws:sns:${REGION}:${OTHER}:${prefixOf(INSTALLATION)}-routed`;
    expect(world.aws.parts.topics.get(topic)?.subscriptions.size).toBe(1);
    expect(world.aws.parts.queues.get(QUEUE_ARN)?.policy).toContain(`:${OTHER}:`);
  },
);

it.each([
  [REGION, 'eu-west-1', []],
  [FAR, FAR, []],
  [FAR, REGION, [FAR]],
  [REGION, FAR, [FAR]],
  [FAR, 'eu-south-1', ['eu-south-1', FAR]],
])('SNS of %s calls a queue of %s by the regions that must be enabled first', (topicRegion, queueRegion, named) => {
  expect(snsPrincipals(topicRegion, queueRegion)).toEqual(['sns.amazonaws.com', ...named.map((region) => `sns.${region}.amazonaws.com`)]);
});

it('a bucket of another partition of AWS is refused', async () => {
  const world = await startWorld({ photos: { region: 'cn-north-1' } });
  await expect(world.provisioning.plan({ bucket: 'photos' })).rejects.toMatchObject({ code: 'connect.partition' });
});
