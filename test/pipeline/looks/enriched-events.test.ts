import { describe, expect, it } from 'vitest';
import type { BucketRecord } from '../../../src/domain/bucket.ts';
import type { PresentState } from '../../../src/domain/documents/document.ts';
import { clockOfMs } from '../../../src/domain/ordering/clock.ts';
import { opensAtOnce, FaultError, type FaultCode } from '../../../src/domain/fault.ts';
import { BUCKET, createIngestWorld, nativeRecord, settled, type IngestWorld } from '../../support/worlds/ingest.ts';

const details = { contentType: 'text/plain', userMetadata: { author: 'me' }, storageClass: 'GLACIER' };
const tags = { 'cost.center': '42' };
/** The fields of a document that enrichment gave it. */
const enrichedFields = { content_type: 'text/plain', user_metadata: { author: 'me' }, storage_class: 'GLACIER' };

function worldOf(enrich: BucketRecord['enrich'], versioning: BucketRecord['versioning']['status'] = 'never') {
  return createIngestWorld({ bucket: { enrich, versioning: { status: versioning, observedAtMs: 0 } } });
}

/** An object with all that can be read of it, put now, and the event that tells it. */
function put(world: IngestWorld, key: string, state: Partial<PresentState> = {}) {
  const object = world.storage.put(BUCKET, key, { ...details, tags, ...state });
  return nativeRecord(key, { eventTimeMs: world.clock.nowMs(), object });
}

const results = (world: IngestWorld) => world.telemetry.labels('tally_enrich_total').map(({ enrich, result }) => `${enrich} ${result}`);

describe('an exact event', () => {
  it('of a bucket that asks for nothing is not enriched, and holds its poller as ever', async () => {
    const world = await worldOf('none');
    // the bucket's record is looked up once
    await world.send(put(world, 'first'));
    await world.run(200);
    const held = world.telemetry.values('tally_held_messages').length;
    await world.send(put(world, 'k'));
    await world.run(200);
    expect(world.storage.asked).toEqual([]);
    expect(await world.document('k')).not.toHaveProperty('content_type');
    expect(world.telemetry.values('tally_held_messages')).toHaveLength(held);
    expect(results(world)).toEqual([]);
  });

  it('says what a HEAD with its etag adds, at the event’s own clock', async () => {
    const world = await worldOf('head');
    const atMs = world.clock.nowMs();
    await world.send(put(world, 'k', { expiresAtMs: atMs + 1 }));
    await world.run(700);
    const document = await world.document('k');
    expect(document).toMatchObject({ ...enrichedFields, clock: clockOfMs(atMs), settled: true, source: 'native', etag: 'etag-1' });
    expect(document).toMatchObject({ last_modified: new Date(atMs).toISOString(), last_modified_exact: true });
    expect(document).toHaveProperty('expires_at');
    expect(document).not.toHaveProperty('tags');
    expect(world.storage.asked).toEqual([`HEAD ${BUCKET}/k`]);
    expect(results(world)).toEqual(['head ok']);
    expect([world.outcomes(), world.settlements()]).toEqual([['written'], ['delete']]);
  });

  it('says the tags too, read before the HEAD that tells whose they are', async () => {
    const world = await worldOf('tags');
    await world.send(put(world, 'k'));
    await world.run(200);
    expect(await world.document('k')).toMatchObject({ ...enrichedFields, tags });
    expect(world.storage.asked).toEqual([`TAGS ${BUCKET}/k`, `HEAD ${BUCKET}/k`]);
    expect(results(world)).toEqual(['head ok', 'tags ok']);
  });

  it('of a bucket with versions is read by its version, though it is no longer the present one', async () => {
    const world = await worldOf('tags', 'enabled');
    const first = put(world, 'k', { contentType: 'first', tags: { number: '1' } });
    world.storage.put(BUCKET, 'k', { contentType: 'second', tags: { number: '2' } });
    await world.send(first);
    await world.run(200);
    expect(await world.document('k')).toMatchObject({ content_type: 'first', tags: { number: '1' }, version_id: 'v1' });
    expect(world.storage.asked).toEqual([`HEAD ${BUCKET}/k@v1`, `TAGS ${BUCKET}/k@v1`]);
  });

  it('of a delete adds nothing: tombstones are not enriched', async () => {
    const world = await worldOf('tags', 'enabled');
    world.storage.put(BUCKET, 'k');
    await world.send(world.remove('k', { eventName: 'ObjectRemoved:DeleteMarkerCreated' }));
    await world.run(200);
    expect(await world.document('k')).toMatchObject({ deleted: true });
    expect([world.storage.asked, results(world)]).toEqual([[], []]);
  });

  it('opens a lifecycle gap where S3 plans to expire the object and the source cannot tell that', async () => {
    for (const [source, kinds] of [
      ['topic', ['lifecycle']],
      ['notification', []],
    ] as const) {
      const world = await createIngestWorld({ bucket: { enrich: 'head', source } });
      await world.send(put(world, 'k', { expiresAtMs: 5_000 }));
      await world.run(1_200);
      expect((await world.gaps()).map(({ kind }) => kind)).toEqual(kinds);
    }
  });
});

