import { describe, expect, it } from 'vitest';
import { documentOf } from '../../../src/domain/documents/document.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import { createConnectBucket } from '../../../src/pipeline/buckets/connect.ts';
import { checkingRequests } from '../../../src/api/contract.ts';
import { createVerbs } from '../../../src/pipeline/control/verbs.ts';
import { createDeadLetters } from '../../../src/pipeline/letters/dead-letters.ts';
import { createGapReports } from '../../../src/pipeline/gaps/reports.ts';
import { fakeDeadLetterQueues } from '../../support/fakes/dead-letter-queues.ts';
import { createFakeClock, createFakeQueues, createFakeStorage, createFakeTelemetry } from '../../support/fakes/ports.ts';
import { createFakeAws, provisioningOn } from '../../support/fakes/aws-parts.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';

async function setUp(signal = new AbortController().signal) {
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
    gaps,
    clock,
    telemetry,
    queueWatch: fakeDeadLetterQueues(),
    bucketQueueUrls: [],
  });
  const provisioning = provisioningOn(createFakeAws(), { state: store.state, storage, clock });
  const context = { actor: { kind: 'local', user: 'someone', host: 'here' }, signal } as const;
  const operations = checkingRequests(createVerbs({ store, storage, clock, telemetry, connectBucket, deadLetters, provisioning }));
  await operations.addBucket({ body: { bucket: 'photos' } }, { ...context, signal: new AbortController().signal });
  const explain = (bucket: string, key: string) => operations.explainObject({ params: { bucket }, query: { key } }, context);
  return { store, clock, storage, explain };
}

const isoOf = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());

describe('explaining a key', () => {
  it('shows both sides, the clocks and one sentence', async () => {
    const { store, clock, storage, explain } = await setUp();
    const state = storage.put('photos', 'a.jpg');
    const facts = { bucket: 'photos', key: 'a.jpg', state, clock: clock.nowMs() * 1_000, settled: true, source: 'native' } as const;
    const document = documentOf({ ...facts, cause: {}, stateAtMs: 0, nowMs: clock.nowMs() });
    await store.objects.write([{ document, equalClock: 'accept' }]);
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
      clocks: { document: document.clock, floor: 0, observation: (clock.nowMs() - 20_000) * 1_000 },
      agrees: true,
      sentence: expect.stringMatching(/^A search finds it/),
      bucket_status: expect.objectContaining({ state: 'events_unproven' }),
    });
  });

  it('shows a key that neither side has', async () => {
    const { explain } = await setUp();
    const explanation = await explain('photos', 'none');
    expect(explanation).toMatchObject({ agrees: true, storage: { state: { present: false } } });
    expect(explanation.index).toBeUndefined();
  });

  it('shows the fault that S3 answers with, and its advice', async () => {
    const { storage, explain } = await setUp();
    storage.failWith(new FaultError('object.denied', 'neither HEAD nor LIST'));
    const explanation = await explain('photos', 'a');
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
    const { explain } = await setUp();
    await expect(explain(bucket, key)).rejects.toMatchObject({ code });
  });

  it('stops when its signal is aborted', async () => {
    const { explain } = await setUp(AbortSignal.abort(new Error('stopping')));
    await expect(explain('photos', 'a')).rejects.toThrow('stopping');
  });
});
