import { describe, expect, it } from 'vitest';
import { newOwner, tagsOf } from '../../src/connect/names.rules.ts';
import {
  attributeTexts,
  nameOf,
  queueArns,
  queueMissing,
  sharedParts,
  type FoundPart,
  type SharedPart,
} from '../../src/connect/shared.rules.ts';
import { createSetup } from '../../src/connect/setup.ts';
import { createFakeClock } from '../support/fakes/ports.ts';

const home = { partition: 'aws', region: 'eu-central-1', account: '123456789012' };
const { bucket: BUCKET_ARN } = queueArns('tally-bucket-events', home);
const owner = newOwner(BUCKET_ARN);
const urlOf = (arn: string): string => `https://sqs.eu-central-1.amazonaws.com/123456789012/${arn.split(':').at(-1) ?? ''}`;
const all = sharedParts(owner, { queues: queueArns('tally-bucket-events', home), home, region: home.region });
const [letters, bucket] = all as readonly [SharedPart, SharedPart];

/** An account whose new parts are seen after some reads, and whose calls can be interrupted. */
interface WorldOptions {
  readonly hidden?: number;
  /** The queues of the settings. */
  readonly queueUrls?: readonly string[];
  /** The place in which a server of queues alone answers that its queues are. */
  readonly queuesAlone?: string;
  /** What exists already. */
  readonly parts?: Map<string, FoundPart>;
}

function createWorld({ hidden = 0, queueUrls = [], queuesAlone, parts = new Map() }: WorldOptions = {}) {
  const written: string[] = [];
  let unseen = 0;
  let writesLeft = Infinity;
  const write = (part: SharedPart, found: FoundPart): void => {
    writesLeft -= 1;
    if (writesLeft < 0) throw new Error('killed');
    written.push(nameOf(part));
    unseen = hidden;
    parts.set(nameOf(part), part.kind === 'queue' ? { url: urlOf(part.arn), ...found } : found);
  };
  const answered = (part: SharedPart): FoundPart['attributes'] =>
    queuesAlone === undefined
      ? attributeTexts(part)
      : Object.fromEntries(
          Object.entries({ ...attributeTexts(part), QueueArn: part.arn }).map(([name, text]) => [
            name,
            text.replaceAll(/arn:aws:sqs:[^:]*:\d*:/g, queuesAlone),
          ]),
        );
  const setup = createSetup({
    hasQueuesAlone: queuesAlone !== undefined,
    aws: {
      account: async () => (queuesAlone === undefined ? home.account : expect.fail('there is no STS')),
      async queueTags(url) {
        const found = [...parts.values()].find((each) => each.url === url);
        if (found === undefined) throw queueMissing('ListQueueTags', home.region);
        return found.tags;
      },
      async read(part) {
        if (written.at(-1) === nameOf(part) && unseen > 0) {
          unseen -= 1;
          return 'absent';
        }
        return parts.get(nameOf(part)) ?? 'absent';
      },
      create: async (part) => write(part, { attributes: answered(part), tags: part.tags }),
      async change(part, to) {
        const { attributes, tags } = parts.get(nameOf(part))!;
        write(part, { attributes: { ...attributes, ...to.attributes }, tags: { ...tags, ...to.tags } });
      },
    },
    clock: createFakeClock({ autoAdvance: true }),
    region: home.region,
    queueUrls,
  });
  return { setup, parts, written, interruptAfter: (writes: number) => void (writesLeft = writes) };
}

