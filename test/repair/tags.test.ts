import { beforeEach, describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import type { PresentState } from '../../src/ordering/document.ts';
import { bucketRecord, createReindexWorld, type ReindexWorld } from '../support/worlds/reindex.ts';
import { createJobsWorld } from '../support/worlds/jobs.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { BUCKET } from '../support/worlds/ingest.ts';

/** A bucket whose documents have tags, of which no event came for the latest change. */
describe('a turn that reads all tags', () => {
  let world: ReindexWorld;
  beforeEach(async () => {
    world = await createReindexWorld();
  });

  const bucket = { ...bucketRecord, enrich: 'tags' as const };
  const turn = (more: Partial<Parameters<ReindexWorld['run']>[0]> = {}) => world.run({ bucket, tags: true, ...more });

  /** An object whose document has these tags; undefined: the document lacks them. */
  async function indexed(key: string, tags: PresentState['tags']): Promise<void> {
    const present = world.put(key, { userMetadata: {} });
    await world.index(key, { ...present, ...(tags !== undefined && { tags }) });
  }

  function retag(key: string, tags: NonNullable<PresentState['tags']>): void {
    world.s3.objects.set(key, { ...world.put(key, world.s3.objects.get(key)), tags });
  }

  it('writes the tags that changed, of objects that are equal in all else, and no others', async () => {
    await indexed('changed', { colour: 'red' });
    await indexed('removed', { colour: 'red' });
    await indexed('unread', undefined);
    await indexed('same', { a: '1', b: '2' });
    retag('changed', { colour: 'blue' });
    retag('same', { b: '2', a: '1' });
    const untouched = await world.stored('same');
    const { counts, examples, done } = await turn();
    expect(done).toBe(true);
    expect((await world.stored('changed'))?.tags).toEqual({ colour: 'blue' });
    expect((await world.stored('removed'))?.tags).toEqual({});
    expect((await world.stored('unread'))?.tags).toEqual({});
    expect(await world.stored('same')).toEqual(untouched);
    expect(counts).toMatchObject({ listed: 4, equal: 1, stale: 2, incomplete: 1, written: 3, head_requests: 4 });
    expect(examples.stale).toEqual([
      { key: 'changed', fields: ['tags'] },
      { key: 'removed', fields: ['tags'] },
    ]);
    expect((await turn()).counts).toMatchObject({ equal: 4, written: 0 });
  });

  it.each<[string, Parameters<typeof turn>[0]]>([
    ['a bucket whose documents have none', { bucket: bucketRecord }],
    ['a bucket whose documents have those of a HEAD only', { bucket: { ...bucketRecord, enrich: 'head' } }],
    ['a report', { mode: 'report' }],
    ['a job that does not want them', { tags: false }],
  ])('reads none for %s', async (_, more) => {
    await indexed('changed', { colour: 'red' });
    retag('changed', { colour: 'blue' });
    expect((await turn(more)).counts).toMatchObject({ equal: 1, head_requests: 0 });
    expect((await world.stored('changed'))?.tags).toEqual({ colour: 'red' });
  });

  it('ends with the fault of S3 and keeps its place if tags cannot be read', async () => {
    await indexed('a', {});
    await indexed('b', { colour: 'red' });
    retag('b', { colour: 'blue' });
    world.s3.onTags = (key) => {
      if (key === 'b') throw new FaultError('s3.throttled', 'slow down');
    };
    const { cursor, fault } = await turn();
    expect(fault).toMatchObject({ code: 's3.throttled' });
    expect(cursor).toBe('');
    world.s3.onTags = () => {};
    expect(await turn()).toMatchObject({ done: true, counts: { stale: 1, written: 1 } });
  });

  it('Fix: counts an object whose tags it may not read as one whose tags are not known', async () => {
    await indexed('x', { colour: 'red' });
    await indexed('y', { colour: 'red' });
    for (const key of ['x', 'y']) retag(key, { colour: 'blue' });
    world.s3.onTags = (key) => {
      if (key === 'x') throw new FaultError('object.denied', 'the bucket policy');
    };
    expect(await turn()).toMatchObject({ done: true, counts: { stale: 1, written: 1, equal: 1, unenriched: 1 } });
  });

  it('does not write the tags of an object that is replaced meanwhile', async () => {
    await indexed('a', { colour: 'red' });
    let isReplaced = false;
    world.s3.onTags = () => {
      if (!isReplaced) world.put('a', { userMetadata: {}, etag: 'other', tags: { colour: 'green' } });
      isReplaced = true;
    };
    expect((await turn()).fault).toMatchObject({ code: 'object.failed' });
    expect((await world.stored('a'))?.tags).toEqual({ colour: 'red' });
    expect(await turn()).toMatchObject({ done: true, counts: { stale: 1 } });
    expect((await world.stored('a'))?.tags).toEqual({ colour: 'green' });
  });
});

const content = { contentType: 'text/plain', userMetadata: { owner: 'me' }, tags: { colour: 'red' } };

describe('a turn that fills in', () => {
  let world: ReindexWorld;
  beforeEach(async () => {
    world = await createReindexWorld();
    // as an event and a listing leave them: the bucket asked for no enrichment then
    for (const key of ['a', 'b', 'c']) {
      const { contentType: _, userMetadata: __, tags: ___, ...listed } = world.put(key, content);
      await world.index(key, key === 'c' ? { ...listed, ...content } : listed);
    }
  });
  const heads = { ...bucketRecord, enrich: 'head' as const };
  const tags = { ...bucketRecord, enrich: 'tags' as const };

  it('reads the tags again of documents that have some: they may be of a time before the bucket asked for tags again', async () => {
    world.put('c', { ...world.s3.objects.get('c'), tags: { colour: 'blue' } });
    const { counts, examples } = await world.run({ bucket: tags, fill: true });
    expect(counts).toMatchObject({ equal: 2, stale: 1, unenriched: 0, written: 3 });
    expect(examples.stale).toEqual([{ key: 'c', fields: ['tags'] }]);
    expect((await world.stored('c'))?.tags).toEqual({ colour: 'blue' });
  });

  it.each(['none', 'head', 'tags'] as const)('gives documents the storage class too that they lack, with enrich %s', async (enrich) => {
    const bucket = { ...bucketRecord, enrich };
    for (const key of ['bare', 'enriched']) {
      const { storageClass: _, contentType: __, userMetadata, tags: known, ...listed } = world.put(key, content);
      await world.index(key, key === 'bare' ? listed : { ...listed, ...(userMetadata && { userMetadata }), ...(known && { tags: known }) });
    }
    // without fill a class that a document lacks is no difference
    expect((await world.run({ bucket })).counts).toMatchObject({ stale: 0, incomplete: 2, written: 0 });
    await world.run({ bucket, fill: true });
    for (const key of ['bare', 'enriched']) expect(await world.stored(key)).toMatchObject({ storage_class: 'STANDARD' });
    expect((await world.run({ bucket, fill: true })).counts).toMatchObject({ equal: 5, incomplete: 0, written: 0 });
  });

  it('reads what the bucket asks for: metadata without tags, then no HEAD for what lacks nothing, or tags where the metadata is known', async () => {
    for (const requests of [2, 0])
      expect((await world.run({ bucket: heads, fill: true })).counts).toMatchObject({ equal: 3, unenriched: 0, head_requests: requests });
    expect(await world.stored('a')).toMatchObject({ user_metadata: { owner: 'me' } });
    expect(await world.stored('a')).not.toHaveProperty('tags');
    const { counts } = await world.run({ bucket: tags, fill: true });
    expect(counts).toMatchObject({ unenriched: 0, written: 2 });
    expect(await world.stored('a')).toMatchObject({ tags: { colour: 'red' } });
  });

  it.each<[string, Parameters<ReindexWorld['run']>[0], number]>([
    ['a report', { bucket: tags, mode: 'report', fill: true }, 2],
    ['a re-index that does not fill in', { bucket: tags }, 2],
    ['a bucket that asks for none', { bucket: bucketRecord, fill: true }, 0],
  ])('is not %s, which counts what lacks enrichment and sends no HEAD', async (_, request, unenriched) => {
    expect((await world.run(request)).counts).toMatchObject({ equal: 3, unenriched, missing: 0, stale: 0, written: 0, head_requests: 0 });
  });

  it('reads many more objects than one slice observes, at most forty-eight at the same time', async () => {
    for (let number = 0; number < 250; number += 1) {
      const { userMetadata: _, tags: __, contentType: ___, ...listed } = world.put(`key-${String(number).padStart(3, '0')}`, content);
      await world.index(`key-${String(number).padStart(3, '0')}`, listed);
    }
    let running = 0;
    let most = 0;
    world.s3.onHead = async () => {
      running += 1;
      most = Math.max(most, running);
      await world.clock.sleep(10);
      running -= 1;
    };
    const turn = world.run({ bucket: heads, fill: true });
    await world.clock.advance(10_000);
    expect((await turn).counts).toMatchObject({ listed: 253, unenriched: 0, written: 252 });
    expect(most).toBe(48);
  });

  it('leaves an object alone whose tags S3 refuses, and fills in the others', async () => {
    world.s3.onTags = (key) => {
      if (key === 'b') throw new FaultError('object.failed', '501 NotImplemented');
    };
    expect(await world.run({ bucket: tags, fill: true })).toMatchObject({
      done: true,
      counts: { equal: 3, unenriched: 1, written: 2 },
      examples: { unenriched: [{ key: 'b', fields: ['tags'] }] },
    });
    expect(await world.stored('a')).toMatchObject({ tags: { colour: 'red' } });
    expect(await world.stored('b')).toMatchObject({ user_metadata: { owner: 'me' } });
    expect(await world.stored('b')).not.toHaveProperty('tags');
  });

  it('writes what has changed meanwhile as it is now', async () => {
    world.s3.onHead = (key) => {
      if (key === 'a') world.put('a', { ...content, etag: 'newer' });
    };
    await world.run({ bucket: heads, fill: true });
    expect(await world.stored('a')).toMatchObject({ etag: 'newer', user_metadata: { owner: 'me' } });
  });
});

it('a job fills in the enrichment of a bucket that asks for it from now on', async () => {
  const world = await createJobsWorld();
  for (const key of ['a', 'b']) await world.has(key, 'both');
  for (const [key, state] of world.s3.objects) world.s3.objects.set(key, { ...state, ...content });
  await updateRecord(world.state, refs.bucket(BUCKET), (bucket) => bucket && { ...bucket, enrich: 'tags' as const });
  world.startWorker();
  const report = await world.request({ mode: 'report' });
  expect(await world.ended(report.id)).toMatchObject({ counts: { equal: 2, unenriched: 2, head_requests: 0 } });
  const { id } = await world.request({ now: true, fill: true });
  expect(await world.ended(id)).toMatchObject({ state: 'done', counts: { equal: 2, unenriched: 0, written: 2, head_requests: 2 } });
  const stored = await world.store.objects.getMany(BUCKET, ['a', 'b']);
  expect(stored).toMatchObject([{ tags: { colour: 'red' } }, { tags: { colour: 'red' } }]);
});
