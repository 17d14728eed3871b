import { describe, expect, it } from 'vitest';
import type { BucketRecord } from '../../../src/domain/bucket.ts';
import type { PresentState } from '../../../src/domain/documents/document.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import { BUCKET, createIngestWorld, nativeRecord, syntheticRecord, type IngestWorld } from '../../support/worlds/ingest.ts';

const MINUTE_MS = 60_000;
const details = { contentType: 'text/plain', userMetadata: { author: 'me' } };
const tags = { 'cost.center': '42' };

function worldOf(enrich: BucketRecord['enrich'], versioning: BucketRecord['versioning']['status'] = 'never') {
  return createIngestWorld({ bucket: { enrich, source: 'routed', versioning: { status: versioning, observedAtMs: 0 } } });
}

/** An object with all that can be read of it, put now, and what the routing rule says of it. */
function routedPut(world: IngestWorld, key: string, state: Partial<PresentState> = {}) {
  world.storage.put(BUCKET, key, { ...details, tags, ...state });
  return syntheticRecord(key, { eventTimeMs: world.clock.nowMs() });
}

const results = (world: IngestWorld) => world.telemetry.labels('tally_enrich_total').map(({ enrich, result }) => `${enrich} ${result}`);

describe('a look', () => {
  it('writes what users wrote beside the object only where its bucket asks for it', async () => {
    for (const [enrich, said] of [
      ['none', {}],
      ['head', { content_type: 'text/plain', user_metadata: { author: 'me' } }],
      ['tags', { content_type: 'text/plain', user_metadata: { author: 'me' }, tags }],
    ] as const) {
      const world = await worldOf(enrich);
      await world.send(routedPut(world, 'k'));
      await world.run(200);
      const { content_type, user_metadata, tags: written } = (await world.document('k'))!;
      expect(JSON.parse(JSON.stringify({ content_type, user_metadata, tags: written }))).toEqual(said);
      expect(world.storage.observed).toEqual([`${BUCKET}/k`]);
      expect(world.outcomes()).toEqual(['provisional']);
    }
  });

  it('reads the tags of the version that it saw, where there are versions', async () => {
    const world = await worldOf('tags', 'enabled');
    const record = routedPut(world, 'k');
    world.storage.hooks.before = async () => void world.storage.put(BUCKET, 'k', { tags: { other: 'yes' } });
    await world.send(record);
    await world.run(200);
    expect(await world.document('k')).toMatchObject({ version_id: 'v1', tags });
    expect(world.storage.asked).toEqual([`TAGS ${BUCKET}/k@v1`]);
    expect(results(world)).toEqual(['head ok', 'tags ok']);
  });

  it('looks again after it read the tags, where there are none: tags of another object are not taken', async () => {
    const world = await worldOf('tags');
    await world.send(routedPut(world, 'same'));
    await world.run(200);
    expect(world.storage.asked).toEqual([`TAGS ${BUCKET}/same`, `HEAD ${BUCKET}/same`]);
    for (const replaced of [{ etag: 'other' }, { etag: 'etag-9', lastModifiedMs: 5 }]) {
      const record = routedPut(world, 'k', { etag: 'etag-9', sizeBytes: 1 });
      world.storage.hooks.before = async (request, key) => {
        if (request === 'TAGS') world.storage.put(BUCKET, key, { sizeBytes: 1, tags: { other: 'yes' }, ...replaced });
      };
      await world.send(record);
      await world.run(200);
      expect(await world.document('k')).toMatchObject({ etag: 'etag-9', content_type: 'text/plain' });
      expect(await world.document('k')).not.toHaveProperty('tags');
      expect(results(world).slice(-2)).toEqual(['head ok', 'tags gone']);
    }
  });

  it('of what is gone asks for nothing more', async () => {
    const world = await worldOf('tags');
    await world.send(world.remove('k'));
    await world.run(200);
    expect(await world.document('k')).toMatchObject({ deleted: true });
    expect([world.storage.asked, results(world)]).toEqual([[], []]);
  });

  it('by a listing, which says nothing of this, is written plain', async () => {
    const world = await worldOf('tags');
    const record = syntheticRecord('k', { eventTimeMs: world.clock.nowMs() });
    // a HEAD would say which user metadata there is
    world.storage.put(BUCKET, 'k', { userMetadata: undefined! });
    await world.send(record);
    await world.run(200);
    expect(await world.document('k')).toMatchObject({ deleted: false });
    expect(results(world)).toEqual(['head listed', 'tags listed']);
    expect(world.storage.asked).toEqual([]);
  });

  it.each(['object.denied', 's3.throttled'] as const)('whose tags are refused (%s) is written without them', async (code) => {
    const world = await worldOf('tags');
    world.storage.hooks.before = () => Promise.reject(new FaultError(code, 'as scripted'));
    await world.send(routedPut(world, 'k'));
    await world.run(200);
    expect(await world.document('k')).toMatchObject({ content_type: 'text/plain', etag: 'etag-1' });
    expect(await world.document('k')).not.toHaveProperty('tags');
    expect(results(world)).toEqual(['head ok', `tags ${code}`]);
    expect([world.outcomes(), world.role.admission.state]).toEqual([['provisional'], 'on']);
  });

  it('whose tags do not come in time is written without them, ten seconds after it began', async () => {
    const world = await worldOf('tags');
    world.storage.hooks.before = (_request, _key, signal) =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('aborted')));
      });
    await world.send(routedPut(world, 'k'));
    await world.run(9_900);
    expect(await world.document('k')).toBeUndefined();
    await world.run(500);
    expect(await world.document('k')).toMatchObject({ content_type: 'text/plain' });
    expect(results(world)).toEqual(['head ok', 'tags late']);
  });

  it('is not asked for tags while the bucket’s requests fail one after another', async () => {
    const world = await worldOf('tags');
    world.storage.hooks.before = () => Promise.reject(new FaultError('s3.unavailable', '503'));
    for (let count = 0; count < 5; count += 1) await world.send(routedPut(world, `k${count}`));
    await world.run(200);
    const asked = world.storage.asked.length;
    await world.send(routedPut(world, 'k'));
    await world.run(200);
    expect(results(world).slice(-2)).toEqual(['head ok', 'tags paused']);
    expect(world.storage.asked).toHaveLength(asked);
  });
});

