import { describe, expect, it } from 'vitest';
import { fingerprintOf } from '../../../src/domain/provisioning/canonical.ts';
import type { BucketSource } from '../../../src/domain/bucket.ts';
import { ruleNameOf } from '../../../src/domain/provisioning/names.ts';
import { entriesWithout } from '../../../src/domain/provisioning/notification.ts';
import { foreignStatements, parsePolicy } from '../../../src/domain/provisioning/policy.ts';
import { RequestError } from '../../../src/domain/request-error.ts';
import { sidsOf } from '../../../src/domain/provisioning/wiring.ts';
import { INSTALLATION, LETTERS_ARN, MARK, QUEUE_ARN, REGISTRY, ROUTED_ARN, THEIR_TOPIC, TOPIC_ARN } from '../../support/fakes/aws-parts.ts';
import { isLong } from '../../support/breadth.ts';
import { LEASE_MS } from '../../../src/pipeline/records/lease.ts';
import { allTo, interruptAt, startWorld, THEIR_QUEUE, theirs, theirStatement, wishes, type World } from './world.ts';

const ID = MARK;
/** What is not Tally's, as it is now. */
function foreignOf({ aws, notified }: World) {
  return {
    entries: entriesWithout(notified(), ID),
    statements: [...aws.parts.queues.values()].map(({ policy }) =>
      foreignStatements(parsePolicy(policy)!, sidsOf({ installation: INSTALLATION, registry: REGISTRY }).all),
    ),
    topic: aws.parts.topics.get(THEIR_TOPIC)?.policy,
  };
}

/** SNS has not confirmed the subscription yet. */
function alterPending({ aws }: World): void {
  for (const { subscriptions } of aws.parts.topics.values()) {
    for (const [endpoint] of subscriptions) subscriptions.set(endpoint, { isPending: true, isRaw: false });
  }
}

/** A bucket of which others use much; for the source topic, it sends everything to their topic. */
async function startPopulated(source: BucketSource): Promise<World> {
  const world = await startWorld();
  world.populate();
  if (source === 'topic') world.notify([...theirs, allTo(THEIR_TOPIC)], { eventBridge: true });
  return world;
}

describe.each(wishes)('an apply for the source %s', (source, wish) => {
  it('makes everything once, keeps what others made, and continues wherever it was killed, to the same end', async () => {
    const whole = await startPopulated(source);
    const before = foreignOf(whole);
    let calls = 0;
    whole.aws.before = () => void (calls += 1);
    expect(await whole.agree(wish)).toMatchObject({ state: 'applied' });
    whole.aws.before = () => undefined;
    const [made, writes] = [fingerprintOf(whole.aws.snapshot()), whole.aws.writes.length];
    expect(foreignOf(whole)).toEqual(before);
    const { changes, findings } = await whole.plan(wish);
    expect([changes, findings.filter(({ severity }) => severity === 'broken')]).toEqual([[], []]);
    expect(await whole.apply(wish)).toMatchObject({ state: 'applied' });
    expect(whole.aws.writes).toHaveLength(writes);
    expect(calls).toBeGreaterThan(10);
    // after a call AWS is as it is before the next one
    for (const hook of ['before', 'after'] as const) {
      for (let at = hook === 'after' && !isLong ? calls : 1; at <= calls; at += 1) {
        const world = await startPopulated(source);
        const plan = await world.plan(wish);
        const end = await world.killed([hook, at], () => world.apply(wish, { token: plan.token }));
        if (end === undefined) continue;
        expect({ at, hook, ...end }).toMatchObject({ state: 'applied' });
        expect(fingerprintOf(world.aws.snapshot())).toBe(made);
        expect(await world.gap()).toMatchObject({ reasons: [{ kind: 'connection' }] });
      }
    }
  });

  it('is taken away to what was there before, wherever that is killed', async () => {
    const world = await startPopulated(source);
    const before = foreignOf(world);
    await world.agree(wish);
    for (let at = 1; at <= 90; at += 1) {
      world.aws[at % 2 === 0 ? 'before' : 'after'] = interruptAt(at);
      const done = await world.remove().catch(() => 'killed');
      world.aws.before = () => undefined;
      world.aws.after = () => undefined;
      if (done !== 'killed') break;
      await world.clock.advance(LEASE_MS);
    }
    expect(await world.connection()).toBeUndefined();
    expect(foreignOf(world)).toEqual(before);
    expect([...world.aws.parts.topics.keys()]).toEqual([THEIR_TOPIC]);
    expect([...world.aws.parts.rules]).toEqual([]);
    expect([...world.aws.parts.topics.values()].flatMap(({ subscriptions }) => [...subscriptions])).toEqual([]);
    expect(JSON.stringify(world.aws.snapshot())).not.toContain(`${ID}-`);
  });
});