describe('what all buckets share', () => {
  it('is planned without a write, made once in its order, and not made twice', async () => {
    const { setup, written } = createWorld({ hidden: 3 });
    expect(new Set((await setup.plan({})).parts.map(({ state }) => state))).toEqual(new Set(['absent']));
    expect(written).toEqual([]);
    const applied = await setup.apply({});
    expect(written).toEqual(all.map(nameOf));
    expect(applied).toMatchObject({
      installation: owner.installation,
      settings: { AWS_REGION: home.region, TALLY_QUEUE_URL: urlOf(bucket.arn), TALLY_DEAD_LETTER_QUEUE_URL: urlOf(letters.arn) },
    });
    const { made, ...rest } = applied;
    expect(made).toEqual(written);
    expect(await setup.apply({})).toEqual(rest);
    expect(written).toHaveLength(all.length);
  });

  it('is two queues where the server has queues alone, whatever it calls its own place', async () => {
    const { setup, parts, written } = createWorld({ queuesAlone: 'arn:aws:sqs:elasticmq:000000000000:' });
    expect((await setup.apply({})).account).toBe('000000000000');
    expect(written).toEqual(['tally-dead-letters', 'tally-bucket-events'].map((name) => expect.stringContaining(name) as unknown));
    const again = await setup.apply({});
    expect(written).toHaveLength(2);
    expect(again.parts.map(({ state }) => state)).toEqual(['as-planned', 'as-planned']);
    const [name, made] = [...parts].at(-1)!;
    const other = JSON.stringify({ deadLetterTargetArn: 'arn:aws:sqs:elasticmq:000000000000:other', maxReceiveCount: 100 });
    parts.set(name, { ...made, attributes: { ...made.attributes, RedrivePolicy: other } });
    const planned = (await setup.plan({})).parts.map(({ arn, state }) => [arn.split(':').at(-1), state]);
    expect(planned).toEqual([
      ['other', 'absent'],
      ['tally-bucket-events', 'as-planned'],
    ]);
  });

  it('is the same wherever an earlier run was killed', async () => {
    for (let writes = 0; writes <= all.length; writes += 1) {
      const world = createWorld();
      world.interruptAfter(writes);
      await world.setup.apply({}).catch(() => undefined);
      world.interruptAfter(Infinity);
      await world.setup.apply({});
      expect(world.written).toEqual(all.map(nameOf));
    }
  });

  it('is healed where something was made otherwise: what others set stays', async () => {
    const { setup, parts } = createWorld();
    const theirs = { Sid: 'theirs', Effect: 'Allow', Principal: '*', Action: 'sqs:SendMessage', Resource: bucket.arn };
    const attributes = { Policy: JSON.stringify({ Version: '2012-10-17', Statement: [theirs] }), DelaySeconds: '900', KmsMasterKeyId: 'k' };
    parts.set(nameOf(bucket), { url: urlOf(bucket.arn), attributes, tags: { team: 'search' } });
    const planned = await setup.plan({});
    expect(planned.parts[1]).toMatchObject({ state: 'different' });
    expect(planned.parts[1]?.differences).toContainEqual({ attribute: 'DelaySeconds', found: '900', wanted: '0' });
    expect(planned.settings).toBeUndefined();
    const applied = await setup.apply({});
    expect(new Set(applied.parts.map(({ state }) => state))).toEqual(new Set(['as-planned']));
    expect(parts.get(nameOf(bucket))).toMatchObject({
      attributes: { Policy: expect.stringContaining('"theirs"'), KmsMasterKeyId: 'k', DelaySeconds: '0' },
      tags: { team: 'search', ...tagsOf(owner) },
    });
  });

  it('keeps what others write while it is being made', async () => {
    const { setup, parts } = createWorld();
    const queueWith = (...Statement: readonly object[]): FoundPart => ({
      url: urlOf(bucket.arn),
      attributes: { Policy: JSON.stringify({ Version: '2012-10-17', Statement }) },
      tags: {},
    });
    const set = parts.set.bind(parts);
    set(nameOf(bucket), queueWith());
    // the dead-letter queue is made first
    parts.set = (name, part) => {
      if (name === nameOf(letters)) set(nameOf(bucket), queueWith({ Sid: 'theirs', Effect: 'Deny', Principal: '*', Action: 'sqs:*' }));
      return set(name, part);
    };
    await setup.apply({});
    const { Policy = '' } = parts.get(nameOf(bucket))!.attributes;
    expect(JSON.parse(Policy)).toMatchObject({
      Statement: expect.arrayContaining([expect.objectContaining({ Sid: 'theirs' })]) as unknown,
    });
  });

  it('is made for a further region beside what is there, with the same owner', async () => {
    const { setup, written } = createWorld();
    await setup.apply({});
    const applied = await setup.apply({ region: 'eu-west-1' });
    expect(written.slice(all.length)).toEqual(applied.made);
    expect(applied.made?.every((name) => name.includes(`eu-west-1:${home.account}:tally-${owner.installation}-`))).toBe(true);
    expect(applied.made).toHaveLength(5);
  });
});

