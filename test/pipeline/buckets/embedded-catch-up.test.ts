import { expect, test } from 'vitest';
import { documentOf } from '../../../src/domain/documents/document.ts';
import { createCatchUp } from '../../../src/pipeline/buckets/embedded-catch-up.ts';
import { createFakeClock } from '../../support/fakes/ports.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';

test('of thousands of keys on both sides just those that differ are announced, each once', async () => {
  const names = Array.from({ length: 2_500 }, (_, number) => `key-${number}`);
  const store = createMemoryStore();
  await store.objects.createBucket('demo');
  const indexed = names.slice(0, 2_400);
  await store.objects.write(indexed.map((key) => ({ document: documentAt(key), equalClock: 'accept' })));

  const announced: string[] = [];
  let isHeld = false;
  const listed = names
    .slice(100)
    .map((key) => ({ key, etag: key === 'key-1000' ? 'other' : 'same', sizeBytes: key === 'key-2000' ? 2 : 1 }));
  const catchUp = createCatchUp({
    index: store.objects,
    storage: { list: (bucket) => (bucket === 'demo' ? listed : undefined), announce: (bucket, key) => announced.push(`${bucket}/${key}`) },
    isHeld: async () => isHeld,
    clock: createFakeClock({ autoAdvance: true }),
  });
  expect(await catchUp(['gone', 'demo'])).toBe(202);

  const differing = [...names.slice(0, 100), ...names.slice(2_400), 'key-1000', 'key-2000'];
  expect(announced.sort()).toEqual(differing.map((key) => `demo/${key}`).sort());

  // deletions wait for a person: the hundred that are in the index alone are not announced
  announced.length = 0;
  isHeld = true;
  expect(await catchUp(['demo'])).toBe(102);
  expect(announced.sort()).toEqual(
    differing
      .slice(100)
      .map((key) => `demo/${key}`)
      .sort(),
  );
});

function documentAt(key: string) {
  const state = { present: true, etag: 'same', sizeBytes: 1 } as const;
  return documentOf({ bucket: 'demo', key, state, clock: 1, settled: true, source: 'native', cause: {}, stateAtMs: 0, nowMs: 0 });
}
