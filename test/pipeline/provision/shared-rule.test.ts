/** Rules of EventBridge that many buckets share: filled, emptied and changed without a moment in which a neighbour is left out. */
import { describe, expect, it } from 'vitest';
import { ruleNameOf } from '../../../src/domain/provisioning/names.ts';
import type { ObservedRule } from '../../../src/domain/provisioning/observed.ts';
import { bucketsIn } from '../../../src/domain/provisioning/shared-rule.ts';
import { wiringOf } from '../../../src/domain/provisioning/wiring.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { INSTALLATION, QUEUE_ARN, REGION, REGISTRY, sharedRuleName, wish } from '../../support/fakes/aws-parts.ts';
import { newRecord, startWorld, type World } from './world.ts';

type Source = 'eventbridge' | 'routed';
const sources: readonly Source[] = ['eventbridge', 'routed'];

async function connect(world: World, bucket: string): Promise<void> {
  world.storage.createBucket(bucket, { region: REGION });
  world.aws.parts.notifications.set(bucket, { entries: [], eventBridge: true });
  await updateRecord(world.state, refs.bucket(bucket), () => newRecord(bucket, world.clock.nowMs()));
}

/** By name, the buckets of each rule. */
function rulesOf({ aws }: World, source: Source): Readonly<Record<string, readonly string[] | undefined>> {
  return Object.fromEntries([...aws.parts.rules].map(([name, { pattern }]) => [name, bucketsIn({ source }, pattern)]));
}

/** Whether a rule that is enabled sends the events of the bucket somewhere. */
function isSent({ aws }: World, source: Source, bucket: string): boolean {
  const sends = ({ isEnabled, targets, pattern }: ObservedRule): boolean =>
    isEnabled && targets.length > 0 && bucketsIn({ source }, pattern)?.includes(bucket) === true;
  return [...aws.parts.rules.values()].some(sends);
}

/** Looks after each call whether the events of the bucket are sent. */
function watch(world: World, source: Source, bucket: string): { readonly missing: () => readonly string[] } {
  const missing: string[] = [];
  world.aws.after = (call) => {
    if (!isSent(world, source, bucket)) missing.push(call);
  };
  return { missing: () => missing };
}

