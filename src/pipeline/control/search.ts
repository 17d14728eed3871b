/** Search: the same request finds the same objects, in the same order, on both stores. */
import { z } from 'zod';
import { decodeCursor } from '../../domain/cursor.ts';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import { queryWordsOf } from '../../domain/documents/words.ts';
import type { Page, SearchRequest } from './control.ts';
import { keyTextSchema, limitSchema, parseRequest, readPage } from '../records/pages.ts';
import type { ObjectIndex, ObjectQuery } from '../ports/object-index.ts';

const searchSchema = z.strictObject({
  bucket: z.string().min(1, 'must not be empty').max(255, 'must have at most 255 characters').optional(),
  key: keyTextSchema.min(1, 'must not be empty').optional(),
  prefix: keyTextSchema.optional(),
  q: z.string().max(1_024, 'must have at most 1024 characters').optional(),
  extension: z.string().min(1, 'must not be empty').max(64, 'must have at most 64 characters').optional(),
  limit: limitSchema,
  cursor: z.string().optional(),
});

export type Search = (request: SearchRequest, signal?: AbortSignal) => Promise<Page<ObjectDocument>>;

/** Creates the search. What exists throughout appears exactly once over the pages; it throws `request.invalid` and the store's faults. */
export function createSearch({ objects }: { readonly objects: ObjectIndex }): Search {
  return async function search(request, signal) {
    const parsed = parseRequest(searchSchema, request);
    const words = parsed.q === undefined ? undefined : queryWordsOf(parsed.q);
    const after = positionOf(parsed.cursor);
    if (words === null) return { items: [] };
    const query = {
      ...filtersOf(parsed),
      ...(words !== undefined && { words }),
    };
    return readPage({
      limit: parsed.limit,
      after,
      fetch: (limit, position) => objects.search({ ...query, ...afterOf(position), limit }, signal),
      positionOf: ({ bucket, key }) => [bucket, key],
    });
  };
}

function filtersOf({ bucket, key, prefix, extension }: z.infer<typeof searchSchema>): Omit<ObjectQuery, 'limit' | 'after' | 'words'> {
  return {
    ...(bucket !== undefined && { bucket }),
    ...(key !== undefined && { key }),
    ...(prefix !== undefined && prefix !== '' && { prefix }),
    ...(extension !== undefined && { extension: extension.toLowerCase().replace(/^\./, '') }),
  };
}

function positionOf(cursor: string | undefined): readonly string[] | undefined {
  return cursor === undefined ? undefined : decodeCursor(cursor, 2);
}

function afterOf(position: readonly string[] | undefined): Pick<ObjectQuery, 'after'> {
  const [bucket, key] = position ?? [];
  return bucket === undefined || key === undefined ? {} : { after: { bucket, key } };
}
