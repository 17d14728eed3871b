import { describe, expect, it } from 'vitest';
import { checks } from '../../../src/domain/provisioning/checks/all.ts';
import type { Finding } from '../../../src/domain/provisioning/checks/finding.ts';
import type { BucketRecord } from '../../../src/domain/bucket.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import { RequestError } from '../../../src/domain/request-error.ts';
import { readRecord, refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { LETTERS_ARN, MARK, QUEUE_ARN, ROUTED_ARN, THEIR_TOPIC, TOPIC_ARN } from '../../support/fakes/aws-parts.ts';
import { startWorld, THEIR_QUEUE, theirs } from './world.ts';

type World = Awaited<ReturnType<typeof startWorld>>;

const ID = MARK;

async function recordOf(world: World): Promise<BucketRecord> {
  return (await readRecord(world.state, refs.bucket('photos')))!;
}

async function diagnose(world: World): Promise<readonly Finding[]> {
  return world.provisioning.diagnose(await recordOf(world));
}

const subscriptionOf = (world: World, topicArn = TOPIC_ARN) => world.aws.parts.topics.get(topicArn)!.subscriptions;

function alterSubscription(world: World, change: object, topicArn = TOPIC_ARN): void {
  subscriptionOf(world, topicArn).set(QUEUE_ARN, { ...subscriptionOf(world, topicArn).get(QUEUE_ARN)!, ...change });
}

function alterRule(world: World, change: object): void {
  const [[name, rule] = []] = [...world.aws.parts.rules];
  world.aws.parts.rules.set(name!, { ...rule!, ...change });
}

function alterTarget(world: World, change: object): void {
  const [[, rule] = []] = [...world.aws.parts.rules];
  alterRule(world, { targets: rule!.targets.map((target) => ({ ...target, ...change })) });
}

function alterEntry(world: World, change: object): void {
  const now = world.aws.parts.notifications.get('photos');
  if (now === undefined || typeof now === 'string') throw new Error('no configuration');
  world.aws.parts.notifications.set('photos', { ...now, entries: now.entries.map((entry) => ({ ...entry, ...change })) });
}

function setPolicy(world: World, arn: string, alter: (statement: Record<string, unknown>) => unknown): void {
  const holder = world.aws.parts.queues.get(arn) ?? world.aws.parts.topics.get(arn)!;
  const policy = JSON.parse(holder.policy!) as { Statement: Record<string, unknown>[] };
  holder.policy = JSON.stringify({ ...policy, Statement: policy.Statement.flatMap((each) => alter(each) ?? []) });
}

const isOurs = ({ Sid }: Record<string, unknown>): boolean => String(Sid).startsWith(ID);

/** A way in which a set-up breaks, for the source that has such a part. `heals`: the command that it prints repairs it. */
type Broken = readonly [source: 'notification' | 'eventbridge' | 'routed', what: string, code: string, breaks: (world: World) => void];

const healable: readonly Broken[] = [
  [
    'notification',
    'the notification is gone',
    'connect.notification-missing',
    ({ aws }) => aws.parts.notifications.set('photos', { entries: [], eventBridge: false }),
  ],
  [
    'notification',
    'the notification has other events',
    'connect.notification-altered',
    (world) => alterEntry(world, { events: ['s3:ObjectCreated:*'] }),
  ],
  ['notification', 'the topic is gone', 'connect.topic-missing', ({ aws }) => aws.parts.topics.delete(TOPIC_ARN)],
  [
    'notification',
    'the topic has no policy of ours',
    'connect.topic-policy',
    (world) => setPolicy(world, TOPIC_ARN, (each) => (isOurs(each) ? undefined : each)),
  ],
  ['notification', 'the subscription is gone', 'connect.subscription-missing', (world) => subscriptionOf(world).clear()],
  [
    'notification',
    'the subscription is pending',
    'connect.subscription-pending',
    (world) => subscriptionOf(world).set(QUEUE_ARN, { isPending: true, isRaw: false }),
  ],
  [
    'notification',
    'the subscription has a filter',
    'connect.subscription-filtered',
    (world) => alterSubscription(world, { filterPolicy: '{"a":["b"]}' }),
  ],
  ['notification', 'the subscription is raw', 'connect.subscription-raw', (world) => alterSubscription(world, { isRaw: true })],
  [
    'notification',
    'the subscription has no dead-letter queue',
    'connect.subscription-redrive',
    (world) => alterSubscription(world, { deadLetterArn: undefined }),
  ],
  ['notification', 'the queue has no policy', 'connect.queue-policy', ({ aws }) => delete aws.parts.queues.get(QUEUE_ARN)!.policy],
  [
    'notification',
    'the queue denies us',
    'connect.queue-policy',
    (world) => setPolicy(world, QUEUE_ARN, (each) => ({ ...each, Effect: 'Deny' })),
  ],
  [
    'eventbridge',
    'EventBridge is off',
    'connect.eventbridge-off',
    ({ aws }) => aws.parts.notifications.set('photos', { entries: [], eventBridge: false }),
  ],
  ['eventbridge', 'the rule is gone', 'connect.rule-missing', ({ aws }) => aws.parts.rules.clear()],
  ['eventbridge', 'the rule is disabled', 'connect.rule-disabled', (world) => alterRule(world, { isEnabled: false })],
  [
    'eventbridge',
    'the pattern is narrower',
    'connect.rule-pattern',
    (world) => alterRule(world, { pattern: '{"source":["aws.s3"],"detail-type":["Object Created"]}' }),
  ],
  ['eventbridge', 'the rule has no target', 'connect.rule-target', (world) => alterRule(world, { targets: [] })],
  ['eventbridge', 'the target is another queue', 'connect.rule-target', (world) => alterTarget(world, { arn: THEIR_QUEUE })],
  ['eventbridge', 'the target sends a constant', 'connect.rule-transformer', (world) => alterTarget(world, { hasOtherInput: true })],
  [
    'eventbridge',
    'the target has a role',
    'connect.rule-target',
    (world) => alterTarget(world, { roleArn: 'arn:aws:iam::123456789012:role/x' }),
  ],
  [
    'eventbridge',
    'the target has no dead-letter queue',
    'connect.target-dead-letters',
    (world) => alterTarget(world, { deadLetterArn: undefined }),
  ],
  ['routed', 'the transformer is gone', 'connect.rule-transformer', (world) => alterTarget(world, { transformer: undefined })],
  [
    'routed',
    'the topic has a Condition for EventBridge',
    'connect.topic-policy-condition',
    (world) =>
      setPolicy(world, ROUTED_ARN, (each) => (isOurs(each) ? { ...each, Condition: { ArnLike: { 'aws:SourceArn': 'x' } } } : each)),
  ],
  [
    'routed',
    'the topic does not admit EventBridge',
    'connect.topic-policy',
    (world) => setPolicy(world, ROUTED_ARN, (each) => (isOurs(each) ? undefined : each)),
  ],
  [
    'routed',
    'the rule selects fewer operations',
    'connect.rule-pattern',
    (world) => alterRule(world, { pattern: '{"source":["aws.s3"],"detail":{"eventName":["PutObject"]}}' }),
  ],
];

/** What a person must repair, by what is printed. */
const others: readonly Broken[] = [
  [
    'notification',
    'something unknown is configured',
    'connect.unknown-configuration',
    ({ aws }) => aws.parts.notifications.set('photos', '<NotificationConfiguration><New/></NotificationConfiguration>'),
  ],
  [
    'notification',
    'S3 allows no further configuration',
    'connect.limit',
    ({ aws }) =>
      aws.parts.notifications.set('photos', {
        entries: Array.from({ length: 100 }, (_, index) => ({
          kind: 'queue' as const,
          id: String(index),
          arn: THEIR_QUEUE,
          events: ['s3:Replication:*'],
          filter: [{ name: 'prefix', value: `${index}/` }],
        })),
        eventBridge: false,
      }),
  ],
  [
    'notification',
    'the policy of the queue is full',
    'connect.policy-size',
    ({ aws }) =>
      (aws.parts.queues.get(QUEUE_ARN)!.policy = JSON.stringify({
        Statement: Array.from({ length: 20 }, (_, index) => ({ Sid: `S${index}`, Effect: 'Allow' })),
      })),
  ],
  [
    'notification',
    'the queue has the managed key',
    'connect.kms-managed-key',
    ({ aws }) => (aws.parts.queues.get(QUEUE_ARN)!.kmsKeyId = 'alias/aws/sqs'),
  ],
  ['notification', 'the topic is a FIFO topic', 'connect.topic-fifo', ({ aws }) => (aws.parts.topics.get(TOPIC_ARN)!.isFifo = true)],
  [
    'notification',
    'messages are given up too early',
    'connect.redrive',
    ({ aws }) => (aws.parts.queues.get(QUEUE_ARN)!.maxReceiveCount = 3),
  ],
  [
    'notification',
    'events are deleted before an outage ends',
    'connect.queue-retention',
    ({ aws }) => (aws.parts.queues.get(QUEUE_ARN)!.retentionS = 60),
  ],
  ['eventbridge', 'the dead-letter queue is gone', 'connect.dead-letters-missing', ({ aws }) => aws.parts.queues.delete(LETTERS_ARN)],
  [
    'notification',
    'anyone may unsubscribe us',
    'connect.subscription-unauthenticated',
    (world) => alterSubscription(world, { wasAuthenticated: false }),
  ],
];

async function applied(source: Broken[0]): Promise<World> {
  const world = await startWorld();
  await world.agree({ source });
  await updateRecord(world.state, refs.bucket('photos'), (current) => current && { ...current, source });
  return world;
}

describe('the doctor', () => {
  it.each(['notification', 'eventbridge'] as const)('finds nothing after an apply for %s', async (source) => {
    expect(await diagnose(await applied(source))).toEqual([]);
  });

  it('names the selector of the trail for routed, which Tally does not read', async () => {
    const findings = await diagnose(await applied('routed'));
    expect(findings).toMatchObject([
      { code: 'connect.trail-unchecked', severity: 'degraded', fix: expect.stringContaining('arn:aws:s3:::photos/') },
    ]);
  });

  it.each(healable)('%s: %s (%s) is healed by what it prints', async (source, _, code, breaks) => {
    const world = await applied(source);
    breaks(world);
    const found = (await diagnose(world)).find((finding) => finding.code === code);
    const { foreign } = (await world.provisioning.plan({ bucket: 'photos' })).plan;
    expect(found).toMatchObject({
      // an apply without the token of a plan touches nothing of others
      fix: foreign.length === 0 ? 'tally bucket apply photos' : 'tally bucket plan photos',
      blocks: false,
      what: expect.stringMatching(/.{10}/),
      why: expect.stringMatching(/.{10}/),
    });
    expect(await world.agree({ source })).toMatchObject({ state: 'applied' });
    expect((await diagnose(world)).filter((finding) => finding.code !== 'connect.trail-unchecked')).toEqual([]);
  });

  it.each(others)('%s: %s (%s) is found, with something to paste', async (source, _, code, breaks) => {
    const world = await applied(source);
    breaks(world);
    const found = (await diagnose(world)).find((finding) => finding.code === code);
    expect(found).toMatchObject({
      code,
      fix: expect.stringMatching(/.{5}/),
      what: expect.stringMatching(/.{10}/),
      why: expect.stringMatching(/.{10}/),
    });
  });

  it('checks the topic of somebody else: both families, without a filter, in the region', async () => {
    const world = await startWorld();
    world.populate();
    const record = { ...(await recordOf(world)), source: 'topic' as const, topicArn: THEIR_TOPIC };
    const codesOf = async (found: BucketRecord): Promise<readonly string[]> =>
      (await world.provisioning.diagnose(found)).map(({ code }) => code);
    // the queues are open to everyone already
    expect(await codesOf(record)).toEqual(['connect.topic-incomplete', 'connect.subscription-missing']);
    delete world.aws.parts.queues.get(QUEUE_ARN)!.policy;
    expect(await codesOf(record)).toEqual(['connect.topic-incomplete', 'connect.queue-policy', 'connect.subscription-missing']);
    const elsewhere = THEIR_TOPIC.replace('us-east-1', 'eu-west-1');
    expect(await codesOf({ ...record, topicArn: elsewhere })).toEqual(
      expect.arrayContaining(['connect.topic-region', 'connect.topic-missing']),
    );
  });

  it('checks a bucket that was wired by hand by its topic', async () => {
    const world = await startWorld();
    world.populate();
    const all = {
      kind: 'topic',
      id: 'tally',
      arn: THEIR_TOPIC,
      events: ['s3:ObjectCreated:*', 's3:ObjectRemoved:*', 's3:LifecycleExpiration:*'],
      filter: [],
    } as const;
    world.aws.parts.notifications.set('photos', { entries: [all], eventBridge: false });
    const record = { ...(await recordOf(world)), topicArn: THEIR_TOPIC };
    const codes = (await world.provisioning.diagnose(record)).map(({ code }) => code);
    expect(codes).toEqual(['connect.subscription-missing']);
  });

  it('says of a pause since when it lasts', async () => {
    const world = await applied('notification');
    await world.provisioning.pause('photos', new AbortController().signal);
    expect(await diagnose(world)).toMatchObject([
      { code: 'connect.paused', what: expect.stringContaining('2026-'), fix: 'tally bucket resume-notification photos' },
    ]);
  });

  it.each([
    [new RequestError('connect.denied', 'sns:GetTopicAttributes is missing'), 'connect.denied', 'tally iam-policy --for daemon'],
    [new FaultError('connect.unavailable', 'no answer'), 'connect.unavailable', 'tally doctor photos'],
    [new FaultError('bucket.missing', 'gone'), 'bucket.missing', 'tally bucket remove photos'],
  ])('says of what it may not read that it is not known: %s', async (error, code, fix) => {
    const world = await applied('notification');
    world.aws.before = (call) => {
      if (call === 'topicOf') throw error;
    };
    expect(await diagnose(world)).toMatchObject([{ code, severity: 'unknown', fix }]);
  });

  it('says how to create a bucket queue that was deleted, which no further look brings back', async () => {
    const arn = QUEUE_ARN;
    const world = await applied('notification');
    world.aws.parts.queues.delete(arn);
    const name = arn.split(':').at(-1);
    expect(await diagnose(world)).toMatchObject([
      {
        code: 'connect.queue-missing',
        what: expect.stringContaining('the queue does not exist'),
        fix: `aws sqs create-queue --queue-name ${name} --region ${arn.split(':')[3]} && tally bucket plan photos`,
      },
    ]);
  });

  it('says to plan, and not to apply, where a person must agree to what an apply touches', async () => {
    const world = await startWorld();
    world.populate();
    await world.agree();
    world.aws.parts.notifications.set('photos', { entries: theirs, eventBridge: true });
    expect(await diagnose(world)).toContainEqual(
      expect.objectContaining({ code: 'connect.notification-missing', fix: 'tally bucket plan photos' }),
    );
    // the plan itself does not lead back to itself
    const { plan } = await world.provisioning.plan({ bucket: 'photos' });
    expect(plan.findings).toContainEqual(
      expect.objectContaining({ code: 'connect.notification-missing', fix: `tally bucket apply photos --plan ${plan.token}` }),
    );
  });

  it.each([
    ['ahead of', 61_500],
    ['behind', -62_500],
  ])('compares the clock of S3, which is a minute %s that of this machine, and finds nothing once it is right', async (differs, byMs) => {
    const world = await applied('notification');
    const before = { ...world.storage };
    let s3AheadMs = byMs;
    world.storage.versioningOf = async (location, signal) => {
      const answer = await before.versioningOf(location, signal);
      return { ...answer, observedAtMs: answer.observedAtMs + s3AheadMs };
    };
    expect(await diagnose(world)).toMatchObject([
      {
        code: 'connect.clock-skew',
        severity: 'degraded',
        what: expect.stringMatching(new RegExp(`is \\d+ s ${differs} the clock`)),
        blocks: false,
      },
    ]);
    // a difference within a minute is that of two requests
    s3AheadMs = Math.sign(byMs) * 58_000;
    expect(await diagnose(world)).toEqual([]);
  });

  it('does not blame the clock of S3 for an answer that came late', async () => {
    const world = await applied('notification');
    const before = { ...world.storage };
    world.storage.versioningOf = async (location, signal) => {
      const answer = await before.versioningOf(location, signal);
      await world.clock.advance(90_000);
      return answer;
    };
    expect(await diagnose(world)).toEqual([]);
  });

  it('finds what is broken though the clock of S3 cannot be read', async () => {
    const world = await applied('notification');
    world.aws.parts.notifications.set('photos', { entries: [], eventBridge: false });
    world.storage.versioningOf = () => Promise.reject(new FaultError('s3.unavailable', 'no answer'));
    expect((await diagnose(world)).map(({ code }) => code)).toEqual(['connect.notification-missing', 's3.unavailable']);
  });

  it('names a policy that cannot be written before what an apply would heal', async () => {
    const world = await startWorld();
    await world.apply();
    world.aws.parts.queues.get(QUEUE_ARN)!.policy = '';
    world.aws.parts.queues.get(LETTERS_ARN)!.policy = '{"Statement":"?"}';
    expect(await diagnose(world)).toContainEqual(expect.objectContaining({ code: 'connect.policy-unreadable', blocks: true }));
    const writes = world.aws.writes.length;
    await expect(world.apply()).rejects.toMatchObject({ code: 'connect.blocked' });
    expect(world.aws.writes).toHaveLength(writes);
  });

  it('only reads', async () => {
    const world = await applied('routed');
    const [before, writes] = [world.aws.snapshot(), world.aws.writes.length];
    await diagnose(world);
    expect(world.aws.snapshot()).toEqual(before);
    expect(world.aws.writes).toHaveLength(writes);
  });

  it('has a function for every check, each with a name', () => {
    expect(new Set(checks.map(({ name }) => name)).size).toBe(checks.length);
    expect(healable.length + others.length).toBeGreaterThan(30);
  });
});
