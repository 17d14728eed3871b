import { expect, it } from 'vitest';
import type { AwsReads } from '../../../src/pipeline/ports/provision.ts';
import { createSharedReads } from '../../../src/pipeline/provision/shared-reads.ts';
import { createFakeAws, LETTERS_ARN, QUEUE_ARN, QUEUE_URL, REGION, THEIR_TOPIC, ACCOUNT } from '../../support/fakes/aws-parts.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';

function startShared() {
  const aws = createFakeAws();
  const clock = createFakeClock();
  const read: string[] = [];
  const counted = Object.fromEntries(
    Object.entries(aws).map(([name, call]) => [
      name,
      (...asked: never) => {
        read.push(name);
        return (call as (...given: never) => unknown)(...asked);
      },
    ]),
  ) as unknown as AwsReads;
  return { aws, clock, read, shared: createSharedReads(counted, clock) };
}

it('what buckets share is read once within a minute, and then as it is by then', async () => {
  const { aws, clock, read, shared } = startShared();
  const before = await shared.queueOf(QUEUE_ARN, AbortSignal.timeout(60_000));
  aws.parts.queues.get(QUEUE_ARN)!.retentionS = 77;
  await clock.advance(59_999);
  expect(await shared.queueOf(QUEUE_ARN, AbortSignal.timeout(60_000))).toEqual(before);
  expect(read).toEqual(['queueOf']);
  await clock.advance(1);
  expect(await shared.queueOf(QUEUE_ARN)).toMatchObject({ retentionS: 77 });
  // each queue, and each way to name it, is a read
  await shared.queueOf(LETTERS_ARN);
  await shared.queueAt(QUEUE_URL);
  expect(read).toEqual(['queueOf', 'queueOf', 'queueOf', 'queueAt']);
});

it('what is missing, what could not be read, and what one bucket has alone are read each time', async () => {
  const { aws, read, shared } = startShared();
  expect(await shared.topicOf(THEIR_TOPIC, QUEUE_ARN)).toBe('absent');
  aws.parts.topics.set(THEIR_TOPIC, { policy: '{}', subscriptions: new Map() });
  expect(await shared.topicOf(THEIR_TOPIC, QUEUE_ARN)).not.toBe('absent');
  await expect(shared.queueAt(`${QUEUE_URL}-gone`)).rejects.toThrow();
  await expect(shared.queueAt(`${QUEUE_URL}-gone`)).rejects.toThrow();
  const bucket = { bucket: 'photos', region: REGION, account: ACCOUNT };
  await shared.notificationOf(bucket);
  await shared.notificationOf(bucket);
  expect(read).toEqual(['topicOf', 'topicOf', 'queueAt', 'queueAt', 'notificationOf', 'notificationOf']);
});
