import { describe, expect, it } from 'vitest';
import { readRecord, refs } from '../../src/store/stored.ts';
import { FaultError } from '../../src/base/fault.ts';
import { doctor } from '../../src/connect/diagnose.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { LETTERS_ARN, MARK, QUEUE_ARN, ROUTED_ARN, TOPIC_ARN } from '../support/fakes/aws-parts.ts';
import { startWorld, THEIR_QUEUE, type World } from './world.ts';

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
  const { entries, ...now } = world.notified();
  world.notify(
    entries.map((entry) => ({ ...entry, ...change })),
    now,
  );
}

function setPolicy(world: World, arn: string, alter: (statement: Record<string, unknown>) => unknown): void {
  const holder = world.aws.parts.queues.get(arn) ?? world.aws.parts.topics.get(arn)!;
  const policy = JSON.parse(holder.policy!) as { Statement: Record<string, unknown>[] };
  holder.policy = JSON.stringify({ ...policy, Statement: policy.Statement.flatMap((each) => alter(each) ?? []) });
}

const isOurs = ({ Sid }: Record<string, unknown>): boolean => String(Sid).startsWith(MARK);

/** A way in which a set-up breaks, for the source that has such a part. */
type Broken = readonly [source: 'notification' | 'eventbridge' | 'routed', what: string, breaks: (world: World) => void];

/** What the command that is printed repairs. */
const healable: readonly Broken[] = [
  ['notification', 'notification', (world) => world.notify([])],
  ['notification', 'notification', (world) => alterEntry(world, { events: ['s3:ObjectCreated:*'] })],
  ['eventbridge', 'notification', (world) => world.notify([])],
  ['eventbridge', 'rule', ({ aws }) => aws.parts.rules.clear()],
  ['eventbridge', 'rule', (world) => alterRule(world, { isEnabled: false })],
  ['eventbridge', 'rule', (world) => alterRule(world, { pattern: '{"source":["aws.s3"],"detail-type":["Object Created"]}' })],
  ['eventbridge', 'rule', (world) => alterRule(world, { targets: [] })],
  ['eventbridge', 'rule', (world) => alterTarget(world, { Arn: THEIR_QUEUE })],
  ['eventbridge', 'rule', (world) => alterTarget(world, { InputPath: '$.detail' })],
  ['eventbridge', 'rule', (world) => alterTarget(world, { RoleArn: 'arn:aws:iam::123456789012:role/x' })],
  ['routed', 'rule', (world) => alterTarget(world, { InputTransformer: undefined })],
  ['routed', 'rule', (world) => alterRule(world, { pattern: '{"source":["aws.s3"],"detail":{"eventName":["PutObject"]}}' })],
];

/** The same, of which only what cannot be delivered is lost. */
const ofLetters: readonly Broken[] = [
  ['eventbridge', 'rule', (world) => alterTarget(world, { DeadLetterConfig: undefined })],
  ['eventbridge', 'rule', (world) => alterTarget(world, { DeadLetterConfig: { Arn: THEIR_QUEUE } })],
];

/** What a person must repair, by what is printed. */
const others: readonly Broken[] = [
  ['notification', 'connect.not-set-up', ({ aws }) => aws.parts.topics.delete(TOPIC_ARN)],
  ['notification', 'connect.not-set-up', (world) => setPolicy(world, TOPIC_ARN, (each) => (isOurs(each) ? undefined : each))],
  ['notification', 'connect.not-set-up', (world) => subscriptionOf(world).clear()],
  ['notification', 'connect.not-set-up', (world) => subscriptionOf(world).set(QUEUE_ARN, { isPending: true, isRaw: false })],
  ['notification', 'connect.not-set-up', (world) => alterSubscription(world, { isPending: true })],
  ['notification', 'connect.not-set-up', (world) => alterSubscription(world, { filterPolicy: '{"a":["b"]}' })],
  ['notification', 'connect.not-set-up', ({ aws }) => delete aws.parts.queues.get(QUEUE_ARN)!.policy],
  ['notification', 'connect.not-set-up', (world) => setPolicy(world, QUEUE_ARN, (each) => ({ ...each, Effect: 'Deny' }))],
  ['notification', 'connect.not-set-up', ({ aws }) => delete aws.parts.queues.get(QUEUE_ARN)!.tags],
  ['eventbridge', 'connect.not-set-up', ({ aws }) => (aws.parts.queues.get(QUEUE_ARN)!.policy = '')],
  ['routed', 'connect.not-set-up', (world) => setPolicy(world, ROUTED_ARN, (each) => (isOurs(each) ? { ...each, Condition: {} } : each))],
  ['notification', 'connect.not-set-up', (world) => alterSubscription(world, { isRaw: true })],
  ['notification', 'connect.set-up-unsafe', (world) => alterSubscription(world, { deadLetterArn: undefined })],
  ['notification', 'connect.set-up-unsafe', ({ aws }) => delete aws.parts.queues.get(LETTERS_ARN)!.policy],
  ['notification', 'connect.unknown-configuration', ({ aws }) => aws.parts.notifications.set('photos', '<New/>')],
  ['notification', 'connect.set-up-unsafe', ({ aws }) => delete aws.parts.queues.get(QUEUE_ARN)!.deadLetterArn],
  ['notification', 'connect.set-up-unsafe', ({ aws }) => (aws.parts.queues.get(QUEUE_ARN)!.retentionS = 345_599)],
];

