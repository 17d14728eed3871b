/** Makes an S3 of fauxqs 2.4.1: corrects its requests, answers and listings where it behaves differently, and adds event notifications. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingHttpHeaders } from 'node:http';
import { type EmbeddedClock, sequencerOf } from './clock.ts';
import type { FauxqsApp, S3Object, S3Store } from './fauxqs.ts';
import { compareKeys } from '../base/key-order.ts';
import { z } from 'zod';

/** Subresources that fauxqs does not support: it would apply their puts and deletes to the object or bucket itself. */
const UNSUPPORTED = [
  'accelerate',
  'acl',
  'analytics',
  'cors',
  'encryption',
  'intelligent-tiering',
  'inventory',
  'legal-hold',
  'logging',
  'metrics',
  'notification',
  'object-lock',
  'ownershipControls',
  'policy',
  'publicAccessBlock',
  'replication',
  'requestPayment',
  'restore',
  'retention',
  'tagging',
  'versioning',
  'website',
];

/** The tags of every object: there are none, since requests that write tags are refused. */
const NO_TAGS = '<?xml version="1.0" encoding="UTF-8"?>\n<Tagging xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><TagSet/></Tagging>';

/** What the path of a request for an object names. */
const objectPath = z.object({ bucket: z.string(), '*': z.string().min(1) });

const NOT_IMPLEMENTED =
  '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NotImplemented</Code><Message>The embedded S3 does not implement this functionality.</Message></Error>';

/** The content types of SQS and SNS requests. fauxqs parses bodies of these types at any path. */
const PARSED_TYPES = ['application/x-www-form-urlencoded', 'application/x-amz-json-1.0'];

interface Corrections {
  readonly region: string;
  /** The clock for the Date header. */
  readonly moments: Pick<EmbeddedClock, 'nowMs'>;
  /** Requests wait for it. It resolves when the stores are loaded. */
  readonly ready: Promise<void>;
  readonly store: S3Store;
}

/** Corrects requests and answers of the app. It must be called before the app listens. Returns a function that returns the bucket of the request that is being processed. */
export function correctRequests(app: FauxqsApp, { region, moments, ready, store }: Corrections): () => string {
  const bucket = new AsyncLocalStorage<string>();

  app.addHook('onRequest', async (request, reply) => {
    await ready;
    const [path, query] = request.url.split('?', 2);
    const parameters = new URLSearchParams(query);
    const { data: named } = objectPath.safeParse(request.params);
    if (parameters.has('tagging') && request.method === 'GET' && named !== undefined) {
      // fauxqs refuses a missing object as it refuses its GET
      if (objectAt(store, named.bucket, named['*']) === undefined) return undefined;
      return reply.header('content-type', 'application/xml').send(NO_TAGS);
    }
    if (isUnsupported(request, parameters)) {
      return reply.status(501).header('content-type', 'application/xml').send(NOT_IMPLEMENTED);
    }
    // curl --data-binary sends every file with the content type of a form, and fauxqs would parse the object
    const type = request.headers['content-type'] ?? '';
    if (path !== '/' && PARSED_TYPES.some((parsed) => type.startsWith(parsed))) {
      request.headers['content-type'] = 'application/octet-stream';
    }
  });

  app.addHook('preHandler', (request, _reply, done) => {
    // curl -T sends no body for an empty file
    request.body ??= Buffer.alloc(0);
    bucket.run(/^\/([^/?]*)/.exec(request.url)?.[1] ?? '', done);
  });

  app.addHook('onSend', async (request, reply) => {
    reply.header('date', new Date(moments.nowMs()).toUTCString());
    // HeadBucket returns the region in this header
    if (request.method === 'HEAD') reply.header('x-amz-bucket-region', region);
  });

  return () => bucket.getStore() ?? '';
}

interface RequestHead {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
}

/** Whether to refuse the request: fauxqs would apply a write to the object or bucket itself, drop an object's tags, and answer a bucket's with a listing. */
function isUnsupported({ method, headers }: RequestHead, parameters: URLSearchParams): boolean {
  if (headers['x-amz-tagging'] !== undefined) return true;
  const isRead = method === 'GET' || method === 'HEAD';
  return UNSUPPORTED.some((name) => parameters.has(name) && (!isRead || name === 'tagging'));
}

type Listing = ReturnType<S3Store['listObjects']>;
type ListingOptions = NonNullable<Parameters<S3Store['listObjects']>[1]>;

/**
 * Replaces `store.listObjects` by one that lists in S3's order, that of UTF-8 bytes. fauxqs sorts keys by locale, but resumes a listing
 * by UTF-16 code units, so a listing of several pages leaves keys out and repeats others. It keeps each listed bucket's sorted objects
 * until the bucket changes: call the function that it returns after every change of an object in the bucket.
 */
