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
import { createAsk, observedAt, presentState } from './s3-ask.ts';
import { questionText, s3Fault, type S3Question } from './s3-faults.ts';

interface S3ListingDependencies {
  readonly clientFor: (region: string) => S3Client;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Default: no tracing. */
  readonly tracing?: Tracing;
}

type Range = Parameters<BucketListing['page']>[1];

/** Creates the listing. */
export function createS3Listing({ clientFor, clock, tracing }: S3ListingDependencies): BucketListing {
  const ask = createAsk(clientFor, clock, tracing);

  return {
    async page(location, range, signal) {
      const question = { ...location, operation: 'ListObjectsV2' };
      const command = new ListObjectsV2Command({
        Bucket: location.bucket,
        Prefix: range.prefix,
        MaxKeys: range.limit,
        // without the encoding, XML cannot represent keys with control characters
        EncodingType: 'url',
        ...(range.after !== '' && { StartAfter: range.after }),
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
      const observedAtMs = observedAt(question, reply.answer);
      return pageOf(question, { range, observedAtMs, listing: listing ?? fieldsOf(reply.output) });
    },
  };
}

interface RawPage {
  readonly range: Range;
  readonly observedAtMs: number;
  readonly listing: ListingFields;
}

function pageOf(question: S3Question, { range, observedAtMs, listing }: RawPage): ListingPage {
  const { IsTruncated, KeyCount, EncodingType, contents } = listing;
  if (IsTruncated !== 'true' && IsTruncated !== 'false') throw incomplete(question, 'the page does not contain a valid IsTruncated');
  if (KeyCount !== undefined && Number(KeyCount) !== contents.length) {
    throw incomplete(question, `KeyCount is ${KeyCount}, but the page contains ${contents.length} keys`);
  }
  const isTruncated = IsTruncated === 'true';
  if (isTruncated && contents.length === 0) throw incomplete(question, 'the page is truncated before its first key');
  const isEncoded = EncodingType === 'url';
  const objects = contents.map((fields) => objectOf(question, fields, isEncoded));
  checkOrder(question, range, objects);
  return { objects, observedAtMs, isTruncated };
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

/** Reads the body of an answer with status 200 by {@link readListing}. If that is not possible, the SDK reads it. */
async function readBody(response: unknown): Promise<ListingFields | undefined> {
  if (!hasBody(response) || !(response.body instanceof Readable)) return undefined;
  const bytes = await buffer(response.body);
  const listing = readListing(bytes.toString('utf8'));
  response.body = listing === undefined ? bytes : READ_ALREADY;
  return listing;
}

function hasBody(response: unknown): response is { readonly statusCode: 200; body: unknown } {
  return typeof response === 'object' && response !== null && 'statusCode' in response && response.statusCode === 200 && 'body' in response;
}

/** The page that the SDK parsed, in the same form. */
function fieldsOf({ IsTruncated, KeyCount, EncodingType, Contents = [] }: ListObjectsV2CommandOutput): ListingFields {
  return {
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
