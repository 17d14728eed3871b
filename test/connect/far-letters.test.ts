import { describe, expect, it } from 'vitest';
import { newOwner, tagsOf } from '../../src/connect/names.rules.ts';
import { createFarLetters } from '../../src/connect/far-letters.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';

const arn = 'arn:aws:sqs:eu-central-1:123456789012:tally-bucket-events';
const owner = newOwner(arn);
const urlIn = (region: string): string => `https://sqs.${region}.amazonaws.com/123456789012/tally-${owner.installation}-dead-letters`;

function createWorld(regions: readonly string[]) {
  const clock = createFakeClock();
  const world = {
    regions: [...regions],
    made: new Set(regions),
    isRefused: false,
    asked: [] as string[],
  };
  const farLetters = createFarLetters({
    clock,
    queueUrl: 'https://queue',
    state: {
      ...createMemoryStore().state,
      list: async () =>
        world.regions.map((region) => ({
          id: `bucket:${region}`,
          kind: 'bucket',
          version: '1',
          record: { ...bucketRecord, bucket: region, region, source: 'topic' as const },
        })),
    },
    aws: {
      queueAt: async (url) => ({ arn, url, attributes: {} }),
      queueTags: async () => {
        if (world.isRefused) throw new Error('refused');
        return tagsOf(owner);
      },
      queueOf: async (queueArn) => {
        world.asked.push(queueArn);
        const region = queueArn.split(':')[3] ?? '';
        return world.made.has(region) ? { arn: queueArn, url: urlIn(region), attributes: {} } : 'absent';
      },
    },
  });
  return { ...world, world, clock, farLetters };
}

describe('the dead-letter queues of other regions', () => {
  it('are those of the regions of buckets, as far as they exist, but not that of the bucket queue', async () => {
    const { world, farLetters } = createWorld(['eu-central-1', 'us-east-1', 'us-east-1', 'eu-west-1']);
    world.made.delete('eu-west-1');
    expect(await farLetters()).toEqual([urlIn('us-east-1')]);
    expect(world.asked).toHaveLength(2);
  });

  it('are looked for every ten minutes, and those known stay while AWS refuses to answer', async () => {
    const { world, clock, farLetters } = createWorld(['us-east-1']);
    await farLetters();
    world.regions.push('eu-west-1');
    world.made.add('eu-west-1');
    expect(await farLetters()).toEqual([urlIn('us-east-1')]);
    world.isRefused = true;
    await clock.advance(600_000);
    await expect(farLetters()).rejects.toThrow('refused');
    expect(await farLetters()).toEqual([urlIn('us-east-1')]);
    world.isRefused = false;
    await clock.advance(600_000);
    expect(await farLetters()).toEqual(['us-east-1', 'eu-west-1'].map(urlIn));
  });
});
