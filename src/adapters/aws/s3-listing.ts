/**
 * Lists buckets for a reconcile. Each page is complete, in order, within the requested range and has its time D (see
 * s3-storage.ts), or it is a fault. Objects that a page leaves out would become phantoms, so a doubtful page is refused.
 */
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import type { ListObjectsV2CommandOutput, S3Client } from '@aws-sdk/client-s3';
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { decodeFormKey } from '../../domain/events/keys.ts';
import { FaultError } from '../../domain/fault.ts';
import { compareKeys } from '../../domain/documents/key-order.ts';
import { printable } from '../../domain/printable.ts';
import type { BucketListing, ListedObject, ListingPage } from '../../pipeline/ports/storage.ts';
import type { Clock } from '../../pipeline/ports/clock.ts';
import type { Tracing } from '../../pipeline/ports/tracing.ts';
import { readListing, type ListedFields, type ListingFields } from './list-objects-xml.ts';
import { createAsk, isRepeated, observedAt, presentState } from './s3-ask.ts';
import { questionText, s3Fault, type S3Question } from './s3-faults.ts';

interface S3ListingDependencies {
  readonly clientFor: (region: string) => S3Client;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Default: no tracing. */
  readonly tracing?: Tracing;
}

type Range = Parameters<BucketListing['page']>[1];

/**
 * S3 may answer with pages that have no keys, in which it passed over deleted versions. One call follows at
 * most 100 in a row: at 100 ms each they take 10 s of the 30 s after which nothing of a page may be written. The next call continues there.
 */
const EMPTY_PAGES_MAX = 100;
/** Where calls with too many pages without keys continue: more ranges than a worker lists at once. The memory is cleared when it is reached. */
const PASSED_MAX = 1_000;
/** After this time such a call starts over: what its pages did not contain may be there by now. */
const PASSED_AGE_MAX_MS = 600_000;

/** Pages without keys that a call has passed. */
interface Passed {
  readonly token: string;
  /** The time of the first of them (D). */
  readonly observedAtMs: number;
  /** By the monotonic clock. */
  readonly sinceMs: number;
}

/** Creates the listing. */
export function createS3Listing({ clientFor, clock, tracing }: S3ListingDependencies): BucketListing {
  const ask = createAsk(clientFor, clock, tracing);
  const passedBy = new Map<string, Passed>();

  /** Where the call begins: at its range's start, or after the pages that an earlier call has passed. If S3 refuses the token, the next call starts over. */
  function takePassed(id: string): Passed | undefined {
    const passed = passedBy.get(id);
    passedBy.delete(id);
    return passed !== undefined && clock.monotonicMs() - passed.sinceMs <= PASSED_AGE_MAX_MS ? passed : undefined;
  }

  function keepPassed(id: string, passed: Passed): void {
    if (passedBy.size >= PASSED_MAX) passedBy.clear();
    passedBy.set(id, passed);
  }

  async function read(
    question: S3Question,
    range: Range,
    { token, signal }: { token: string | undefined; signal?: AbortSignal | undefined },
  ) {
    const command = new ListObjectsV2Command({
      Bucket: question.bucket,
      Prefix: range.prefix,
      MaxKeys: range.limit,
      // without the encoding, XML cannot represent keys with control characters
      EncodingType: 'url',
      ...(token !== undefined ? { ContinuationToken: token } : range.after !== '' && { StartAfter: range.after }),
    });
    let listing: ListingFields | undefined;
    const reply = await ask(question, signal, {
      send: (client, options) => client.send(command, options),
      read: async (response) => {
        listing = await readBody(response);
      },
    });
    if (!reply.ok) {
      // the request succeeded, but the body could not be read
      if (reply.answer?.status === 200) throw incomplete(question, s3Fault(question, reply).reason);
      throw s3Fault(question, reply);
    }
    if (isRepeated(reply.answer)) throw incomplete(question, 'the page comes from a cache (it has the header Age)');
    const observedAtMs = observedAt(question, reply.answer);
    return pageOf(question, { range, observedAtMs, listing: listing ?? fieldsOf(reply.output) });
  }

  return {
    async page(location, range, signal) {
      const question = { ...location, operation: 'ListObjectsV2' };
      const id = JSON.stringify([location.region, location.bucket, range.prefix, range.after, range.listing ?? '']);
      const sinceMs = clock.monotonicMs();
      let passed = takePassed(id);
      for (let requests = 1; requests <= EMPTY_PAGES_MAX; requests += 1) {
        const { next, ...page } = await read(question, range, { token: passed?.token, signal });
        if (!page.isTruncated || page.objects.length > 0) {
          passedBy.delete(id);
          return afterPassed(page, passed, requests);
        }
        passed = passedBehind(question, { token: next, observedAtMs: page.observedAtMs, sinceMs }, passed);
        // also for a call that is aborted, or fails later
        keepPassed(id, passed);
      }
      throw incomplete(question, `${EMPTY_PAGES_MAX} pages in a row have no keys; the next attempt continues after them`);
    },
  };
}

