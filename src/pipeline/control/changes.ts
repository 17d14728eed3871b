/** The latest changes of a bucket. */
import type { ObjectDocument } from '../../domain/documents/document.ts';
import { overlapping, type Readable } from '../../domain/access/readable.ts';
import { requireReadable } from '../buckets/list.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectIndex } from '../ports/object-index.ts';
import type { StateStore } from '../ports/state.ts';

/** Default: a day is what people look for when something changed. */
const SINCE_MS = 86_400_000;

interface ChangesRequest {
  readonly bucket: string;
  readonly prefix?: string;
  readonly since?: string;
  readonly limit: number;
}

interface ChangesDependencies {
  readonly state: StateStore;
  readonly objects: Pick<ObjectIndex, 'changes'>;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** Creates the function. Throws `bucket.not-connected` and the store's faults. */
export function createListChanges({ state, objects, clock }: ChangesDependencies) {
  return async function listChanges(
    { bucket, prefix = '', since, limit }: ChangesRequest,
    readable: Readable,
    signal?: AbortSignal,
  ): Promise<readonly ObjectDocument[]> {
    await requireReadable(state, { bucket, readable }, signal);
    const page = { prefix, sinceMs: since === undefined ? clock.nowMs() - SINCE_MS : Date.parse(since), limit };
    if (readable === 'everything') return objects.changes(bucket, page, signal);
    const within = overlapping(readable, { bucket, prefix });
    return within.length === 0 ? [] : objects.changes(bucket, { ...page, within }, signal);
  };
}
