import { describe, expect, it } from 'vitest';
import { attributeTexts, wantedQueues } from '../../../src/domain/provisioning/planning/queue-pair.ts';
import type { NamedQueue } from '../../../src/pipeline/ports/queue-pair.ts';
import { createQueuePair } from '../../../src/pipeline/provision/queue-pair.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';

const place = { partition: 'aws', region: 'eu-central-1', account: '123456789012' };
const [letters, bucket] = wantedQueues('tally', place);
const urlOf = (name: string): string => `https://sqs.eu-central-1.amazonaws.com/123456789012/${name}`;

/** An account whose new queues are seen after some reads. */
function createWorld({ hidden = 0 } = {}) {
  const queues = new Map<string, NamedQueue>();
  const created: string[] = [];
  let unseen = 0;
  const pair = createQueuePair({
    aws: {
      account: async () => place.account,
      async queueNamed(name) {
        if (created.at(-1) === name && unseen > 0) {
          unseen -= 1;
          return 'absent';
        }
        return queues.get(name) ?? 'absent';
      },
      async createQueue(name, attributes) {
        created.push(name);
        unseen = hidden;
        queues.set(name, { url: urlOf(name), attributes });
      },
      async setAttributes(url, attributes) {
        const name = url.split('/').at(-1) ?? '';
        queues.set(name, { url, attributes: { ...queues.get(name)?.attributes, ...attributes } });
      },
    },
    clock: createFakeClock({ autoAdvance: true }),
    region: place.region,
  });
  return { pair, queues, created };
}

describe('the bucket queue and its dead-letter queue', () => {
  it('are planned without a write, made dead letters first, and not made twice', async () => {
    const { pair, created } = createWorld({ hidden: 3 });
    expect((await pair.plan('tally')).queues.map(({ state }) => state)).toEqual(['absent', 'absent']);
    expect(created).toEqual([]);
    const applied = await pair.apply('tally');
    expect(created).toEqual([letters.name, bucket.name]);
    expect(applied.settings).toEqual({
      AWS_REGION: place.region,
      TALLY_QUEUE_URL: urlOf(bucket.name),
      TALLY_DEAD_LETTER_QUEUE_URL: urlOf(letters.name),
    });
    const { made, ...rest } = applied;
    expect(made).toEqual(created);
    expect(await pair.apply('tally')).toEqual(rest);
    expect(created).toHaveLength(2);
  });

  it('are completed where an earlier run ended after the first one', async () => {
    const { pair, queues, created } = createWorld();
    queues.set(letters.name, { url: urlOf(letters.name), attributes: attributeTexts(letters) });
    expect((await pair.apply('tally')).made).toEqual([bucket.name]);
    expect(created).toEqual([bucket.name]);
  });

  it('are healed where one was made otherwise: what others set stays', async () => {
    const { pair, queues, created } = createWorld();
    const theirs = { Sid: 'theirs', Effect: 'Allow', Principal: '*', Action: 'sqs:SendMessage', Resource: bucket.arn };
    const otherwise = { Policy: JSON.stringify({ Version: '2012-10-17', Statement: [theirs] }), DelaySeconds: '900', KmsMasterKeyId: 'k' };
    queues.set(bucket.name, { url: urlOf(bucket.name), attributes: otherwise });
    const planned = await pair.plan('tally');
    expect(planned.queues).toMatchObject([{ state: 'absent' }, { state: 'different' }]);
    expect(planned.queues[1]?.differences).toContainEqual({ attribute: 'DelaySeconds', found: '900', wanted: '0' });
    expect(planned.settings).toBeUndefined();
    const applied = await pair.apply('tally');
    expect(applied.queues.map(({ state }) => state)).toEqual(['as-planned', 'as-planned']);
    expect(applied).toMatchObject({ made: [letters.name, bucket.name], settings: { TALLY_QUEUE_URL: urlOf(bucket.name) } });
    expect(created).toEqual([letters.name]);
    expect(queues.get(bucket.name)?.attributes).toMatchObject({ Policy: expect.stringContaining('"theirs"'), KmsMasterKeyId: 'k' });
  });
});
