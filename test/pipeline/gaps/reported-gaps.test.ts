import { describe, expect, it } from 'vitest';
import { BUCKET, createIngestWorld, nativeRecord, syntheticRecord, type IngestWorld } from '../../support/worlds/ingest.ts';

const bulkDelete = (world: IngestWorld, agoMs: number, requestID?: string) => ({
  ...syntheticRecord('', { eventName: 'DeleteObjects', eventTimeMs: world.clock.nowMs() - agoMs }),
  ...(requestID !== undefined && { requestID }),
});
const singleDelete = (world: IngestWorld, key: string, { agoMs, requestID }: { readonly agoMs: number; readonly requestID?: string }) => ({
  ...syntheticRecord(key, { eventName: 'DeleteObject', eventTimeMs: world.clock.nowMs() - agoMs }),
  ...(requestID !== undefined && { requestID }),
});

describe('a bulk delete of a routed bucket', () => {
  it('whose keys are reported one by one makes a gap that says so, in whatever order the events come', async () => {
    for (const isBulkFirst of [true, false]) {
      const world = await createIngestWorld({ bucket: { source: 'routed' } });
      const requestID = 'A1B2C3D4E5F60708';
      const singles = ['a', 'b', 'c'].map((key) => singleDelete(world, key, { agoMs: 59_000, requestID }));
      const bulk = bulkDelete(world, 60_000, requestID);
      for (const record of isBulkFirst ? [bulk, ...singles] : [...singles, bulk]) {
        await world.send(record);
        await world.run(1_500);
      }
      expect({ isBulkFirst, gaps: await world.gaps() }).toMatchObject({ isBulkFirst, gaps: [{ kind: 'bulk-delete', covered: true }] });
    }
  });

  it('has no such report by S3’s own events, which are of single deletes', async () => {
    const world = await createIngestWorld({ bucket: { source: 'routed' } });
    const atMs = world.clock.nowMs() - 60_000;
    await world.send(nativeRecord('a', { eventName: 'ObjectRemoved:Delete', eventTimeMs: atMs }));
    await world.send(syntheticRecord('', { eventName: 'DeleteObjects', eventTimeMs: atMs }));
    await world.run(3_000);
    const gaps = await world.gaps();
    expect(gaps.find(({ kind }) => kind === 'bulk-delete')).not.toHaveProperty('covered');
  });
});

it('an object that S3 is going to expire opens a lifecycle gap once: what is followed already opens none', async () => {
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
