import { expect, it } from 'vitest';
import { BUCKET, createIngestWorld, syntheticRecord } from '../support/worlds/ingest.ts';

it('events of a bucket whose store has lost its disk that report a deletion are served at once; of the others few are believed until the bucket shows an object', async () => {
  const world = await createIngestWorld();
  const keys = Array.from({ length: 60 }, (_, at) => `k${at}`);
  for (const key of keys) await world.send(world.put(key));
  await world.run(2_000);
  const liveKeys = async (): Promise<readonly string[]> => {
    const documents = await Promise.all(keys.map(async (key) => [key, await world.document(key)] as const));
    return documents.filter(([, document]) => document?.deleted === false).map(([key]) => key);
  };
  expect(await liveKeys()).toHaveLength(60);

  for (const key of keys) world.storage.delete(BUCKET, key);
  const eventTimeMs = world.clock.nowMs();
  const puts = keys.slice(0, 30).map((key) => syntheticRecord(key, { eventTimeMs }));
  const deletions = keys.slice(30).map((key) => syntheticRecord(key, { eventTimeMs, eventName: 'DeleteObject' }));
  for (const record of [...puts, ...deletions]) await world.send(record);
  await world.run(2_000);
  const live = await liveKeys();
  expect(live).toHaveLength(21);
  expect(live.filter((key) => keys.indexOf(key) >= 30)).toEqual([]);
  expect(world.circuits.all()).toEqual([]);

  for (const key of live) world.storage.put(BUCKET, key);
  await world.run(180_000);
  expect(await liveKeys()).toEqual(live);
  expect(world.messages()).toEqual([]);
  expect(world.letters()).toEqual([]);
});
