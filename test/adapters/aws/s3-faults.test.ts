import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createS3Storage } from '../../../src/adapters/aws/s3-storage.ts';
import type { ObjectStorage } from '../../../src/pipeline/ports/storage.ts';
import type { TestAws } from '../../support/servers/aws.ts';
import { createTestAws, until } from '../../support/servers/aws.ts';

interface Answer {
  readonly status?: number;
  readonly phrase?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Sends no Date header. */
  readonly undated?: boolean;
  /** Sends no request ID: the answer is not S3's. */
  readonly isForeign?: boolean;
}

/** `undefined`: it never answers. */
type Script = (request: { readonly method: string; readonly path: string; readonly isBucket: boolean }) => Answer | undefined;

/** Of this very second: the SDK repeats what a server refuses whose clock is minutes away from its own. */
const DATE = new Date().toUTCString();
const DATE_MS = Date.parse(DATE);
const PRESENT: Answer = { headers: { etag: '"abc"', 'content-length': '5', 'last-modified': DATE } };
const target = { bucket: 'some-bucket', region: 'eu-west-1' };

const errorBody = (code: string, extra = ''): string =>
  `<?xml version="1.0"?><Error><Code>${code}</Code><Message>as scripted</Message>${extra}</Error>`;
const listBody = (contents: string, prefix = 'k'): string =>
  `<?xml version="1.0"?><ListBucketResult><Name>some-bucket</Name><Prefix>${prefix}</Prefix><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>${contents}</ListBucketResult>`;

const open: { readonly server: Server; readonly aws: TestAws }[] = [];

