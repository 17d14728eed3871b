import { beforeEach, describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import type { PresentState } from '../../src/ordering/document.ts';
import { bucketRecord, createReindexWorld, type ReindexWorld } from '../support/worlds/reindex.ts';

/** A bucket whose documents have tags, of which no event came for the latest change. */
describe('a turn that reads all tags', () => {
  let world: ReindexWorld;
  beforeEach(async () => {
    world = await createReindexWorld();
  });

  const bucket = { ...bucketRecord, enrich: 'tags' as const };
  const turn = (more: Partial<Parameters<ReindexWorld['run']>[0]> = {}) => world.run({ bucket, tags: true, ...more });

  /** An object whose document has these tags; undefined: the document lacks them. */
  async function indexed(key: string, tags: PresentState['tags'], state: Partial<PresentState> = {}): Promise<void> {
    const present = world.put(key, { userMetadata: {}, ...state });
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
    expect(counts).toMatchObject({ listed: 4, equal: 1, stale: 2, incomplete: 1, written: 3, headRequests: 4 });
    expect(examples.stale).toEqual([
      { key: 'changed', fields: ['tags'] },
      { key: 'removed', fields: ['tags'] },
    ]);
    expect((await turn()).counts).toMatchObject({ equal: 4, written: 0 });
  });

  it('also reads those of new and changed objects, and deletes what is gone', async () => {
    world.put('new', { userMetadata: {}, tags: { colour: 'red' } });
    await indexed('changed', { colour: 'red' });
    world.put('changed', { userMetadata: {}, etag: 'other', tags: { colour: 'blue' } });
    await indexed('gone', { colour: 'red' });
    world.s3.objects.delete('gone');
    expect((await turn()).counts).toMatchObject({ missing: 1, stale: 1, phantom: 1, written: 2, tombstones: 1 });
    expect((await world.stored('new'))?.tags).toEqual({ colour: 'red' });
    expect((await world.stored('changed'))?.tags).toEqual({ colour: 'blue' });
  });

  it.each<[string, Parameters<typeof turn>[0]]>([
    ['a bucket whose documents have none', { bucket: bucketRecord }],
    ['a bucket whose documents have those of a HEAD only', { bucket: { ...bucketRecord, enrich: 'head' } }],
    ['a report', { mode: 'report' }],
    ['a job that does not want them', { tags: false }],
  ])('reads none for %s', async (_, more) => {
    await indexed('changed', { colour: 'red' });
    retag('changed', { colour: 'blue' });
    expect((await turn(more)).counts).toMatchObject({ equal: 1, headRequests: 0 });
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

  it('is not stopped by tags that it may not read: documents of events lack them as well', async () => {
    await indexed('a', undefined);
    world.s3.onTags = () => {
      throw new FaultError('object.denied', 'no s3:GetObjectTagging');
    };
    expect(await turn()).toMatchObject({ done: true, counts: { equal: 1, written: 0 } });
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
