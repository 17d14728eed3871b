import { expect, test } from 'vitest';
import { createLastEvents } from '../../../src/pipeline/buckets/last-events.ts';
import { readRecord, refs } from '../../../src/pipeline/records/stored.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';

const DAY_MS = 86_400_000;

const photos = {
  bucket: 'photos',
  region: 'eu-west-1',
  source: 'notification',
  versioning: { status: 'never', observedAtMs: 0 },
  enrich: 'none',
  floor: 0,
  createdAtMs: 0,
  createdBy: 'test',
  checkedAtMs: 0,
};

test('the last event of a bucket is stored once for many, never earlier than it was, and not for one that is gone', async () => {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const entry = await state.put({ id: 'bucket:photos', kind: 'bucket', record: photos }, null);
  const lastEvents = createLastEvents({ state, clock });
  lastEvents.seen('photos', 'http://q/one', clock.nowMs());
  await clock.advance(1_000);
  lastEvents.seen('photos', 'http://q/one', clock.nowMs());
  lastEvents.seen('gone', 'http://q/one', clock.nowMs());
  await lastEvents.store();
  const stored = await state.get('bucket:photos');
  expect(stored?.record).toEqual({
    ...photos,
    lastEventAtMs: clock.nowMs(),
    eventQueues: [{ queueUrl: 'http://q/one', atMs: clock.nowMs() }],
    provenAtMs: clock.nowMs(),
  });
  expect(await state.get('bucket:gone')).toBeUndefined();

  // nothing new: nothing is written
  await lastEvents.store();
  expect((await state.get('bucket:photos'))?.version).toBe(stored?.version);
  expect(stored?.version).not.toBe(entry === 'conflict' ? '' : entry.version);
});

test('the queue of the last event is stored beside the queues of the last thirty days', async () => {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const firstMs = clock.nowMs();
  await state.put({ id: 'bucket:photos', kind: 'bucket', record: photos }, null);
  const lastEvents = createLastEvents({ state, clock });
  const queuesAfter = async (waitMs: number, queueUrl: string): Promise<unknown> => {
    await clock.advance(waitMs);
    lastEvents.seen('photos', queueUrl, clock.nowMs());
    await lastEvents.store();
    return (await readRecord(state, refs.bucket('photos')))?.eventQueues;
  };
  await queuesAfter(0, 'http://q/one');
  expect(await queuesAfter(20 * DAY_MS, 'http://q/two')).toEqual([
    { queueUrl: 'http://q/one', atMs: firstMs },
    { queueUrl: 'http://q/two', atMs: firstMs + 20 * DAY_MS },
  ]);
  expect(await queuesAfter(11 * DAY_MS, 'http://q/two')).toEqual([{ queueUrl: 'http://q/two', atMs: firstMs + 31 * DAY_MS }]);
});

test('how long events wait in a queue is stored where all of them have waited', async () => {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  await state.put({ id: 'bucket:photos', kind: 'bucket', record: photos }, null);
  const lastEvents = createLastEvents({ state, clock });
  const queuesAfter = async (...waitsMs: readonly number[]): Promise<unknown> => {
    await clock.advance(60_000);
    for (const waitMs of waitsMs) lastEvents.seen('photos', 'http://q/one', clock.nowMs() - waitMs);
    await lastEvents.store();
    return (await readRecord(state, refs.bucket('photos')))?.eventQueues;
  };
  expect(await queuesAfter(190_000, 180_000, 185_000)).toEqual([{ queueUrl: 'http://q/one', atMs: clock.nowMs(), waitedMs: 180_000 }]);
  // a redelivery among others
  expect(await queuesAfter(190_000, 20)).toEqual([{ queueUrl: 'http://q/one', atMs: clock.nowMs() }]);
});