/** The page with the time of the first page that was passed before it: what those did not contain was absent then. */
function afterPassed(page: ListingPage, passed: Passed | undefined, requests: number): ListingPage {
  if (passed === undefined) return page;
  return { ...page, observedAtMs: passed.observedAtMs, answeredAtMs: page.observedAtMs, ...(requests > 1 && { requests }) };
}

/** The pages that were passed, with one more. Throws if its token does not lead further. */
function passedBehind(
  question: S3Question,
  { token, ...page }: Omit<Passed, 'token'> & { readonly token: string | undefined },
  before: Passed | undefined,
): Passed {
  if (token === undefined || token === before?.token) throw incomplete(question, 'the page is truncated before its first key');
  return { ...page, ...before, token };
}

interface RawPage {
  readonly range: Range;
  readonly observedAtMs: number;
  readonly listing: ListingFields;
}

/** `next`: the token of the next page. */
function pageOf(question: S3Question, { range, observedAtMs, listing }: RawPage): ListingPage & { readonly next?: string } {
  const { IsTruncated, KeyCount, EncodingType, NextContinuationToken: next, contents } = listing;
  const isEncoded = EncodingType === 'url';
  checkSubject(question, range, { ...listing, isEncoded });
  if (IsTruncated !== 'true' && IsTruncated !== 'false') throw incomplete(question, 'the page does not contain a valid IsTruncated');
  if (KeyCount !== undefined && Number(KeyCount) !== contents.length) {
    throw incomplete(question, `KeyCount is ${KeyCount}, but the page contains ${contents.length} keys`);
  }
  const objects = contents.map((fields) => objectOf(question, fields, isEncoded));
  checkOrder(question, range, objects);
  return { objects, observedAtMs, isTruncated: IsTruncated === 'true', ...(next !== undefined && next !== '' && { next }) };
}

/** Throws unless the page states that it lists this bucket and this prefix. Otherwise it may be any page: a cached one, or one of something else than S3. */
function checkSubject(
  question: S3Question,
  { prefix }: Range,
  { Name, Prefix = '', isEncoded }: Pick<ListingFields, 'Name' | 'Prefix'> & { readonly isEncoded: boolean },
): void {
  if (Name === undefined) throw incomplete(question, 'the page does not name its bucket');
  if (Name !== question.bucket) throw incomplete(question, `the page lists the bucket ${printable(Name)}`);
  // some stores encode the keys and not the prefix
  const isAsked = Prefix === prefix || (isEncoded && decodeFormKey(Prefix).key === prefix);
  if (!isAsked) throw incomplete(question, `the page lists the prefix ${printable(Prefix)}, not ${printable(prefix)}`);
}

function objectOf(
  question: S3Question,
  { Key = '', ETag, Size, LastModified, StorageClass }: ListedFields,
  isEncoded: boolean,
): ListedObject {
  const { key, uncertain } = isEncoded ? decodeFormKey(Key) : { key: Key, uncertain: false };
  if (key === '' || uncertain) throw unreadable(question, 'key', Key);
  const sizeBytes = Size === undefined ? undefined : sizeOf(question, Size);
  const lastModified = LastModified === undefined ? undefined : timeOf(question, LastModified);
  return { key, state: presentState({ ETag, sizeBytes, LastModified: lastModified, StorageClass }) };
}

