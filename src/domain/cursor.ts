/** Cursors of lists: the position after which the next page begins, as text that a URL can carry. */
import { z } from 'zod';
import { RequestError } from './request-error.ts';

/** No position needs more: a bucket's name and a key, each byte of which JSON may escape sixfold, in base64. */
const CURSOR_LENGTH_MAX = 12_000;

const positionSchema = z.array(z.string());

/** A position (a bucket and a key, or an id) as a cursor. */
export function encodeCursor(position: readonly string[]): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/** The position of a cursor, of exactly `length` parts. Throws `request.invalid` for what encodeCursor did not make. */
export function decodeCursor(cursor: string, length: number): readonly string[] {
  const position = cursor.length > CURSOR_LENGTH_MAX ? undefined : positionOf(cursor);
  if (position?.length !== length) {
    throw new RequestError('request.invalid', 'cursor: must be the `next` of an earlier page');
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
