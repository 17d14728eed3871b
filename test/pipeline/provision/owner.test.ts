/**
 * Two deployments with one TALLY_INSTALLATION, as copied settings make them: production, and staging with its own store and
 * queue. Their names are the same, and the ids of their registries are not.
 */
import { describe, expect, it } from 'vitest';
import { ruleArnOf, ruleNameOf } from '../../../src/domain/provisioning/names.ts';
import { advancedSelector, withSelector } from '../../../src/domain/provisioning/trail.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import {
  ACCOUNT,
  INSTALLATION,
  provisioningOn,
  QUEUE_ARN,
  REGION,
  REGISTRY,
  ROUTED_ARN,
  ruleName,
  TOPIC_ARN,
} from '../../support/fakes/aws-parts.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeStorage } from '../../support/fakes/ports.ts';
import { newRecord, startWorld, trail } from './world.ts';

const STAGING = 'b'.repeat(32);
const STAGING_QUEUE = `arn:aws:sqs:${REGION}:${ACCOUNT}:staging-events`;
const STAGING_URL = `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/staging-events`;
const TRAIL = trail.arn;

type Source = 'notification' | 'eventbridge' | 'routed';

async function startBoth({ sharesQueue = false } = {}) {
  const production = await startWorld({ trailArn: TRAIL });
  const { aws, clock } = production;
  aws.parts.trails.set(TRAIL, { ...trail, selectors: { kind: 'basic', list: [{ ReadWriteType: 'All' }] } });
  if (!sharesQueue) aws.parts.queues.set(STAGING_QUEUE, { maxReceiveCount: 20 });
  const store = createMemoryStore();
  const storage = createFakeStorage(clock);
  for (const bucket of ['photos', 'videos']) {
    storage.createBucket(bucket, { region: REGION });
    await updateRecord(store.state, refs.bucket(bucket), () => newRecord(bucket, clock.nowMs()));
  }
  const staging = provisioningOn(aws, {
    state: store.state,
    storage,
    clock,
    trailArn: TRAIL,
    newRegistryId: () => STAGING,
    ...(!sharesQueue && { queueUrl: STAGING_URL }),
  });
  const agree = async (source: Source, bucket = 'photos') => {
    const { plan } = await staging.plan({ bucket, source });
    return staging.apply({ bucket, source }, { token: plan.token });
  };
  return { production, staging, agree, aws };
}

const blocker = { notification: 'connect.topic-foreign', eventbridge: 'connect.rule-foreign', routed: 'connect.topic-foreign' } as const;
const named = {
  notification: TOPIC_ARN,
  eventbridge: ruleArnOf({ partition: 'aws', region: REGION, account: ACCOUNT }, ruleName('eventbridge')),
  routed: ROUTED_ARN,
} as const;

describe.each(['notification', 'eventbridge', 'routed'] as const)('a second deployment with the name of the first, and %s', (source) => {
  it.each([{ sharesQueue: false }, { sharesQueue: true }])('touches nothing of it ($sharesQueue: its queue is the same)', async (how) => {
    const { production, staging, agree, aws } = await startBoth(how);
    await production.agree({ source });
    const before = aws.snapshot();
    const { plan } = await staging.plan({ bucket: 'photos', source });
    const finding = plan.findings.find(({ code }) => code === blocker[source]);
    expect(finding).toMatchObject({ blocks: true, severity: 'broken', fix: `TALLY_INSTALLATION=${STAGING.slice(0, 8)}` });
    // what it is, whose it is, and who asks
    for (const text of [named[source], REGISTRY, STAGING, INSTALLATION]) expect(finding?.what).toContain(text);
    expect(JSON.stringify(plan.changes)).not.toMatch(/"part":"(?:topic|topic-policy|subscription|rule|target)"/);
    const refused =
      source === 'notification' ? { code: expect.stringMatching(/^connect\.(blocked|overlap)$/) } : { code: 'connect.blocked' };
    await expect(agree(source)).rejects.toMatchObject(refused);
    expect(aws.snapshot()).toEqual(before);
    expect(await staging.remove('photos', { keepAws: false })).toBeUndefined();
    expect(aws.snapshot()).toEqual(before);
    // the owner finds its parts in order, and takes exactly them away
    const { plan: own } = await production.provisioning.plan({ bucket: 'photos', source });
    expect(own.changes).toEqual([]);
    expect(own.findings.filter(({ blocks }) => blocks)).toEqual([]);
  });

  it('refuses a part that has no owner at all', async () => {
    const { production, aws } = await startBoth();
    const rule = ruleNameOf(INSTALLATION, 'photos', source);
    if (source === 'notification') aws.parts.topics.set(TOPIC_ARN, { policy: '{"Statement":[]}', subscriptions: new Map() });
    else aws.parts.rules.set(rule, { pattern: '{}', isEnabled: true, targets: [{ id: 'bucket-queue', arn: STAGING_QUEUE }], tags: {} });
    const before = aws.snapshot();
    await expect(production.agree({ source })).rejects.toMatchObject({
      code: 'connect.blocked',
      message: expect.stringContaining('has no tag tally:registry'),
      extra: { finding: source === 'notification' ? 'connect.topic-foreign' : 'connect.rule-foreign' },
    });
    expect(aws.snapshot()).toEqual(before);
  });
});

