/** The dead-letter queue of a connection: what is known of it when the redrive policy of the bucket queue is lost or wrong. */
import { describe, expect, it } from 'vitest';
import type { BucketSource } from '../../../src/domain/bucket.ts';
import type { Finding } from '../../../src/domain/provisioning/checks/finding.ts';
import { ACCOUNT, LETTERS_ARN, LETTERS_URL, QUEUE_ARN, REGION, TOPIC_ARN } from '../../support/fakes/aws-parts.ts';
import { startWorld, type World } from './world.ts';

const BY_RULES: readonly BucketSource[] = ['eventbridge', 'routed'];

async function applied(source: BucketSource, settings: Parameters<typeof startWorld>[0] = {}): Promise<World> {
  const world = await startWorld(settings);
  await world.setBucket({ source });
  await world.agree({ source });
  return world;
}

function loseRedrive(world: World): void {
  delete world.aws.parts.queues.get(QUEUE_ARN)!.maxReceiveCount;
}

const targetOf = (world: World) => [...world.aws.parts.rules.values()][0]!.targets[0]!;
const subscriptionOf = (world: World) => world.aws.parts.topics.get(TOPIC_ARN)!.subscriptions.get(QUEUE_ARN)!;
const anywhere = (findings: readonly Finding[]): string => JSON.stringify(findings);

describe('after the redrive policy of the bucket queue was lost', () => {
  it.each(['notification', 'eventbridge', 'routed'] as const)(
    'the doctor of a bucket of %s names the real dead-letter queue',
    async (source) => {
      const world = await applied(source);
      loseRedrive(world);
      const findings = (await world.diagnose()).filter(({ code }) => code !== 'connect.trail-unchecked');
      expect(findings).toMatchObject([
        {
          code: 'connect.redrive',
          what: `${QUEUE_ARN} has no redrive policy`,
          fix: expect.stringMatching(/^aws sqs set-queue-attributes --region us-east-1 /),
        },
      ]);
      const [, attributes = ''] = /--attributes '(.*)'$/.exec(findings[0]!.fix) ?? [];
      const { RedrivePolicy, ...others } = JSON.parse(attributes) as { RedrivePolicy: string };
      expect(JSON.parse(RedrivePolicy)).toEqual({ deadLetterTargetArn: LETTERS_ARN, maxReceiveCount: 100 });
      expect(others).toEqual({});
    },
  );

  it.each(BY_RULES)(
    'an apply of %s leaves the dead-letter queue to the target of the rule, also one that is written for another reason',
    async (source) => {
      const world = await applied(source);
      loseRedrive(world);
      const before = world.aws.snapshot();
      await world.agree({ source });
      expect(world.aws.snapshot()).toEqual(before);
      // a person made it: nothing is recorded
      await world.remove('photos', { keepAws: true });
      const [[name, rule] = []] = [...world.aws.parts.rules];
      world.aws.parts.rules.set(name!, { ...rule!, targets: [{ ...rule!.targets[0]!, roleArn: 'arn:aws:iam::123456789012:role/x' }] });
      await world.agree({ source });
      expect(targetOf(world)).toMatchObject({ deadLetterArn: LETTERS_ARN });
      expect(targetOf(world)).not.toHaveProperty('roleArn');
    },
  );

  it('gives no command, but says in words what is missing, where nothing names the queue', async () => {
    const world = await startWorld();
    loseRedrive(world);
    const plan = await world.plan({ source: 'eventbridge' });
    const found = plan.findings.find(({ code }) => code === 'connect.redrive');
    expect(found?.fix).toMatch(/^make a standard queue beside .* TALLY_DEAD_LETTER_QUEUE_URL/);
    expect(found?.fix).not.toContain('aws ');
    expect(anywhere(plan.findings)).not.toMatch(/queue ["',]|ARN of/);
    // nothing is made with an empty name either
    await world.agree({ source: 'eventbridge' });
    expect(targetOf(world)).not.toHaveProperty('deadLetterArn');
    await world.setBucket({ source: 'eventbridge' });
    expect(await world.codes()).toEqual(['connect.redrive']);
  });

  it('takes the queue of the settings, if a redrive policy could reach it', async () => {
    const world = await startWorld({ deadLetterUrl: LETTERS_URL });
    loseRedrive(world);
    const plan = await world.plan();
    expect(plan.wish.deadLetterArn).toBe(LETTERS_ARN);
    await world.agree();
    expect(subscriptionOf(world).deadLetterArn).toBe(LETTERS_ARN);
  });

  it('is not judged by a setting while the policy is there', async () => {
    const other = `arn:aws:sqs:${REGION}:${ACCOUNT}:other-letters`;
    const world = await startWorld({ deadLetterUrl: LETTERS_URL.replace('tally-dead-letters', 'other-letters') });
    world.aws.parts.queues.set(other, {});
    expect((await world.plan()).wish.deadLetterArn).toBe(LETTERS_ARN);
  });
});

describe('a bucket queue that is its own dead-letter queue', () => {
  it.each(['notification', 'eventbridge'] as const)('is named as that, and nothing else is blamed: %s', async (source) => {
    const world = await applied(source);
    world.aws.parts.queues.get(QUEUE_ARN)!.deadLetterArn = QUEUE_ARN;
    const before = world.aws.snapshot();
    const findings = await world.diagnose();
    expect(findings).toMatchObject([{ code: 'connect.redrive', what: `${QUEUE_ARN} is its own dead-letter queue` }]);
    expect(findings[0]!.fix).toContain(LETTERS_ARN);
    await world.agree({ source });
    expect(world.aws.snapshot()).toEqual(before);
  });

  it('becomes the dead-letter queue of nothing', async () => {
    const world = await startWorld();
    world.aws.parts.queues.get(QUEUE_ARN)!.deadLetterArn = QUEUE_ARN;
    await world.agree();
    expect(subscriptionOf(world)).not.toHaveProperty('deadLetterArn');
  });
});

it('a dead-letter queue that does not exist is a finding, and keeps no apply from going ahead', async () => {
  const world = await startWorld();
  world.aws.parts.queues.delete(LETTERS_ARN);
  expect(await world.agree()).toMatchObject({ state: 'applied' });
  const [found] = await world.diagnose();
  expect(found).toMatchObject({
    code: 'connect.redrive',
    severity: 'degraded',
    what: expect.stringContaining(`there is no queue ${LETTERS_ARN}`),
  });
});
