/**
 * Two installations with one name, as TALLY_INSTALLATION gives it to the setup of two queues: production, and staging with its own
 * store and queue. Their names are the same, and the ids of their registries are not.
 */
import { describe, expect, it } from 'vitest';
import { advancedSelector, withSelector } from '../../src/connect/trail.rules.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { sharedParts } from '../../src/connect/shared.rules.ts';
import { ACCOUNT, INSTALLATION, LETTERS_ARN, connectionsOn, QUEUE_ARN, REGION, REGISTRY, THEIR_TOPIC } from '../support/fakes/aws-parts.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeStorage } from '../support/fakes/ports.ts';
import { newRecord, startWorld, trail } from './world.ts';

const STAGING = 'b'.repeat(32);
const STAGING_QUEUE = `arn:aws:sqs:${REGION}:${ACCOUNT}:staging-events`;
const STAGING_URL = `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/staging-events`;
const TRAIL = trail.arn;

type Source = 'notification' | 'eventbridge' | 'routed';

async function startBoth() {
  const production = await startWorld({ trailArn: TRAIL });
  const { aws, clock } = production;
  aws.parts.trails.set(TRAIL, trail);
  aws.parts.queues.set(STAGING_QUEUE, {
    deadLetterArn: LETTERS_ARN,
    tags: { 'tally:installation': INSTALLATION, 'tally:registry': STAGING },
  });
  const store = createMemoryStore();
  const storage = createFakeStorage(clock);
  storage.createBucket('photos', { region: REGION });
  await updateRecord(store.state, refs.bucket('photos'), () => newRecord('photos', clock.nowMs()));
  const staging = connectionsOn(aws, { state: store.state, storage, clock, trailArn: TRAIL, queueUrls: [STAGING_URL] });
  return { production, staging, aws };
}

describe.each(['notification', 'eventbridge', 'routed'] as const)(
  'a second installation with the name of the first, and %s',
  (source: Source) => {
    it('touches nothing of it: the queue of the second is not where the topics lead, and a rule has another owner', async () => {
      const { production, staging, aws } = await startBoth();
      await production.agree({ source });
      const before = aws.snapshot();
      const { plan } = await staging.plan({ bucket: 'photos', source });
      expect(plan.spec).toMatchObject({ registry: STAGING, installation: INSTALLATION });
      expect(plan.findings.filter(({ blocks }) => blocks).map(({ code }) => code)).toContain('connect.not-set-up');
      if (source !== 'notification') expect(plan.findings.map(({ code }) => code)).toContain('connect.rule-foreign');
      await expect(staging.apply({ bucket: 'photos', source }, { token: plan.token })).rejects.toMatchObject({ code: 'connect.blocked' });
      expect(await staging.remove('photos', { keepAws: false })).toEqual([]);
      expect(aws.snapshot()).toEqual(before);
      const { plan: own } = await production.connections.plan({ bucket: 'photos', source });
      expect([own.changes, own.findings.filter(({ blocks }) => blocks)]).toEqual([[], []]);
    });
  },
);

it('a second installation with the name of the first has a subscription and a statement of its own at a topic of both, and takes these alone', async () => {
  const { production, staging, aws } = await startBoth();
  production.populate();
  const owner = { installation: INSTALLATION, registry: STAGING };
  const queues = { bucket: STAGING_QUEUE, letters: LETTERS_ARN };
  const home = { partition: 'aws', region: REGION, account: ACCOUNT };
  const made = sharedParts(owner, { queues, home, region: REGION }).find(({ arn }) => arn === STAGING_QUEUE);
  aws.parts.queues.get(STAGING_QUEUE)!.policy = JSON.stringify(made?.attributes['Policy']);
  const request = { bucket: 'photos', source: 'topic', topic_arn: THEIR_TOPIC } as const;
  await production.agree(request);
  const before = aws.snapshot();
  const { plan } = await staging.plan(request);
  expect(await staging.apply(request, { token: plan.token })).toMatchObject({ state: 'applied' });
  expect([...aws.parts.topics.get(THEIR_TOPIC)!.subscriptions.keys()]).toEqual([QUEUE_ARN, STAGING_QUEUE]);
  expect(aws.parts.queues.get(STAGING_QUEUE)!.policy).toContain(THEIR_TOPIC);
  expect((await production.plan(request)).changes).toEqual([]);
  expect(await staging.remove('photos', { keepAws: false })).toEqual([]);
  expect(aws.snapshot()).toEqual(before);
});

describe('what has no tags', () => {
  it('is the other one’s notification, which a plan names and leaves', async () => {
    const { production, staging, aws } = await startBoth();
    await production.agree();
    const { plan } = await staging.plan({ bucket: 'photos' });
    const mark = `tally-${INSTALLATION}-${REGISTRY.slice(0, 8)}`;
    expect(plan.findings).toContainEqual(expect.objectContaining({ code: 'connect.overlap', what: expect.stringContaining(mark) }));
    expect(JSON.stringify(aws.parts.notifications.get('photos'))).toContain(mark);
  });

  it('is a selector, which names its registry', () => {
    const wish = { bucket: 'photos', partition: 'aws', registry: REGISTRY };
    expect(advancedSelector(wish).Name).toBe(`tally ${REGISTRY.slice(0, 8)} photos`);
    expect(withSelector(withSelector({ kind: 'advanced', list: [] }, wish), { ...wish, registry: STAGING }).list).toHaveLength(2);
  });
});

it('a rule whose tags AWS shows late is waited for', async () => {
  const { production, aws } = await startBoth();
  const ruleOf = aws.ruleOf.bind(aws);
  let untagged = 0;
  aws.ruleOf = async (...args) => {
    const found = await ruleOf(...args);
    if (found === 'absent' || untagged > 0) return found;
    untagged += 1;
    return { ...found, tags: {} };
  };
  expect(await production.agree({ source: 'eventbridge' })).toMatchObject({ state: 'applying', waiting_for: 'AWS to show the rule' });
  expect(await production.agree({ source: 'eventbridge' })).toMatchObject({ state: 'applied' });
  expect(untagged).toBe(1);
});
