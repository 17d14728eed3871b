/** The plan and the doctor of a bucket for which nothing was made yet. */
import { describe, expect, it } from 'vitest';
import { bucketSources } from '../../../src/domain/bucket.ts';
import { statusOf } from '../../../src/domain/provisioning/checks/finding.ts';
import { refs, removeRecord } from '../../../src/pipeline/records/stored.ts';
import { QUEUE_ARN, THEIR_TOPIC, TOPIC_ARN } from '../../support/fakes/aws-parts.ts';
import { allTo, startWorld, type World } from './world.ts';

/** A bucket that Tally does not know, in an account with notifications of others. */
async function startUnconnected(): Promise<World> {
  const world = await startWorld();
  world.populate();
  await removeRecord(world.state, refs.bucket('photos').id);
  world.notify([allTo(THEIR_TOPIC)], { bucket: 'videos' });
  return world;
}

describe('a bucket for which nothing was made', () => {
  it.each(bucketSources)('has one note in its plan for %s, with the one command that connects it and makes the parts', async (source) => {
    const world = await startUnconnected();
    await removeRecord(world.state, refs.bucket('videos').id);
    const bucket = source === 'topic' ? 'videos' : 'photos';
    const topic = source === 'topic' ? { topic_arn: THEIR_TOPIC } : {};
    const { plan, isConnected } = await world.provisioning.plan({ bucket, source, ...topic });
    expect(isConnected).toBe(false);
    const findings = plan.findings.filter(({ code }) => code !== 'connect.trail-unchecked');
    expect(findings).toMatchObject([{ code: 'connect.not-made', severity: 'note', blocks: false }]);
    const options = `${source === 'topic' ? `--source topic --topic ${THEIR_TOPIC}` : `--source ${source}`} --apply`;
    const agreed = plan.foreign.length > 0 ? ` --plan ${plan.token}` : '';
    expect(findings[0]!.fix).toBe(`tally bucket add ${bucket} ${options}${agreed}`);
    for (const { name } of plan.changes) expect(findings[0]!.what).toContain(name);
    expect(statusOf(findings)).toBe('ok');
  });

  it('still shows what keeps the parts from being made, and what is wrong with parts that other buckets use', async () => {
    const world = await startWorld();
    await world.provisioning.apply({ bucket: 'videos' }, {});
    const { subscriptions } = world.aws.parts.topics.get(TOPIC_ARN)!;
    subscriptions.set(QUEUE_ARN, { ...subscriptions.get(QUEUE_ARN)!, isRaw: true });
    const plan = await world.plan({ enrich: 'tags' });
    expect(plan.findings).toMatchObject([
      {
        code: 'connect.subscription-raw',
        severity: 'degraded',
        fix: expect.stringMatching(/^tally bucket apply photos --enrich tags --plan \w+$/),
      },
      { code: 'connect.not-made', severity: 'note', what: expect.stringContaining('notification photos') },
    ]);
  });

  it('names no command that what blocks the plan would refuse', async () => {
    const world = await startUnconnected();
    await removeRecord(world.state, refs.bucket('videos').id);
    const plan = await world.plan({ bucket: 'videos', source: 'notification' });
    expect(plan.findings).toMatchObject([
      { code: 'connect.overlap', blocks: true, fix: `tally bucket plan videos --source topic --topic ${THEIR_TOPIC}` },
    ]);
  });

  it('that is connected is broken for the doctor, which names the command that makes the parts', async () => {
    const world = await startWorld();
    expect(await world.diagnose()).toMatchObject([{ code: 'connect.not-made', severity: 'broken', fix: 'tally bucket apply photos' }]);
  });

  it('has broken parts again once they were made and are lost', async () => {
    const world = await startWorld();
    await world.apply();
    world.notify([]);
    const plan = await world.plan();
    expect(plan.findings).toMatchObject([{ code: 'connect.notification-missing', severity: 'broken', fix: 'tally bucket apply photos' }]);
  });
});
