import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createS3Storage } from '../../src/aws/s3-storage.ts';
import { faultOf } from '../../src/base/fault.ts';
import type { ObjectStorage } from '../../src/aws/storage.ts';
import type { TestAws } from '../support/servers/aws.ts';
import { createTestAws } from '../support/servers/aws.ts';
import { awsEndpoint } from '../support/servers/found.ts';
import { errorBody, scriptedS3, target } from './scripted-s3.ts';

const HELLO_ETAG = '5d41402abc4b2a76b9719d911017c592';

describe.skipIf(!awsEndpoint())('the S3 storage on LocalStack', () => {
  let aws: TestAws;
  let storage: ObjectStorage;
  const at = (bucket: string) => ({ bucket, region: aws.region });

  beforeAll(() => {
    aws = createTestAws(awsEndpoint()!);
    storage = createS3Storage({ clientFor: aws.clients().s3For, region: aws.region, clock: { monotonicMs: () => performance.now() } });
  });
  afterAll(() => aws.dispose());

  it('sees an object come and go in a bucket without versioning', async () => {
    const bucket = await aws.createBucket();
    expect((await storage.readState(at(bucket), 'k')).state).toEqual({ present: false });
    await aws.put(bucket, 'k', 'hello');
    const { state, observedAtMs } = await storage.readState(at(bucket), 'k');
    expect(state).toEqual({
      present: true,
      etag: HELLO_ETAG,
      sizeBytes: 5,
      lastModifiedMs: expect.any(Number) as number,
      contentType: expect.any(String) as string,
      storageClass: 'STANDARD',
      userMetadata: {},
    });
    expect(Math.abs(observedAtMs - Date.now())).toBeLessThan(60_000);
    await aws.remove(bucket, 'k');
    expect((await storage.readState(at(bucket), 'k')).state).toEqual({ present: false });
  });

  it('sees versions, delete markers and the null version', async () => {
    const bucket = await aws.createBucket({ versioned: true });
    await aws.put(bucket, 'k', 'first');
    const first = (await storage.readState(at(bucket), 'k')).state;
    expect(first).toMatchObject({ present: true, versionId: expect.stringMatching(/.{10,}/) as string });
    await aws.put(bucket, 'k', 'hello');
    const second = (await storage.readState(at(bucket), 'k')).state;
    expect(second).toMatchObject({ present: true, etag: HELLO_ETAG });
    expect(second).not.toMatchObject({ versionId: first.present ? first.versionId : '' });
    await aws.remove(bucket, 'k');
    expect((await storage.readState(at(bucket), 'k')).state).toEqual({ present: false });
    await aws.setVersioning(bucket, 'Suspended');
    await aws.put(bucket, 'k', 'hello');
    expect((await storage.readState(at(bucket), 'k')).state).toMatchObject({ present: true, versionId: 'null' });
  });

  it('reads the region and the versioning of a bucket', async () => {
    const bucket = await aws.createBucket();
    expect(await storage.regionOf(bucket)).toBe('us-east-1');
    expect(await storage.versioningOf(at(bucket))).toMatchObject({ status: 'never' });
    await aws.setVersioning(bucket, 'Enabled');
    const { status, observedAtMs } = await storage.versioningOf(at(bucket));
    expect(status).toBe('enabled');
    expect(Math.abs(observedAtMs - Date.now())).toBeLessThan(60_000);
    await aws.setVersioning(bucket, 'Suspended');
    expect(await storage.versioningOf(at(bucket))).toMatchObject({ status: 'suspended' });
  });

  /** Puts an object with a content type, user metadata and a tag of its own, and returns its version id. */
  async function put(bucket: string, name: string, body = 'hello'): Promise<string | undefined> {
    const facts = { ContentType: `text/${name}`, Metadata: { 'Set.By': name, note: '' }, Tagging: `owner=${name}` };
    return (await aws.s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'k', Body: body, ...facts }))).VersionId;
  }

  it('reads versions by their etag in a bucket without versions, until they are overwritten or deleted', async () => {
    const bucket = await aws.createBucket();
    await put(bucket, 'first');
    const named = { key: 'k', etag: HELLO_ETAG };
    expect(await storage.readVersion(at(bucket), named)).toMatchObject({
      etag: HELLO_ETAG,
      contentType: 'text/first',
      userMetadata: { 'set.by': 'first', note: '' },
      lastModifiedMs: expect.any(Number) as number,
    });
    expect(await storage.readTags(at(bucket), { key: 'k' })).toEqual({ owner: 'first' });
    await put(bucket, 'second', 'bye');
    expect(await storage.readVersion(at(bucket), named)).toBe('gone');
    expect(await storage.readTags(at(bucket), { key: 'k' })).toEqual({ owner: 'second' });
    await aws.remove(bucket, 'k');
    expect(await storage.readVersion(at(bucket), named)).toBe('gone');
    expect(await storage.readTags(at(bucket), { key: 'k' })).toBe('gone');
  });

  it('reads versions by their id in a bucket that has them, also when overwritten or behind a delete marker, until they are deleted', async () => {
    const bucket = await aws.createBucket({ versioned: true });
    const versionId = (await put(bucket, 'first'))!;
    const later = await put(bucket, 'second');
    await aws.remove(bucket, 'k');
    const named = { key: 'k', versionId };
    expect(await storage.readVersion(at(bucket), named)).toMatchObject({ versionId, contentType: 'text/first' });
    expect(await storage.readTags(at(bucket), named)).toEqual({ owner: 'first' });
    // the present one is a delete marker
    expect(await storage.readVersion(at(bucket), { key: 'k' })).toBe('gone');
    expect(await storage.readTags(at(bucket), { key: 'k' })).toBe('gone');
    await aws.remove(bucket, 'k', versionId);
    expect(await storage.readVersion(at(bucket), named)).toBe('gone');
    expect(await storage.readTags(at(bucket), named)).toBe('gone');
    expect(await storage.readVersion(at(bucket), { key: 'k', versionId: later! })).toMatchObject({ contentType: 'text/second' });
  });
});

