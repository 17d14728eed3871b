/**
 * Finds at start the differences between the embedded buckets and the index. The embedded storage sends an event shortly
 * after each change; if the process is killed in between, the event is lost.
 */
import type { ObjectDocument } from '../../domain/documents/document.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectIndex } from '../ports/object-index.ts';

/** How many documents one search returns. */
const PAGE_DOCUMENTS = 1_000;
/** How many events are sent before other work may run: each is stored before the next, so a hundred take about 50 ms. */
const BATCH_ANNOUNCEMENTS = 100;

interface EmbeddedObject {
  readonly key: string;
  readonly etag: string;
  readonly sizeBytes: number;
}

interface CatchUpPorts {
  readonly index: Pick<ObjectIndex, 'search'>;
  readonly storage: {
    /** Lists all objects of a bucket; undefined if there is no such bucket. */
    list(bucket: string): readonly EmbeddedObject[] | undefined;
    /** Sends an event with the present state of the key. */
    announce(bucket: string, key: string): void;
  };
  /** Whether deletions of the bucket wait for a person: then no deletion of it is announced. */
  readonly isHeld: (bucket: string) => Promise<boolean>;
  readonly clock: Pick<Clock, 'sleep'>;
}

/**
 * Compares the buckets with the index and sends an event for each key that differs, by the ordinary event path. Returns how
 * many. The deletions of a bucket whose deletions wait for a person are left out. A bucket that the storage does not have is skipped. The listing of one bucket is in memory: about 200 bytes an
 * object, meant for up to 100,000 objects. Throws the faults of the index.
 */
export type CatchUp = (buckets: readonly string[], signal?: AbortSignal) => Promise<number>;

/** Creates the comparison of the embedded mode. */
export function createCatchUp({ index, storage, isHeld, clock }: CatchUpPorts): CatchUp {
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
    const mayDelete = !(await isHeld(bucket));
    const unseen = new Map(listed.map((object) => [object.key, object]));
    for await (const document of documentsOf(bucket, signal)) {
      const object = unseen.get(document.key);
      if (!agrees(document, object) && (object !== undefined || mayDelete)) yield document.key;
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

function agrees(document: ObjectDocument, object: EmbeddedObject | undefined): boolean {
  return object !== undefined && document.etag === object.etag && document.size === object.sizeBytes;
}
