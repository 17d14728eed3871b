import { describe, expect, it } from 'vitest';
import { createTestAws, until } from '../support/servers/aws.ts';
import { createS3Storage } from '../../src/aws/s3-storage.ts';
import type { Script } from '../support/servers/scripted.ts';
import { DATE_MS, entry, errorBody, foreign, listed, page, present, scriptedS3, target, type S3Request } from './scripted-s3.ts';

/** A listing of one key. */
const pageOf = (contents: string, prefix = 'k'): { readonly body: string } => ({ body: page(contents, { prefix }) });

/** 404 for a key, 200 for the bucket. */
const keyIsGone: Script<S3Request> = ({ isBucket }) => (isBucket ? {} : { status: 404, phrase: 'Not Found' });

describe('the time of an answer', () => {
  it('is its Date less how long it took, of the last attempt where one was repeated', async () => {
    let count = 0;
    const { storage } = await scriptedS3(() => ((count += 1) === 1 ? { status: 500 } : { headers: present }), { takesMs: 1_234.5 });
    expect((await storage.readState(target, 'k')).observedAtMs).toBe(DATE_MS - 1_235);
    expect(count).toBe(2);
  });

  it('is that of the HEAD for a key that is not there, which is sent after the bucket has answered', async () => {
    const { storage, taken } = await scriptedS3(keyIsGone, { takesMs: 300 });
    expect(await storage.readState(target, 'k')).toEqual({ state: { present: false }, observedAtMs: DATE_MS - 300 });
    expect(taken()).toEqual(['HEAD /some-bucket/k', 'HEAD /some-bucket/', 'HEAD /some-bucket/k']);
  });

  it.each<[what: string, script: Script<S3Request>]>([
    ['a HEAD', () => ({ headers: { ...present, date: undefined } })],
    ['a HEAD of a missing key', () => ({ status: 404, headers: { date: undefined } })],
    ['a listing', ({ method }) => (method === 'HEAD' ? { status: 403 } : { ...pageOf(''), headers: { date: undefined } })],
  ])('is not known without a Date: %s', async (_, script) => {
    const { storage } = await scriptedS3(script);
    await expect(storage.readState(target, 'k')).rejects.toMatchObject({ code: 'object.failed' });
  });
});

describe('absence', () => {
  it('is 405 with a delete marker of a bucket that exists, and not 405 alone', async () => {
    const { storage } = await scriptedS3(({ isBucket, path }) => {
      if (isBucket) return {};
      return { status: 405, headers: { 'x-amz-delete-marker': path.endsWith('/marker') ? 'true' : undefined } };
    });
    expect((await storage.readState(target, 'marker')).state).toEqual({ present: false });
    await expect(storage.readState(target, 'k')).rejects.toMatchObject({ code: 'object.failed' });
  });

  it.each([
    { status: 404, code: 'bucket.missing' },
    { status: 403, code: 'bucket.denied' },
    { status: 500, code: 's3.unavailable' },
  ])('is not 404 while the bucket itself answers $status', async ({ status, code }) => {
    const { storage } = await scriptedS3(({ isBucket }) => ({ status: isBucket ? status : 404 }));
    await expect(storage.readState(target, 'k')).rejects.toMatchObject({ code });
  });

  it('takes one request for each key, and one more for the bucket in 5 s, for all who ask at the same time', async () => {
    const { storage, taken, pass } = await scriptedS3(keyIsGone);
    await Promise.all(['a', 'b', 'c'].map((key) => storage.readState(target, key)));
    expect(taken().filter((request) => request === 'HEAD /some-bucket/')).toHaveLength(1);
    pass(5_000);
    await storage.readState(target, 'd');
    expect(taken()).toEqual(['HEAD /some-bucket/d']);
    pass(1);
    await storage.readState(target, 'e');
    expect(taken()).toEqual(['HEAD /some-bucket/e', 'HEAD /some-bucket/', 'HEAD /some-bucket/e']);
  });

  it('is not 404 of a bucket that was away for a moment, whose key is there when it is back', async () => {
    let isAway = true;
    const { storage, taken } = await scriptedS3(({ isBucket }) => {
      // the store mounts its disk between the two requests
      if (isBucket) isAway = false;
      return isAway ? { status: 404 } : { headers: present };
    });
    expect((await storage.readState(target, 'k')).state).toMatchObject({ present: true, etag: 'abc' });
    expect(taken()).toEqual(['HEAD /some-bucket/k', 'HEAD /some-bucket/', 'HEAD /some-bucket/k']);
  });

  it('is not 404 of a HEAD that was sent before another key confirmed the bucket', async () => {
    let isAway = true;
    const held = Promise.withResolvers<void>();
    const { storage, asked } = await scriptedS3(async ({ path, isBucket }) => {
      if (path.endsWith('/other')) return { status: 404 };
      const answer = isBucket || !isAway ? { headers: present } : { status: 404 };
      if (path.endsWith('/k') && isAway) await held.promise;
      return answer;
    });
    const observation = storage.readState(target, 'k');
    await until('the HEAD is sent', () => asked.some(({ path }) => path.endsWith('/k')));
    await storage.readState(target, 'other');
    isAway = false;
    held.resolve();
    expect((await observation).state).toMatchObject({ present: true });
  });

  it('believes no earlier answer once the bucket is gone', async () => {
    let isGone = false;
    const { storage, pass } = await scriptedS3(({ isBucket }) => (isBucket && !isGone ? {} : { status: 404 }));
    await storage.readState(target, 'k');
    isGone = true;
    pass(5_001);
    await expect(storage.readState(target, 'k')).rejects.toMatchObject({ code: 'bucket.missing' });
  });
});

