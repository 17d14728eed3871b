/**
 * S3 event notifications, which fauxqs does not have. Every change of an object in any bucket becomes the notification
 * that S3 would send. It is published synchronously with the change, so that its order and content are those of the store.
 */
import type { Clock } from '../process/clock.ts';
import type { Telemetry } from '../process/telemetry.ts';
import { sequencerOf, type EmbeddedClock } from './clock.ts';
import type { S3Object, S3Store } from './fauxqs.ts';

/** The event names of a plain put, which depend on the request that made it. */
export type PutEvent = 'ObjectCreated:Put' | 'ObjectCreated:Copy' | 'ObjectCreated:Post';

/** A change of one key, with the object that it has afterwards. */
interface ObjectChange {
  readonly bucket: string;
  readonly key: string;
  readonly eventName: PutEvent | 'ObjectCreated:CompleteMultipartUpload' | 'ObjectRemoved:Delete';
  /** Absent: the object was deleted. */
  readonly object?: S3Object;
}

/** How long a key whose notification could not be stored waits for the next attempt. */
const RETRY_DELAY_MS = 1_000;

/** Calls `changed` after every change of the store's objects, in order. */
export function watchObjects(store: S3Store, putEvent: () => PutEvent, changed: (change: ObjectChange) => void): void {
  const putObject = store.putObject.bind(store);
  store.putObject = (...parameters) => {
    const object = putObject(...parameters);
    changed({ bucket: parameters[0], key: object.key, eventName: putEvent(), object });
    return object;
  };

  const deleteObject = store.deleteObject.bind(store);
  store.deleteObject = (bucket, key) => {
    const existed = objectAt(store, bucket, key) !== undefined;
    try {
      deleteObject(bucket, key);
    } finally {
      // fauxqs removes it from memory first: if the disk then fails, the object is absent until the next start
      if (existed && objectAt(store, bucket, key) === undefined) changed({ bucket, key, eventName: 'ObjectRemoved:Delete' });
    }
  };

  const renameObject = store.renameObject.bind(store);
  store.renameObject = (bucket, source, target) => {
    renameObject(bucket, source, target);
    if (source !== target) changed({ bucket, key: source, eventName: 'ObjectRemoved:Delete' });
    changed({ bucket, key: target, eventName: 'ObjectCreated:Copy', object: store.headObject(bucket, target) });
  };

  watchUploads(store, changed);
}

/** The completion of a multipart upload contains only the upload id, so the buckets of open uploads are kept. */
function watchUploads(store: S3Store, changed: (change: ObjectChange) => void): void {
  const buckets = new Map<string, string>();

  const restoreMultipartUpload = store.restoreMultipartUpload.bind(store);
  store.restoreMultipartUpload = (upload) => {
    restoreMultipartUpload(upload);
    buckets.set(upload.uploadId, upload.bucket);
  };

  const createMultipartUpload = store.createMultipartUpload.bind(store);
  store.createMultipartUpload = (...parameters) => {
    const uploadId = createMultipartUpload(...parameters);
    buckets.set(uploadId, parameters[0]);
    return uploadId;
  };

  const abortMultipartUpload = store.abortMultipartUpload.bind(store);
  store.abortMultipartUpload = (uploadId) => {
    abortMultipartUpload(uploadId);
    buckets.delete(uploadId);
  };

  const completeMultipartUpload = store.completeMultipartUpload.bind(store);
  store.completeMultipartUpload = (uploadId, parts) => {
    const object = completeMultipartUpload(uploadId, parts);
    const bucket = buckets.get(uploadId);
    buckets.delete(uploadId);
    if (bucket !== undefined) changed({ bucket, key: object.key, eventName: 'ObjectCreated:CompleteMultipartUpload', object });
    return object;
  };
}

export interface Notifier {
  /** Publishes the change. If that fails, the present state of the key is published, with an attempt every second until one succeeds. No change is lost while the process lives. */
  notify(change: ObjectChange): void;
  /** Ends the attempts. The next start finds the unpublished changes when it re-indexes the buckets. */
  stop(): void;
}

interface NotifierDependencies {
  readonly store: S3Store;
  readonly region: string;
  readonly moments: EmbeddedClock;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Pick<Telemetry, 'warn'>;
  /** Throws if the message was not delivered. */
  readonly publish: (message: string) => void;
}

export function createNotifier({ store, region, moments, clock, log, publish }: NotifierDependencies): Notifier {
  /** The keys with changes that could not be published. */
  const unpublished = new Map<string, { readonly bucket: string; readonly key: string }>();
  const stopping = new AbortController();

  function publishChange(change: ObjectChange): void {
    publish(notificationOf(change, region, moments.next()));
  }

  function notify(change: ObjectChange): void {
    const { bucket, key } = change;
    try {
      publishChange(change);
    } catch (error) {
      if (unpublished.size === 0) {
        log.warn('changes in the embedded storage were not published: they are tried again every second', { error: String(error) });
        void publishAgain();
      }
      unpublished.set(JSON.stringify([bucket, key]), { bucket, key });
    }
  }

  function present(bucket: string, key: string): ObjectChange {
    const object = objectAt(store, bucket, key);
    if (object === undefined) return { bucket, key, eventName: 'ObjectRemoved:Delete' };
    return { bucket, key, eventName: 'ObjectCreated:Put', object };
  }

  /** Runs for as long as there are unpublished changes. */
  async function publishAgain(): Promise<void> {
    do {
      try {
        await clock.sleep(RETRY_DELAY_MS, stopping.signal);
      } catch {
        return;
      }
      for (const [id, { bucket, key }] of unpublished) {
        try {
          publishChange(present(bucket, key));
          unpublished.delete(id);
        } catch {
          // logged when the first one failed
        }
      }
    } while (unpublished.size > 0);
  }

  return { notify, stop: () => stopping.abort() };
}

/** The object of a key; undefined if the key or its bucket does not exist. */
function objectAt(store: S3Store, bucket: string, key: string): S3Object | undefined {
  try {
    return store.headObject(bucket, key);
  } catch {
    return undefined; // it throws only NoSuchBucket and NoSuchKey
  }
}

/** The message of “Event message structure” in the S3 user guide, without the fields about the requester. */
function notificationOf({ bucket, key, eventName, object }: ObjectChange, region: string, moment: number): string {
  const record = {
    eventVersion: '2.1',
    eventSource: 'aws:s3',
    awsRegion: region,
    eventTime: new Date(Math.floor(moment / 1_000)).toISOString(),
    eventName,
    s3: {
      s3SchemaVersion: '1.0',
      configurationId: 'tally-embedded',
      bucket: { name: bucket, arn: `arn:aws:s3:::${bucket}` },
      object: {
        key: encodeURIComponent(key).replaceAll('%2F', '/').replaceAll('%20', '+'),
        ...(object !== undefined && { size: object.contentLength, eTag: object.etag.replaceAll('"', '') }),
        sequencer: sequencerOf(moment),
      },
    },
  };
  return JSON.stringify({ Records: [record] });
}
