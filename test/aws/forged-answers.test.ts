/**
 * What stands between Tally and S3 may answer in its place: proxies, caches, sign-in pages. None of their answers is taken for S3's:
 * the key is as S3 says, or it is a fault, which deletes no document on any path (the tests of the live path, the sweeps and the re-index).
 */
import { expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { entry, foreign, page, scriptedS3, target } from './scripted-s3.ts';

const KEY = 'live.txt';

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What is answered in the place of S3: to HEAD of the key, to a listing of it, and to HeadBucket. S3 answers what is absent: that the key is there. */
interface Forgery {
  readonly what: string;
  readonly head: Answer;
  readonly list?: Answer;
  readonly bucket?: Answer;
}

const FROM_S3 = { 'x-amz-request-id': 'FORGED0000000001', 'content-type': 'application/xml' };
const HTML = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' };
const SIGN_IN = '<!DOCTYPE html><html><head><title>Sign in</title></head><body><p>Please sign in</p></body></html>';
const portal: Answer = { status: 200, headers: HTML, body: SIGN_IN };
const blocked: Answer = { status: 404, headers: HTML, body: '<html><body>Blocked by policy</body></html>' };
const denied: Answer = { status: 403, headers: FROM_S3 };
const xml = (body: string): Answer => ({ status: 200, headers: FROM_S3, body: `<?xml version="1.0" encoding="UTF-8"?>${body}` });
const listing = (fields: string): string =>
  `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${fields}</ListBucketResult>`;
const NO_MORE = '<KeyCount>0</KeyCount><IsTruncated>false</IsTruncated>';
const ERROR = '<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>';
const named = `<Name>${target.bucket}</Name><Prefix>${KEY}</Prefix>`;

/**
 * HEAD is refused, so that a listing decides, which is forged as well. The bucket is really there. What else is no listing:
 * s3-listing.test.ts.
 */
const listings: readonly (readonly [what: string, list: Answer])[] = [
  ['no prefix', xml(listing(`<Name>${target.bucket}</Name>${NO_MORE}`))],
  ['an error with status 404', { ...xml(ERROR), status: 404 }],
  ['a cached listing', { ...xml(listing(named + NO_MORE)), headers: { ...FROM_S3, age: '86400' } }],
  ['a redirect', { status: 302, headers: { ...HTML, location: 'http://127.0.0.1:1/sign-in' }, body: SIGN_IN }],
];

const forgeries: readonly Forgery[] = [
  { what: 'a proxy that blocks one key with 404', head: blocked },
  { what: 'a proxy that blocks one key with 404 for every method', head: blocked, list: blocked },
  { what: 'a proxy that says it is a cache, with S3’s old 404', head: { status: 404, headers: { ...FROM_S3, age: '86400' } } },
  { what: 'a cache that has dropped the headers of S3', head: { status: 404, headers: { 'x-cache': 'HIT' } } },
  { what: 'a cache of a delete marker', head: { status: 405, headers: { 'x-amz-delete-marker': 'true', 'x-cache': 'HIT' } } },
  { what: 'a captive portal, 404 to HEAD and 200 to GET', head: blocked, list: portal, bucket: { ...portal, body: '' } },
  { what: 'a captive portal, 404 to all', head: blocked, list: blocked, bucket: blocked },
  { what: 'a captive portal, 200 to all', head: { ...portal, body: '' }, list: portal, bucket: { ...portal, body: '' } },
  { what: 'a captive portal with an etag', head: { status: 200, headers: { ...HTML, etag: '"page"' } }, list: portal },
  {
    what: 'a redirect to a sign-in page',
    head: { status: 302, headers: { location: 'http://127.0.0.1:1/' } },
    list: { ...portal, status: 302 },
  },
  { what: 'a proxy that lacks credentials', head: { status: 403, headers: HTML }, list: portal, bucket: { ...portal, body: '' } },
  { what: 'a proxy that S3 is behind, out of order', head: { status: 502, headers: HTML }, list: { ...portal, status: 502 } },
  ...listings.map(([what, list]) => ({ what: `403 to HEAD, and to a listing ${what}`, head: denied, list })),
  ...listings.map(([what, list]) => ({ what: `a proxy’s 404 to HEAD, and to a listing ${what}`, head: blocked, list })),
];

it.each(forgeries)('a forged answer is no absence: $what', async ({ head, list, bucket }) => {
  const { storage } = await scriptedS3(({ method, isBucket }) => {
    const ofKey = method === 'GET' ? (list ?? { status: 200, headers: FROM_S3, body: page(entry(KEY), { prefix: KEY }) }) : head;
    const answer: Answer = method === 'HEAD' && isBucket ? (bucket ?? { status: 200, headers: FROM_S3 }) : ofKey;
    return { ...answer, headers: { ...foreign, ...answer.headers } };
  });
  const seen = await storage.readState(target, KEY).catch((error: unknown) => error);
  if (seen instanceof FaultError) return;
  expect(seen).toMatchObject({ state: { present: true, etag: 'abc' } });
});
