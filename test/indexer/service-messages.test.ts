import { describe, expect, it } from 'vitest';
import { bucketSources } from '../../src/records/bucket.ts';
import { FaultError } from '../../src/base/fault.ts';
import { probeText } from '../../src/events/envelope.ts';
import { readRecord, refs, updateRecord } from '../../src/store/stored.ts';
import { BUCKET, createIngestWorld } from '../support/worlds/ingest.ts';

const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:events';
const confirmation = (topicArn: string) =>
  JSON.stringify({ Type: 'SubscriptionConfirmation', TopicArn: topicArn, Token: 't0k3n', SubscribeURL: 'http://169.254.169.254/' });

const connected = () => createIngestWorld({ bucket: { source: 'topic', topicArn: TOPIC } });

const testEvent = JSON.stringify({ Service: 'Amazon S3', Event: 's3:TestEvent', Bucket: BUCKET });
const fromTopic = (message: string, topicArn: string) => JSON.stringify({ Type: 'Notification', TopicArn: topicArn, Message: message });
const unsubscribed = JSON.stringify({ Type: 'UnsubscribeConfirmation', TopicArn: TOPIC, Token: 't' });

describe('S3’s test event', () => {
  it.each(bucketSources)(
    'is acknowledged and counted, and proves that events arrive by a notification or a topic, and nothing of another source (%s)',
    async (source) => {
      const connectionCheck = { state: 'ok' as const, atMs: 1, sinceMs: 0, findings: [], passesBoth: true as const };
      const world = await createIngestWorld({ bucket: { source, topicArn: TOPIC, createdAtMs: 0, connectionCheck } });
      await world.tellBody(fromTopic(testEvent, TOPIC));
      expect([world.messages(), world.settlements()]).toEqual([[], ['delete']]);
      expect(world.telemetry.labels('tally_service_messages_total')).toEqual([{ kind: 'test-event' }]);
      const isProven = source === 'notification' || source === 'topic';
      expect((await world.bucketRecord())?.provenAtMs !== undefined).toBe(isProven);
    },
  );

  it('from before the way was changed proves nothing', async () => {
    const world = await connected();
    const waySinceMs = world.clock.nowMs() + 60_000;
    await updateRecord(world.store.plainState, refs.bucket(BUCKET), (record) => record && { ...record, waySinceMs });
    await world.tellBody(fromTopic(testEvent, TOPIC));
    expect(await world.bucketRecord()).not.toHaveProperty('provenAtMs');
  });
});

it('a probe of Tally’s that arrives is noted, and one that was sent before it is not taken for it', async () => {
  const world = await connected();
  const probe = { topicArn: TOPIC, sentAtMs: world.clock.nowMs() };
  const stored = () => readRecord(world.store.plainState, refs.probe(TOPIC));
  await updateRecord(world.store.plainState, refs.probe(TOPIC), () => ({ ...probe, hasArrived: false, isLost: true }));
  await world.tellBody(fromTopic(probeText({ ...probe, sentAtMs: 1 }), TOPIC));
  expect(await stored()).toMatchObject({ hasArrived: false });
  await world.tellBody(fromTopic(probeText(probe), TOPIC));
  expect(await stored()).toEqual({ ...probe, hasArrived: true, isLost: false });
  expect([world.messages(), world.settlements()]).toEqual([[], ['delete', 'delete']]);
});

describe('a subscription confirmation', () => {
  it('of any other topic is a dead letter', async () => {
    const world = await connected();
    await world.tellBody(confirmation(`${TOPIC}-of-somebody-else`));
    expect(world.confirmed).toEqual([]);
    expect(world.letters()[0]?.attributes['tally-fault']).toMatchObject({ stringValue: 'message.unknown-topic' });
    expect(await world.gaps()).toEqual([]);
  });

  it('of a topic that a connected bucket names is confirmed, through the API and never by its URL, though SNS refused it at first', async () => {
    const world = await connected();
    world.refuseConfirmations(new FaultError('message.confirmation-failed', 'token expired'));
    await world.tellBody(confirmation(TOPIC));
    expect(world.settlements()).toEqual(['defer']);
    world.refuseConfirmations(undefined);
    await world.run(31_000);
    expect(world.confirmed).toEqual([TOPIC]);
    expect(world.messages()).toEqual([]);
  });
});

describe('an unsubscribe confirmation', () => {
  it('takes back the proof of every bucket of the topic, and opens a gap of those whose topic is not known', async () => {
    const world = await connected();
    const connect = (bucket: string, topicArn: string) =>
      world.connectBucket(bucket, { source: 'routed', topicArn, provenAtMs: 1, arrived: ['created'] });
    await connect('routed', TOPIC);
    await connect('routed-otherwise', `${TOPIC}-2`);
    await world.connectBucket('by-another-queue', { eventQueues: [{ queueUrl: 'http://queues/other', atMs: world.clock.nowMs() }] });
    await world.connectBucket('wired-by-hand', { provenAtMs: 1 });
    await world.tellBody(unsubscribed, 2_000);
    expect((await world.gaps()).map(({ bucket, unproven }) => [bucket, unproven])).toEqual([
      [BUCKET, 'events'],
      ['routed', 'events'],
      ['wired-by-hand', undefined],
    ]);
    const routed = await world.bucketRecord('routed');
    expect([routed?.provenAtMs, routed?.arrived]).toEqual([undefined, undefined]);
    // these may have their events by another way
    for (const bucket of ['routed-otherwise', 'wired-by-hand']) expect(await world.bucketRecord(bucket)).toMatchObject({ provenAtMs: 1 });
    expect(world.telemetry.recorded('warn')).toHaveLength(1);
    expect(world.messages()).toEqual([]);
  });

  it('of a topic that nobody names opens one for each bucket of the queue whose wiring is not known', async () => {
    const world = await createIngestWorld({ buckets: [BUCKET, 'second'] });
    await world.tellBody(unsubscribed, 2_000);
    expect((await world.gaps()).map(({ bucket }) => bucket)).toEqual([BUCKET, 'second']);
  });

  it('Fix: that is repeated opens no further gap, and what is sent a minute later through the topic proves that it delivers again', async () => {
    const world = await createIngestWorld({ bucket: { source: 'notification', topicArn: TOPIC, createdAtMs: 0 } });
    const proven = async () => (await world.bucketRecord())?.provenAtMs !== undefined;
    const send = async () => {
      await world.tellBody(fromTopic(testEvent, TOPIC), 2_000);
    };
    await send();
    expect(await proven()).toBe(true);
    for (let count = 0; count < 2; count += 1) {
      await world.tellBody(unsubscribed, 2_000);
    }
    // one with the reason that the events are proven, and one of the first confirmation
    expect(await world.gaps()).toMatchObject([{ reasons: [{ count: 2 }], unproven: 'events' }]);
    // it was on its way when the subscription ended
    await send();
    expect(await proven()).toBe(false);
    await world.run(60_000);
    await send();
    expect(await proven()).toBe(true);
  });

  it('Fix: opens a gap that is not older than the message, though this worker’s clock is slow', async () => {
    const world = await createIngestWorld({ bucket: { source: 'topic', topicArn: TOPIC }, skewMs: -3_600_000 });
    const sentAtMs = world.clock.nowMs();
    await world.tellBody(unsubscribed, 2_000);
    expect((await world.gaps())[0]?.lastSeenMs).toBeGreaterThanOrEqual(sentAtMs);
  });
});