describe('an apply', () => {
  it('opens one gap, which ends six minutes after the change, or twenty with a trail', async () => {
    for (const [wish, minutes] of [
      [{}, 6],
      [{ source: 'routed' }, 20],
    ] as const) {
      const world = await startWorld();
      const nowMs = world.clock.nowMs();
      await world.apply(wish);
      const lastSeenMs = nowMs + minutes * 60_000;
      expect(await world.gap()).toMatchObject({ lastSeenMs, waits: { untilMs: lastSeenMs + 60_000 }, reasons: [{ count: 1 }] });
    }
  });

  it('stores the configuration that was there before it first wrote it', async () => {
    const world = await startPopulated('notification');
    await world.agree();
    const connection = await world.connection();
    expect(connection).toMatchObject({ state: 'applied', source: 'notification', bucketAccount: '123456789012' });
    expect(connection?.preImage).toContain('thumbnails');
    expect(connection?.preImage).not.toContain(ID);
    expect(connection?.parts.map(({ kind }) => kind)).toEqual([
      'topic',
      'topic-policy',
      'queue-policy',
      'queue-policy',
      'subscription',
      'notification',
    ]);
  });

  it('needs the token of a plan where it touches others, and not where it does not', async () => {
    const populated = await startPopulated('notification');
    const { plan } = await populated.provisioning.plan({ bucket: 'photos' });
    expect(plan.foreign).toEqual([expect.stringContaining(THEIR_QUEUE), expect.stringContaining('function:scan')]);
    const extra = { token: plan.token, plan: expect.stringMatching(/^\+ topic .*[\s\S]*^\+ notification photos$/m) };
    const refusal = { code: 'connect.plan-needed', extra, message: expect.stringContaining(plan.token) };
    await expect(populated.apply()).rejects.toMatchObject(refusal);
    expect(populated.aws.writes).toEqual([]);
    // another wish than the stored one is named by its options
    const { plan: other } = await populated.provisioning.plan({ bucket: 'photos', source: 'notification', enrich: 'head' });
    await expect(populated.apply({ source: 'notification', enrich: 'head' })).rejects.toMatchObject({
      message: expect.stringMatching(
        `\`tally bucket add photos --source notification --enrich head --plan\`, then \`tally bucket add photos --source notification --enrich head --agree ${other.token}\``,
      ),
    });
    const alone = await startWorld();
    expect(await alone.apply()).toMatchObject({ state: 'applied' });
  });

  it('refuses a token if anything of others has changed since, or the wish is another one', async () => {
    const world = await startPopulated('notification');
    const plan = await world.plan();
    await expect(world.apply({ enrich: 'head' }, { token: plan.token })).rejects.toMatchObject({ code: 'connect.plan-outdated' });
    world.notify(theirs.slice(1), { eventBridge: true });
    await expect(world.apply({}, { token: plan.token })).rejects.toMatchObject({ code: 'connect.plan-outdated' });
    world.notify(theirs, { eventBridge: true });
    world.aws.parts.queues.get(QUEUE_ARN)!.policy = JSON.stringify({ Statement: [{ ...theirStatement, Action: 'sqs:*' }] });
    await expect(world.apply({}, { token: plan.token })).rejects.toMatchObject({ code: 'connect.plan-outdated' });
    expect(world.aws.writes).toEqual([]);
  });

  it('without a permission names it', async () => {
    const world = await startWorld();
    world.aws.before = (call) => {
      if (call === 'createTopic') throw new RequestError('connect.denied', 'CreateTopic is denied', { action: 'sns:CreateTopic' });
    };
    await expect(world.apply()).rejects.toMatchObject({ code: 'connect.denied', extra: { action: 'sns:CreateTopic' } });
  });

  it('writes nothing where S3 has something that this version does not know', async () => {
    const world = await startWorld();
    world.aws.parts.notifications.set('photos', '<NotificationConfiguration><New/></NotificationConfiguration>');
    const refusal = { code: 'connect.unknown-configuration', message: expect.stringContaining('<New>') };
    await expect(world.apply()).rejects.toMatchObject(refusal);
    expect(world.aws.writes).toEqual([]);
  });

  it('names an overlap before it writes anything, and what fits', async () => {
    const world = await startWorld();
    const filter = [{ name: 'suffix', value: '.csv' }];
    world.notify([{ kind: 'queue', id: 'jobs', arn: THEIR_QUEUE, events: ['s3:ObjectCreated:Put'], filter }]);
    await expect(world.apply()).rejects.toMatchObject({
      code: 'connect.overlap',
      message: expect.stringMatching(/jobs.*their-queue.*--source eventbridge/),
    });
    world.notify([allTo(THEIR_TOPIC)]);
    await expect(world.apply()).rejects.toMatchObject({
      code: 'connect.overlap',
      message: expect.stringContaining(`--source topic --topic ${THEIR_TOPIC}`),
    });
    expect(world.aws.writes).toEqual([]);
  });

  it('names what it saw before and after its PUT where others are missing, and prints nothing that writes', async () => {
    const world = await startPopulated('notification');
    world.aws.after = (call) => {
      if (call === 'putNotification') world.aws.parts.notifications.set('photos', { entries: [], eventBridge: true });
    };
    const refusal = {
      code: 'connect.changed-meanwhile',
      extra: {
        before: expect.stringContaining('thumbnails'),
        now: '',
        command: 'tally bucket add photos --plan',
      },
    };
    const error = await world.agree().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject(refusal);
    expect(String(error)).toContain(`seen before and not after: thumbnails (${THEIR_QUEUE})`);
    expect(String(error)).not.toContain('put-bucket-notification');
  });

  it('says so when the statements of others are gone after its write of a policy', async () => {
    const world = await startPopulated('notification');
    world.aws.after = (call) => {
      if (call === 'setQueuePolicy') world.aws.parts.queues.get(QUEUE_ARN)!.policy = JSON.stringify({ Statement: [] });
    };
    await expect(world.agree()).rejects.toMatchObject({ code: 'connect.changed-meanwhile', message: expect.stringContaining('Theirs') });
  });

  it('waits before it makes a part again that AWS does not show yet', async () => {
    const world = await startWorld();
    world.aws.after = (call) => {
      if (call === 'subscribe') alterPending(world);
    };
    expect(await world.apply()).toMatchObject({ state: 'applying' });
    expect(world.aws.writes.filter((call) => call === 'subscribe').length).toBeLessThanOrEqual(10);
  });

  it('repeats a PUT that S3 refuses for the moment, and not one that it refuses for good', async () => {
    const world = await startWorld();
    const putNotification = world.aws.putNotification.bind(world.aws);
    let refusals = 0;
    const refuse = (code: 'connect.busy' | 'connect.destination' | 'connect.overlap', times: number): void => {
      refusals = 0;
      world.aws.putNotification = async (...args) => {
        refusals += 1;
        if (refusals <= times) throw new RequestError(code, 'refused');
        return putNotification(...args);
      };
    };
    refuse('connect.overlap', 1);
    await expect(world.apply()).rejects.toMatchObject({ code: 'connect.overlap' });
    expect(refusals).toBe(1);
    refuse('connect.busy', 3);
    expect(await world.apply()).toMatchObject({ state: 'applied' });
    expect(refusals).toBe(4);
  });

  it('waits for another one, and takes over from one that was killed, however fast its clock was', async () => {
    const world = await startWorld();
    const record = { claim: { holder: 'another', renewals: 0 }, expiresAtMs: world.clock.nowMs() + 86_400_000 };
    await world.state.put({ id: 'lease:connections', kind: 'lock', record }, null);
    expect(await world.apply()).toMatchObject({ state: 'applying', waitingFor: expect.stringContaining('another') });
    expect(world.aws.writes).toEqual([]);
    await world.clock.advance(LEASE_MS);
    expect(await world.apply()).toMatchObject({ state: 'applied' });
    expect(await world.state.get('lease:connections')).toBeUndefined();
  });

  it('of two at once makes everything once', async () => {
    const world = await startWorld();
    // the id of the registry is made before
    await world.provisioning.plan({ bucket: 'photos' });
    const both = await Promise.all([world.apply(), world.apply()]);
    expect(both.map(({ state }) => state).sort()).toEqual(['applied', 'applying']);
    expect(world.aws.writes).toEqual(['createTopic', 'setTopicPolicy', 'setQueuePolicy', 'setQueuePolicy', 'subscribe', 'putNotification']);
    expect(await world.apply()).toMatchObject({ state: 'applied' });
  });

  it('makes the topic before its policies, those before the subscription, and the notification last; the rule before EventBridge is on', async () => {
    const world = await startWorld();
    await world.agree({ source: 'eventbridge' });
    expect(world.aws.writes).toEqual(['setQueuePolicy', 'setQueuePolicy', 'putRule', 'putTarget', 'putNotification']);
    const routed = await startWorld();
    await routed.apply({ source: 'routed' });
    expect(routed.aws.writes).toEqual([
      'createTopic',
      'setTopicPolicy',
      'setQueuePolicy',
      'setQueuePolicy',
      'subscribe',
      'putRule',
      'putTarget',
    ]);
    expect(JSON.parse(routed.aws.parts.topics.get(ROUTED_ARN)!.policy)).toMatchObject({
      Statement: [{ Sid: '__default_statement_ID' }, { Sid: ID, Principal: { Service: 'events.amazonaws.com' } }],
    });
    expect(routed.aws.parts.topics.get(ROUTED_ARN)!.policy).not.toContain('Condition');
  });
});