export function sortListings(store: S3Store): (bucket: string) => void {
  const listAll = store.listObjects.bind(store);
  const sorted = new Map<string, readonly S3Object[]>();

  function objectsOf(bucket: string): readonly S3Object[] {
    const known = store.hasBucket(bucket) ? sorted.get(bucket) : undefined;
    if (known !== undefined) return known;
    const { objects } = listAll(bucket, { maxKeys: Number.POSITIVE_INFINITY });
    objects.sort((a, b) => compareKeys(a.key, b.key));
    sorted.set(bucket, objects);
    return objects;
  }

  store.listObjects = (bucket, options = {}) => pageOf(objectsOf(bucket), rangeOf(options));
  return (bucket) => void sorted.delete(bucket);
}

interface Range {
  readonly prefix: string;
  readonly delimiter: string;
  readonly after: string;
  readonly maxKeys: number;
}

function rangeOf(options: ListingOptions): Range {
  const { prefix = '', delimiter = '', maxKeys = 1_000 } = options;
  return { prefix, delimiter, maxKeys, after: options.startAfter ?? options.marker ?? '' };
}

function pageOf(objects: readonly S3Object[], { prefix, delimiter, after, maxKeys }: Range): Listing {
  const page: S3Object[] = [];
  const groups = new Set<string>();
  for (const object of objects) {
    if (!object.key.startsWith(prefix) || compareKeys(object.key, after) <= 0) continue;
    const entry = entryOf(object.key, prefix, delimiter);
    // a common prefix is listed only once, on the page of its first key
    if (groups.has(entry) || compareKeys(entry, after) <= 0) continue;
    if (page.length + groups.size >= maxKeys) return { objects: page, commonPrefixes: [...groups], isTruncated: true };
    if (entry === object.key) page.push(object);
    else groups.add(entry);
  }
  return { objects: page, commonPrefixes: [...groups], isTruncated: false };
}

/** The key itself, or the common prefix that stands for it. */
function entryOf(key: string, prefix: string, delimiter: string): string {
  const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
  return end === -1 ? key : key.slice(0, end + delimiter.length);
}

/** A change of one key, with the object that it has afterwards. */
interface ObjectChange {
  readonly bucket: string;
  readonly key: string;
  /** Absent: the object was deleted. */
  readonly object?: S3Object;
}

/**
 * Calls `changed` for every change of the store's objects, in order: before a deletion, and after any other change. It becomes the
 * notification that S3 would send, published synchronously with the change, so that its order and content are those of the store: if
 * that fails, the request that made the change fails too, and its client repeats it. `requestBucket`: the bucket of the request that is
 * being processed.
 */
export function watchObjects(store: S3Store, requestBucket: () => string, changed: (change: ObjectChange) => void): void {
  const putObject = store.putObject.bind(store);
  store.putObject = (...parameters) => {
    const object = putObject(...parameters);
    changed({ bucket: parameters[0], key: object.key, object });
    return object;
  };

  const deleteObject = store.deleteObject.bind(store);
  store.deleteObject = (bucket, key) => {
    // published first: when the request is repeated, the object is gone. fauxqs always removes it from memory, even if the disk fails
    if (objectAt(store, bucket, key) !== undefined) changed({ bucket, key });
    deleteObject(bucket, key);
  };

  const renameObject = store.renameObject.bind(store);
  store.renameObject = (bucket, source, target) => {
    renameObject(bucket, source, target);
    if (source !== target) changed({ bucket, key: source });
    changed({ bucket, key: target, object: store.headObject(bucket, target) });
  };

  const completeMultipartUpload = store.completeMultipartUpload.bind(store);
  store.completeMultipartUpload = (uploadId, parts) => {
    const object = completeMultipartUpload(uploadId, parts);
    changed({ bucket: requestBucket(), key: object.key, object });
    return object;
  };
}

/** The object of a key; undefined if the key or its bucket does not exist. */
function objectAt(store: S3Store, bucket: string, key: string): S3Object | undefined {
  try {
    return store.headObject(bucket, key);
  } catch {
    return undefined; // it throws only NoSuchBucket and NoSuchKey
  }
}

/** The message of “Event message structure” in the S3 user guide, without the fields about the requester. Every kind of put is named as one. */
export function notificationOf({ bucket, key, object }: ObjectChange, region: string, moment: number): string {
  const record = {
    eventVersion: '2.1',
    eventSource: 'aws:s3',
    awsRegion: region,
    eventTime: new Date(Math.floor(moment / 1_000)).toISOString(),
    eventName: object === undefined ? 'ObjectRemoved:Delete' : 'ObjectCreated:Put',
    s3: {
      s3SchemaVersion: '1.0',
      configurationId: 'tally-embedded',
      bucket: { name: bucket, arn: `arn:aws:s3:::${bucket}` },
      object: {
        key: encodeURIComponent(key).replaceAll('%2F', '/').replaceAll('%20', '+'),
        ...(object !== undefined && { size: object.contentLength, eTag: object.etag.replaceAll('"', '') }),
        sequencer: sequencerOf(moment),
      },
    },
  };
  return JSON.stringify({ Records: [record] });
}
