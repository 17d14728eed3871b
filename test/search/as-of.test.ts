import { expect, it } from 'vitest';
import { createProcesses } from '../../src/observing/processes.ts';
import { createAsOf } from '../../src/search/search.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock } from '../support/fakes/ports.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';

it('says how far a bucket is behind by its slowest queue, while events come from it', async () => {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  const bucket = 'media';
  const eventQueues = [
    { queueUrl: 'http://q/one', atMs: clock.nowMs(), waitedMs: 20_000 },
    { queueUrl: 'http://q/two', atMs: clock.nowMs() - 100_000, waitedMs: 180_000.5 },
    { queueUrl: 'http://q/three', atMs: clock.nowMs() },
  ];
  await updateRecord(state, refs.bucket(bucket), () => ({ ...bucketRecord, bucket, eventQueues }));
  const asOf = createAsOf({ state, clock, processes: createProcesses({ state, clock }), compareIntervalMs: 0 });
  expect(await asOf([bucket], 'everything')).toMatchObject([{ bucket, behind_ms: 180_001, gaps: 0 }]);
  await clock.advance(100_000);
  expect(await asOf([bucket], 'everything')).toMatchObject([{ behind_ms: 20_000 }]);
  await clock.advance(100_000);
  expect((await asOf([bucket], 'everything'))[0]).not.toHaveProperty('behind_ms');
});