describe('a HEAD that is refused', () => {
  it.each([403, 400])('with %d is asked again as a listing', async (status) => {
    const { storage, asked } = await scriptedS3(({ method }) =>
      method === 'HEAD' ? { status } : pageOf(entry('a+b%2Bc%01', '<StorageClass>GLACIER</StorageClass>'), 'a+b%2Bc%01'),
    );
    const { state } = await storage.readState(target, 'a b+c\u0001');
    expect(state).toEqual({ ...listed, storageClass: 'GLACIER' });
    expect(asked[1]?.path).toContain('prefix=a%20b%2Bc%01');
    expect(asked[1]?.path).toContain('max-keys=1');
  });

  // what else is no listing: s3-listing.test.ts and forged-answers.test.ts
  it('takes an empty listing for absence, which the bucket itself has answered, and none that begins with another key', async () => {
    const { storage, asked } = await scriptedS3(({ method, url }) => {
      const prefix = url.searchParams.get('prefix') ?? '';
      return method === 'HEAD' ? { status: 403 } : pageOf(prefix === 'empty' ? '' : entry(`${prefix}-longer`), prefix);
    });
    expect((await storage.readState(target, 'empty')).state).toEqual({ present: false });
    expect(asked).toHaveLength(2);
    await expect(storage.readState(target, 'k')).rejects.toMatchObject({ code: 'object.failed' });
  });

  it.each([
    { listing: 'AccessDenied', status: 403, code: 'object.denied' },
    { listing: 'InvalidAccessKeyId', status: 403, code: 's3.credentials' },
    { listing: 'SignatureDoesNotMatch', status: 403, code: 'object.failed' },
    { listing: 'ExpiredToken', status: 400, code: 's3.credentials' },
    { listing: 'NoSuchBucket', status: 404, code: 'bucket.missing' },
    { listing: 'SlowDown', status: 503, code: 's3.throttled' },
    { listing: 'RequestTimeout', status: 400, code: 's3.unavailable' },
    { listing: 'InvalidArgument', status: 400, code: 'object.failed' },
  ])('is $code where the listing answers $listing', async ({ listing, status, code }) => {
    const { storage } = await scriptedS3(({ method }) => (method === 'HEAD' ? { status: 403 } : { status, body: errorBody(listing) }));
    await expect(storage.readState(target, 'k')).rejects.toMatchObject({ code });
  });
});

