/** Buckets of another region or account than the bucket queue. */
import { describe, expect, it } from 'vitest';
import { fingerprintOf } from '../../../src/domain/provisioning/canonical.ts';
import { prefixOf, snsPrincipals } from '../../../src/domain/provisioning/names.ts';
import { entriesWithout } from '../../../src/domain/provisioning/notification.ts';
import { foreignStatements, parsePolicy } from '../../../src/domain/provisioning/policy.ts';
import { sidsOf } from '../../../src/domain/provisioning/wiring.ts';
import { LEASE_MS } from '../../../src/pipeline/records/lease.ts';
import { ACCOUNT, INSTALLATION, LETTERS_ARN, MARK, QUEUE_ARN, REGION, REGISTRY } from '../../support/fakes/aws-parts.ts';
import { allTo, interruptAt, startWorld, type World } from './world.ts';

const FAR = 'af-south-1';
const OTHER = '999999999999';
const UNDELIVERED = `arn:aws:sqs:${FAR}:${ACCOUNT}:${MARK}-undelivered`;

const sources = ['notification', 'eventbridge', 'routed'] as const;
const photos = { region: FAR };
/** A topic of others beside the bucket, and their rule. */
const THEIR_FAR_TOPIC = `arn:aws:sns:${FAR}:${ACCOUNT}:theirs`;
const THEIR_RULE = 'their-rule';

async function startElsewhere(): Promise<World> {
  const world = await startWorld({ photos });
  world.populate();
  const { topics, rules } = world.aws.parts;
  topics.set(THEIR_FAR_TOPIC, { policy: '{"Statement":[{"Sid":"Theirs"}]}', subscriptions: new Map() });
  rules.set(THEIR_RULE, { pattern: '{"source":["theirs"]}', isEnabled: false, targets: [{ id: 'x', arn: THEIR_FAR_TOPIC }], tags: {} });
  return world;
}

/** Everything that is not Tally's. */
function foreignOf({ aws, notified }: World) {
  const ours = sidsOf({ installation: INSTALLATION, registry: REGISTRY }).all;
  return {
    entries: entriesWithout(notified(), MARK),
    statements: [QUEUE_ARN, LETTERS_ARN].map((arn) => foreignStatements(parsePolicy(aws.parts.queues.get(arn)?.policy)!, ours)),
    topic: aws.parts.topics.get(THEIR_FAR_TOPIC),
    rule: aws.parts.rules.get(THEIR_RULE),
  };
}

/** The name of the one rule of Tally. */
function ourRule({ aws }: World): string {
  return [...aws.parts.rules.keys()].find((name) => name.startsWith(prefixOf(INSTALLATION))) ?? '';
}

/** Calls that change AWS, or what is stored. */
const isEffect = (call: string): boolean => !/Of$|^queueAt$|^topicTags$|^rules(?:About|Named)$/.test(call);

