import { describe, expect, it } from 'vitest';
import { documentOf } from '../../src/ordering/document.ts';
import { FaultError } from '../../src/base/fault.ts';
import { markSchema } from '../../src/records/dirty.ts';
import { listAllRecords, refs, removeRecord, updateRecord } from '../../src/store/stored.ts';
import { createControlWorld } from '../support/worlds/control.ts';

async function setUp() {
  const { signal } = new AbortController();
  const { objects, clock, storage, connectBucket, operations, ...world } = createControlWorld();
  await connectBucket.connect({ bucket: 'photos' }, 'someone');
  const context = { actor: { kind: 'local', user: 'someone', host: 'here' }, signal } as const;
  const explain = (bucket: string, key: string) => operations.explainObject({ params: { bucket }, query: { key } }, context);
  return { ...world, operations, objects, clock, storage, context, explain };
}

const isoOf = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());

describe('explaining a key', () => {
  it('shows both sides and one sentence', async () => {
    const { objects, clock, storage, explain } = await setUp();
    const state = storage.put('photos', 'a.jpg');
    const facts = { bucket: 'photos', key: 'a.jpg', state, clock: clock.nowMs() * 1_000, settled: true, source: 'native' } as const;
    const document = documentOf({ ...facts, cause: {}, stateAtMs: 0, nowMs: clock.nowMs() });
    await objects.write([{ document, equalClock: 'accept' }]);
    await clock.advance(60_000);
    expect(await explain('photos', 'a.jpg')).toEqual({
      bucket: 'photos',
      key: 'a.jpg',
      index: document,
      storage: {
        state: {
          present: true,
          etag: state.etag,
          size_bytes: state.sizeBytes,
          last_modified: isoOf(state.lastModifiedMs),
          last_modified_exact: state.lastModifiedExact,
          storage_class: state.storageClass,
          user_metadata: {},
        },
        observed_at: isoOf(clock.nowMs()),
      },
      agrees: true,
      sentence: expect.stringMatching(/^A search finds it/),
      bucket_status: expect.objectContaining({ state: 'events_unproven' }),
    });
  });

  it('Bug: makes a gap of an object whose event was lost, so that the status is no longer green', async () => {
    const { state, clock, storage, explain, operations, context } = await setUp();
    // green: its events arrive, all of it was compared, and nothing waits
    for (const { id } of await listAllRecords(state, 'gap', markSchema)) await removeRecord(state, id);
    const fine = { provenAtMs: clock.nowMs(), lastComparedAtMs: clock.nowMs() };
    await updateRecord(state, refs.bucket('photos'), (record) => record && { ...record, ...fine });
    storage.put('photos', 'a.jpg');
    await clock.advance(299_000);
    // its event may be on its way
    expect(await explain('photos', 'a.jpg')).toMatchObject({ agrees: false, bucket_status: { state: 'ok' } });
    await clock.advance(1_000);
    const sentence = expect.stringMatching(/^1 object is missing as of .*: a re-index begins/);
    expect(await explain('photos', 'a.jpg')).toMatchObject({ agrees: false, bucket_status: { state: 'differs', sentence } });
    const { items } = await operations.listGaps({ query: { limit: 10 } }, context);
    expect(items).toMatchObject([{ prefix: 'a.jpg', why: 'explain found an object that differs' }]);
    // asked again, it adds nothing; another lost object has a gap of its own
    storage.put('photos', 'b.jpg');
    await clock.advance(300_000);
    expect((await explain('photos', 'a.jpg')).sentence).not.toMatch(/opened a gap/);
    expect((await explain('photos', 'b.jpg')).sentence).toMatch(/Tally has opened a gap, which a re-index closes\.$/);
    const open = async () => (await operations.listGaps({ query: { limit: 200 } }, context)).items;
    expect((await open()).map(({ prefix, reasons }) => `${prefix ?? ''} ${reasons[0]?.count ?? 0}`).toSorted()).toEqual([
      'a.jpg 1',
      'b.jpg 1',
    ]);
    expect((await explain('photos', 'c.jpg')).bucket_status).toMatchObject({
      sentence: expect.stringMatching(/^2 objects are missing/),
      differing: 2,
    });
    // a job that has begun may have passed the key
    await updateRecord(state, refs.bucket('photos'), (record) => record && { ...record, lastBeginOrder: clock.nowMs() });
    expect((await explain('photos', 'a.jpg')).sentence).toMatch(/opened a gap/);
  });

  it('makes one gap of the bucket when many objects were lost, and then no more', async () => {
    const { state, clock, storage, explain } = await setUp();
    for (const { id } of await listAllRecords(state, 'gap', markSchema)) await removeRecord(state, id);
    await updateRecord(state, refs.bucket('photos'), (record) => record && { ...record, provenAtMs: clock.nowMs() });
    const keys = Array.from({ length: 13 }, (_, number) => `${number}.jpg`);
    for (const key of keys) storage.put('photos', key);
    await clock.advance(300_000);
    for (const key of keys) await explain('photos', key);
    const marks = await listAllRecords(state, 'gap', markSchema);
    expect([marks.length, marks.filter(({ prefix }) => prefix === undefined).length]).toEqual([11, 1]);
    // readers of other parts see this one
    expect(marks.find(({ prefix }) => prefix === undefined)).not.toHaveProperty('differences');
  });

  it('shows the fault that S3 answers with, and its advice', async () => {
    const { storage, explain } = await setUp();
    storage.failWith(new FaultError('object.denied', 'neither HEAD nor LIST'));
    const explanation = await explain('photos', 'a');
    expect(explanation).toMatchObject({
      agrees: 'unknown',
      storage: { fault: { code: 'object.denied', reason: 'neither HEAD nor LIST' }, advice: expect.stringContaining('s3:GetObject') },
    });
  });

  it.each(['', 'é'.repeat(513)])('refuses what is no key: %j', async (key) => {
    const { explain } = await setUp();
    await expect(explain('photos', key)).rejects.toMatchObject({ code: 'request.invalid' });
  });
});