// that such an answer decides nothing: forged-answers.test.ts
describe('an answer that is not certainly S3’s', () => {
  it('is believed for a store without request IDs, where a listing of the key shows the same', async () => {
    const head = { headers: { ...present, ...foreign, 'x-amz-meta-a': 'b' } };
    const { storage } = await scriptedS3(({ method }) => (method === 'HEAD' ? head : { ...pageOf(entry('k')), headers: foreign }));
    expect((await storage.readState(target, 'k')).state).toMatchObject({ etag: 'abc', sizeBytes: 5, userMetadata: { a: 'b' } });
    const gone = await scriptedS3(({ method }) => (method === 'HEAD' ? { status: 404, headers: foreign } : pageOf('')));
    expect((await gone.storage.readState(target, 'k')).state).toEqual({ present: false });
  });

  it('confirms a bucket by a listing only', async () => {
    const answering = async (body: string) =>
      (await scriptedS3(({ method, isBucket }) => (isBucket ? { headers: foreign, body: method === 'HEAD' ? '' : body } : { status: 404 })))
        .storage;
    const signIn = await answering('<html><body>Please sign in</body></html>');
    await expect(signIn.readState(target, 'k')).rejects.toMatchObject({ code: 'listing.incomplete' });
    const store = await answering(page(entry('k'), { head: '<IsTruncated>true</IsTruncated>' }));
    expect((await store.readState(target, 'x')).state).toEqual({ present: false });
  });
});

describe('faults of S3', () => {
  it.each([
    { what: '503 Slow Down', answer: { status: 503, phrase: 'Slow Down' }, code: 's3.throttled' },
    { what: '429', answer: { status: 429 }, code: 's3.throttled' },
    { what: '503', answer: { status: 503, phrase: 'Service Unavailable' }, code: 's3.unavailable' },
    { what: '500', answer: { status: 500 }, code: 's3.unavailable' },
    { what: '301', answer: { status: 301 }, code: 'bucket.missing' },
    { what: '501', answer: { status: 501 }, code: 'object.failed' },
  ])('$what is $code', async ({ answer, code }) => {
    const { storage } = await scriptedS3(() => answer);
    await expect(storage.readState(target, 'k')).rejects.toMatchObject({ code });
  });

  it.each([301, 400, 403])('%d that names another region is a missing bucket, with the region', async (status) => {
    const { storage, asked } = await scriptedS3(() => ({ status, headers: { 'x-amz-bucket-region': 'ap-south-1' } }));
    const reason = expect.stringContaining('the bucket is in ap-south-1, not in eu-west-1') as string;
    await expect(storage.readState(target, 'k')).rejects.toMatchObject({ code: 'bucket.missing', reason });
    expect(asked).toHaveLength(1);
    // which is the answer to who asks for it
    expect(await storage.regionOf('some-bucket')).toBe('ap-south-1');
  });

  it('a server that never answers is unavailable after the time-out', async () => {
    // both requests must have arrived, also while other processes have the cores
    const { storage, asked } = await scriptedS3(() => undefined, { timeoutMs: 2_000 });
    await expect(storage.readState(target, 'k')).rejects.toMatchObject({
      code: 's3.unavailable',
      reason: expect.stringContaining('TimeoutError') as string,
    });
    expect(asked).toHaveLength(2);
  });

  it('a port where nothing listens is unavailable', async () => {
    const clients = createTestAws('http://127.0.0.1:1').clients();
    const storage = createS3Storage({ clientFor: clients.s3For, region: 'us-east-1', clock: { monotonicMs: () => 0 } });
    await expect(storage.readState(target, 'k')).rejects.toMatchObject({
      code: 's3.unavailable',
      reason: expect.stringContaining('ECONNREFUSED') as string,
    });
    clients.close();
  });

  it('reasons name the key harmlessly', async () => {
    const { storage } = await scriptedS3(() => ({ status: 412 }));
    const reason = expect.stringContaining(String.raw`HeadObject some-bucket a\u{a}b: 412`) as string;
    await expect(storage.readState(target, 'a\nb')).rejects.toMatchObject({ code: 'object.failed', reason });
  });

  it('an aborted request rejects with the signal’s reason, also while it shares another’s request', async () => {
    const { storage, asked } = await scriptedS3(({ isBucket }) => (isBucket ? undefined : { status: 404 }));
    const controllers = [new AbortController(), new AbortController()];
    const observations = controllers.map((controller, index) =>
      storage.readState(target, `k${index}`, controller.signal).catch((error: unknown) => error),
    );
    await until('the bucket is asked for', () => asked.length === 3 && asked.some(({ path }) => path === '/some-bucket/'));
    const reasons = controllers.map((_, index) => new Error(`enough ${index}`));
    for (const [index, controller] of controllers.entries()) controller.abort(reasons[index]);
    expect(await Promise.all(observations)).toEqual(reasons);
    await expect(storage.readState(target, 'k', AbortSignal.abort(reasons[0]))).rejects.toBe(reasons[0]);
  });
});