it('an apply that restores what others need as well opens their gaps', async () => {
  const world = await startWorld();
  await world.apply();
  const gap = await world.gap();
  await world.clock.advance(60_000);
  await world.apply({ bucket: 'videos' });
  expect(await world.gap()).toEqual(gap);
  world.aws.parts.topics.get(TOPIC_ARN)!.subscriptions.clear();
  await world.apply({ bucket: 'videos' });
  expect((await world.gap())?.waits?.untilMs).toBeGreaterThan(gap?.waits?.untilMs ?? 0);
});

describe('a removal', () => {
  it('leaves what another bucket uses, and the last one takes it away', async () => {
    const world = await startWorld();
    await world.apply();
    await world.apply({ bucket: 'videos' });
    await world.remove();
    expect(world.aws.parts.topics.get(TOPIC_ARN)?.subscriptions.size).toBe(1);
    expect(world.aws.parts.queues.get(LETTERS_ARN)?.policy).toContain(ID);
    expect(world.aws.parts.notifications.get('photos')).toEqual({ entries: [], eventBridge: false });
    await world.remove('videos');
    expect(world.aws.parts.topics.size).toBe(0);
    expect(world.aws.parts.queues.get(QUEUE_ARN)?.policy).toBeUndefined();
  });

  it.each(['wired', 'unreadable', 'unknown'] as const)('leaves what a bucket uses that a person has wired: %s', async (how) => {
    const world = await startWorld();
    await world.apply();
    world.notify([{ ...allTo(TOPIC_ARN), id: ID }], { bucket: 'videos' });
    if (how === 'unknown') {
      const document = `<NotificationConfiguration><New>${TOPIC_ARN}</New></NotificationConfiguration>`;
      world.aws.parts.notifications.set('videos', document);
    }
    const notificationOf = world.aws.notificationOf.bind(world.aws);
    world.aws.notificationOf = async (at, signal) => {
      if (how === 'unreadable' && at.bucket === 'videos') throw new RequestError('connect.denied', 'denied');
      return notificationOf(at, signal);
    };
    await world.remove();
    expect(world.aws.parts.topics.get(TOPIC_ARN)?.subscriptions.size).toBe(1);
    expect(world.aws.parts.queues.get(QUEUE_ARN)?.policy).toContain(ID);
    expect(world.aws.parts.notifications.get('photos')).toEqual({ entries: [], eventBridge: false });
  });

  it('leaves what the rule of another bucket uses that a person has made', async () => {
    const world = await startWorld();
    await world.agree({ source: 'eventbridge' });
    const rule = [...world.aws.parts.rules.values()][0]!;
    await world.setBucket({ source: 'eventbridge' }, 'videos');
    world.aws.parts.rules.set(ruleNameOf(INSTALLATION, 'videos', 'eventbridge'), rule);
    await world.remove();
    expect(world.aws.parts.rules.size).toBe(1);
    expect(world.aws.parts.queues.get(QUEUE_ARN)?.policy).toContain(ID);
  });

  it('names what somebody has altered, and leaves it', async () => {
    const world = await startWorld();
    await world.apply();
    const altered = { ...allTo(TOPIC_ARN), id: ID, filter: [{ name: 'prefix', value: 'x' }] };
    world.notify([altered]);
    world.aws.parts.topics.get(TOPIC_ARN)!.subscriptions.set(THEIR_QUEUE, { arn: 'arn:x', isPending: false, isRaw: false });
    expect(await world.remove()).toEqual([
      { name: `photos ${ID}`, reason: expect.stringContaining('changed') },
      { name: TOPIC_ARN, reason: expect.stringContaining('subscribed') },
    ]);
    expect(world.aws.parts.notifications.get('photos')).toMatchObject({ entries: [altered] });
    expect(world.aws.parts.topics.has(TOPIC_ARN)).toBe(true);
  });

  it('leaves a topic in whose policy others have statements', async () => {
    const world = await startWorld();
    await world.apply();
    const topic = world.aws.parts.topics.get(TOPIC_ARN)!;
    const policy = parsePolicy(topic.policy)!;
    topic.policy = JSON.stringify({ ...policy, Statement: [...policy.Statement, theirStatement] });
    const { policy: before } = topic;
    expect(await world.remove()).toEqual([{ name: TOPIC_ARN, reason: expect.stringContaining('statements of others') }]);
    expect(world.aws.parts.topics.get(TOPIC_ARN)).toMatchObject({ policy: before });
    expect(world.aws.parts.topics.get(TOPIC_ARN)!.subscriptions.size).toBe(0);
  });

  it('does not mind that the bucket is gone', async () => {
    const world = await startWorld();
    await world.apply();
    world.aws.parts.notifications.delete('photos');
    expect(await world.remove()).toEqual([]);
    expect(world.aws.parts.topics.size).toBe(0);
  });
});

