/** Searches the index. Both stores return the same objects in the same order for the same request. */
import type { z } from 'zod';
import type { objectRows } from '../../api/objects.ts';
import { decodeCursor } from '../../domain/cursor.ts';
import type { ObjectDocument } from '../../domain/documents/document.ts';
import { queryWordsOf } from '../../domain/documents/words.ts';
import { requireBucket } from '../buckets/list.ts';
import type { StateStore } from '../ports/state.ts';
import { readPage, type Page } from '../records/pages.ts';
import type { ObjectIndex, ObjectQuery } from '../ports/object-index.ts';

export type SearchRequest = z.output<(typeof objectRows)['GET /v1/objects']['query']>;
export type Search = (request: SearchRequest, signal?: AbortSignal) => Promise<Page<ObjectDocument>>;

/** Creates the search. An object that exists throughout appears exactly once over all pages. Throws `request.invalid` for a cursor that no page returned, `bucket.not-connected` and the store's faults. */
export function createSearch({ objects, state }: { readonly objects: ObjectIndex; readonly state: StateStore }): Search {
  return async function search(request, signal) {
    const words = request.q === undefined ? undefined : queryWordsOf(request.q);
    const after = positionOf(request.cursor);
    if (request.bucket !== undefined) await requireBucket(state, request.bucket, signal);
    if (words === null) return { items: [] };
    const query = {
      ...filtersOf(request),
      ...(words !== undefined && { words }),
    };
    return readPage({
      limit: request.limit,
      after,
      fetch: (limit, position) => objects.search({ ...query, ...afterOf(position), limit }, signal),
      positionOf: ({ bucket, key }) => [bucket, key],
    });
  };
}

function filtersOf({ bucket, key, prefix, extension }: SearchRequest): Omit<ObjectQuery, 'limit' | 'after' | 'words'> {
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
