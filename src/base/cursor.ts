/** Cursors of lists: the position after which the next page begins, as text that is safe in a URL. */
import { z } from 'zod';
import { RequestError } from './request-error.ts';

/** The longest position is a bucket name and a key of 1,024 bytes; JSON may need six characters for a byte, and base64 adds a third. */
export const CURSOR_LENGTH_MAX = 12_000;

const positionSchema = z.array(z.string());

/** Encodes a position (a bucket and a key, or an id) as a cursor. */
export function encodeCursor(position: readonly string[]): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/** Decodes a cursor whose position has one of these numbers of parts. Throws `request.invalid` for a text that encodeCursor did not create. */
export function decodeCursor(cursor: string, ...lengths: readonly number[]): readonly string[];
export function decodeCursor(cursor: string | undefined, ...lengths: readonly number[]): readonly string[] | undefined;
export function decodeCursor(cursor: string | undefined, ...lengths: readonly number[]): readonly string[] | undefined {
  if (cursor === undefined) return undefined;
  const position = cursor.length > CURSOR_LENGTH_MAX ? undefined : positionOf(cursor);
  if (position === undefined || !lengths.includes(position.length)) {
    throw new RequestError('request.invalid', 'cursor: must be the `next` value of an earlier page of this list');
  }
  return position;
}

function positionOf(cursor: string): readonly string[] | undefined {
  try {
    return positionSchema.safeParse(JSON.parse(Buffer.from(cursor, 'base64url').toString())).data;
  } catch {
    return undefined;
  }
}
