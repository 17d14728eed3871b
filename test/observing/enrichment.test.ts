import { describe, expect, it } from 'vitest';
import type { BucketRecord } from '../../src/records/bucket.ts';
import { documentOf, type PresentState, clockOfMs } from '../../src/ordering/document.ts';
import { enrichmentCircuits } from '../../src/observing/circuits.ts';
import { createEnricher, withPlainFallback } from '../../src/observing/enricher.ts';
import type { WriteAnswer } from '../../src/store/store.ts';
import { createTestCircuits } from '../support/fakes/circuits.ts';
import { createFakeClock, createFakeTelemetry } from '../support/fakes/ports.ts';
import { FaultError, type FaultCode } from '../../src/base/fault.ts';
import { BUCKET, createIngestWorld, nativeRecord, settled, syntheticRecord, type IngestWorld } from '../support/worlds/ingest.ts';

const details = { contentType: 'text/plain', userMetadata: { author: 'me' }, storageClass: 'GLACIER' };
const tags = { 'cost.center': '42' };
/** What a HEAD adds. */
const enrichedFields = { content_type: 'text/plain', user_metadata: { author: 'me' }, storage_class: 'GLACIER' };

function worldOf(
  enrich: BucketRecord['enrich'],
  versioning: BucketRecord['versioning']['status'] = 'never',
  bucket: Partial<BucketRecord> = {},
) {
  return createIngestWorld({ bucket: { enrich, versioning: { status: versioning, observedAtMs: 0 }, ...bucket } });
}

/** An object with all that can be read of it, put now, and the event that tells it. */
function put(world: IngestWorld, key: string, state: Partial<PresentState> = {}) {
  const object = world.storage.put(BUCKET, key, { ...details, tags, ...state });
  return nativeRecord(key, { eventTimeMs: world.clock.nowMs(), object });
}

/** The same, of which only the routing rule tells. */
function routedPut(world: IngestWorld, key: string, state: Partial<PresentState> = {}) {
  world.storage.put(BUCKET, key, { ...details, tags, ...state });
  return syntheticRecord(key, { eventTimeMs: world.clock.nowMs() });
}

/** The fields of a document that enrichment gave it. */
const addedTo = async (world: IngestWorld, key: string): Promise<object> => {
  const { content_type, user_metadata, storage_class, tags: written } = (await world.document(key))!;
  return JSON.parse(JSON.stringify({ content_type, user_metadata, storage_class, tags: written })) as object;
};

/** As the SDK does: what is not answered ends with its signal. */
const untilAborted = (signal: AbortSignal | undefined) =>
  new Promise<never>((_, reject) => {
    signal?.addEventListener('abort', () => reject(new Error('aborted')));
  });

const results = (world: IngestWorld) => world.telemetry.labels('tally_enrich_total').map(({ enrich, result }) => `${enrich} ${result}`);

it('Fix: that S3 refuses what enriches an object is known, whatever it answers for others, and holds no event', async () => {
  const world = await worldOf('tags');
  world.storage.hooks.before = () => Promise.reject(new FaultError('object.denied', 'HEAD: 403'));
  await world.tell(put(world, 'k'), 700);
  expect(world.outcomes()).toEqual(['written']);
  world.storage.hooks.before = undefined;
  await world.tell(put(world, 'l'), 700);
  expect(world.circuits.all()).toMatchObject([{ level: 'enrichment', name: BUCKET, key: 'k', fault: { code: 'object.denied' } }]);
});

describe('an exact event', () => {
  it('says what a HEAD with its etag adds, at the event’s own clock, and the tags that were read before the HEAD that tells whose they are', async () => {
    const world = await worldOf('tags');
    const atMs = world.clock.nowMs();
    await world.tell(put(world, 'k', { expiresAtMs: atMs + 1 }), 700);
    const document = await world.document('k');
    expect(document).toMatchObject({ ...enrichedFields, tags, clock: clockOfMs(atMs), settled: true, source: 'native', etag: 'etag-1' });
    expect(document).toMatchObject({ last_modified: new Date(atMs).toISOString(), last_modified_exact: true });
    expect(document).toHaveProperty('expires_at');
    expect(world.storage.asked).toEqual([`TAGS ${BUCKET}/k`, `HEAD ${BUCKET}/k`]);
    expect(results(world)).toEqual(['head ok', 'tags ok']);
    expect([world.outcomes(), world.settlements()]).toEqual([['written'], ['delete']]);
  });

  it('of a bucket with versions is read by its version, though it is no longer the present one', async () => {
    const world = await worldOf('tags', 'enabled');
    const first = put(world, 'k', { contentType: 'first', tags: { number: '1' } });
    world.storage.put(BUCKET, 'k', { contentType: 'second', tags: { number: '2' } });
    await world.tell(first);
    expect(await world.document('k')).toMatchObject({ content_type: 'first', tags: { number: '1' }, version_id: 'v1' });
    expect(world.storage.asked).toEqual([`HEAD ${BUCKET}/k@v1`, `TAGS ${BUCKET}/k@v1`]);
  });

  it('whose object S3 no longer has between the request for its tags and the HEAD has neither the one’s tags nor the other’s', async () => {
    const world = await worldOf('tags');
    const record = put(world, 'k');
    world.storage.hooks.before = async (request, key) => {
      if (request === 'HEAD') world.storage.put(BUCKET, key, { tags: { other: 'yes' } });
    };
    await world.tell(record);
    expect(await world.document('k')).not.toHaveProperty('tags');
    expect(results(world)).toEqual(['head gone', 'tags gone']);
  });
});