describe('an exact event whose object S3 no longer has', () => {
  it('is written plain, and the event of what replaced it is enriched', async () => {
    const world = await worldOf('tags');
    const first = put(world, 'k');
    await world.run(1_000);
    const second = put(world, 'k', { contentType: 'second' });
    await world.send(first);
    await world.run(200);
    const plain = await world.document('k');
    expect(plain).toMatchObject({ etag: 'etag-1', last_modified_exact: false });
    for (const field of ['content_type', 'user_metadata', 'storage_class', 'tags']) expect(plain).not.toHaveProperty(field);
    expect(results(world)).toEqual(['head gone', 'tags gone']);
    await world.send(second);
    await world.run(200);
    expect(await world.document('k')).toMatchObject({ etag: 'etag-2', content_type: 'second', tags });
    expect(world.storage.observed).toEqual([]);
  });

  it('between the request for its tags and the HEAD has neither the one’s tags nor the other’s', async () => {
    const world = await worldOf('tags');
    const record = put(world, 'k');
    world.storage.hooks.before = async (request, key) => {
      if (request === 'HEAD') world.storage.put(BUCKET, key, { tags: { other: 'yes' } });
    };
    await world.send(record);
    await world.run(200);
    expect(await world.document('k')).not.toHaveProperty('tags');
    expect(results(world)).toEqual(['head gone', 'tags gone']);
  });

  it('but the same bytes put later, is not said to be that one', async () => {
    const world = await worldOf('head');
    const record = put(world, 'k');
    await world.run(20_000);
    world.storage.put(BUCKET, 'k', { etag: 'etag-1', contentType: 'later' });
    await world.send(record);
    await world.run(200);
    expect(await world.document('k')).not.toHaveProperty('content_type');
    expect(results(world)).toEqual(['head gone']);
  });
});

