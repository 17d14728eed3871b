/**
 * Corrects the order of listings. fauxqs 2.4.1 sorts keys by locale, but resumes a listing by UTF-16 code units, so a listing of
 * several pages leaves keys out and repeats others. S3 does both in the order of UTF-8 bytes.
 */
import { compareKeys } from '../base/key-order.ts';
import type { S3Object, S3Store } from './fauxqs.ts';

type Listing = ReturnType<S3Store['listObjects']>;
type ListingOptions = NonNullable<Parameters<S3Store['listObjects']>[1]>;

/**
 * Replaces `store.listObjects` by one that lists in S3's order. It keeps each listed bucket's sorted objects until the bucket changes:
 * call the function that it returns after every change of an object in the bucket.
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
