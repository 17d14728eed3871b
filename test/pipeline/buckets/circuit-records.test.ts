import { describe, expect, it } from 'vitest';
import { bucketView } from '../../../src/api/buckets.ts';
import { createCircuitRecords } from '../../../src/pipeline/buckets/circuit-records.ts';
import { createListBuckets } from '../../../src/pipeline/buckets/list.ts';
import { createBucketStatuses } from '../../../src/pipeline/buckets/statuses.ts';
import { createTestCircuits } from '../../support/fakes/circuits.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeClock, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { bucketRecord } from '../../support/worlds/reindex.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';

async function setUp() {
  const { state } = createMemoryStore();
  const clock = createFakeClock();
  for (const bucket of ['photos', 'videos']) {
    const record = { ...bucketRecord, bucket, lastComparedAtMs: 1, provenAtMs: 1 };
    await updateRecord(state, refs.bucket(bucket), () => record);
  }
  const listBuckets = createListBuckets({ state, statuses: createBucketStatuses({ state, clock, compareIntervalMs: 0 }) });
  /** A process with circuits of its own. */
  const worker = () => {
    const circuits = createTestCircuits({ clock, telemetry: createFakeTelemetry() });
    return { circuits, store: createCircuitRecords({ state, clock, circuits }) };
  };
  return {
    state,
    clock,
    worker,
    statuses: async () =>
      (await listBuckets({ limit: 100 }, 'everything')).connected.map(({ record, status }) => bucketView(record, status).status),
  };
}

const missing = { code: 'bucket.missing', reason: 'no such bucket' } as const;

describe('the list of buckets', () => {
  it('shows in any process which buckets wait, since when and why, beside one that does not', async () => {
    const { clock, worker, statuses } = await setUp();
    const { circuits, store } = worker();
    const since = new Date(clock.nowMs()).toISOString();
    circuits.storageAnswered({ bucket: 'photos', region: 'us-east-1' }, { key: 'k', sentAtMs: clock.monotonicMs(), fault: missing });
    await store();
    expect(await statuses()).toMatchObject([
      { state: 'waiting', since, sentence: 'Its events wait: bucket.missing: no such bucket' },
      { state: 'ok' },
    ]);
  });

  it('shows all buckets of a region that does not answer', async () => {
    const { clock, worker, statuses } = await setUp();
    const { circuits, store } = worker();
    const region = bucketRecord.region;
    const fault = { code: 's3.credentials', reason: 'ExpiredToken' } as const;
    circuits.storageAnswered({ bucket: 'photos', region }, { key: 'k', sentAtMs: clock.monotonicMs(), fault });
    await store();
    expect((await statuses()).map(({ state }) => state)).toEqual(['waiting', 'waiting']);
  });

  it('stops to show it when the circuit has closed, or its worker was killed', async () => {
    const { clock, worker, statuses } = await setUp();
    const killed = worker();
    const other = worker();
    for (const { circuits, store } of [killed, other]) {
      circuits.storageAnswered({ bucket: 'photos', region: 'r' }, { key: 'k', sentAtMs: clock.monotonicMs(), fault: missing });
      await store();
    }
    await clock.advance(91_000);
    expect((await statuses())[0]).toMatchObject({ state: 'ok' });
    await other.store();
    expect((await statuses())[0]).toMatchObject({ state: 'waiting' });
    for (let count = 0; count < 6; count += 1)
      other.circuits.storageAnswered({ bucket: 'photos', region: 'r' }, { key: 'k', sentAtMs: clock.monotonicMs() });
    await other.store();
    expect((await statuses())[0]).toMatchObject({ state: 'ok' });
  });

  it('is not hidden by a record that a newer version wrote', async () => {
    const { state, statuses } = await setUp();
    await state.put({ id: 'bucket:newer', kind: 'bucket', record: { bucket: 'newer', source: 'of the future' } }, null);
    expect(await statuses()).toHaveLength(2);
  });
});
