/** Pages of lists: parses requests and reads one item more than the page has, to know whether there is a next page. */
import { z } from 'zod';
import { encodeCursor } from '../../domain/cursor.ts';
import { RequestError } from '../../domain/request-error.ts';

/** One page of a list; `next` is absent on the last page. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string;
}

export interface PageRequest {
  readonly limit?: number;
  readonly cursor?: string;
}

/** The ports list at most this many items at once. */
const LIMIT_MAX = 1_000;

/** The `limit` of a request: 1 to 1,000, by default 100. */
export const limitSchema = z
  .number({ error: 'must be a whole number from 1 to 1000' })
  .int('must be a whole number')
  .min(1, 'must be at least 1')
  .max(LIMIT_MAX, `must be at most ${LIMIT_MAX}`)
  .default(100);

/** S3's longest key. */
const KEY_BYTES_MAX = 1_024;

/** A key, or the beginning of one. */
export const keyTextSchema = z
  .string({ error: 'must be text' })
  .refine((text) => Buffer.byteLength(text) <= KEY_BYTES_MAX, `must have at most ${KEY_BYTES_MAX} bytes`);

/** Parses a request. Throws `request.invalid` with all mistakes of the request at once. */
export function parseRequest<Schema extends z.ZodType>(schema: Schema, request: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(request);
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.map((issue) => [...issue.path.map(String), issue.message].join(': '));
  throw new RequestError('request.invalid', mistakes.join('; '));
}

interface PageSource<Item, Position> {
  readonly limit: number;
  /** The position that the request's cursor names. */
  readonly after: Position | undefined;
  /** Returns up to `limit` (1 to 1,000) items after a position, in order. */
  readonly fetch: (limit: number, after: Position | undefined) => Promise<readonly Item[]>;
  readonly positionOf: (item: Item) => Position;
}

/** Reads one page. It has a `next` only if another item follows. */
export async function readPage<Item, Position extends readonly string[]>(source: PageSource<Item, Position>): Promise<Page<Item>> {
  const { limit, fetch, positionOf } = source;
  const fetched = await fetch(Math.min(limit + 1, LIMIT_MAX), source.after);
  const items = fetched.slice(0, limit);
  const last = items.at(-1);
  if (last === undefined || items.length < limit) return { items };
  // a page of the largest size leaves no room to fetch one item more
  const hasMore = fetched.length > limit || (limit === LIMIT_MAX && (await fetch(1, positionOf(last))).length > 0);
  return hasMore ? { items, next: encodeCursor(positionOf(last)) } : { items };
}