function sizeOf(question: S3Question, text: string): number {
  const sizeBytes = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(sizeBytes)) throw unreadable(question, 'size', text);
  return sizeBytes;
}

function timeOf(question: S3Question, text: string): Date {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) throw unreadable(question, 'time', text);
  return time;
}

function unreadable(question: S3Question, what: string, text: string): FaultError {
  return incomplete(question, `the page contains a ${what} that cannot be read: ${printable(text)}`);
}

/** Throws `listing.disorder` unless the keys ascend strictly by UTF-8 bytes, come after the requested key and have the prefix. */
function checkOrder(question: S3Question, { after, prefix }: Range, objects: readonly ListedObject[]): void {
  let last = after;
  for (const { key } of objects) {
    if (compareKeys(key, last) <= 0) throw disorder(question, `${printable(key)} was listed after ${printable(last)}`);
    if (!key.startsWith(prefix)) throw disorder(question, `${printable(key)} does not have the prefix ${printable(prefix)}`);
    last = key;
  }
}

function disorder(question: S3Question, reason: string): FaultError {
  return new FaultError('listing.disorder', `${questionText(question)}: ${reason}`);
}

function incomplete(question: S3Question, reason: string): FaultError {
  return new FaultError('listing.incomplete', `${questionText(question)}: ${reason}`);
}

/** The body that replaces one that was read here: an empty listing for the SDK to parse. */
const READ_ALREADY = new TextEncoder().encode('<ListBucketResult/>');

/** The beginning of a listing as any store may write it: a declaration, comments, and the root, which may have a namespace's prefix. */
const LISTING_ROOT = /^\uFEFF?\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--[\s\S]*?-->\s*)*<(?:\w+:)?ListBucketResult[\s/>]/;

/**
 * Reads the body of an answer with status 200 by {@link readListing}. If that is not possible, the SDK reads it, which does
 * not look at the root: it takes a sign-in page for an empty listing. Throws if the body is no listing.
 */
async function readBody(response: unknown): Promise<ListingFields | undefined> {
  if (!hasBody(response) || !(response.body instanceof Readable)) return undefined;
  const bytes = await buffer(response.body);
  const xml = bytes.toString('utf8');
  const listing = readListing(xml);
  if (listing === undefined && !LISTING_ROOT.test(xml)) throw new Error('the body is not a listing');
  response.body = listing === undefined ? bytes : READ_ALREADY;
  return listing;
}

function hasBody(response: unknown): response is { readonly statusCode: 200; body: unknown } {
  return typeof response === 'object' && response !== null && 'statusCode' in response && response.statusCode === 200 && 'body' in response;
}

/** The page that the SDK parsed, in the same form. */
function fieldsOf({
  Name,
  Prefix,
  NextContinuationToken,
  IsTruncated,
  KeyCount,
  EncodingType,
  Contents = [],
}: ListObjectsV2CommandOutput): ListingFields {
  return {
    ...(Name !== undefined && { Name }),
    ...(Prefix !== undefined && { Prefix }),
    ...(NextContinuationToken !== undefined && { NextContinuationToken }),
    ...(IsTruncated !== undefined && { IsTruncated: String(IsTruncated) }),
    ...(KeyCount !== undefined && { KeyCount: String(KeyCount) }),
    ...(EncodingType !== undefined && { EncodingType }),
    contents: Contents.map(({ Key, LastModified, ETag, Size, StorageClass }) => ({
      ...(Key !== undefined && { Key }),
      ...(LastModified !== undefined && { LastModified: LastModified.toISOString() }),
      ...(ETag !== undefined && { ETag }),
      ...(Size !== undefined && { Size: String(Size) }),
      ...(StorageClass !== undefined && { StorageClass }),
    })),
  };
}
