import { describe, expect, it, test } from 'vitest';
import type { BucketRecord } from '../../src/records/bucket.ts';
import { changes, type Change, type ChangeRecord } from '../../src/events/record.ts';
import type { DirtyMark } from '../../src/records/dirty.ts';
import { markSeenAt } from '../support/fakes/gap-records.ts';
import { createLastEvents } from '../../src/indexer/arrivals.ts';
import { readRecord, refs } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';

const DAY_MS = 86_400_000;

const photos = recordOf('photos');

const native = (bucket: string) => ({ bucket, dialect: 'native', change: changes.created }) as const;

async function setUp(record: BucketRecord = photos) {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  await state.put({ id: 'bucket:photos', kind: 'bucket', record }, null);
  const lastEvents = createLastEvents({ state, clock });
  return {
    state,
    clock,
    lastEvents,
    /** An event of the bucket is received that was sent so long ago. */
    seen: (bucket = 'photos', { queueUrl = 'http://q/one', agoMs = 0 } = {}) =>
      lastEvents.seen(native(bucket), { queueUrl, sentAtMs: clock.nowMs() - agoMs }),
    stored: (bucket = 'photos') => readRecord(state, refs.bucket(bucket)),
  };
}

test('the last event of a bucket is stored once for many, never earlier than it was, and not for one that is gone', async () => {
  const { state, clock, lastEvents, seen } = await setUp();
  const first = await state.get('bucket:photos');
  seen();
  await clock.advance(1_000);
  seen();
  seen('gone');
  await lastEvents.store();
  const stored = await state.get('bucket:photos');
  expect(stored?.record).toEqual({
    ...photos,
    lastEventAtMs: clock.nowMs(),
    eventQueues: [{ queueUrl: 'http://q/one', atMs: clock.nowMs(), sentFromMs: clock.nowMs() - 1_000 }],
    provenAtMs: clock.nowMs(),
  });
  expect(await state.get('bucket:gone')).toBeUndefined();

  // nothing new: nothing is written
  await lastEvents.store();
  expect((await state.get('bucket:photos'))?.version).toBe(stored?.version);
  expect(stored?.version).not.toBe(first?.version);
});

test('the queue of the last event is stored beside the queues of the last thirty days', async () => {
  const { clock, lastEvents, seen, stored } = await setUp();
  const firstMs = clock.nowMs();
  const queuesAfter = async (waitMs: number, queueUrl: string): Promise<unknown> => {
    await clock.advance(waitMs);
    seen('photos', { queueUrl });
    await lastEvents.store();
    return (await stored())?.eventQueues;
  };
  await queuesAfter(0, 'http://q/one');
  expect(await queuesAfter(20 * DAY_MS, 'http://q/two')).toMatchObject([
    { queueUrl: 'http://q/one', atMs: firstMs },
    { queueUrl: 'http://q/two', atMs: firstMs + 20 * DAY_MS },
  ]);
  expect(await queuesAfter(11 * DAY_MS, 'http://q/two')).toMatchObject([{ queueUrl: 'http://q/two', atMs: firstMs + 31 * DAY_MS }]);
});

test('how long events wait in a queue is stored where all of them have waited', async () => {
  const { clock, lastEvents, seen, stored } = await setUp();
  const queuesAfter = async (...waitsMs: readonly number[]): Promise<unknown> => {
    await clock.advance(60_000);
    for (const agoMs of waitsMs) seen('photos', { agoMs });
    await lastEvents.store();
    return (await stored())?.eventQueues;
  };
  const noted = (oldestMs: number) => ({ queueUrl: 'http://q/one', atMs: clock.nowMs(), sentFromMs: clock.nowMs() - oldestMs });
  expect(await queuesAfter(185_000, 180_000, 190_000)).toEqual([{ ...noted(190_000), waitedMs: 180_000 }]);
  // a redelivery among others
  expect(await queuesAfter(190_000, 20)).toEqual([noted(190_000)]);
});

test('Fix: a bucket whose record cannot be stored does not keep the others from being stored', async () => {
  const { state, clock, lastEvents, seen, stored } = await setUp();
  await state.put({ id: 'bucket:broken', kind: 'bucket', record: { bucket: 'broken' } }, null);
  for (const bucket of ['broken', 'photos']) seen(bucket);
  await expect(lastEvents.store()).rejects.toMatchObject({ code: 'record.newer' });
  expect(await stored()).toMatchObject({ lastEventAtMs: clock.nowMs() });
  // what was not stored is stored once it can be
  const entry = await state.get('bucket:broken');
  await state.put({ id: 'bucket:broken', kind: 'bucket', record: { ...photos, bucket: 'broken' } }, entry?.version ?? null);
  await lastEvents.store();
  expect(await stored('broken')).toMatchObject({ lastEventAtMs: clock.nowMs() });
});

it('Fix: is not after the present once a clock that was fast is right again', async () => {
  const ahead = { queueUrl: 'http://q/one', atMs: createFakeClock().nowMs() + 3 * 3_600_000 };
  const { clock, lastEvents, seen, stored } = await setUp({ ...photos, lastEventAtMs: ahead.atMs, eventQueues: [ahead] });
  seen();
  await lastEvents.store();
  expect(await stored()).toMatchObject({ lastEventAtMs: clock.nowMs(), eventQueues: [{ atMs: clock.nowMs() }] });
});

it('Fix: is stored at once for the first event, and later ones once a minute', async () => {
  const { clock, lastEvents, seen, stored } = await setUp();
  const times: (number | undefined)[] = [];
  const firstMs = clock.nowMs();
  for (let count = 0; count < 7; count += 1) {
    seen();
    await lastEvents.store();
    times.push((await stored())?.lastEventAtMs);
    await clock.advance(10_000);
  }
  expect(times).toEqual([...Array.from({ length: 6 }, () => firstMs), firstMs + 60_000]);
});