describe('parts that became another registry’s', () => {
  it('stay when the bucket is removed, and are named', async () => {
    const { production, aws } = await startBoth();
    await production.agree({ source: 'routed' });
    const rule = ruleName('routed');
    const tags = { 'tally:registry': STAGING };
    aws.parts.rules.set(rule, { ...aws.parts.rules.get(rule)!, tags });
    aws.parts.topics.set(ROUTED_ARN, { ...aws.parts.topics.get(ROUTED_ARN)!, tags });
    const [theirRule, theirTopic] = [aws.parts.rules.get(rule), structuredClone(aws.parts.topics.get(ROUTED_ARN))];
    const kept = await production.provisioning.remove('photos', { keepAws: false });
    expect(kept?.map(({ reason }) => reason).filter((reason) => reason.includes(STAGING))).toHaveLength(3);
    expect(aws.parts.rules.get(rule)).toEqual(theirRule);
    expect(aws.parts.topics.get(ROUTED_ARN)).toEqual(theirTopic);
  });
});

describe('what has no tags', () => {
  it('has a part of the id of its registry in its name, so both deployments have their own statements in one queue', async () => {
    const { production, agree, aws } = await startBoth({ sharesQueue: true });
    await production.agree();
    await agree('eventbridge', 'videos');
    const sids = (JSON.parse(aws.parts.queues.get(QUEUE_ARN)!.policy ?? '') as { Statement: { Sid: string }[] }).Statement.map(
      ({ Sid }) => Sid,
    );
    expect(sids).toEqual([`${REGISTRY.slice(0, 8)}-topics`, `${STAGING.slice(0, 8)}-rules`].map((id) => `tally-${INSTALLATION}-${id}`));
    await production.provisioning.remove('photos', { keepAws: false });
    expect(aws.parts.queues.get(QUEUE_ARN)!.policy).not.toContain(REGISTRY.slice(0, 8));
    expect(aws.parts.queues.get(QUEUE_ARN)!.policy).toContain(STAGING.slice(0, 8));
  });

  it('is the other one’s notification, which a plan names and leaves', async () => {
    const { production, staging, aws } = await startBoth();
    await production.agree();
    const { plan } = await staging.plan({ bucket: 'photos' });
    const mark = `tally-${INSTALLATION}-${REGISTRY.slice(0, 8)}`;
    expect(plan.findings).toContainEqual(expect.objectContaining({ code: 'connect.overlap', what: expect.stringContaining(mark) }));
    expect(JSON.stringify(aws.parts.notifications.get('photos'))).toContain(mark);
  });

  it('is a selector: an advanced one names its registry, and a basic one is removed only by the registry that wrote it', async () => {
    const wish = { bucket: 'photos', partition: 'aws', registry: REGISTRY };
    expect(advancedSelector(wish).Name).toBe(`tally ${REGISTRY.slice(0, 8)} photos`);
    const both = withSelector(withSelector({ kind: 'advanced', list: [] }, wish), { ...wish, registry: STAGING });
    expect(both.list).toHaveLength(2);
    const { production, aws } = await startBoth();
    const found = aws.parts.trails.get(TRAIL)!;
    // as another registry has written it
    const selectors = withSelector({ kind: 'basic', list: [{ ReadWriteType: 'All' }] }, wish);
    aws.parts.trails.set(TRAIL, { ...found, selectors });
    await production.agree({ source: 'routed' });
    const kept = await production.provisioning.remove('photos', { keepAws: false });
    expect(kept).toEqual([{ name: expect.stringContaining('photos'), reason: 'nothing says that Tally has made it' }]);
    expect(aws.parts.trails.get(TRAIL)!.selectors).toEqual(selectors);
  });
});

describe('the id of a registry', () => {
  it('is made once, whatever the settings name the installation', async () => {
    const { production, staging } = await startBoth();
    for (let look = 0; look < 2; look += 1) {
      expect((await production.provisioning.plan({ bucket: 'photos' })).plan.wish.registry).toBe(REGISTRY);
      expect((await staging.plan({ bucket: 'photos' })).plan.wish).toMatchObject({ registry: STAGING, installation: INSTALLATION });
    }
  });
});

describe('a topic whose tags AWS shows late', () => {
  it('is waited for by the apply that has made it', async () => {
    const { production, aws } = await startBoth();
    const topicTags = aws.topicTags.bind(aws);
    let looks = 0;
    aws.topicTags = async (...args) => {
      looks += 1;
      return looks === 1 ? {} : topicTags(...args);
    };
    expect(await production.agree()).toMatchObject({ state: 'applied' });
    expect(looks).toBeGreaterThan(1);
  });
});
