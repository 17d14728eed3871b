import { describe, expect, it } from 'vitest';
import { documentOf } from '../../src/ordering/document.ts';
import { FaultError } from '../../src/base/fault.ts';
import { createControlWorld } from '../support/worlds/control.ts';

async function setUp(signal = new AbortController().signal) {
  const { objects, clock, storage, connectBucket, operations } = createControlWorld();
  await connectBucket.connect({ bucket: 'photos' }, 'someone');
  const context = { actor: { kind: 'local', user: 'someone', host: 'here' }, signal } as const;
  const explain = (bucket: string, key: string) => operations.explainObject({ params: { bucket }, query: { key } }, context);
  return { objects, clock, storage, explain };
}

const isoOf = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());

describe('explaining a key', () => {
  it('shows both sides, the clocks and one sentence', async () => {
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
