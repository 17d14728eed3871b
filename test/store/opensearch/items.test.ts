/**
 * What a real OpenSearch answers to the items of a bulk request when one index is out of order: its neighbours in the same
 * request are written, and nothing is rejected for what the index has been made to do.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import type { FaultCode } from '../../../src/base/fault.ts';
import { live } from '../../contracts/world.ts';
import { openTestStore, raw, type TestStore } from '../../support/servers/opensearch.ts';
import { opensearchUrl } from '../../support/servers/found.ts';

describe.skipIf(opensearchUrl() === undefined)('an item of a bulk request to a real OpenSearch', () => {
  let opened: TestStore;
  let prefix = '';
  let bucketsMade = 0;

  beforeAll(async () => {
    opened = openTestStore();
    prefix = opened.prefix;
    await opened.store.setup.prepare();
    await opened.store.objects.createBucket('healthy');
  });
  afterAll(() => opened?.dispose());

  /** How a write to the bucket ends between two to a healthy one. */
  async function endOf(bucket: string, given: Partial<ObjectDocument> = {}): Promise<string> {
    const documents = [live('healthy', 'a'), live(bucket, 'k', { clock: 1, etag: 'abc', ...given }), live('healthy', 'b')];
    const answers = await opened.store.objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
    const [before, answer, after] = answers.map((each) => (each.kind === 'fault' ? each.fault.code : each.kind));
    expect([before, after]).toEqual(['written', 'written']);
    return answer ?? '';
  }

  async function newBucket(): Promise<string> {
    bucketsMade += 1;
    const bucket = `bucket-${bucketsMade}`;
    await opened.store.objects.createBucket(bucket);
    return bucket;
  }

  async function asked(method: string, path: string, body?: unknown): Promise<void> {
    expect(await raw(method, path, body)).toMatchObject({ status: 200 });
  }

  /** Makes the bucket's alias lead to an index that somebody made by hand. */
  async function aliasTo(bucket: string, mappings: Readonly<Record<string, unknown>>): Promise<void> {
    const [alias, foreign] = [`${prefix}-write-${bucket}`, `${prefix}-foreign-${bucket}`];
    await asked('PUT', `/${foreign}`, { settings: { number_of_replicas: 0 }, mappings });
    const actions = [{ remove: { index: `${prefix}-objects-${bucket}`, alias } }, { add: { index: foreign, alias } }];
    await asked('POST', '/_aliases', { actions });
  }

  const inOrder: readonly (readonly [string, (bucket: string) => Promise<void>, FaultCode])[] = [
    ['is gone', (bucket) => asked('DELETE', `/${prefix}-objects-${bucket}`), 'bucket.index-missing'],
    [
      'names a default pipeline that is missing',
      (bucket) => asked('PUT', `/${prefix}-objects-${bucket}/_settings`, { 'index.default_pipeline': 'gone' }),
      'bucket.index-misconfigured',
    ],
    [
      'has no write index behind its alias',
      (bucket) =>
        asked('POST', '/_aliases', {
          actions: [{ add: { index: `${prefix}-objects-${bucket}`, alias: `${prefix}-write-${bucket}`, is_write_index: false } }],
        }),
      'bucket.index-misconfigured',
    ],
    [
      'has foreign mappings of another type',
      (bucket) => aliasTo(bucket, { properties: { etag: { type: 'long' } } }),
      'bucket.index-misconfigured',
    ],
  ];

  // a clock is taken over from what somebody else wrote into the index (src/repair/decide.rules.ts)
  it.each([Number(2n ** 63n - 1n), 1.5, -1])('is refused alone if its clock is %d, which is no version', async (clock) => {
    expect(await endOf(await newBucket(), { clock })).toBe('index.rejected');
  });

  it.each(inOrder)('whose index %s waits, and its neighbours are written', async (_, disturb, code) => {
    const bucket = await newBucket();
    expect(await endOf(bucket)).toBe('written');
    await disturb(bucket);
    // the index accepted a document a moment ago, so the first refusals can still be taken for the documents' own
    const ends: string[] = [];
    for (let round = 0; round < 4; round += 1) ends.push(await endOf(bucket, { clock: 2 + round }));
    expect(ends.at(-1)).toBe(code);
    expect(ends.filter((end) => end === 'written')).toEqual([]);
    await raw('POST', '/_aliases', { actions: [{ remove: { index: '*', alias: `${prefix}-write-${bucket}` } }] });
    await opened.store.objects.removeBucket(bucket);
  });

  it.each([
    ['a date that is none', { last_modified: 'yesterday' }],
    ['an immense term', { etag: 'x'.repeat(40_000) }],
  ])('with %s is rejected while its index accepts others, and waits where nothing shows that', async (_, given) => {
    const bucket = await newBucket();
    expect(await endOf(bucket, given)).toBe('bucket.index-misconfigured');
    expect(await endOf(bucket)).toBe('written');
    expect(await endOf(bucket, { ...given, clock: 2 })).toBe('index.rejected');
    await opened.store.objects.removeBucket(bucket);
  });
});
