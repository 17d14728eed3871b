/** Pages of lists: requests parsed, one item more asked for to know whether there is a next page. */
import { z } from 'zod';
import { encodeCursor } from '../../domain/cursor.ts';
import { RequestError } from '../../domain/request-error.ts';
import type { Page } from '../control/control.ts';

/** The ports list at most this many at once. */
const LIMIT_MAX = 1_000;

/** limit 1 to 1,000, default 100. */
export const limitSchema = z
  .number({ error: 'must be a whole number from 1 to 1000' })
  .int('must be a whole number')
  .min(1, 'must be at least 1')
  .max(LIMIT_MAX, `must be at most ${LIMIT_MAX}`)
  .default(100);

/** S3's longest key. */
const KEY_BYTES_MAX = 1_024;

/** What may be a key or the beginning of one. */
export const keyTextSchema = z
  .string({ error: 'must be text' })
  .refine((text) => Buffer.byteLength(text) <= KEY_BYTES_MAX, `must have at most ${KEY_BYTES_MAX} bytes`);

/** Parses a request; all its mistakes are told at once by a `request.invalid`. */
export function parseRequest<Schema extends z.ZodType>(schema: Schema, request: unknown): z.infer<Schema> {
  const parsed = schema.safeParse(request);
  if (parsed.success) return parsed.data;
  const mistakes = parsed.error.issues.map((issue) => [...issue.path.map(String), issue.message].join(': '));
  throw new RequestError('request.invalid', mistakes.join('; '));
}

interface PageSource<Item, Position> {
  readonly limit: number;
  /** Where the cursor of the request points. */
  readonly after: Position | undefined;
  /** Up to `limit` (1 to 1,000) items after a position, in order. */
  readonly fetch: (limit: number, after: Position | undefined) => Promise<readonly Item[]>;
  readonly positionOf: (item: Item) => Position;
}

/** Reads one page; `next` is there only if another item is. */
export async function readPage<Item, Position extends readonly string[]>(source: PageSource<Item, Position>): Promise<Page<Item>> {
  const { limit, fetch, positionOf } = source;
  const fetched = await fetch(Math.min(limit + 1, LIMIT_MAX), source.after);
  const items = fetched.slice(0, limit);
  const last = items.at(-1);
  if (last === undefined || items.length < limit) return { items };
  // a full page of the largest size leaves no room for one more
  const hasMore = fetched.length > limit || (limit === LIMIT_MAX && (await fetch(1, positionOf(last))).length > 0);
  return hasMore ? { items, next: encodeCursor(positionOf(last)) } : { items };
}