describe('an event of tags', () => {
  const tagged = (world: IngestWorld) =>
    nativeRecord('k', { eventName: 'ObjectTagging:Put', eventTimeMs: world.clock.nowMs(), sequencer: null });

  it('brings the document’s tags up to date, at once and for good', async () => {
    const world = await createIngestWorld({ bucket: { enrich: 'tags' } });
    const object = world.storage.put(BUCKET, 'k', { ...details, tags });
    await world.send(nativeRecord('k', { eventTimeMs: world.clock.nowMs(), object }));
    await world.run(1_000);
    expect(await world.document('k')).toMatchObject({ tags });
    world.storage.put(BUCKET, 'k', { ...object, tags: { changed: 'yes' } });
    await world.send(tagged(world));
    await world.run(200);
    expect(await world.document('k')).toMatchObject({ etag: 'etag-1', tags: { changed: 'yes' }, settled: false });
    await world.run(MINUTE_MS);
    expect(await world.document('k')).toMatchObject({ etag: 'etag-1', tags: { changed: 'yes' }, settled: true });
    expect(world.outcomes()).toEqual(['written', 'provisional', 'written']);
  });

  it('is ignored where the bucket does not ask for them', async () => {
    const world = await worldOf('head');
    world.storage.put(BUCKET, 'k');
    await world.send(tagged(world));
    await world.run(200);
    expect(world.outcomes()).toEqual(['ignored']);
    expect([world.storage.observed, world.storage.asked]).toEqual([[], []]);
  });
});
