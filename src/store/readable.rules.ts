/**
 * What a person may read: parts of buckets. Grants only add up, so several give the union of their parts, which is merged so that no
 * part contains another.
 */
import { compareKeys } from '../base/key-order.ts';

/** A bucket's keys that begin with a prefix, by UTF-8 bytes; the empty prefix is the whole bucket. */
export interface BucketPart {
  readonly bucket: string;
  readonly prefix: string;
}

/** `everything`: every bucket, future ones included. Parts are sorted by bucket and prefix, and none contains another. */
export type Readable = 'everything' | readonly BucketPart[];

/**
 * The most parts that one person can read, after merging. An OpenSearch query may have 1,024 clauses, and each part needs up to two;
 * the rest is for the search itself.
 */
export const PARTS_MAX = 300;

/** Whether one prefix begins with the other, so that one part contains the other or they are the same. */
export function intersects(a: string, b: string): boolean {
  return a.startsWith(b) || b.startsWith(a);
}

/** The union of parts. */
export function mergedParts(parts: readonly BucketPart[]): readonly BucketPart[] {
  const merged: BucketPart[] = [];
  for (const part of parts.toSorted((a, b) => compareKeys(a.bucket, b.bucket) || compareKeys(a.prefix, b.prefix))) {
    const last = merged.at(-1);
    // a prefix comes directly before whatever begins with it
    if (last === undefined || last.bucket !== part.bucket || !part.prefix.startsWith(last.prefix)) merged.push(part);
  }
  return merged;
}

/** The portion of these parts in one bucket, or in all, below a prefix. */
export function overlapping(
  parts: readonly BucketPart[],
  { bucket, prefix = '' }: { readonly bucket?: string | undefined; readonly prefix?: string | undefined },
): readonly BucketPart[] {
  return parts
    .filter((part) => (bucket === undefined || part.bucket === bucket) && intersects(part.prefix, prefix))
    .map((part) => ({ bucket: part.bucket, prefix: longer(part.prefix, prefix) }));
}

/** Whether any of the bucket's keys may be read. */
export function readsSome(readable: Readable, bucket: string): boolean {
  return readable === 'everything' || readable.some((part) => part.bucket === bucket);
}

/** Whether something known about the keys with a prefix (without one: about all keys) concerns keys that may be read. */
export function touches(
  readable: Readable,
  { bucket, prefix = '' }: { readonly bucket: string; readonly prefix?: string | undefined },
): boolean {
  return readable === 'everything' || overlapping(readable, { bucket, prefix }).length > 0;
}

/** Whether every key with the prefix may be read. */
export function readsAll(readable: Readable, { bucket, prefix }: BucketPart): boolean {
  return readable === 'everything' || readable.some((part) => part.bucket === bucket && prefix.startsWith(part.prefix));
}

/** Whether the key may be read, because a prefix of it is granted. */
export function readsKey(readable: Readable, bucket: string, key: string): boolean {
  return readsAll(readable, { bucket, prefix: key });
}

function longer(a: string, b: string): string {
  return a.length >= b.length ? a : b;
}
