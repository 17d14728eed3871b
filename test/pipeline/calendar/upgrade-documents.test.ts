import { describe, expect, it } from 'vitest';
import type { BucketRecord } from '../../../src/domain/bucket.ts';
import type { ObjectDocument } from '../../../src/domain/documents/document.ts';
import type { FaultCode } from '../../../src/domain/fault.ts';
import { createVisitOutdated } from '../../../src/pipeline/calendar/upgrade-documents.ts';
import type { IndexWrite } from '../../../src/pipeline/ports/object-index.ts';
import { readRecord, refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import { bucketRecord } from '../../support/worlds/reindex.ts';

const CHECK_MS = 600_000;
const { signal } = new AbortController();

function document(key: string, clock = 1): ObjectDocument {
  return {
    bucket: bucketRecord.bucket,
    key,
    clock,
    deleted: false,
    settled: true,
    source: 'native',
    indexed_at: '2026-01-02T03:04:05.678Z',
  };
}

async function world(count: number) {
  const store = createMemoryStore();
  const clock = createFakeClock({ autoAdvance: true });
  const { bucket } = bucketRecord;
  await store.objects.createBucket(bucket);
  await updateRecord(store.state, refs.bucket(bucket), () => bucketRecord);
  const keys = Array.from({ length: count }, (_, at) => `k${String(at).padStart(5, '0')}`);
  await store.objects.write(keys.map((key) => ({ document: document(key), equalClock: 'accept' })));
  const outdated = new Set(keys);
  const writes: IndexWrite[] = [];
  const faults = new Map<string, FaultCode>();
  const visit = createVisitOutdated({
    state: store.state,
    clock,
    objects: {
      getMany: (...request) => store.objects.getMany(...request),
      async write(batch) {
        writes.push(...batch);
        return batch.map(({ document: { key } }) => {
          const code = faults.get(key);
          if (code !== undefined) return { kind: 'fault', code, reason: 'refused' };
          outdated.delete(key);
          return { kind: 'written' };
        });
      },
    },
    maintenance: {
      outdated: async (_bucket, { after, limit }) =>
        [...outdated]
          .filter((key) => key > after)
          .slice(0, limit)
          .map((key) => document(key)),
    },
  });
  const record = async (): Promise<BucketRecord> => (await readRecord(store.state, refs.bucket(bucket)))!;
  return { store, clock, outdated, writes, faults, record, visit: async () => visit(await record(), signal) };
}

describe('documents of an earlier version', () => {
  it('are written as they are stored now, at their own clocks', async () => {
    const { store, visit, writes, outdated } = await world(3);
    await store.objects.write([{ document: { ...document('k00001', 7), etag: 'newer' }, equalClock: 'accept' }]);
    expect(await visit()).toBe(3);
    expect(outdated.size).toBe(0);
    expect(writes.map((write) => [write.document.key, write.document.clock, write.document.etag, write.equalClock])).toEqual([
      ['k00000', 1, undefined, 'accept'],
      ['k00001', 7, 'newer', 'accept'],
      ['k00002', 1, undefined, 'accept'],
    ]);
  });

  it('are all written by one visit, with rests between its batches', async () => {
    const { visit, outdated, clock } = await world(1_700);
    const beganMs = clock.monotonicMs();
    expect(await visit()).toBe(1_700);
    expect(outdated.size).toBe(0);
    expect(clock.monotonicMs()).toBeGreaterThan(beganMs);
  });

  it('are looked for until a visit finds none, and then every ten minutes', async () => {
    const { visit, record, clock, outdated } = await world(1);
    expect(await visit()).toBe(1);
    expect((await record()).forms).toBeUndefined();
    expect(await visit()).toBe(0);
    expect((await record()).forms).toEqual({ schema: 2, checkedAtMs: clock.nowMs() });
    outdated.add('k00000');
    expect(await visit()).toBeUndefined();
    await clock.advance(CHECK_MS);
    expect(await visit()).toBe(1);
  });

  it('wait while another write may still come at their clock, which the index would take for a repeat', async () => {
    const { store, visit, writes, record, clock } = await world(2);
    const young = document('k00001', clock.nowMs() * 1_000 - 60_000_000);
    await store.objects.write([{ document: young, equalClock: 'accept' }]);
    expect(await visit()).toBe(1);
    expect(await visit()).toBe(0);
    expect(writes.map((write) => write.document.key)).toEqual(['k00000']);
    // the bucket counts as checked only when none is left
    expect((await record()).forms).toBeUndefined();
    // an observation of the same clock, which was slow
    await store.objects.write([{ document: { ...young, etag: 'late' }, equalClock: 'accept' }]);
    await clock.advance(300_000);
    expect(await visit()).toBe(1);
    expect(writes.at(-1)?.document.etag).toBe('late');
  });

  it('that the index refuses alone do not keep others from it', async () => {
    const { visit, outdated, faults, record } = await world(3);
    faults.set('k00001', 'index.rejected');
    expect(await visit()).toBe(2);
    expect([...outdated]).toEqual(['k00001']);
    // searches wait for it, so every visit says so
    for (let times = 0; times < 2; times += 1) await expect(visit()).rejects.toMatchObject({ code: 'index.rejected' });
    expect((await record()).forms).toBeUndefined();
  });

  it('wait while their index takes no documents', async () => {
    const { visit, faults, record } = await world(1);
    faults.set('k00000', 'bucket.index-outdated');
    await expect(visit()).rejects.toMatchObject({ code: 'bucket.index-outdated' });
    expect((await record()).forms).toBeUndefined();
  });
});