describe('a change of the source', () => {
  it('keeps the earlier parts until its gap is closed, and then takes away exactly them', async () => {
    const world = await startPopulated('notification');
    const before = foreignOf(world);
    await world.agree();
    await world.agree({ source: 'eventbridge' });
    expect(JSON.stringify(world.aws.parts.notifications.get('photos'))).toContain(ID);
    expect(await world.connection()).toMatchObject({ source: 'eventbridge', earlier: [{ source: 'notification' }] });
    expect(await world.removeEarlier()).toBeUndefined();
    expect(JSON.stringify(world.aws.parts.notifications.get('photos'))).toContain(ID);
    await world.closeGap();
    expect(await world.removeEarlier()).toEqual([]);
    expect(await world.connection()).toMatchObject({ source: 'eventbridge' });
    expect(JSON.stringify(world.aws.parts.notifications.get('photos'))).not.toContain(ID);
    expect(world.aws.parts.topics.has(TOPIC_ARN)).toBe(false);
    expect(world.aws.parts.queues.get(QUEUE_ARN)?.policy).toContain(`${ID}-rules`);
    expect(world.aws.parts.queues.get(QUEUE_ARN)?.policy).not.toContain(`${ID}-topics`);
    expect((await world.plan({ source: 'eventbridge' })).changes).toEqual([]);
    expect(foreignOf(world)).toEqual(before);
  });

  it('to and fro leaves nothing over, and a removal takes away the parts of every source', async () => {
    const world = await startPopulated('notification');
    const before = foreignOf(world);
    for (const wish of [{}, { source: 'routed' }, { source: 'eventbridge' }, {}] as const) await world.agree(wish);
    expect((await world.connection())?.earlier).toMatchObject([{ source: 'routed' }, { source: 'eventbridge' }]);
    await world.remove();
    expect(foreignOf(world)).toEqual(before);
    expect(JSON.stringify(world.aws.snapshot())).not.toContain(ID);
  });
});