describe('a refusal', () => {
  it.each<{ of: string; versioning?: 'enabled'; code?: FaultCode; adds: object; found: readonly string[] }>([
    { of: 'HEAD TAGS', adds: {}, found: ['head object.denied', 'tags object.denied'] },
    // the first refusal opens the circuit, and the second request is not sent
    { of: 'HEAD TAGS', code: 's3.credentials', adds: {}, found: ['head paused', 'tags paused'] },
    { of: 'TAGS', versioning: 'enabled', adds: enrichedFields, found: ['head ok', 'tags object.denied'] },
    // tags are those of a version that S3 named, and of no other
    { of: 'HEAD', versioning: 'enabled', adds: { tags }, found: ['head object.denied', 'tags ok'] },
    { of: 'HEAD', adds: {}, found: ['head object.denied', 'tags object.denied'] },
  ])(
    'of $of ($code $versioning) leaves what the other one said, and makes nothing wait',
    async ({ of, versioning, code = 'object.denied', adds, found }) => {
      const world = await worldOf('tags', versioning);
      world.storage.hooks.before = async (request) => {
        if (of.includes(request)) throw new FaultError(code, 'as scripted');
      };
      await world.tell(put(world, 'k'));
      expect(await addedTo(world, 'k')).toEqual(adds);
      expect(await world.document('k')).toMatchObject({ etag: 'etag-1', settled: true, last_modified_exact: found[0] === 'head ok' });
      expect(results(world)).toEqual(found);
      const warned = found.map((each) => each.split(' ')).filter(([, result]) => result !== 'ok');
      expect(world.telemetry.logged('documents are written without enrichment')).toMatchObject(
        warned.map(([enrich, result]) => ({ bucket: BUCKET, enrich, result })),
      );
      expect([world.outcomes(), world.settlements()]).toEqual([['written'], ['delete']]);
      expect([world.role.admission.state, await world.gaps()]).toEqual(['on', []]);
    },
  );

  it('by the index, of what enrichment added, leaves the document plain', async () => {
    const world = await worldOf('tags');
    world.store.broken.beforeWrite = async (writes) => {
      if (writes.some(({ document }) => document.tags !== undefined)) world.store.broken.buckets.set(BUCKET, 'index.rejected');
      else world.store.broken.buckets.delete(BUCKET);
    };
    await world.tell(put(world, 'k'));
    expect(await world.document('k')).toMatchObject({ etag: 'etag-1' });
    expect(await world.document('k')).not.toHaveProperty('tags');
    expect(results(world)).toEqual(['head ok', 'tags ok', 'head index.rejected', 'tags index.rejected']);
    expect([world.outcomes(), world.letters()]).toEqual([['written'], []]);
  });
});

it.each<[string, Partial<PresentState>, FaultCode]>([
  ['an enriched document that the index refuses for anything but a field', { tags }, 'index.blocked'],
  ['a plain document that it refuses', { storageClass: 'X' }, 'index.rejected'],
])('%s is not written again', async (_, state, code) => {
  const facts = { bucket: BUCKET, key: 'k', clock: 5, settled: true, source: 'native', cause: {}, stateAtMs: 0, nowMs: 0 } as const;
  const document = documentOf({ ...facts, state: { present: true, etag: 'e', ...state } });
  const refusal = { kind: 'fault', fault: { code, reason: 'as scripted' } } as const;
  const answers: WriteAnswer[] = [refusal];
  const write = withPlainFallback(async () => answers.shift()!, createFakeTelemetry());
  expect(await write({ document, equalClock: 'refuse', expiresAtMs: 1_000 })).toEqual(refusal);
});