describe('an event', () => {
  const WAY_MS = 1_800_000_000_000;
  type Way = Pick<BucketRecord, 'source'> & Partial<BucketRecord>;
  type Event = Pick<ChangeRecord, 'dialect' | 'eventTimeMs'> & {
    readonly sentAtMs: number;
    readonly topicArn?: string;
    readonly change?: Change;
  };
  const changed: Way = { source: 'eventbridge', waySinceMs: WAY_MS };
  const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:events';
  const ofTopic: Way = { source: 'notification', topicArn: TOPIC };
  const checked = { state: 'ok' as const, sinceMs: 0, findings: [], passesBoth: true as const };

  async function after(way: Way, events: readonly Event[], gap?: Partial<DirtyMark>) {
    const { state, lastEvents, stored } = await setUp({ ...photos, ...way });
    const unproven = markSeenAt(0, { unproven: 'events' });
    if (gap !== undefined) await state.put({ id: unproven.id, kind: 'gap', record: { ...unproven, ...gap } }, null);
    for (const { sentAtMs, topicArn, ...event } of events)
      lastEvents.seen({ ...native('photos'), ...event }, { queueUrl: 'http://q/one', sentAtMs }, topicArn);
    await lastEvents.store();
    const record = await stored();
    return { isProven: record?.provenAtMs !== undefined, gap: await readRecord(state, refs.gap(unproven.id)) };
  }

  it.each<[string, boolean, Way, readonly Event[]]>([
    ['by the new way proves it', true, changed, [{ dialect: 'eventbridge', sentAtMs: WAY_MS }]],
    [
      'among many by the old way proves it',
      true,
      changed,
      [
        { dialect: 'native', sentAtMs: WAY_MS + 9 },
        { dialect: 'eventbridge', sentAtMs: WAY_MS + 5 },
        { dialect: 'native', sentAtMs: WAY_MS + 9 },
      ],
    ],
    ['that was sent before the way was changed does not prove it', false, changed, [{ dialect: 'eventbridge', sentAtMs: WAY_MS - 1 }]],
    ['in the form of the old way does not prove it', false, changed, [{ dialect: 'native', sentAtMs: WAY_MS + 60_000 }]],
    ['of a trail does not prove a notification', false, { source: 'notification' }, [{ dialect: 'trail', sentAtMs: WAY_MS }]],
    ['of a transformer proves a routed source', true, { source: 'routed' }, [{ dialect: 'synthetic', sentAtMs: WAY_MS }]],
    ['of S3 through the topic of the bucket proves it', true, ofTopic, [{ dialect: 'native', sentAtMs: WAY_MS, topicArn: TOPIC }]],
    ['through another topic does not prove it', false, ofTopic, [{ dialect: 'native', sentAtMs: WAY_MS, topicArn: `${TOPIC}-2` }]],
    ['through no topic does not prove it', false, ofTopic, [{ dialect: 'native', sentAtMs: WAY_MS }]],
    ['of a created object alone does not prove a topic of others', false, { source: 'topic' }, [{ dialect: 'native', sentAtMs: WAY_MS }]],
    [
      'of a created object and one of a removed object prove a topic of others',
      true,
      { source: 'topic' },
      [
        { dialect: 'native', sentAtMs: WAY_MS },
        { dialect: 'native', sentAtMs: WAY_MS, change: changes.markerCreated },
      ],
    ],
    [
      'proves a topic of others whose configuration was read and sends all',
      true,
      { source: 'topic', waySinceMs: WAY_MS, connectionCheck: { ...checked, atMs: WAY_MS } },
      [{ dialect: 'native', sentAtMs: WAY_MS }],
    ],
    [
      'does not prove one whose configuration was read before the change',
      false,
      { source: 'topic', waySinceMs: WAY_MS, connectionCheck: { ...checked, atMs: WAY_MS - 1 } },
      [{ dialect: 'native', sentAtMs: WAY_MS }],
    ],
    [
      'whose time has no milliseconds proves it',
      true,
      changed,
      [{ dialect: 'eventbridge', sentAtMs: WAY_MS + 700, eventTimeMs: WAY_MS - 999 }],
    ],
    [
      'that a dead letter brings back does not prove it',
      false,
      changed,
      [{ dialect: 'eventbridge', sentAtMs: WAY_MS + 60_000, eventTimeMs: WAY_MS - 60_000 }],
    ],
  ])('%s', async (_, isProven, way, events) => {
    const found = await after(way, events, {});
    expect(found.isProven).toBe(isProven);
    expect(found.gap?.unproven).toBe(isProven ? undefined : 'events');
  });

  it.each<[string, Partial<DirtyMark> | undefined]>([
    ['has no gap', undefined],
    // the proof of an earlier way was stored while the way was changed
    ['has a gap that waits for no proof', { unproven: undefined }],
  ])('Fix: that proves the way of a bucket which %s leaves a gap', async (_, gap) => {
    const found = await after({ source: 'eventbridge' }, [{ dialect: 'eventbridge', sentAtMs: WAY_MS }], gap);
    const example = "until now, it was unknown whether the bucket's events arrive";
    expect(found).toMatchObject({ isProven: true, gap: { reasons: expect.arrayContaining([expect.objectContaining({ example })]) } });
  });

  it('proves nothing while the wiring of its bucket is known to be broken', async () => {
    const found = await after({ source: 'eventbridge' }, [{ dialect: 'eventbridge', sentAtMs: WAY_MS }], { unproven: 'wiring' });
    expect(found.gap?.unproven).toBe('wiring');
  });
});
