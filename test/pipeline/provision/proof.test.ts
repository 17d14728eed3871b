/** What proves that the events of a bucket arrive: an event, or S3's test event, that came by its source after the last change. Nothing that was only read does. */
import { expect, it } from 'vitest';
import { noteProof } from '../../../src/pipeline/gaps/connection-gaps.ts';
import { createGapReports } from '../../../src/pipeline/gaps/reports.ts';
import { createCheckConnection } from '../../../src/pipeline/provision/watch.ts';
import { readRecord, refs } from '../../../src/pipeline/records/stored.ts';
import { QUEUE_ARN } from '../../support/fakes/aws-parts.ts';
import { createFakeTelemetry } from '../../support/fakes/ports.ts';
import { startWorld, wishes } from './world.ts';

async function startProven() {
  const world = await startWorld();
  world.populate();
  const { state, clock, provisioning } = world;
  const telemetry = createFakeTelemetry();
  const gaps = createGapReports({ state, clock, telemetry });
  const checkConnection = createCheckConnection({ state, provisioning, gaps, clock, telemetry });
  const record = async () => (await readRecord(state, refs.bucket('photos')))!;
  return {
    ...world,
    check: async () => checkConnection(await record()),
    isProven: async () => (await record()).provenAtMs !== undefined,
    waySinceMs: async () => (await record()).waySinceMs ?? 0,
    /** As at the first event. */
    arrive: async () => noteProof({ state, clock }, await record()),
  };
}

it.each(wishes)('%s: parts that are all in order prove nothing, and a gap stands until an event has arrived', async (source, wish) => {
  const world = await startProven();
  if (source === 'topic')
    world.notify([{ kind: 'topic', id: 'all', arn: wish.topic_arn!, events: ['s3:ObjectCreated:*', 's3:ObjectRemoved:*'], filter: [] }]);
  await world.agree(wish);
  await world.setBucket({ source, ...(wish.topic_arn !== undefined && { topicArn: wish.topic_arn }) });
  await world.check();
  expect(await world.isProven()).toBe(false);
  expect(await world.gap()).toMatchObject({ unproven: 'events' });
  await world.arrive();
  expect(await world.isProven()).toBe(true);
  expect(await world.gap()).not.toHaveProperty('unproven');
});

it('what arrived before a change proves nothing after it, and an apply that changes nothing keeps the proof', async () => {
  const world = await startProven();
  await world.agree();
  await world.arrive();
  const before = await world.waySinceMs();
  await world.clock.advance(60_000);
  expect(await world.apply()).toMatchObject({ state: 'applied', changed: false });
  expect(await world.isProven()).toBe(true);
  expect(await world.waySinceMs()).toBe(before);
  world.aws.parts.queues.get(QUEUE_ARN)!.policy = '{"Statement":[]}';
  await world.closeGap();
  expect(await world.apply()).toMatchObject({ state: 'applied', changed: true });
  expect(await world.isProven()).toBe(false);
  expect(await world.waySinceMs()).toBeGreaterThan(before);
  expect(await world.gap()).toMatchObject({ unproven: 'events' });
});

it('a test event that S3 sends while the notification is written counts, although the apply has not ended', async () => {
  const world = await startProven();
  world.aws.after = (call) => {
    if (call === 'putNotification') void world.arrive();
  };
  await world.agree();
  expect(await world.isProven()).toBe(true);
  expect(await world.gap()).not.toHaveProperty('unproven');
});