const MINUTE_MS = 60_000;

describe('an S3 that does not answer', () => {
  it('holds an event for ten seconds, then it is written plain, and holds up no message of another bucket', async () => {
    const world = await createIngestWorld({ buckets: [BUCKET, 'other'] });
    await world.changeBucket(BUCKET, { enrich: 'head' });
    world.storage.hooks.before = (_request, _key, signal) => untilAborted(signal);
    for (let count = 0; count < 4; count += 1) await world.send(put(world, `slow-${count}`));
    await world.tell(world.put('fast', { bucket: 'other' }), 500);
    expect(await world.document('fast', 'other')).toBeDefined();
    await world.run(9_400);
    expect(await world.document('slow-0')).toBeUndefined();
    await world.run(500);
    expect(await world.document('slow-0')).toMatchObject({ etag: 'etag-1', last_modified_exact: false });
    expect(new Set(results(world))).toEqual(new Set(['head late']));
    expect(new Set(world.outcomes())).toEqual(new Set(['written']));
  });

  it('is asked seldom after three failures: the bucket’s events are written plain at once, until it answers', async () => {
    const world = await worldOf('head');
    world.storage.hooks.before = (_request, _key, signal) => untilAborted(signal);
    for (let count = 0; count < 5; count += 1) await world.send(put(world, `first-${count}`));
    await world.run(10_500);
    await world.tell(put(world, 'second'));
    expect(await world.document('second')).toBeDefined();
    expect(results(world).slice(5)).toEqual(['head paused']);
    world.storage.hooks.before = undefined;
    await world.run(5_000);
    await world.tell(put(world, 'third'));
    await world.tell(put(world, 'fourth'));
    expect(results(world).slice(6)).toEqual(['head ok', 'head ok']);
    expect(await world.document('fourth')).toMatchObject(enrichedFields);
  });
});

it('Fix: an attempt that found no place in time leaves its turn to the next one', async () => {
  const clock = createFakeClock();
  const ports = { clock, telemetry: createFakeTelemetry() };
  const circuits = createTestCircuits(ports);
  const bucket = { bucket: BUCKET, region: 'us-east-1', enrich: 'head' } as const;
  const fault = { code: 's3.unavailable', reason: '' } as const;
  for (const key of ['a', 'b', 'c']) circuits.storageAnswered(bucket, { key, sentAtMs: 0, fault, enriches: true });
  await clock.advance(1_000);
  const never = () => Promise.reject(new Error('not asked'));
  const heads = { run: never, report: () => undefined };
  const stopped = new AbortController().signal;
  const enricher = createEnricher({ ...ports, circuits, stopped, storage: { readVersion: never, readTags: never }, heads });
  const state = { present: true, etag: 'e' } as const;
  expect(await enricher.ofEvent({ bucket, key: 'd', state, expiresAtMs: 60_000 })).toEqual(state);
  expect(circuits.mayTry(enrichmentCircuits(bucket), new Map(), true)).toBe(true);
});

