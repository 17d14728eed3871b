import { describe, expect, it } from 'vitest';
import { documentOf } from '../../../src/domain/documents/document.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import { createConnectBucket } from '../../../src/pipeline/buckets/connect.ts';
import { createControl } from '../../../src/pipeline/control/create.ts';
import { createDeadLetters } from '../../../src/pipeline/letters/letters.ts';
import { createGapReports } from '../../../src/pipeline/gaps/reports.ts';
import { createFakeClock, createFakeQueues, createFakeStorage, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';

async function setUp() {
  const store = createMemoryStore();
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const storage = createFakeStorage(clock);
  storage.createBucket('photos');
  const gaps = createGapReports({ ...store, clock, telemetry });
  const connectBucket = createConnectBucket({ ...store, storage, gaps, clock, telemetry });
  const queues = createFakeQueues(clock);
  const deadLetters = createDeadLetters({
    queues,
    state: store.state,
    telemetry,
    deadLetterQueueUrl: () => undefined,
    bucketQueueUrls: [],
  });
  const control = createControl({ store, storage, clock, telemetry, connectBucket, deadLetters });
  await control.buckets.add({ bucket: 'photos' }, 'someone');
  return { store, clock, storage, control };
}

describe('explaining a key', () => {
  it('shows both sides, the clocks and one sentence', async () => {
    const { store, clock, storage, control } = await setUp();
    const state = storage.put('photos', 'a.jpg');
    const facts = { bucket: 'photos', key: 'a.jpg', state, clock: clock.nowMs() * 1_000, settled: true, source: 'native' } as const;
    const document = documentOf({ ...facts, cause: {}, stateAtMs: 0, nowMs: clock.nowMs() });
    await store.objects.write([{ document, equalClock: 'accept' }]);
    await clock.advance(60_000);
    expect(await control.explain('photos', 'a.jpg')).toEqual({
      bucket: 'photos',
      key: 'a.jpg',
      index: document,
      storage: { state, observedAt: new Date(clock.nowMs()).toISOString() },
      clocks: { document: document.clock, floor: 0, observation: (clock.nowMs() - 20_000) * 1_000 },
      agrees: true,
      sentence: expect.stringMatching(/^A search finds it/),
    });
    expect((await control.search({ q: 'a' })).items).toEqual([document]);
  });

  it('shows a key that neither side has', async () => {
    const { control } = await setUp();
    const explanation = await control.explain('photos', 'none');
    expect(explanation).toMatchObject({ agrees: true, storage: { state: { present: false } } });
    expect(explanation).not.toHaveProperty('index');
  });

  it('shows the fault that S3 answers with, and its advice', async () => {
    const { storage, control } = await setUp();
    storage.failWith(new FaultError('object.denied', 'neither HEAD nor LIST'));
    const explanation = await control.explain('photos', 'a');
    expect(explanation).toMatchObject({
      agrees: 'unknown',
      storage: { fault: { code: 'object.denied', reason: 'neither HEAD nor LIST' }, advice: expect.stringContaining('s3:GetObject') },
      clocks: { floor: 0 },
    });
  });

  it.each([
    ['bucket.not-connected', 'elsewhere', 'a'],
    ['request.invalid', 'photos', ''],
    ['request.invalid', 'photos', 'é'.repeat(513)],
  ])('answers %s for %s and its key', async (code, bucket, key) => {
    const { control } = await setUp();
    await expect(control.explain(bucket, key)).rejects.toMatchObject({ code });
  });

  it('stops when it is told to', async () => {
    const { control } = await setUp();
    await expect(control.explain('photos', 'a', AbortSignal.abort(new Error('stopping')))).rejects.toThrow('stopping');
  });
});
