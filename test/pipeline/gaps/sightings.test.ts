import { describe, expect, it } from 'vitest';
import { BUCKET, createIngestWorld, nativeRecord, syntheticRecord, type IngestWorld } from '../../support/worlds/ingest.ts';

const bulkDelete = (world: IngestWorld, agoMs: number) =>
  syntheticRecord('', { eventName: 'DeleteObjects', eventTimeMs: world.clock.nowMs() - agoMs });
const singleDelete = (world: IngestWorld, key: string, agoMs: number) =>
  syntheticRecord(key, { eventName: 'DeleteObject', eventTimeMs: world.clock.nowMs() - agoMs });

describe('a bulk delete of a routed bucket', () => {
  it('whose keys are told one by one is a covered gap, in whatever order the events come', async () => {
    for (const isBulkFirst of [true, false]) {
      const world = await createIngestWorld({ bucket: { source: 'routed' } });
      const singles = ['a', 'b', 'c'].map((key) => singleDelete(world, key, 59_000));
      const bulk = bulkDelete(world, 60_000);
      for (const record of isBulkFirst ? [bulk, ...singles] : [...singles, bulk]) {
        await world.send(record);
        await world.run(1_500);
      }
      expect({ isBulkFirst, gaps: await world.gaps() }).toMatchObject({ isBulkFirst, gaps: [{ kind: 'bulk-delete', covered: true }] });
    }
  });

  it('that no single delete of its time came with is not covered', async () => {
    const world = await createIngestWorld({ bucket: { source: 'routed' } });
    await world.send(singleDelete(world, 'a', 10_000));
    await world.send(bulkDelete(world, 60_000));
    await world.run(3_000);
    const [gap] = await world.gaps();
    expect(gap).not.toHaveProperty('covered');
  });

  it('is not covered by S3’s own events, which are of single deletes', async () => {
    const world = await createIngestWorld({ bucket: { source: 'routed' } });
    const atMs = world.clock.nowMs() - 60_000;
    await world.send(nativeRecord('a', { eventName: 'ObjectRemoved:Delete', eventTimeMs: atMs }));
    await world.send(syntheticRecord('', { eventName: 'DeleteObjects', eventTimeMs: atMs }));
    await world.run(3_000);
    const gaps = await world.gaps();
    expect(gaps.find(({ kind }) => kind === 'bulk-delete')).not.toHaveProperty('covered');
  });
});

describe('an object that S3 is going to expire', () => {
  it('opens a lifecycle gap once: what is followed already opens none', async () => {
    const world = await createIngestWorld({ bucket: { source: 'routed' } });
    world.storage.put(BUCKET, 'k', { expiresAtMs: 5_000 });
    const record = syntheticRecord('k', { eventName: 'PutObject', eventTimeMs: world.clock.nowMs() });
    await world.send(record);
    await world.run(1_500);
    const [first] = await world.gaps();
    await world.run(60_000);
    await world.send(record);
    await world.run(1_500);
    expect(await world.gaps()).toEqual([first]);
    expect(first).toMatchObject({ kind: 'lifecycle', state: 'open', count: 1 });
  });
});