describe('a refusal', () => {
  it.each<FaultCode>(['object.denied', 's3.credentials'])('%s of both leaves the document plain, and makes nothing wait', async (code) => {
    const world = await worldOf('tags');
    world.storage.hooks.before = async () => {
      throw new FaultError(code, 'as scripted');
    };
    await world.send(put(world, 'k'));
    await world.run(200);
    const document = await world.document('k');
    expect(document).toMatchObject({ etag: 'etag-1', settled: true, last_modified_exact: false });
    expect(document).not.toHaveProperty('content_type');
    // the first refusal opens the circuit, and the second request is not sent
    expect(results(world)).toEqual(opensAtOnce(code) ? ['head paused', 'tags paused'] : [`head ${code}`, `tags ${code}`]);
    expect([world.outcomes(), world.settlements()]).toEqual([['written'], ['delete']]);
    expect(world.role.admission.state).toBe('on');
    expect(await world.gaps()).toEqual([]);
  });

  it('of the tags leaves what the HEAD said', async () => {
    const world = await worldOf('tags', 'enabled');
    world.storage.hooks.before = async (request) => {
      if (request === 'TAGS') throw new FaultError('object.denied', 'no s3:GetObjectVersionTagging');
    };
    await world.send(put(world, 'k'));
    await world.run(200);
    expect(await world.document('k')).toMatchObject(enrichedFields);
    expect(await world.document('k')).not.toHaveProperty('tags');
    expect(results(world)).toEqual(['head ok', 'tags object.denied']);
    expect(world.telemetry.logged('documents are written without enrichment')).toMatchObject([
      { bucket: BUCKET, enrich: 'tags', result: 'object.denied', reason: 'no s3:GetObjectVersionTagging' },
    ]);
  });

  it('of the HEAD leaves the tags of a version that S3 named, and of no other', async () => {
    for (const versioning of ['enabled', 'never'] as const) {
      const world = await worldOf('tags', versioning);
      world.storage.hooks.before = async (request) => {
        if (request === 'HEAD') throw new FaultError('object.denied', 'no');
      };
      await world.send(put(world, 'k'));
      await world.run(200);
      expect((await world.document('k'))?.tags).toEqual(versioning === 'enabled' ? tags : undefined);
    }
  });

  it('by the index, of what enrichment added, leaves the document plain', async () => {
    const world = await worldOf('tags');
    world.store.broken.beforeWrite = async (writes) => {
      if (writes.some(({ document }) => document.tags !== undefined)) world.store.broken.buckets.set(BUCKET, 'index.rejected');
      else world.store.broken.buckets.delete(BUCKET);
    };
    await world.send(put(world, 'k'));
    await world.run(200);
    expect(await world.document('k')).toMatchObject({ etag: 'etag-1' });
    expect(await world.document('k')).not.toHaveProperty('tags');
    expect(results(world)).toEqual(['head ok', 'tags ok', 'head index.rejected', 'tags index.rejected']);
    expect([world.outcomes(), world.letters()]).toEqual([['written'], []]);
  });
});

describe('an S3 that does not answer', () => {
  const never = () => new Promise<never>(() => {});
  /** As the SDK does: what is not answered ends with its signal. */
  const untilAborted = (signal: AbortSignal | undefined) =>
    new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject(new Error('aborted')));
    });

  it('holds an event for ten seconds, then it is written plain', async () => {
    const world = await worldOf('head');
    world.storage.hooks.before = (_request, _key, signal) => untilAborted(signal);
    await world.send(put(world, 'k'));
    await world.run(9_900);
    expect(await world.document('k')).toBeUndefined();
    await world.run(500);
    expect(await world.document('k')).toMatchObject({ etag: 'etag-1', last_modified_exact: false });
    expect(results(world)).toEqual(['head late']);
    expect(world.outcomes()).toEqual(['written']);
  });

  it('holds no longer an event that waits for a place among the HEADs', async () => {
    const world = await createIngestWorld({ limits: { headConcurrency: 1 }, buckets: [BUCKET, 'other'] });
    await world.changeBucket(BUCKET, { enrich: 'tags' });
    world.storageHooks.afterLook = never;
    await world.send(world.put('look', { bucket: 'other', eventName: 'ObjectRestore:Completed' }));
    await world.run(200);
    await world.send(put(world, 'k'));
    await world.run(9_900);
    expect(await world.document('k')).toBeUndefined();
    await world.run(500);
    expect(await world.document('k')).toBeDefined();
    expect(results(world)).toEqual(['head late', 'tags late']);
    expect(world.storage.asked).toEqual([]);
  });

  it('does not hold up the messages of other buckets', async () => {
    const world = await createIngestWorld({ buckets: [BUCKET, 'other'] });
    await world.changeBucket(BUCKET, { enrich: 'head' });
    world.storage.hooks.before = (_request, _key, signal) => untilAborted(signal);
    for (let count = 0; count < 20; count += 1) await world.send(put(world, `slow-${count}`));
    await world.send(world.put('fast', { bucket: 'other' }));
    await world.run(500);
    expect(await world.document('fast', 'other')).toBeDefined();
    expect(await world.document('slow-0')).toBeUndefined();
  });

  it('is asked seldom after five failures: the bucket’s events are written plain at once, until it answers', async () => {
    const world = await worldOf('head');
    world.storage.hooks.before = (_request, _key, signal) => untilAborted(signal);
    for (let count = 0; count < 5; count += 1) await world.send(put(world, `first-${count}`));
    await world.run(10_500);
    await world.send(put(world, 'second'));
    await world.run(200);
    expect(await world.document('second')).toBeDefined();
    expect(results(world).slice(5)).toEqual(['head paused']);
    world.storage.hooks.before = undefined;
    await world.run(5_000);
    await world.send(put(world, 'third'));
    await world.run(200);
    await world.send(put(world, 'fourth'));
    await world.run(200);
    expect(results(world).slice(6)).toEqual(['head ok', 'head ok']);
    expect(await world.document('fourth')).toMatchObject(enrichedFields);
  });

  it('is asked no more for what waits already: after five failures the rest is written plain, and waits for no place', async () => {
    const world = await createIngestWorld({ limits: { headConcurrency: 1 }, buckets: [BUCKET, 'other'] });
    await world.changeBucket(BUCKET, { enrich: 'head' });
    world.storage.hooks.before = () => Promise.reject(new FaultError('s3.unavailable', '503'));
    for (let count = 0; count < 20; count += 1) await world.send(put(world, `k${count}`));
    await world.run(500);
    expect(world.storage.asked).toHaveLength(5);
    // in whichever order: those that come while the fifth fails are told before it
    expect(results(world).toSorted()).toEqual([
      ...Array.from({ length: 15 }, () => 'head paused'),
      ...Array.from({ length: 5 }, () => 'head s3.unavailable'),
    ]);
    world.storageHooks.afterLook = never;
    await world.send(world.put('look', { bucket: 'other', eventName: 'ObjectRestore:Completed' }));
    await world.run(200);
    await world.send(put(world, 'later'));
    await world.run(200);
    expect(await world.document('later')).toBeDefined();
  });
});