it('a HEAD says what S3 says, and nothing where it says nothing, but for the class STANDARD, which it never names', async () => {
  const headers = {
    ...present,
    'x-amz-version-id': 'null',
    'x-amz-storage-class': 'STANDARD_IA',
    'content-type': 'text/plain; charset=utf-8',
    'x-amz-meta-cost.center': '42',
    'x-amz-meta-author': '=?UTF-8?Q?J=C3=BCrgen_?=',
    'x-amz-expiration': 'expiry-date="Wed, 23 Dec 2026 00:00:00 GMT", rule-id="a%20rule"',
  };
  const { storage } = await scriptedS3(({ path }) => ({ headers: path.endsWith('/bare') ? { 'content-length': '0' } : headers }));
  expect((await storage.readState(target, 'bare')).state).toEqual({
    present: true,
    sizeBytes: 0,
    storageClass: 'STANDARD',
    userMetadata: {},
  });
  expect((await storage.readState(target, 'full')).state).toEqual({
    present: true,
    etag: 'abc',
    sizeBytes: 5,
    lastModifiedMs: DATE_MS,
    versionId: 'null',
    storageClass: 'STANDARD_IA',
    contentType: 'text/plain; charset=utf-8',
    userMetadata: { 'cost.center': '42', author: 'Jürgen ' },
    expiresAtMs: Date.parse('2026-12-23T00:00:00Z'),
  });
});

describe('the region of a bucket', () => {
  it('is the default one where the server names none', async () => {
    const { storage } = await scriptedS3(() => ({}));
    expect(await storage.regionOf('some-bucket')).toBe('us-east-1');
  });

  it.each([
    { what: 'no such bucket', head: 404, listing: 'NoSuchBucket', code: 'bucket.missing' },
    { what: 'a denied one', head: 403, listing: 'AccessDenied', code: 'object.denied' },
    { what: 'wrong credentials', head: 403, listing: 'InvalidAccessKeyId', code: 's3.credentials' },
  ])('is $code for $what', async ({ head, listing, code }) => {
    const { storage } = await scriptedS3(({ method }) =>
      method === 'HEAD' ? { status: head } : { status: head, body: errorBody(listing) },
    );
    await expect(storage.regionOf('some-bucket')).rejects.toMatchObject({ code });
  });
});

describe('the versioning of a bucket', () => {
  it('is unknown where it is denied or another than S3 answers, and a fault otherwise', async () => {
    const answering = async (answer: object) => (await scriptedS3(() => answer)).storage.versioningOf(target);
    const unknown = { status: 'unknown', observedAtMs: 0 };
    expect(await answering({ status: 403, body: errorBody('AccessDenied') })).toEqual(unknown);
    expect(await answering({ headers: foreign, body: '<html><body>Please sign in</body></html>' })).toEqual(unknown);
    await expect(answering({ status: 403, body: errorBody('InvalidAccessKeyId') })).rejects.toMatchObject({ code: 's3.credentials' });
  });
});