describe.each(sources)('a shared rule for the source %s', (source) => {
  it('takes buckets in and lets them go, while those of its neighbour are sent all the time, and goes with the last one', async () => {
    const world = await startWorld();
    await world.agree({ source });
    const neighbour = watch(world, source, 'photos');
    const gap = await world.gap();
    await world.clock.advance(60_000);
    for (const bucket of ['videos', 'music']) {
      if (bucket === 'music') await connect(world, bucket);
      await world.agree({ bucket, source });
    }
    expect(rulesOf(world, source)).toEqual({ [sharedRuleName(source)]: ['music', 'photos', 'videos'] });
    const [rule] = [...world.aws.parts.rules.values()];
    expect(rule).toMatchObject({ targets: [{ id: wiringOf({ ...wish, source }).rule?.target.id }] });
    expect(rule?.tags).toEqual({ 'tally:installation': INSTALLATION, 'tally:registry': REGISTRY });
    for (const bucket of ['photos', 'videos', 'music']) {
      const plan = await world.plan({ bucket, source });
      expect(plan.changes).toEqual([]);
      expect(plan.findings.filter(({ severity }) => severity === 'broken')).toEqual([]);
    }
    expect(await world.gap()).toEqual(gap);
    await world.remove('videos');
    await world.remove('music');
    expect(neighbour.missing()).toEqual([]);
    expect(rulesOf(world, source)).toEqual({ [sharedRuleName(source)]: ['photos'] });
    await world.remove();
    expect(world.aws.parts.rules.size).toBe(0);
    expect(world.aws.parts.queues.get(QUEUE_ARN)?.policy).toBeUndefined();
  });

  it('has another one beside it when its pattern is full, and its gaps are filled first', async () => {
    const world = await startWorld();
    const long = Array.from({ length: 40 }, (_, index) => `${'b'.repeat(50)}-${String(index).padStart(2, '0')}`);
    for (const bucket of long) {
      await connect(world, bucket);
      await world.apply({ bucket, source });
    }
    const [first = [], second = []] = Object.values(rulesOf(world, source));
    expect(Object.keys(rulesOf(world, source))).toEqual([sharedRuleName(source), sharedRuleName(source).replace(/1$/, '2')]);
    expect([...(first ?? []), ...(second ?? [])].sort()).toEqual(long);
    for (const { pattern = '' } of world.aws.parts.rules.values()) expect(pattern.length).toBeLessThanOrEqual(2_048);
    await world.remove(long[0]);
    await world.agree({ source });
    expect(rulesOf(world, source)[sharedRuleName(source)]).toContain('photos');
  });

  it('lets a bucket go that needs another treatment, once the other rule sends its events', async () => {
    const change = source === 'eventbridge' ? ({ enrich: 'tags' } as const) : ({ minimal: true } as const);
    const world = await startWorld();
    await world.agree({ source });
    await world.agree({ bucket: 'videos', source });
    const [photos, videos] = [watch(world, source, 'photos'), watch(world, source, 'videos')];
    const plan = await world.plan({ bucket: 'videos', source, ...change });
    expect(plan.changes.map(({ part, action }) => `${part} ${action}`)).toEqual(['rule create', 'target create', 'rule remove']);
    await world.agree({ bucket: 'videos', source, ...change });
    expect([...photos.missing(), ...videos.missing()]).toEqual([]);
    expect(Object.values(rulesOf(world, source))).toEqual([['photos'], ['videos']]);
    // the last one takes the rule with it
    await world.agree({ source, ...change });
    expect(Object.values(rulesOf(world, source))).toEqual([['photos', 'videos']]);
    const kinds = (await world.connection())?.parts.filter(({ kind }) => kind === 'rule').map(({ arn }) => arn.split('/')[1]);
    expect(kinds).toEqual(Object.keys(rulesOf(world, source)));
  });

  it('is in order again wherever the apply of one of its buckets and its removal are killed', async () => {
    for (let at = 1; at <= 60; at += 7) {
      const world = await startWorld();
      await world.agree({ source });
      const neighbour = watch(world, source, 'photos');
      await world.killed(['before', at], () => world.agree({ bucket: 'videos', source }));
      expect(await world.agree({ bucket: 'videos', source })).toMatchObject({ state: 'applied' });
      expect(Object.values(rulesOf(world, source))).toEqual([['photos', 'videos']]);
      await world.killed(['before', at], () => world.remove('videos'));
      expect(Object.values(rulesOf(world, source))).toEqual([['photos']]);
      expect(neighbour.missing()).toEqual([]);
    }
  });

  it('that others have altered is named, healed for all of its buckets at once, and left as it is by a removal', async () => {
    const world = await startWorld();
    await world.agree({ source });
    await world.agree({ bucket: 'videos', source });
    const [name, rule] = [...world.aws.parts.rules][0]!;
    world.aws.parts.rules.set(name, { ...rule, pattern: '{"source":["aws.s3"]}' });
    expect(await world.diagnose({ source })).toContainEqual(expect.objectContaining({ code: 'connect.rule-pattern', severity: 'broken' }));
    const before = await world.gap('videos');
    await world.clock.advance(60_000);
    await world.agree({ source });
    expect(rulesOf(world, source)).toEqual({ [name]: ['photos', 'videos'] });
    // the watch of the other bucket has not seen it
    expect((await world.gap('videos'))?.notBeforeMs).toBeGreaterThan(before?.notBeforeMs ?? 0);
    world.aws.parts.rules.set(name, { ...rule, pattern: '{"source":["aws.s3"]}' });
    expect(await world.remove()).toContainEqual({
      name,
      reason: expect.stringContaining('pattern'),
    });
    // one that is disabled is not enabled by a bucket that goes
    world.aws.parts.rules.set(name, { ...rule, isEnabled: false, pattern: rule.pattern!.replace('"videos"', '"videos","theirs"') });
    await world.remove('videos');
    expect(world.aws.parts.rules.get(name)).toMatchObject({ isEnabled: false });
    expect(rulesOf(world, source)[name]).not.toContain('videos');
  });

  it('is not made for a bucket that has its own', async () => {
    const world = await startWorld();
    await world.agree({ bucket: 'videos', source });
    const own = ruleNameOf(INSTALLATION, 'photos', source);
    const [rule] = [...world.aws.parts.rules.values()];
    world.aws.parts.rules.set(own, { ...rule!, pattern: rule!.pattern!.replace('"videos"', '"photos"') });
    const plan = await world.plan({ source });
    expect(plan.changes.filter(({ part }) => part === 'rule' || part === 'target')).toEqual([]);
    await world.agree({ source });
    expect(rulesOf(world, source)).toEqual({ [sharedRuleName(source)]: ['videos'], [own]: ['photos'] });
    await world.remove();
    expect(rulesOf(world, source)).toEqual({ [sharedRuleName(source)]: ['videos'] });
  });
});
