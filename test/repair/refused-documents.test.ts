import { describe, expect, it } from 'vitest';
import type { ObjectDocument } from '../../src/ordering/document.ts';
import type { FaultCode } from '../../src/base/fault.ts';
import type { Store } from '../../src/store/store.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { bucketRecord, createReindexWorld } from '../support/worlds/reindex.ts';

/** A store that refuses some documents, and takes all others of the same request. */
function refusing(isRefused: (document: ObjectDocument) => boolean, code: FaultCode = 'index.rejected'): Store {
  const store = createMemoryStore();
  const write: Store['objects']['write'] = async (writes, signal) => {
    const answers = [
      ...(await store.objects.write(
        writes.filter(({ document }) => !isRefused(document)),
        signal,
      )),
    ];
    return writes.map(({ document }) =>
      isRefused(document)
        ? { kind: 'fault', fault: { code, reason: `mapper_parsing_exception: ${document.key}` } }
        : (answers.shift() ?? { kind: 'superseded' }),
    );
  };
  return { ...store, objects: { ...store.objects, write } };
}

const enriched = { ...bucketRecord, enrich: 'tags' as const };
const content = { contentType: 'text/plain', userMetadata: { owner: 'me' }, tags: { colour: 'red' } };

describe('a document that the index refuses', () => {
  it.each(['index.rejected', 'bucket.index-misconfigured'] as const)(
    'as %s is written without its enrichment, and its neighbours with theirs',
    async (code) => {
      const store = refusing(({ key, user_metadata: metadata }) => key === 'b' && metadata !== undefined, code);
      const world = await createReindexWorld({ store });
      for (const key of ['a', 'b', 'c']) world.put(key, content);
      expect(await world.run({ bucket: enriched })).toMatchObject({ done: true, counts: { missing: 3, written: 3, refused: 0 } });
      const plain = await world.stored('b');
      expect(plain).toMatchObject({ etag: 'etag-1', deleted: false });
      for (const field of ['content_type', 'user_metadata', 'tags']) expect(plain).not.toHaveProperty(field);
      for (const key of ['a', 'c'])
        expect(await world.stored(key)).toMatchObject({ user_metadata: { owner: 'me' }, tags: { colour: 'red' } });
      const refusals = world.telemetry.labels('tally_enrich_total');
      expect(refusals.filter(({ result }) => result === code)).toMatchObject([{ enrich: 'head' }, { enrich: 'tags' }]);
    },
  );

  it('once its tags are filled in keeps what it had of enrichment', async () => {
    const store = refusing(({ key, tags }) => key === 'b' && tags !== undefined);
    const world = await createReindexWorld({ store });
    for (const key of ['a', 'b']) {
      const { tags: _, ...known } = world.put(key, content);
      await world.index(key, known);
    }
    const before = await world.stored('b');
    expect(before).toMatchObject({ user_metadata: { owner: 'me' }, storage_class: 'STANDARD' });
    await world.run({ bucket: enriched, fill: true });
    expect(await world.stored('a')).toMatchObject({ tags: { colour: 'red' } });
    const { user_metadata, content_type, storage_class } = before!;
    expect(await world.stored('b')).toMatchObject({ user_metadata, content_type, storage_class });
  });

  it('in any form is counted and named, and the others are written', async () => {
    const store = refusing(({ key }) => key === 'b');
    const world = await createReindexWorld({ store });
    for (const key of ['a', 'b', 'c']) world.put(key, content);
    const result = await world.run({ bucket: enriched });
    expect(result).toMatchObject({
      done: true,
      counts: { listed: 3, missing: 3, written: 2, refused: 1 },
      examples: { refused: [{ key: 'b', reason: 'mapper_parsing_exception: b' }] },
    });
    expect(await world.found()).toEqual(['a etag-0', 'c etag-2']);
  });
});
