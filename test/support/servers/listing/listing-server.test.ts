import {
  GetBucketLifecycleConfigurationCommand,
  GetBucketLocationCommand,
  GetBucketVersioningCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  S3Client,
} from '@aws-sdk/client-s3';
import type { ListObjectsV2CommandInput, ListObjectsV2CommandOutput } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createContents } from './contents.ts';
import { forkListingServer } from './fork-listing-server.ts';
import { createKeySpace, keyShapes, stateOf } from './key-space.ts';
import type { KeyShape } from './key-space.ts';
import { controlListingServer, startListingServer } from './listing-server.ts';
import type { ListingServer } from './listing-server.ts';

let server: ListingServer;
let s3: S3Client;

beforeAll(async () => {
  server = await startListingServer();
  s3 = clientOf(server.url);
});
beforeEach(() => {
  server.setFaults();
  server.beforeAnswer(undefined);
});
afterAll(async () => {
  s3.destroy();
  await server.close();
});

function clientOf(url: string): S3Client {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  return new S3Client({ endpoint: url, region: 'us-east-1', credentials, forcePathStyle: true, maxAttempts: 1 });
}

function list(input: Partial<ListObjectsV2CommandInput> & { readonly Bucket: string }): Promise<ListObjectsV2CommandOutput> {
  return s3.send(new ListObjectsV2Command({ EncodingType: 'url', ...input }));
}

function decoded(text: string | undefined): string {
  return decodeURIComponent((text ?? '').replaceAll('+', ' '));
}

function keysOf(page: ListObjectsV2CommandOutput): readonly string[] {
  return (page.Contents ?? []).map(({ Key }) => decoded(Key));
}

/** All keys, page by page, by StartAfter. */
async function allKeys(bucket: string, limit: number, prefix = ''): Promise<readonly string[]> {
  const keys: string[] = [];
  for (;;) {
    const page = await list({ Bucket: bucket, Prefix: prefix, MaxKeys: limit, StartAfter: keys.at(-1) });
    keys.push(...keysOf(page));
    if (page.IsTruncated === false) return keys;
    expect(page.Contents).toHaveLength(limit);
  }
}

/** A page as it is sent, but for the name of its bucket. */
async function pageOf(bucket: string, question: Readonly<Record<string, string>>): Promise<string> {
  const query = new URLSearchParams({ 'list-type': '2', 'encoding-type': 'url', ...question });
  const answer = await fetch(`${server.url}/${bucket}?${query.toString()}`);
  return (await answer.text()).replace(`<Name>${bucket}</Name>`, '<Name/>');
}