describe('a pause', () => {
  it('takes exactly ours away, stays whatever is applied, and is undone by resume alone', async () => {
    const world = await startPopulated('notification');
    await world.agree();
    const applied = world.aws.snapshot();
    expect(await world.pause()).toMatchObject({ state: 'paused' });
    expect(world.aws.parts.notifications.get('photos')).toEqual({ entries: theirs, eventBridge: true });
    await expect(world.agree()).rejects.toMatchObject({ code: 'connect.paused' });
    const writes = world.aws.writes.length;
    await world.pause();
    expect(world.aws.writes).toHaveLength(writes);
    await world.clock.advance(3_600_000);
    expect(await world.resume()).toMatchObject({ state: 'applied' });
    expect(world.aws.snapshot()).toEqual(applied);
    expect(await world.connection()).not.toHaveProperty('pausedAtMs');
    expect((await world.gap())?.lastSeenMs).toBe(world.clock.nowMs() + 360_000);
    await expect(world.resume()).rejects.toMatchObject({ code: 'connect.not-paused' });
  });

  it('is completed by the next one wherever it was killed', async () => {
    for (const hook of ['before', 'after'] as const) {
      for (let at = 1; at <= 8; at += 1) {
        const world = await startPopulated('notification');
        await world.agree();
        await world.killed([hook, at], world.pause);
        expect(await world.pause()).toMatchObject({ state: 'paused' });
        expect(world.aws.parts.notifications.get('photos')).toEqual({ entries: theirs, eventBridge: true });
      }
    }
  });

  it('is the only thing that resume ends: an apply that is under way needs its own plan', async () => {
    const world = await startPopulated('notification');
    const plan = await world.plan();
    world.aws.before = interruptAt(1, (call) => call === 'setQueuePolicy');
    await expect(world.apply({}, { token: plan.token })).rejects.toThrow('killed');
    expect(await world.connection()).toMatchObject({ state: 'applying' });
    await expect(world.resume()).rejects.toMatchObject({ code: 'connect.not-paused' });
  });

  it('is refused for the other sources, and where nothing was made', async () => {
    const world = await startWorld();
    await expect(world.pause()).rejects.toMatchObject({ code: 'connect.not-applied' });
    await world.agree({ source: 'eventbridge' });
    await expect(world.pause()).rejects.toMatchObject({ code: 'connect.blocked' });
  });
});
