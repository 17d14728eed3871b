/**
 * Finds what embedded buckets and index disagree on at start. The embedded storage tells its changes itself, a moment after
 * each; a process that is killed in between leaves one untold.
 */
import type { ObjectDocument } from '../../domain/documents/document.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectIndex } from '../ports/object-index.ts';

/** Documents of one search. */
const PAGE_DOCUMENTS = 1_000;

/** Notifications before others get their turn: each is stored before the next, so a hundred take some 50 ms. */
const BATCH_ANNOUNCEMENTS = 100;

interface EmbeddedObject {
  readonly key: string;
  readonly etag: string;
  readonly sizeBytes: number;
}

interface CatchUpPorts {
  readonly index: Pick<ObjectIndex, 'search'>;
  readonly storage: {
    /** All objects of a bucket; undefined when there is no such bucket. */
    list(bucket: string): readonly EmbeddedObject[] | undefined;
    /** Sends the event that says what the key holds now. */
    announce(bucket: string, key: string): void;
  };
  readonly clock: Pick<Clock, 'sleep'>;
}

/**
 * Compares the buckets with the index and announces each key that differs, through the ordinary event path; returns how
 * many. A bucket that the storage does not have is passed over. Holds one bucket's listing in memory: about 200 bytes an
 * object, meant for up to 100,000. Throws what the index throws.
 */
export type CatchUp = (buckets: readonly string[], signal?: AbortSignal) => Promise<number>;

export function createCatchUp({ index, storage, clock }: CatchUpPorts): CatchUp {
  return async function catchUp(buckets, signal) {
    let announced = 0;
    for (const bucket of buckets) {
      for await (const key of differences(bucket, signal)) {
        storage.announce(bucket, key);
        announced += 1;
        if (announced % BATCH_ANNOUNCEMENTS === 0) await clock.sleep(0, signal);
      }
    }
    return announced;
  };

  async function* differences(bucket: string, signal?: AbortSignal): AsyncGenerator<string> {
    const listed = storage.list(bucket);
    if (listed === undefined) return;
    const unseen = new Map(listed.map((object) => [object.key, object]));
    for await (const document of documentsOf(bucket, signal)) {
      if (!says(document, unseen.get(document.key))) yield document.key;
      unseen.delete(document.key);
    }
    yield* unseen.keys();
  }

  async function* documentsOf(bucket: string, signal?: AbortSignal): AsyncGenerator<ObjectDocument> {
    let last: ObjectDocument | undefined;
    do {
      const after = last === undefined ? {} : { after: { bucket, key: last.key } };
      const page = await index.search({ bucket, limit: PAGE_DOCUMENTS, ...after }, signal);
      yield* page;
      last = page.length < PAGE_DOCUMENTS ? undefined : page.at(-1);
    } while (last !== undefined);
  }
}

/** Whether the document says what the object is. */
function says(document: ObjectDocument, object: EmbeddedObject | undefined): boolean {
  return object !== undefined && document.etag === object.etag && document.size === object.sizeBytes;
}