describe('an event that is received again', () => {
  async function twice(first: 'refused' | 'answered', second: 'refused' | 'answered') {
    const world = await worldOf('tags');
    const set = (how: 'refused' | 'answered'): void => {
      world.storage.hooks.before = how === 'answered' ? undefined : () => Promise.reject(new FaultError('object.denied', 'no'));
    };
    const record = put(world, 'k');
    set(first);
    await world.tell(record);
    const document = await world.document('k');
    set(second);
    await world.tell(record);
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

describe('an observation', () => {
  const routed = { source: 'routed' } as const;

  it('writes what users wrote beside the object only where its bucket asks for it', async () => {
    for (const [enrich, said] of [
      ['none', { storage_class: 'GLACIER' }],
      ['head', enrichedFields],
      ['tags', { ...enrichedFields, tags }],
    ] as const) {
      const world = await worldOf(enrich, 'never', routed);
      await world.tell(routedPut(world, 'k'));
      expect(await addedTo(world, 'k')).toEqual(said);
      expect(world.storage.observed).toEqual([`${BUCKET}/k`]);
      expect(world.outcomes()).toEqual(['provisional']);
    }
  });

  it('reads the tags of the version that it saw, where there are versions', async () => {
    const world = await worldOf('tags', 'enabled', routed);
    const record = routedPut(world, 'k');
    world.storage.hooks.before = async () => void world.storage.put(BUCKET, 'k', { tags: { other: 'yes' } });
    await world.tell(record);
    expect(await world.document('k')).toMatchObject({ version_id: 'v1', tags });
    expect(world.storage.asked).toEqual([`TAGS ${BUCKET}/k@v1`]);
    expect(results(world)).toEqual(['head ok', 'tags ok']);
  });

  it('sends another HEAD request after it read the tags, where there are none: tags of another object are not taken', async () => {
    const world = await worldOf('tags', 'never', routed);
    await world.tell(routedPut(world, 'same'));
    expect(world.storage.asked).toEqual([`TAGS ${BUCKET}/same`, `HEAD ${BUCKET}/same`]);
    for (const replaced of [{ etag: 'other' }, { etag: 'etag-9', lastModifiedMs: 5 }]) {
      const record = routedPut(world, 'k', { etag: 'etag-9', sizeBytes: 1 });
      world.storage.hooks.before = async (request, key) => {
        if (request === 'TAGS') world.storage.put(BUCKET, key, { sizeBytes: 1, tags: { other: 'yes' }, ...replaced });
      };
      await world.tell(record);
      expect(await world.document('k')).toMatchObject({ etag: 'etag-9', content_type: 'text/plain' });
      expect(await world.document('k')).not.toHaveProperty('tags');
      expect(results(world).slice(-2)).toEqual(['head ok', 'tags gone']);
    }
  });

  it('of what is gone asks for nothing more', async () => {
    const world = await worldOf('tags', 'never', routed);
    await world.tell(world.remove('k'));
    expect(await world.document('k')).toMatchObject({ deleted: true });
    expect([world.storage.asked, results(world)]).toEqual([[], []]);
  });

  it('by a listing, which says nothing of this, is written plain', async () => {
    const world = await worldOf('tags', 'never', routed);
    const record = syntheticRecord('k', { eventTimeMs: world.clock.nowMs() });
    // a HEAD would say which user metadata there is
    world.storage.put(BUCKET, 'k', { userMetadata: undefined! });
    await world.tell(record);
    expect(await world.document('k')).toMatchObject({ deleted: false });
    expect(results(world)).toEqual(['head listed', 'tags listed']);
    expect(world.storage.asked).toEqual([]);
    expect(world.circuits.all()).toMatchObject([{ level: 'enrichment', name: BUCKET, key: 'k', fault: { code: 'object.denied' } }]);
  });

  it('whose tags are refused is written without them, and after three failures they are not asked for', async () => {
    const world = await worldOf('tags', 'never', routed);
    world.storage.hooks.before = () => Promise.reject(new FaultError('s3.unavailable', '503'));
    for (let count = 0; count < 3; count += 1) await world.send(routedPut(world, `k${count}`));
    await world.run(500);
    expect(await addedTo(world, 'k0')).toEqual(enrichedFields);
    expect(new Set(results(world))).toEqual(new Set(['head ok', 'tags s3.unavailable']));
    const asked = world.storage.asked.length;
    await world.tell(routedPut(world, 'k'));
    expect(results(world).slice(-2)).toEqual(['head ok', 'tags paused']);
    expect(world.storage.asked).toHaveLength(asked);
    expect([new Set(world.outcomes()), world.role.admission.state]).toEqual([new Set(['provisional']), 'on']);
  });
});

describe('an event of tags', () => {
  const tagged = (world: IngestWorld) =>
    nativeRecord('k', { eventName: 'ObjectTagging:Put', eventTimeMs: world.clock.nowMs(), sequencer: null });

  it('brings the document’s tags up to date, at once and for good', async () => {
    const world = await createIngestWorld({ bucket: { enrich: 'tags' } });
    const object = world.storage.put(BUCKET, 'k', { ...details, tags });
    await world.tell(nativeRecord('k', { eventTimeMs: world.clock.nowMs(), object }), 1_000);
    expect(await world.document('k')).toMatchObject({ tags });
    world.storage.put(BUCKET, 'k', { ...object, tags: { changed: 'yes' } });
    await world.tell(tagged(world));
    expect(await world.document('k')).toMatchObject({ etag: 'etag-1', tags: { changed: 'yes' }, settled: false });
    await world.run(MINUTE_MS);
    expect(await world.document('k')).toMatchObject({ etag: 'etag-1', tags: { changed: 'yes' }, settled: true });
    expect(world.outcomes()).toEqual(['written', 'provisional', 'written']);
  });

  it('is ignored where the bucket does not ask for them', async () => {
    const world = await worldOf('head');
    world.storage.put(BUCKET, 'k');
    await world.tell(tagged(world));
    expect(world.outcomes()).toEqual(['ignored']);
    expect([world.storage.observed, world.storage.asked]).toEqual([[], []]);
  });
});