const HEAD = { headers: { etag: '"abc"', 'content-length': '5', 'x-amz-version-id': 'v1' } };

describe('a version', () => {
  const codeOf = (reading: Promise<unknown>): Promise<unknown> => reading.catch((error: unknown) => faultOf(error).code);

  it('is asked for by its id and its etag, in one HEAD', async () => {
    const { storage, asked } = await scriptedS3(() => HEAD);
    const named = { versionId: 'v1', etag: 'abc' };
    expect(await storage.readVersion(target, { key: 'a b', ...named })).toMatchObject(named);
    expect(asked).toMatchObject([{ method: 'HEAD', path: '/some-bucket/a%20b?versionId=v1', headers: { 'if-match': '"abc"' } }]);
  });

  it('is gone where the answer is about another one, as of an S3 that knows no conditions or no versions', async () => {
    const { storage } = await scriptedS3(() => HEAD);
    for (const named of [{ etag: 'other' }, { versionId: 'v2' }, { versionId: 'null' }])
      expect(await storage.readVersion(target, { key: 'k', ...named })).toBe('gone');
    const unversioned = await scriptedS3(() => ({ headers: { etag: '"abc"' } }));
    expect(await unversioned.storage.readVersion(target, { key: 'k', versionId: 'v2' })).toBe('gone');
    expect(await unversioned.storage.readVersion(target, { key: 'k', versionId: 'null' })).toMatchObject({ etag: 'abc' });
  });

  // what else is refused, and how: s3-faults.test.ts
  it.each([
    { status: 412, code: 'gone' },
    { status: 404, code: 'gone' },
    { status: 405, code: 'gone' },
    { status: 403, code: 'object.denied' },
  ])('whose HEAD answers $status is $code', async ({ status, code }) => {
    const { storage } = await scriptedS3(() => ({ status }));
    expect(await codeOf(storage.readVersion(target, { key: 'k', etag: 'abc' }))).toBe(code);
  });

  it.each([
    { status: 404, error: 'NoSuchVersion', code: 'gone' },
    { status: 405, error: 'MethodNotAllowed', code: 'gone' },
    { status: 404, error: 'NoSuchBucket', code: 'bucket.missing' },
    { status: 403, error: 'AccessDenied', code: 'object.denied' },
  ])('whose tags answer $error are $code', async ({ status, error, code }) => {
    const { storage } = await scriptedS3(() => ({ status, body: errorBody(error) }));
    expect(await codeOf(storage.readTags(target, { key: 'k' }))).toBe(code);
  });

  it('has the tags of an answer about this very version', async () => {
    const body =
      '<Tagging><TagSet><Tag><Key>__proto__</Key><Value>&lt;ü&gt;</Value></Tag><Tag><Key>a</Key><Value/></Tag></TagSet></Tagging>';
    const { storage, asked } = await scriptedS3(() => ({ headers: { 'x-amz-version-id': 'v1' }, body }));
    const tags = await storage.readTags(target, { key: 'k', versionId: 'v1' });
    expect(Object.entries(tags)).toEqual([
      ['__proto__', '<ü>'],
      ['a', ''],
    ]);
    expect(asked).toMatchObject([{ method: 'GET', path: '/some-bucket/k?tagging=&versionId=v1' }]);
    expect(await storage.readTags(target, { key: 'k', versionId: 'v2' })).toBe('gone');
  });

  it('has no tags by an empty tag set, and none that are known where the answer is no tag set', async () => {
    let body = '';
    const { storage } = await scriptedS3(() => ({ body }));
    for (body of ['<Tagging><TagSet/></Tagging>', '<Tagging><TagSet></TagSet></Tagging>'])
      expect(await storage.readTags(target, { key: 'k' })).toEqual({});
    for (body of ['hello', '', '<Tagging/>', '{"a":1}']) expect(await codeOf(storage.readTags(target, { key: 'k' }))).toBe('object.failed');
  });

  it('is not waited for longer than it is asked to be', async () => {
    const { storage } = await scriptedS3(() => undefined, { timeoutMs: 200 });
    expect(await codeOf(storage.readTags(target, { key: 'k' }))).toBe('s3.unavailable');
    const reason = new Error('enough');
    await expect(storage.readVersion(target, { key: 'k' }, AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});

it.each([
  ['123456789012', '123456789012'],
  [undefined, undefined],
])('every request about a bucket of the account %s expects it as the owner', async (account, expected) => {
  const { asked, storage, listing, lifecycle } = await scriptedS3(() => ({ status: 403 }));
  const bucket = { ...target, account };
  const requests: readonly (() => Promise<unknown>)[] = [
    () => storage.readState(bucket, 'k'),
    () => storage.readState(bucket, 'k', undefined, { byListing: true }),
    () => storage.firstKey(bucket),
    () => storage.versioningOf(bucket),
    () => storage.readVersion(bucket, { key: 'k' }),
    () => storage.readTags(bucket, { key: 'k' }),
    () => listing.page(bucket, { prefix: '', after: '', limit: 1 }),
    () => lifecycle.rulesOf(bucket),
    () => lifecycle.uploadsOf(bucket),
  ];
  for (const request of requests) {
    const before = asked.length;
    await request().catch(() => undefined);
    expect(asked.length).toBeGreaterThan(before);
  }
  expect(new Set(asked.map(({ headers }) => headers['x-amz-expected-bucket-owner']))).toEqual(new Set([expected]));
});