/** An S3 that answers as scripted, and the storage that asks it. The storage's clock moves only when the test moves it. */
async function storageOn(script: Script, timeoutMs = 60_000, beforeAnswer?: (request: Parameters<Script>[0]) => Promise<void>) {
  const requests: string[] = [];
  let nowMs = 1_000;
  let stepMs = 0;
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = ''] = (request.url ?? '').split('?');
    requests.push(`${request.method ?? ''} ${request.url ?? ''}`);
    nowMs += stepMs;
    const asked = { method: request.method ?? '', path, isBucket: /^\/[^/]*\/?$/.test(path) };
    const scripted = script(asked);
    await beforeAnswer?.(asked);
    if (scripted === undefined) return;
    response.sendDate = false;
    if (scripted.undated !== true) response.setHeader('date', DATE);
    if (scripted.isForeign !== true) response.setHeader('x-amz-request-id', 'TESTREQUEST00001');
    response.writeHead(scripted.status ?? 200, scripted.phrase ?? '', scripted.headers ?? {}).end(scripted.body ?? '');
  }
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const aws = createTestAws(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  open.push({ server, aws });
  const clients = aws.clients({ s3TimeoutMs: timeoutMs });
  const storage: ObjectStorage = createS3Storage({ clientFor: clients.s3For, region: 'us-east-1', clock: { monotonicMs: () => nowMs } });
  return {
    storage,
    requests,
    /** Each answer takes that long by the storage's clock. */
    answersTake: (ms: number) => {
      stepMs = ms;
    },
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

afterEach(async () => {
  for (const { server, aws } of open.splice(0)) {
    await aws.dispose();
    server.closeAllConnections();
    server.close();
  }
});

/** 404 for a key, 200 for the bucket. */
const keyIsGone: Script = ({ isBucket }) => (isBucket ? {} : { status: 404, phrase: 'Not Found' });

describe('the time of an answer', () => {
  it('is its Date less how long it took, for a key that is there', async () => {
    const { storage, answersTake } = await storageOn(() => PRESENT);
    answersTake(1_234.5);
    const { observedAtMs } = await storage.observe(target, 'k');
    expect(observedAtMs).toBe(DATE_MS - 1_235);
  });

  it('is that of the HEAD for a key that is not, which is sent after the bucket has answered', async () => {
    const { storage, answersTake, requests } = await storageOn(keyIsGone);
    answersTake(300);
    expect(await storage.observe(target, 'k')).toEqual({ state: { present: false }, observedAtMs: DATE_MS - 300 });
    expect(requests).toEqual(['HEAD /some-bucket/k', 'HEAD /some-bucket/', 'HEAD /some-bucket/k']);
  });

  it('is that of the last attempt where one was repeated', async () => {
    let count = 0;
    const { storage, answersTake } = await storageOn(() => ((count += 1) === 1 ? { status: 500 } : PRESENT));
    answersTake(1_000);
    expect((await storage.observe(target, 'k')).observedAtMs).toBe(DATE_MS - 1_000);
    expect(count).toBe(2);
  });

  it.each([
    { what: 'a HEAD', script: (): Answer => ({ ...PRESENT, undated: true }) },
    { what: 'a HEAD of a missing key', script: (): Answer => ({ status: 404, undated: true }) },
    {
      what: 'a listing',
      script: ({ method }: { method: string }): Answer => (method === 'HEAD' ? { status: 403 } : { body: listBody(''), undated: true }),
    },
  ])('is not known without a Date: $what', async ({ script }) => {
    const { storage } = await storageOn(script);
    await expect(storage.observe(target, 'k')).rejects.toMatchObject({ code: 'object.undated' });
  });
});

describe('absence', () => {
  it.each([
    { what: '404', answer: { status: 404 } },
    { what: '404 with a delete marker', answer: { status: 404, headers: { 'x-amz-delete-marker': 'true' } } },
    { what: '405 with a delete marker', answer: { status: 405, headers: { 'x-amz-delete-marker': 'true' } } },
  ])('is $what of a bucket that exists', async ({ answer }) => {
    const { storage } = await storageOn(({ isBucket }) => (isBucket ? {} : answer));
    expect((await storage.observe(target, 'k')).state).toEqual({ present: false });
  });

  it('is not 405 alone', async () => {
    const { storage } = await storageOn(() => ({ status: 405 }));
    await expect(storage.observe(target, 'k')).rejects.toMatchObject({ code: 'object.failed' });
  });

  it('is not 404 of a bucket that does not exist', async () => {
    const { storage } = await storageOn(() => ({ status: 404 }));
    await expect(storage.observe(target, 'k')).rejects.toMatchObject({ code: 'bucket.missing' });
  });

  it.each([
    { status: 403, code: 'bucket.denied' },
    { status: 500, code: 's3.unavailable' },
  ])('is not 404 while the bucket itself answers $status', async ({ status, code }) => {
    const { storage } = await storageOn(({ isBucket }) => ({ status: isBucket ? status : 404 }));
    await expect(storage.observe(target, 'k')).rejects.toMatchObject({ code });
  });

  it('asks for the bucket once in 5 s, once for all who ask at the same time', async () => {
    const { storage, requests, pass } = await storageOn(keyIsGone);
    const asked = (): number => requests.splice(0).filter((request) => request === 'HEAD /some-bucket/').length;
    await Promise.all(['a', 'b', 'c'].map((key) => storage.observe(target, key)));
    expect(asked()).toBe(1);
    pass(5_000);
    await storage.observe(target, 'd');
    expect(asked()).toBe(0);
    pass(1);
    await storage.observe(target, 'e');
    expect(asked()).toBe(1);
  });

  it('takes one request for each key while the bucket has answered lately, and else three', async () => {
    const { storage, requests, pass } = await storageOn(keyIsGone);
    const costOf = async (keys: readonly string[]): Promise<number> => {
      for (const key of keys) await storage.observe(target, key);
      return requests.splice(0).length;
    };
    const keys = Array.from({ length: 100 }, (_, at) => `k${at}`);
    expect(await costOf(keys)).toBe(102);
    expect(await costOf(keys)).toBe(100);
    pass(5_001);
    expect(await costOf(['k'])).toBe(3);
  });

  it('is not 404 of a bucket that was away for a moment, whose key is there when it is back', async () => {
    let isAway = true;
    const { storage, requests } = await storageOn(({ isBucket }) => {
      // the store mounts its disk between the two requests
      if (isBucket) isAway = false;
      return isAway ? { status: 404 } : PRESENT;
    });
    expect((await storage.observe(target, 'k')).state).toMatchObject({ present: true, etag: 'abc' });
    expect(requests).toEqual(['HEAD /some-bucket/k', 'HEAD /some-bucket/', 'HEAD /some-bucket/k']);
  });

  it('is not 404 of a HEAD that was sent before another key confirmed the bucket', async () => {
    let isAway = true;
    const held = Promise.withResolvers<void>();
    const { storage, requests } = await storageOn(
      ({ path, isBucket }) => {
        if (path.endsWith('/other')) return { status: 404 };
        return isBucket || !isAway ? PRESENT : { status: 404 };
      },
      60_000,
      ({ path }) => (path.endsWith('/k') && isAway ? held.promise : Promise.resolve()),
    );
    const look = storage.observe(target, 'k');
    await until('the HEAD is sent', () => requests.includes('HEAD /some-bucket/k'));
    await storage.observe(target, 'other');
    held.resolve();
    isAway = false;
    expect((await look).state).toMatchObject({ present: true });
  });

  it('believes no earlier answer once the bucket is gone', async () => {
    let isGone = false;
    const { storage, pass } = await storageOn(({ isBucket }) => (isBucket && !isGone ? {} : { status: 404 }));
    await storage.observe(target, 'k');
    isGone = true;
    pass(5_001);
    await expect(storage.observe(target, 'k')).rejects.toMatchObject({ code: 'bucket.missing' });
  });
});

describe('a HEAD that is refused', () => {
  const entry = (key: string): string =>
    `<Contents><Key>${key}</Key><LastModified>${new Date(DATE_MS).toISOString()}</LastModified><ETag>&quot;abc-2&quot;</ETag><Size>7</Size><StorageClass>GLACIER</StorageClass></Contents>`;

  it.each([403, 400])('with %d is asked again as a listing', async (status) => {
    const { storage, requests } = await storageOn(({ method }) =>
      method === 'HEAD' ? { status } : { body: listBody(entry('a+b%2Bc%01'), 'a+b%2Bc%01') },
    );
    const { state } = await storage.observe(target, 'a b+c\u0001');
    expect(state).toEqual({ present: true, etag: 'abc-2', sizeBytes: 7, lastModifiedMs: DATE_MS, storageClass: 'GLACIER' });
    expect(requests[1]).toContain('prefix=a%20b%2Bc%01');
    expect(requests[1]).toContain('max-keys=1');
  });

  it('takes an empty listing for absence, which the bucket itself has answered, and none that begins with another key', async () => {
    const refused = (body: string) => storageOn(({ method }) => (method === 'HEAD' ? { status: 403 } : { body }));
    const empty = await refused(listBody(''));
    expect((await empty.storage.observe(target, 'k')).state).toEqual({ present: false });
    expect(empty.requests).toHaveLength(2);
    const longer = await refused(listBody(entry('k-longer')));
    await expect(longer.storage.observe(target, 'k')).rejects.toMatchObject({ code: 'object.failed' });
  });

  it.each([
    ['nothing', ''],
    ['a sign-in page', '<html><head><title>Sign in</title></head><body><p>Please sign in</p></body></html>'],
    ['an error', '<?xml version="1.0"?><Error><Code>InternalError</Code><Message>x</Message></Error>'],
  ])('never takes %s with status 200 for an empty listing', async (_, body) => {
    const { storage } = await storageOn(({ method, isBucket }) => (method === 'HEAD' ? { status: isBucket ? 200 : 403 } : { body }));
    await expect(storage.observe(target, 'key')).rejects.toMatchObject({ code: 'listing.incomplete' });
  });

  it.each([
    { listing: 'AccessDenied', status: 403, code: 'object.denied' },
    { listing: 'InvalidAccessKeyId', status: 403, code: 's3.credentials' },
    { listing: 'SignatureDoesNotMatch', status: 403, code: 'object.failed' },
    { listing: 'ExpiredToken', status: 400, code: 's3.credentials' },
    { listing: 'NoSuchBucket', status: 404, code: 'bucket.missing' },
    { listing: 'SlowDown', status: 503, code: 's3.throttled' },
    { listing: 'InternalError', status: 500, code: 's3.unavailable' },
    { listing: 'RequestTimeout', status: 400, code: 's3.unavailable' },
    { listing: 'InvalidArgument', status: 400, code: 'object.failed' },
  ])('is $code where the listing answers $listing', async ({ listing, status, code }) => {
    const { storage } = await storageOn(({ method }) => (method === 'HEAD' ? { status: 403 } : { status, body: errorBody(listing) }));
    await expect(storage.observe(target, 'k')).rejects.toMatchObject({ code });
  });
});

describe('an answer that is not certainly S3’s', () => {
  const listed = `<Contents><Key>k</Key><LastModified>${new Date(DATE_MS).toISOString()}</LastModified><ETag>&quot;abc&quot;</ETag><Size>7</Size></Contents>`;

  it.each([
    ['404 without a request ID', { status: 404, isForeign: true }],
    ['404 that a cache repeats', { status: 404, headers: { age: '9' } }],
    ['200 of another object', { headers: { etag: '"page"' }, isForeign: true }],
    ['200 without an etag', { headers: { 'content-type': 'text/html' }, isForeign: true }],
  ])('is asked again as a listing: %s', async (_, answer) => {
    const { storage, requests } = await storageOn(({ method }) =>
      method === 'HEAD' ? answer : { body: listBody(listed), isForeign: true },
    );
    expect((await storage.observe(target, 'k')).state).toEqual({ present: true, etag: 'abc', sizeBytes: 7, lastModifiedMs: DATE_MS });
    expect(requests).toHaveLength(2);
  });

  it('is believed for a store without request IDs, where a listing of the key shows the same', async () => {
    const head = { ...PRESENT, headers: { ...PRESENT.headers, 'x-amz-meta-a': 'b' }, isForeign: true };
    const there = await storageOn(({ method }) => (method === 'HEAD' ? head : { body: listBody(listed), isForeign: true }));
    expect((await there.storage.observe(target, 'k')).state).toMatchObject({ etag: 'abc', sizeBytes: 5, userMetadata: { a: 'b' } });
    const gone = await storageOn(({ method }) => (method === 'HEAD' ? { status: 404, isForeign: true } : { body: listBody('') }));
    expect((await gone.storage.observe(target, 'k')).state).toEqual({ present: false });
  });

  it('does not confirm a bucket', async () => {
    const page = '<html><body>Please sign in</body></html>';
    const { storage } = await storageOn(({ method, isBucket }) =>
      isBucket ? { isForeign: true, body: method === 'HEAD' ? '' : page } : { status: 404 },
    );
    await expect(storage.observe(target, 'k')).rejects.toMatchObject({ code: 'listing.incomplete' });
    const listing = listBody('', '')
      .replace('<IsTruncated>false', '<IsTruncated>true')
      .replace('</ListBucketResult>', `${listed}</ListBucketResult>`);
    const store = await storageOn(({ method, isBucket }) =>
      isBucket ? { isForeign: true, body: method === 'HEAD' ? '' : listing } : { status: 404 },
    );
    expect((await store.storage.observe(target, 'x')).state).toEqual({ present: false });
  });

  it('leaves the versioning of a bucket unknown', async () => {
    const { storage } = await storageOn(() => ({ isForeign: true, body: '<html><body>Please sign in</body></html>' }));
    expect(await storage.versioningOf(target)).toEqual({ status: 'unknown', observedAtMs: 0 });
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
    { what: '412', answer: { status: 412 }, code: 'object.failed' },
  ])('$what is $code', async ({ answer, code }) => {
    const { storage } = await storageOn(() => answer);
    await expect(storage.observe(target, 'k')).rejects.toMatchObject({ code });
  });

  it.each([301, 400, 403])('%d that names another region is a missing bucket, with the region', async (status) => {
    const { storage, requests } = await storageOn(() => ({ status, headers: { 'x-amz-bucket-region': 'ap-south-1' } }));
    const reason = expect.stringContaining('the bucket is in ap-south-1, not in eu-west-1') as string;
    await expect(storage.observe(target, 'k')).rejects.toMatchObject({ code: 'bucket.missing', reason });
    expect(requests).toHaveLength(1);
  });

  it('a server that never answers is unavailable after the time-out', async () => {
    // both requests must have arrived, also while other processes have the cores
    const { storage, requests } = await storageOn(() => undefined, 2_000);
    await expect(storage.observe(target, 'k')).rejects.toMatchObject({
      code: 's3.unavailable',
      reason: expect.stringContaining('TimeoutError') as string,
    });
    expect(requests).toHaveLength(2);
  });

  it('a port where nothing listens is unavailable', async () => {
    const clients = createTestAws('http://127.0.0.1:1').clients();
    const storage = createS3Storage({ clientFor: clients.s3For, region: 'us-east-1', clock: { monotonicMs: () => 0 } });
    await expect(storage.observe(target, 'k')).rejects.toMatchObject({
      code: 's3.unavailable',
      reason: expect.stringContaining('ECONNREFUSED') as string,
    });
    clients.close();
  });

  it('reasons name the key harmlessly', async () => {
    const { storage } = await storageOn(() => ({ status: 412 }));
    const reason = expect.stringContaining(String.raw`HeadObject some-bucket a\u{a}b: 412`) as string;
    await expect(storage.observe(target, 'a\nb')).rejects.toMatchObject({ reason });
  });

  it('an aborted request rejects with the signal’s reason, also while it shares another’s request', async () => {
    const { storage, requests } = await storageOn(({ isBucket }) => (isBucket ? undefined : { status: 404 }));
    const controllers = [new AbortController(), new AbortController()];
    const looks = controllers.map((controller, index) =>
      storage.observe(target, `k${index}`, controller.signal).catch((error: unknown) => error),
    );
    await until('the bucket is asked for', () => requests.includes('HEAD /some-bucket/') && requests.length === 3);
    const reasons = controllers.map((controller, index) => {
      const reason = new Error(`enough ${index}`);
      controller.abort(reason);
      return reason;
    });
    expect(await Promise.all(looks)).toEqual(reasons);
    await expect(storage.observe(target, 'k', AbortSignal.abort(reasons[0]))).rejects.toBe(reasons[0]);
  });
});

describe('the facts of a HEAD', () => {
  it('are what S3 says, and absent where it says nothing, but for the class STANDARD, which it never names', async () => {
    const { storage } = await storageOn(({ path }) =>
      path.endsWith('/bare')
        ? { headers: { 'content-length': '0' } }
        : {
            headers: {
              ...PRESENT.headers,
              'x-amz-version-id': 'null',
              'x-amz-storage-class': 'STANDARD_IA',
              'content-type': 'text/plain; charset=utf-8',
              'x-amz-meta-cost.center': '42',
              'x-amz-meta-author': '=?UTF-8?Q?J=C3=BCrgen_?=',
              'x-amz-expiration': 'expiry-date="Wed, 23 Dec 2026 00:00:00 GMT", rule-id="a%20rule"',
            },
          },
    );
    expect((await storage.observe(target, 'bare')).state).toEqual({
      present: true,
      sizeBytes: 0,
      storageClass: 'STANDARD',
      userMetadata: {},
    });
    expect((await storage.observe(target, 'full')).state).toEqual({
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

  it.each([
    { key: '..', path: '/some-bucket/..' },
    { key: '../x', path: '/some-bucket/../x' },
    { key: './a', path: '/some-bucket/./a' },
    { key: 'a//b', path: '/some-bucket/a//b' },
    { key: '/a', path: '/some-bucket//a' },
    { key: 'trailing/', path: '/some-bucket/trailing/' },
    { key: 'a b+c', path: '/some-bucket/a%20b%2Bc' },
    { key: 'a%20b', path: '/some-bucket/a%2520b' },
    { key: '100%', path: '/some-bucket/100%25' },
    { key: 'a?b#c', path: '/some-bucket/a%3Fb%23c' },
    { key: '\u0001\n"\\', path: '/some-bucket/%01%0A%22%5C' },
    { key: '\u{1f600}', path: '/some-bucket/%F0%9F%98%80' },
  ])('are asked of exactly the key $key', async ({ key, path }) => {
    const { storage, requests } = await storageOn(() => PRESENT);
    await storage.observe(target, key);
    expect(requests).toEqual([`HEAD ${path}`]);
  });
});

describe('the region of a bucket', () => {
  it.each([200, 301, 400, 403])('is what a HeadBucket names with %d', async (status) => {
    const { storage } = await storageOn(() => ({ status, headers: { 'x-amz-bucket-region': 'ap-south-1' } }));
    expect(await storage.regionOf('some-bucket')).toBe('ap-south-1');
  });

  it('is the default one where the server names none', async () => {
    const { storage } = await storageOn(() => ({}));
    expect(await storage.regionOf('some-bucket')).toBe('us-east-1');
  });

  it.each([
    { what: 'no such bucket', head: 404, listing: 'NoSuchBucket', code: 'bucket.missing' },
    { what: 'a denied one', head: 403, listing: 'AccessDenied', code: 'object.denied' },
    { what: 'wrong credentials', head: 403, listing: 'InvalidAccessKeyId', code: 's3.credentials' },
    { what: 'a server in trouble', head: 500, listing: 'InternalError', code: 's3.unavailable' },
  ])('is $code for $what', async ({ head, listing, code }) => {
    const { storage } = await storageOn(({ method }) =>
      method === 'HEAD' ? { status: head } : { status: head, body: errorBody(listing) },
    );
    await expect(storage.regionOf('some-bucket')).rejects.toMatchObject({ code });
  });
});

describe('the versioning of a bucket', () => {
  const versioning = (status: string): string => `<VersioningConfiguration>${status}</VersioningConfiguration>`;

  it.each([
    { body: versioning(''), status: 'never' },
    { body: versioning('<Status>Enabled</Status>'), status: 'enabled' },
    { body: versioning('<Status>Suspended</Status>'), status: 'suspended' },
  ])('is $status, with the time of the answer', async ({ body, status }) => {
    const { storage, answersTake } = await storageOn(() => ({ body }));
    answersTake(250);
    expect(await storage.versioningOf(target)).toEqual({ status, observedAtMs: DATE_MS - 250 });
  });

  it('is unknown where it is denied, and only there', async () => {
    const denied = await storageOn(() => ({ status: 403, body: errorBody('AccessDenied') }));
    expect(await denied.storage.versioningOf(target)).toEqual({ status: 'unknown', observedAtMs: 0 });
    const broken = await storageOn(() => ({ status: 403, body: errorBody('InvalidAccessKeyId') }));
    await expect(broken.storage.versioningOf(target)).rejects.toMatchObject({ code: 's3.credentials' });
  });
});