async function applied(source: Broken[0]): Promise<World> {
  const world = await startWorld();
  await world.agree({ source });
  await world.setBucket({ source });
  return world;
}

describe('the doctor', () => {
  it.each(['notification', 'eventbridge'] as const)('finds nothing after an apply for %s', async (source) => {
    const world = await applied(source);
    // as SQS makes a queue
    world.aws.parts.queues.get(QUEUE_ARN)!.retentionS = 345_600;
    expect(await world.diagnose()).toEqual([]);
  });

  it.each([...healable.map((each) => [...each, 'broken'] as const), ...ofLetters.map((each) => [...each, 'degraded'] as const)])(
    '%s: %s is healed by what it prints',
    async (source, part, breaks, severity) => {
      const world = await applied(source);
      breaks(world);
      const found = (await world.diagnose()).find(({ code }) => code === 'connect.not-made');
      const { foreign } = await world.plan();
      expect(found).toMatchObject({
        severity,
        // an apply without the token of a plan touches nothing of others
        fix: foreign.length === 0 ? 'tally bucket add photos' : 'tally bucket add photos --plan',
        blocks: false,
        what: expect.stringContaining(`: ${part} `),
        why: expect.stringMatching(/.{10}/),
      });
      expect(await world.agree({ source })).toMatchObject({ state: 'applied' });
      expect(await world.codes()).toEqual([]);
    },
  );

  it.each(others)(
    '%s: %s is found, with something to paste, and stops an apply where it is a shared part',
    async (source, code, breaks) => {
      const world = await applied(source);
      breaks(world);
      const found = (await world.diagnose()).find((finding) => finding.code === code);
      expect(found).toMatchObject({
        code,
        fix: expect.stringMatching(/.{5}/),
        what: expect.stringMatching(/.{10}/),
        why: expect.stringMatching(/.{10}/),
      });
      if (code !== 'connect.not-set-up') return;
      const writes = world.aws.writes.length;
      const blocked = { code: 'connect.blocked', extra: { finding: code }, message: expect.stringContaining('tally setup --apply') };
      await expect(world.agree({ source })).rejects.toMatchObject(blocked);
      expect(world.aws.writes).toHaveLength(writes);
    },
  );

  it.each([
    [{}, 'connect.not-made'],
    [{ provenAtMs: 1 }, undefined],
  ])('says of a bucket that nothing was made for it, unless its events arrive: %j', async (change, code) => {
    const world = await startWorld();
    const [found, ...more] = await world.diagnose(change);
    expect(more).toEqual([]);
    expect(found?.code).toBe(code);
    if (found !== undefined) expect(found).toMatchObject({ severity: 'broken', fix: 'tally bucket add photos' });
  });

  it('says of a pause since when it lasts', async () => {
    const world = await applied('notification');
    await world.pause();
    expect(await world.diagnose()).toMatchObject([
      { code: 'connect.paused', what: expect.stringContaining('2026-'), fix: 'tally bucket resume photos' },
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
    expect(await world.diagnose()).toMatchObject([{ code, severity: 'unknown', fix }]);
  });

  it.each(['head', 'tags'] as const)('Fix: asks for one object what enrich %s reads, and says that S3 refuses it', async (enrich) => {
    const world = await applied('notification');
    const { storage } = world;
    storage.put('photos', 'k', {});
    expect(await world.diagnose({ enrich })).toEqual([]);
    const denied = () => Promise.reject(new FaultError('object.denied', 'HEAD photos/k: 403'));
    if (enrich === 'head') storage.readVersion = denied;
    else storage.readTags = denied;
    expect(await world.diagnose({ enrich })).toMatchObject([
      {
        code: 'connect.not-enriched',
        severity: 'degraded',
        what: 'S3 refuses the requests that enrich photos: HEAD photos/k: 403',
        fix: expect.stringContaining('s3:GetObject'),
      },
    ]);
    expect(await world.diagnose({ enrich: 'none' })).toEqual([]);
  });

  it('Fix: asks again for the object whose tags S3 refused, whatever it answers for others', async () => {
    const world = await applied('notification');
    const { storage } = world;
    for (const key of ['a', 'secret/k']) storage.put('photos', key, {});
    const readTags = storage.readTags.bind(storage);
    storage.readTags = (at, version, ...more) =>
      version.key === 'secret/k' ? Promise.reject(new FaultError('object.denied', '403')) : readTags(at, version, ...more);
    const record = { ...(await readRecord(world.state, refs.bucket('photos')))!, enrich: 'tags' as const };
    const found = async (key?: string) => world.connections.diagnose(record, undefined, key);
    expect(await found()).toMatchObject({ findings: [], isReadable: true });
    expect(await found('secret/k')).toMatchObject({ findings: [{ code: 'connect.not-enriched' }], refused: { key: 'secret/k' } });
    storage.readTags = readTags;
    expect(await found('secret/k')).toMatchObject({ findings: [], isReadable: true });
    // what is gone shows nothing, nor does what does not answer
    expect(await found('secret/gone')).toMatchObject({ findings: [], isReadable: false });
  });

  it('says how to create a bucket queue that was deleted, which no further look brings back', async () => {
    const world = await applied('notification');
    world.aws.parts.queues.delete(QUEUE_ARN);
    expect(await world.diagnose()).toMatchObject([
      {
        code: 'connect.queue-missing',
        what: expect.stringContaining('the queue does not exist'),
        severity: 'broken',
        fix: 'tally setup --apply && tally bucket add photos',
      },
    ]);
  });
});

describe('the clock of S3', () => {
  /** What the doctor says of a bucket that is in order otherwise, where S3 is ahead, and answers late. */
  async function toldOf({ s3AheadMs, takesMs = 0 }: { readonly s3AheadMs: number; readonly takesMs?: number }) {
    const { state, clock, storage, setBucket } = await startWorld();
    await setBucket({ provenAtMs: 1 });
    const versioningOf: typeof storage.versioningOf = async (location, signal) => {
      const answer = await storage.versioningOf(location, signal);
      await clock.advance(takesMs);
      return { ...answer, observedAtMs: answer.observedAtMs + s3AheadMs };
    };
    const parts = { state, clock, storage: { ...storage, versioningOf }, checkConnection: async () => [] };
    return doctor(parts, 'photos', new AbortController().signal);
  }

  it.each([
    ['ahead of', 61_500],
    ['behind', -62_500],
  ])('is compared, if it is a minute %s that of this machine', async (differs, s3AheadMs) => {
    const what = expect.stringMatching(new RegExp(`is \\d+ s ${differs} this process`)) as string;
    expect(await toldOf({ s3AheadMs })).toMatchObject([{ code: 'connect.clock-skew', severity: 'degraded', what, blocks: false }]);
    // a difference within a minute is that of two requests
    expect(await toldOf({ s3AheadMs: Math.sign(s3AheadMs) * 58_000 })).toEqual([]);
  });

  it('is not blamed for an answer that came late', async () => {
    expect(await toldOf({ s3AheadMs: 0, takesMs: 90_000 })).toEqual([]);
  });
});

it('a rule that has a dead-letter queue is in order where none is known any more, and a new one has none', async () => {
  const world = await applied('eventbridge');
  delete world.aws.parts.queues.get(QUEUE_ARN)!.deadLetterArn;
  expect(await world.codes()).toEqual(['connect.set-up-unsafe']);
  world.aws.parts.rules.clear();
  await world.agree({ source: 'eventbridge' });
  expect([...world.aws.parts.rules.values()][0]!.targets[0]).not.toHaveProperty('DeadLetterConfig');
});
