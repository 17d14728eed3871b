import { describe, expect, it } from 'vitest';
import { postedTo } from '../../src/events/envelope.ts';
import { createIngestWorld, nativeRecord } from '../support/worlds/ingest.ts';

const MINUTE = 60_000;

async function startWorld(source: 'webhook' | 'notification' = 'webhook') {
  const world = await createIngestWorld({ buckets: ['photos', 'videos'], bucket: { source } });
  return {
    ...world,
    async post(records: readonly unknown[], forMs = 2 * MINUTE): Promise<void> {
      await world.sendBody(JSON.stringify({ Records: records }), postedTo('photos'));
      await world.run(forMs);
    },
  };
}

describe('what a store posts to a webhook', () => {
  it('leads to what S3 says of the object, and is settled a minute later', async () => {
    const world = await startWorld();
    await world.post([world.put('a.jpg')], 1_000);
    expect(await world.document('a.jpg')).toMatchObject({ deleted: false, source: 'webhook', settled: false });
    await world.run(2 * MINUTE);
    expect(await world.document('a.jpg')).toMatchObject({ deleted: false, settled: true });
    await world.post([world.remove('a.jpg')]);
    expect(await world.document('a.jpg')).toMatchObject({ deleted: true, settled: true });
    expect(world.messages()).toEqual([]);
  });

  it.each(['webhook', 'notification'] as const)('is not believed, whatever it says and the source of the bucket is: %s', async (source) => {
    const world = await startWorld(source);
    const real = world.storage.put('photos', 'real.jpg');
    const eventTimeMs = world.clock.nowMs();
    const forged = nativeRecord('forged.jpg', { eventTimeMs, object: { etag: 'f', sizeBytes: 1 } });
    const gone = nativeRecord('real.jpg', { eventTimeMs, eventName: 'ObjectRemoved:DeleteMarkerCreated' });
    await world.post([forged, gone]);
    expect(await world.document('forged.jpg')).toMatchObject({ deleted: true });
    expect(await world.document('real.jpg')).toMatchObject({ deleted: false, etag: real.etag });
  });

  it('says nothing of another bucket: no document, no gap, no letter, and the log says so once', async () => {
    const world = await startWorld();
    const record = nativeRecord('a.jpg', { bucket: 'videos', eventTimeMs: world.clock.nowMs() });
    world.storage.put('videos', 'a.jpg');
    await world.post([record, { ...record, eventName: 'ObjectRemoved:Delete' }]);
    await world.post([{ ...record, s3: { ...record.s3, object: {} } }]);
    expect(await world.document('a.jpg', 'videos')).toBeUndefined();
    expect(await world.gaps()).toEqual([]);
    expect(world.outcomes().toSorted()).toEqual(['ignored', 'ignored', 'rejected']);
    expect(world.telemetry.recorded('warnOnce').filter(([message]) => message.includes('webhook'))).toMatchObject([
      [expect.any(String), 'photos', { bucket: 'photos' }],
      [expect.any(String), 'photos', { bucket: 'photos' }],
    ]);
  });

  it('is searchable at once, and proves that events arrive, however slow the clock of the store is; what comes another way proves nothing', async () => {
    const world = await startWorld();
    await world.tell(world.put('a.jpg'), MINUTE);
    await world.role.storeLastEvents();
    expect((await world.bucketRecord())?.arrived).toBeUndefined();
    const slowly = (record: ReturnType<typeof world.put>) => ({ ...record, eventTime: '2001-01-01T00:00:00Z' });
    await world.post([world.put('a.jpg')], 1_000);
    const { etag: earlier } = (await world.document('a.jpg')) ?? {};
    await world.post([slowly(world.put('a.jpg'))], 1_000);
    const { etag } = (await world.document('a.jpg')) ?? {};
    expect([typeof etag, etag === earlier]).toEqual(['string', false]);
    await world.post([slowly(world.remove('a.jpg'))], 1_000);
    expect(await world.document('a.jpg')).toMatchObject({ deleted: true });
    // it is stored once a minute
    await world.run(MINUTE);
    await world.role.storeLastEvents();
    expect(await world.bucketRecord()).toMatchObject({ provenAtMs: expect.any(Number) });
  });

  it('stays what was posted when it is sent back from the dead letters', async () => {
    const world = await startWorld();
    await world.sendBody('no JSON', postedTo('photos'));
    await world.run(1_000);
    expect(world.letters()).toMatchObject([{ body: 'no JSON', attributes: { 'tally-webhook': { stringValue: 'photos' } } }]);
  });
});