it('an enriched decision has the life of any decision: with the time that its enrichment took it is not sent after 30 s, but decided anew', async () => {
  const world = await createIngestWorld({ limits: { bulk: { actionsMax: 1, bytesMax: 5e6, lingerMs: 20, concurrency: 1 } } });
  await world.changeBucket(BUCKET, { enrich: 'head' });
  await world.run(10_050);
  const answering = Promise.withResolvers<void>();
  world.storage.hooks.before = () => answering.promise;
  await world.send(put(world, 'k'));
  await world.run(9_000);
  // from here on the one bulk request hangs
  const writing = Promise.withResolvers<void>();
  world.store.broken.beforeWrite = () => writing.promise;
  await world.connectBucket('other');
  await world.send(world.put('hangs', { bucket: 'other' }));
  await world.run(100);
  answering.resolve();
  await world.run(21_500);
  expect(world.storage.asked).toHaveLength(1);
  world.store.broken.beforeWrite = undefined;
  writing.resolve();
  await world.run(500);
  expect(world.telemetry.labels('tally_bulk_actions_total')).toContainEqual({ answer: 'expired' });
  expect(world.storage.asked).toHaveLength(2);
  expect(await world.document('k')).toMatchObject(enrichedFields);
});

describe('an event that is received again', () => {
  async function twice(first: 'refused' | 'answered', second: 'refused' | 'answered') {
    const world = await worldOf('tags');
    const set = (how: 'refused' | 'answered'): void => {
      world.storage.hooks.before = how === 'answered' ? undefined : () => Promise.reject(new FaultError('object.denied', 'no'));
    };
    const record = put(world, 'k');
    set(first);
    await world.send(record);
    await world.run(200);
    const document = await world.document('k');
    set(second);
    await world.send(record);
    await world.run(200);
    await settled();
    expect(world.outcomes()).toEqual(['written', 'superseded']);
    expect(world.storage.observed).toEqual([]);
    expect(await world.document('k')).toEqual(document);
    return document;
  }

  it('and is plain now is a repeat, no tie: nothing that was read before is lost', async () => {
    expect(await twice('answered', 'refused')).toMatchObject({ ...enrichedFields, tags });
  });

  it('and is enriched now is a repeat too', async () => {
    expect(await twice('refused', 'answered')).not.toHaveProperty('tags');
    expect(await twice('answered', 'answered')).toMatchObject({ tags });
  });
});