describe.each(sources)('a bucket of another region, source %s', (source) => {
  it('gets its topic and rule beside it, and the queue stays where it is', async () => {
    const world = await startElsewhere();
    const before = foreignOf(world);
    expect(await world.agree({ source })).toMatchObject({ state: 'applied' });
    expect(foreignOf(world)).toEqual(before);
    const plan = await world.plan({ source });
    expect(plan.changes).toEqual([]);
    expect(plan.findings.map(({ code }) => code)).toEqual(source === 'routed' ? ['connect.trail-unchecked'] : []);
    const use = source === 'notification' ? 'events' : 'routed';
    const topicArn = `arn:aws:sns:${FAR}:${ACCOUNT}:tally-${INSTALLATION}-${use}`;
    const deadLetterArn = UNDELIVERED;
    const topic = world.aws.parts.topics.get(topicArn);
    expect([...(topic?.subscriptions ?? [])]).toMatchObject([[QUEUE_ARN, { deadLetterArn }]]);
    expect(world.aws.parts.queues.has(UNDELIVERED)).toBe(true);
    const name = ourRule(world);
    const targets = [{ id: 'routed-topic', arn: topicArn, deadLetterArn }];
    expect(world.aws.parts.rules.get(name)?.targets).toEqual(source === 'notification' ? undefined : [expect.objectContaining(targets[0])]);
    const queuePolicy = world.aws.parts.queues.get(QUEUE_ARN)?.policy ?? '';
    expect(queuePolicy).toContain(`arn:aws:sns:*:${ACCOUNT}:tally-${INSTALLATION}-*`);
    expect(queuePolicy.includes(`sns.${FAR}.amazonaws.com`)).toBe(true);
    expect(await world.codes()).toEqual([]);
  });

  it('continues wherever it was killed, to the same end, and is taken away to what was there', { timeout: 120_000 }, async () => {
    const whole = await startElsewhere();
    const before = foreignOf(whole);
    let effects = 0;
    whole.aws.before = (call) => void (effects += isEffect(call) ? 1 : 0);
    await whole.agree({ source });
    whole.aws.before = () => undefined;
    const made = fingerprintOf(whole.aws.snapshot());
    expect(effects).toBeGreaterThan(10);
    // reads change nothing: a kill between two of them is one before the next effect
    for (let at = 1; at <= effects; at += 1) {
      const world = await startElsewhere();
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
    expect(foreignOf(whole)).toEqual(before);
    expect(JSON.stringify(whole.aws.snapshot())).not.toContain(`tally-${INSTALLATION}`);
  });
});

describe('a bucket of another account', () => {
  it('comes by a topic that its owner made, and Tally makes nothing there but the subscription', async () => {
    const world = await startWorld({ photos: { account: OTHER } });
    for (const source of sources) {
      await expect(world.provisioning.plan({ bucket: 'photos', source })).rejects.toMatchObject({ code: 'connect.other-account' });
      await expect(world.apply({ source })).rejects.toMatchObject({ code: 'connect.other-account' });
    }
    expect(world.aws.writes).toEqual([]);
    const topicArn = `arn:aws:sns:${REGION}:${OTHER}:changes`;
    world.aws.parts.topics.set(topicArn, { policy: '{"Statement":[]}', subscriptions: new Map() });
    world.notify([allTo(topicArn)]);
    expect(await world.apply({ source: 'topic', topic_arn: topicArn })).toMatchObject({ state: 'applied' });
    expect(new Set(world.aws.writes)).toEqual(new Set(['setQueuePolicy', 'subscribe']));
    expect(world.aws.parts.queues.get(QUEUE_ARN)?.policy).toContain(topicArn);
    expect(await world.codes({ source: 'topic', topicArn })).toEqual([]);
    await world.remove();
    expect(world.aws.parts.topics.get(topicArn)?.subscriptions.size).toBe(0);
    expect(world.aws.parts.queues.get(QUEUE_ARN)?.policy ?? '').not.toContain(OTHER);
  });
});

describe('what could not be delivered to a bucket of another region', () => {
  it('stays in its queue, which is not removed with its messages', async () => {
    const world = await startWorld({ photos: { region: FAR } });
    await world.apply();
    world.aws.parts.queues.get(UNDELIVERED)!.messages = 3;
    expect(await world.codes()).toEqual([]);
    expect(await world.remove()).toEqual([{ name: UNDELIVERED, reason: 'it holds 3 messages that could not be delivered' }]);
    expect(world.aws.parts.queues.has(UNDELIVERED)).toBe(true);
  });

  it('has a queue again after it was deleted', async () => {
    const world = await startWorld({ photos: { region: FAR } });
    await world.apply();
    world.aws.parts.queues.delete(UNDELIVERED);
    expect(await world.codes()).toContain('connect.queue');
    await world.apply();
    expect(world.aws.parts.queues.has(UNDELIVERED)).toBe(true);
  });
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

it('a bucket of another partition of AWS is refused', async () => {
  const world = await startWorld({ photos: { region: 'cn-north-1' } });
  await expect(world.provisioning.plan({ bucket: 'photos' })).rejects.toMatchObject({ code: 'connect.partition' });
});
