import { expect, it } from 'vitest';
import { createFarLetters } from '../../src/connect/far-letters.ts';
import { ACCOUNT, INSTALLATION, QUEUE_URL, setUp } from '../support/fakes/aws-parts.ts';
import { startWorld } from './world.ts';

const urlIn = (region: string): string => `https://queues/arn:aws:sqs:${region}:${ACCOUNT}:tally-${INSTALLATION}-dead-letters`;

it('the dead-letter queues of other regions with buckets, as far as they exist, are looked for every ten minutes, and stay while AWS refuses', async () => {
  const { aws, state, clock, setBucket } = await startWorld({ photos: { region: 'us-west-2' } });
  const farLetters = createFarLetters({ clock, queueUrl: QUEUE_URL, state, aws });
  let asked = 0;
  aws.before = (call) => void (asked += call === 'queueOf' ? 1 : 0);
  expect(await farLetters()).toEqual([urlIn('us-west-2')]);
  // not in the region of the bucket queue, which has a bucket too
  expect(asked).toBe(1);
  await setBucket({ region: 'eu-west-1' }, 'videos');
  await clock.advance(600_000);
  expect(await farLetters()).toEqual([urlIn('us-west-2')]);
  expect(asked).toBe(3);
  setUp(aws.parts, 'eu-west-1');
  expect(await farLetters()).toEqual([urlIn('us-west-2')]);
  aws.before = (call) => {
    if (call === 'queueTags') throw new Error('refused');
  };
  await clock.advance(600_000);
  await expect(farLetters()).rejects.toThrow('refused');
  expect(await farLetters()).toEqual([urlIn('us-west-2')]);
  aws.before = () => undefined;
  await clock.advance(600_000);
  expect(await farLetters()).toEqual(['us-west-2', 'eu-west-1'].map(urlIn));
});