function byBytes(keys: Iterable<string>): string[] {
  return [...keys].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

describe('the listing server', () => {
  test.each(keyShapes)('lists %s keys in UTF-8 byte order, each once, whatever the page', async (shape) => {
    const space = createKeySpace(shape, 1_234);
    server.createBucket('ordered', shape, space.count);
    const wanted = Array.from({ length: space.count }, (_, at) => space.keyAt(at));
    expect(wanted).toEqual(byBytes(new Set(wanted)));
    expect(await allKeys('ordered', 1_000)).toEqual(wanted);
    expect(await allKeys('ordered', 59)).toEqual(wanted);
  });

  test('awkward keys are out of order for JavaScript, and no longer than S3 allows', async () => {
    const keys = Array.from({ length: 100 }, (_, at) => createKeySpace('awkward', 100).keyAt(at));
    expect(keys).not.toEqual(keys.toSorted());
    expect(Math.max(...keys.map((key) => Buffer.byteLength(key)))).toBeLessThanOrEqual(1_024);
  });

  test('keeps to a prefix, and goes on from a token', async () => {
    server.createBucket('deep', 'deep', 25_000);
    expect(await allKeys('deep', 1_000, 'team-00001/day-07/')).toHaveLength(100);
    expect(await allKeys('deep', 300, 'team-00001/')).toHaveLength(10_000);
    expect(await allKeys('deep', 1_000, 'team-00003')).toEqual([]);
    expect(keysOf(await list({ Bucket: 'deep', Prefix: 'team-00001/', StartAfter: 'team-00002' }))).toEqual([]);
    expect(keysOf(await list({ Bucket: 'deep', Prefix: 'team-00001/', StartAfter: 'a', MaxKeys: 1 }))).toEqual([
      'team-00001/day-00/part-00.json',
    ]);
    const first = await list({ Bucket: 'deep', MaxKeys: 3 });
    const second = await list({ Bucket: 'deep', MaxKeys: 3, ContinuationToken: first.NextContinuationToken });
    expect([...keysOf(first), ...keysOf(second)]).toEqual(keysOf(await list({ Bucket: 'deep', MaxKeys: 6 })));
  });

  test('says the same of an object in a listing and to a HEAD', async () => {
    server.createBucket('same', 'awkward', 200);
    const page = await list({ Bucket: 'same' });
    for (const { Key, ETag, Size, LastModified, StorageClass } of page.Contents ?? []) {
      const head = await s3.send(new HeadObjectCommand({ Bucket: 'same', Key: decoded(Key) }));
      expect(head).toMatchObject({ ETag, ContentLength: Size, LastModified });
      expect(head.StorageClass ?? 'STANDARD').toBe(StorageClass);
    }
    await expect(s3.send(new HeadObjectCommand({ Bucket: 'same', Key: 'g000000/aa' }))).rejects.toMatchObject({ name: 'NotFound' });
  });

  test.each(keyShapes)('answers with a prepared listing of %s keys as it renders them', async (shape) => {
    const bucket = { shape, count: 2_345, driftEvery: 7 };
    await controlListingServer(server.url, {
      buckets: [
        { ...bucket, name: 'rendered' },
        { ...bucket, name: 'prepared', isPrepared: true },
      ],
    });
    const keys = await allKeys('rendered', 1_000);
    const prefix = (keys[700] ?? '').slice(0, 8);
    const after = keys[700] ?? '';
    for (const question of [
      {},
      { 'max-keys': '1' },
      { 'start-after': after, 'max-keys': '7' },
      { 'start-after': `${after}!` },
      { 'start-after': keys.at(-1) ?? '' },
      { prefix },
      { prefix, 'start-after': after, 'max-keys': '3' },
      { prefix, 'start-after': '\u{10ffff}' },
      { prefix: 'nothing begins so' },
    ]) {
      const page = await pageOf('prepared', question);
      expect(page).toContain('<ListBucketResult');
      expect(page).toBe(await pageOf('rendered', question));
    }
    expect(await allKeys('prepared', 59)).toEqual(keys);
  });

  test('changes are listed from the next page on', async () => {
    const contents = server.createBucket('changing', 'flat', 10);
    server.beforeAnswer(({ operation, key }) => {
      if (operation !== 'list' || key === '') return;
      contents.remove('object-0000000007.bin');
      contents.put('object-0000000005.bin', stateOf(1, 1));
      contents.put('object-0000000005.bin/\u{1f600}');
      contents.put('object-0000000005.bin/\uffff');
    });
    const keys = [...(await allKeys('changing', 4))];
    expect(keys.splice(6, 2)).toEqual(['object-0000000005.bin/\uffff', 'object-0000000005.bin/\u{1f600}']);
    expect(keys).toEqual([0, 1, 2, 3, 4, 5, 6, 8, 9].map((at) => createKeySpace('flat', 10).keyAt(at)));
    expect(contents.size()).toBe(11);
    expect(await s3.send(new HeadObjectCommand({ Bucket: 'changing', Key: 'object-0000000005.bin' }))).toMatchObject({
      ETag: `"${stateOf(1, 1).etag}"`,
    });
  });

  test('a bucket changed at random holds what a map would hold', () => {
    const contents = createContents(createKeySpace('awkward', 200));
    const space = createKeySpace('awkward', 260);
    const wanted = new Map(Array.from({ length: 200 }, (_, at) => [space.keyAt(at), space.stateAt(at)]));
    for (let step = 0; step < 500; step += 1) {
      const key = space.keyAt((step * 7_919) % 260);
      if (step % 3 === 0) {
        contents.remove(key);
        wanted.delete(key);
      } else {
        wanted.set(key, contents.put(key));
      }
    }
    const { entries } = contents.slice({ prefix: '', after: '', limit: 1_000 });
    expect(entries.map(({ key }) => key)).toEqual(byBytes(wanted.keys()));
    for (const { key, state } of entries) expect(state).toEqual(wanted.get(key));
    expect(contents.size()).toBe(wanted.size);
  });

  test('answers what else is asked of a bucket', async () => {
    server.createBucket('asked');
    expect(await s3.send(new HeadBucketCommand({ Bucket: 'asked' }))).toMatchObject({ BucketRegion: 'us-east-1' });
    expect((await s3.send(new GetBucketVersioningCommand({ Bucket: 'asked' }))).Status).toBeUndefined();
    expect((await s3.send(new GetBucketLocationCommand({ Bucket: 'asked' }))).$metadata.httpStatusCode).toBe(200);
    await expect(s3.send(new GetBucketLifecycleConfigurationCommand({ Bucket: 'asked' }))).rejects.toMatchObject({
      name: 'NoSuchLifecycleConfiguration',
    });
    await expect(list({ Bucket: 'never-made' })).rejects.toMatchObject({ name: 'NoSuchBucket' });
    await expect(s3.send(new HeadBucketCommand({ Bucket: 'never-made' }))).rejects.toMatchObject({ name: 'NotFound' });
  });

  test('gives fewer keys a page than asked for, when told so', async () => {
    const space = createKeySpace('awkward', 70);
    server.createBucket('small-pages', 'awkward', space.count);
    server.setPageMax(9);
    const page = await list({ Bucket: 'small-pages' });
    server.setPageMax(1_000);
    expect(page).toMatchObject({ KeyCount: 9, IsTruncated: true });
    expect(keysOf(page)).toEqual(Array.from({ length: 9 }, (_, at) => space.keyAt(at)));
  });

  test('counts requests by kind', async () => {
    server.createBucket('counted', 'flat', 5);
    server.resetCounts();
    await allKeys('counted', 2);
    await s3.send(new HeadObjectCommand({ Bucket: 'counted', Key: 'object-0000000001.bin' }));
    expect(server.counts()).toMatchObject({ list: 3, head: 1, keysListed: 5, refused: 0 });
  });
});

describe('faults of the listing server', () => {
  const Bucket = 'faulty';
  beforeEach(() => {
    server.createBucket(Bucket, 'awkward', 200);
  });

  test.each([
    ['SlowDown', { kind: 'slow-down' }],
    ['AccessDenied', { kind: 'error' }],
    ['NoSuchBucket', { kind: 'error', status: 404, code: 'NoSuchBucket' }],
    ['ECONNRESET', { kind: 'reset' }],
    ['ECONNRESET', { kind: 'cut-body' }],
  ] as const)('%s as the SDK sees %o', async (name, fault) => {
    server.setFaults(fault);
    const error: unknown = await list({ Bucket }).catch((thrown: unknown) => thrown);
    expect([(error as { name: string }).name, (error as { code?: string }).code]).toContain(name);
  });

  test('a body that ends early cannot be parsed', async () => {
    server.setFaults({ kind: 'cut-xml' });
    await expect(list({ Bucket })).rejects.toThrow(/Unclosed|deserialize|parse/i);
  });

  test.each([
    ['swapped', (keys: readonly string[]) => expect(keys).not.toEqual(byBytes(keys))],
    ['utf16-order', (keys: readonly string[]) => expect(keys).not.toEqual(byBytes(keys))],
    ['repeated', (keys: readonly string[]) => expect(new Set(keys).size).toBe(keys.length - 1)],
    ['foreign', (keys: readonly string[]) => expect(keys.at(-1)?.startsWith('g')).toBe(false)],
    ['restarted', (keys: readonly string[]) => expect(keys[0]).toBe(createKeySpace('awkward', 1).keyAt(0))],
  ] as const)('a page that is %s', async (kind, isSpoilt) => {
    server.setFaults({ kind });
    isSpoilt(keysOf(await list({ Bucket, Prefix: 'g', StartAfter: 'g000000/a', MaxKeys: 100 })));
  });

  test('a page without keys that says that more follows', async () => {
    server.setFaults({ kind: 'empty' });
    expect(await list({ Bucket })).toMatchObject({ IsTruncated: true, KeyCount: 0 });
  });

  test('a page that lies about its end, and one that is silent about it', async () => {
    server.setFaults({ kind: 'early-end', times: 1 }, { kind: 'no-end', times: 1 });
    expect(await list({ Bucket, MaxKeys: 100 })).toMatchObject({ IsTruncated: false, KeyCount: 100 });
    expect((await list({ Bucket, MaxKeys: 100 })).IsTruncated).toBeUndefined();
    expect(await list({ Bucket, MaxKeys: 100 })).toMatchObject({ IsTruncated: true });
  });

  test('by chance, so many times, from a key on, and for other requests than listings', async () => {
    server.setFaults({ kind: 'slow-down', share: 0.3 });
    const outcomes = await Promise.all(Array.from({ length: 200 }, () => list({ Bucket, MaxKeys: 1 }).catch(() => 'refused')));
    expect(outcomes.filter((each) => each === 'refused').length).toBeGreaterThan(30);
    expect(outcomes.filter((each) => each === 'refused').length).toBeLessThan(100);

    server.setFaults({ kind: 'error', fromKey: 'g000001/' });
    expect((await list({ Bucket, MaxKeys: 3 })).KeyCount).toBe(3);
    await expect(list({ Bucket, StartAfter: 'g000001/a' })).rejects.toMatchObject({ name: 'AccessDenied' });

    server.setFaults({ kind: 'error', operations: ['head'] });
    expect((await list({ Bucket, MaxKeys: 3 })).KeyCount).toBe(3);
    await expect(s3.send(new HeadObjectCommand({ Bucket, Key: 'x' }))).rejects.toMatchObject({ $metadata: { httpStatusCode: 403 } });
  });
});

test('another process is told its buckets, faults and latency, and tells its counts', async () => {
  const other = await forkListingServer();
  const client = clientOf(other.url);
  const ask = (): Promise<ListObjectsV2CommandOutput> => client.send(new ListObjectsV2Command({ Bucket: 'told', MaxKeys: 5 }));
  const shape: KeyShape = 'deep';
  await other.control({ buckets: [{ name: 'told', shape, count: 2_000_000 }], latency: { meanMs: 1, jitterMs: 1 } });
  expect(await ask()).toMatchObject({ KeyCount: 5, IsTruncated: true });
  await other.control({ faults: [{ kind: 'error' }] });
  await expect(ask()).rejects.toMatchObject({ name: 'AccessDenied' });
  expect(await other.control({ resetCounts: true })).toMatchObject({ list: 2, refused: 1 });
  expect(await other.control({})).toMatchObject({ list: 0 });
  await expect(other.control({ faults: [{ kind: 'unheard-of' as 'error' }] })).rejects.toThrow('400');
  client.destroy();
  await other.close();
});