describe('the installation', () => {
  it('has the name that TALLY_INSTALLATION gives to a new one, and keeps it', async () => {
    const { setup } = createWorld();
    expect(await setup.apply({ installation: '0a1b2c3d' })).toMatchObject({ installation: '0a1b2c3d' });
    expect(await setup.plan({})).toMatchObject({ installation: '0a1b2c3d' });
    await expect(setup.plan({ installation: 'ffffffff' })).rejects.toMatchObject({ code: 'connect.blocked' });
  });

  it('goes to the queue that is to replace the present one, whose parts stay', async () => {
    const { setup, parts } = createWorld();
    await setup.apply({});
    const before = structuredClone([...parts]);
    const { bucket: other, letters: missing } = queueArns('other-bucket-events', home);
    const queueUrls = [other, missing.replace('dead-letters', 'missing'), bucket.arn].map(urlOf);
    const next = createWorld({ queueUrls, parts });
    const moved = await next.setup.apply({});
    expect(moved.installation).toBe(owner.installation);
    expect(moved.settings).toMatchObject({ TALLY_QUEUE_URL: queueUrls.join(',') });
    expect(parts.get(`queue ${other}`)?.tags).toEqual(tagsOf(owner));
    // topics lead to both queues
    expect(moved.made?.filter((name) => name.startsWith('topic '))).toEqual([]);
    expect(moved.made?.filter((name) => name.startsWith('subscription '))).toHaveLength(2);
    for (const [name, part] of before) expect(parts.get(name)).toEqual(part);
  });

  it('is that of the queue of the settings, whatever its name and that of its dead-letter queue', async () => {
    const [arn, theirs] = ['events', 'their-letters'].map((name) => bucket.arn.replace('tally-bucket-events', name));
    const { setup, parts } = createWorld({ queueUrls: [urlOf(arn!)] });
    const RedrivePolicy = JSON.stringify({ deadLetterTargetArn: theirs, maxReceiveCount: 3 });
    parts.set(`queue ${arn}`, { url: urlOf(arn!), attributes: { RedrivePolicy }, tags: {} });
    const { settings } = await setup.apply({});
    expect(settings).toMatchObject({ TALLY_QUEUE_URL: urlOf(arn!), TALLY_DEAD_LETTER_QUEUE_URL: urlOf(theirs!) });
    expect(JSON.parse(parts.get(`queue ${arn}`)!.attributes['RedrivePolicy']!)).toEqual({
      deadLetterTargetArn: theirs,
      maxReceiveCount: 100,
    });
    const alone = createWorld({ queueUrls: [urlOf(arn!)] });
    await alone.setup.apply({});
    expect([...alone.parts.keys()].slice(0, 2)).toEqual([`queue ${arn!.replace('events', 'events-dead-letters')}`, `queue ${arn}`]);
  });

  it('is not that of a part which has its name and no tags', async () => {
    const { setup, parts, written } = createWorld();
    parts.set(nameOf(all.find(({ kind }) => kind === 'topic')!), { attributes: {}, tags: {} });
    await expect(setup.apply({})).rejects.toMatchObject({ code: 'connect.blocked', message: expect.stringContaining('has no tag') });
    expect(written).toEqual([]);
  });

  it('with the name of another one is refused before anything is made, and nothing of the other is touched', async () => {
    const { setup, parts, written } = createWorld();
    await setup.apply({ installation: '0a1b2c3d' });
    const [before, writes] = [structuredClone([...parts]), written.length];
    const staging = createWorld({ queueUrls: [urlOf('staging-bucket-events')], parts });
    const error: unknown = await staging.setup.apply({ installation: '0a1b2c3d' }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'connect.blocked',
      message: expect.stringMatching(/tally-0a1b2c3d-events belongs to another Tally registry/),
    });
    expect([...parts]).toEqual(before);
    expect([written.length, staging.written]).toEqual([writes, []]);
  });
});
