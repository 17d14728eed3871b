import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createObservingWorld } from '../support/worlds/observing.ts';
import { documentOf, type ObjectDocument } from '../../src/ordering/document.ts';
import { FaultError } from '../../src/base/fault.ts';
import type { AuditRecord } from '../../src/base/audit.ts';
import { hintOfTie } from '../../src/ordering/hint.ts';
import { createObserveAgain } from '../../src/repair/observe-again.ts';
import { createSweepDeletes } from '../../src/repair/sweep-deletes.ts';
import { createMemoryAudit } from '../support/fakes/memory-audit.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { bucketRecord } from '../support/worlds/reindex.ts';

const deletedSchema = z.object({ deleted: z.number(), keys: z.array(z.object({ bucket: z.literal('photos'), key: z.string() })) });
const actor = { kind: 'local', user: 'tally', host: 'worker-1' } as const;

async function setUp(append?: (record: AuditRecord) => Promise<void>) {
  const audit = createMemoryAudit();
  let deletes: ReturnType<typeof createSweepDeletes> | undefined;
  const world = await createObservingWorld({
    writesTo(objects, parts) {
      deletes = createSweepDeletes({ ...parts, objects, audit: { append: append ?? ((record) => audit.append(record)) }, actor });
      return deletes.objects;
    },
  });
  return {
    ...world,
    audit,
    add: async (key: string, present: boolean): Promise<ObjectDocument> => {
      const document = world.document(key, 1, present ? { size: 1 } : { deleted: true });
      await world.store([document]);
      return document;
    },
    isDeleted: async (key: string) => (await world.stored(key))?.deleted,
    bucket: { ...bucketRecord, bucket: 'photos' },
    observeAgain: createObserveAgain(deletes!.watching(world.observe)),
  };
}

describe('the deletions of sweeps', () => {
  it('have a record for each bulk request, with the keys of live documents whose objects are gone, and no others', async () => {
    const { audit, telemetry, storage, add, observeAgain, bucket, isDeleted } = await setUp();
    storage.put('photos', 'kept');
    const documents = [await add('kept', true), await add('gone', true), await add('gone too', true), await add('long gone', false)];
    expect(await observeAgain(bucket, documents)).toBe(4);
    expect(await Promise.all(['kept', 'gone', 'gone too', 'long gone'].map(isDeleted))).toEqual([false, true, true, true]);
    // one request or two, by how the writes met
    const named = audit.records.map(({ parameters }) => deletedSchema.parse(parameters));
    expect(named.flatMap(({ keys }) => keys.map(({ key }) => key)).toSorted()).toEqual(['gone', 'gone too']);
    expect(named.every(({ deleted, keys }) => deleted === keys.length)).toBe(true);
    const useridentity = { email: 'tally@worker-1', sessionContext: { auth: { type: 'local' } } };
    for (const record of audit.records) expect(record).toMatchObject({ eventname: 'SweepDelete', outcome: 'done', useridentity });
    expect(audit.records[0]).not.toHaveProperty('sourceipaddress');
    expect(telemetry.recorded('audited').flat()).toEqual(audit.records);
  });

  it('are answered although the record cannot be stored, which is logged', async () => {
    const refuse = () => Promise.reject(new FaultError('index.blocked', 'the disk is full'));
    const { telemetry, storage, add, observeAgain, bucket, isDeleted } = await setUp(refuse);
    storage.put('photos', 'kept');
    expect(await observeAgain(bucket, [await add('gone', true), await add('kept', true)])).toBe(2);
    expect([await isDeleted('gone'), await isDeleted('kept')]).toEqual([true, false]);
    expect(telemetry.recorded('audited')).toHaveLength(1);
    expect(telemetry.recorded('requestFailed')).toEqual([['store an audit record', 'index.blocked', 'the disk is full']]);
  });

  it('of an observation that no sweep began are not theirs', async () => {
    const { audit, add, observe, bucket, isDeleted } = await setUp();
    const { clock } = await add('gone', true);
    await observe({ bucket, key: 'gone', hint: hintOfTie(clock), cause: {}, source: 'check' });
    expect(await isDeleted('gone')).toBe(true);
    expect(audit.records).toEqual([]);
  });
});

it('lists at most a thousand keys of a bulk request, and their number', async () => {
  const { objects } = createMemoryStore();
  await objects.createBucket('photos');
  const audit = createMemoryAudit();
  const clock = createFakeClock();
  const deletes = createSweepDeletes({ objects, audit, clock, telemetry: createFakeTelemetry(), actor });
  const keys = Array.from({ length: 1_200 }, (_, n) => `key-${n}`);
  const gate = Promise.withResolvers<void>();
  const observe = deletes.watching(async () => {
    await gate.promise;
    return { kind: 'expired' };
  });
  const observations = keys.map((key) => observe({ bucket: bucketRecord, key, hint: hintOfTie(1), cause: {}, source: 'check' }));
  const state = { present: false } as const;
  const documents = keys.map((key) =>
    documentOf({ bucket: bucketRecord.bucket, key, state, clock: 1, settled: true, source: 'check', cause: {}, stateAtMs: 0, nowMs: 0 }),
  );
  await objects.createBucket(bucketRecord.bucket);
  await deletes.objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
  expect(audit.records).toHaveLength(1);
  expect(audit.records[0]?.parameters).toMatchObject({ deleted: 1_200 });
  expect(audit.records[0]?.parameters?.keys).toHaveLength(1_000);
  gate.resolve();
  await Promise.all(observations);
  // the observations have ended, so this is not the sweep's deletion
  await deletes.objects.write([{ document: documents[0]!, equalClock: 'accept' }]);
  expect(audit.records).toHaveLength(1);
});
