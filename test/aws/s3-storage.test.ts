import { describe, expect, it } from 'vitest';
import { faultOf } from '../../src/base/fault.ts';
import { errorBody, scriptedS3, target } from './scripted-s3.ts';

const HEAD = { headers: { etag: '"abc"', 'content-length': '5', 'x-amz-version-id': 'v1' } };

describe('a version', () => {
  const codeOf = (reading: Promise<unknown>): Promise<unknown> => reading.catch((error: unknown) => faultOf(error).code);

  it('is asked for by its id and its etag, in one HEAD', async () => {
    const facts = { 'content-type': 'text/plain', 'x-amz-meta-set.by': 'first', 'x-amz-meta-note': '' };
    const { storage, asked } = await scriptedS3(() => ({ headers: { ...HEAD.headers, ...facts } }));
    const named = { versionId: 'v1', etag: 'abc' };
    expect(await storage.readVersion(target, { key: 'a b', ...named })).toMatchObject({
      ...named,
      contentType: 'text/plain',
      userMetadata: { 'set.by': 'first', note: '' },
    });
    expect(asked).toMatchObject([{ method: 'HEAD', path: '/some-bucket/a%20b?versionId=v1', headers: { 'if-match': '"abc"' } }]);
  });

  it('is gone where the answer is about another one, as of an S3 that knows no conditions or no versions', async () => {
    const { storage } = await scriptedS3(() => HEAD);
    expect(await storage.readVersion(target, { key: 'k' })).toMatchObject({ versionId: 'v1' });
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
