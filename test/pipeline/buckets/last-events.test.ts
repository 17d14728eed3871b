import { expect, test } from 'vitest';
import { createLastEvents } from '../../../src/pipeline/buckets/last-events.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';

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
  lastEvents.seen('photos');
  await clock.advance(1_000);
  lastEvents.seen('photos');
  lastEvents.seen('gone');
  await lastEvents.store();
  const stored = await state.get('bucket:photos');
  expect(stored?.record).toEqual({ ...photos, lastEventAtMs: clock.nowMs() });
  expect(await state.get('bucket:gone')).toBeUndefined();

  // nothing new: nothing is written
  await lastEvents.store();
  expect((await state.get('bucket:photos'))?.version).toBe(stored?.version);
  expect(stored?.version).not.toBe(entry === 'conflict' ? '' : entry.version);
});
