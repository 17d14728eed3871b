/**
 * S3 event notifications, which fauxqs does not have. Every change of an object in any bucket becomes the notification
 * that S3 would send. It is published synchronously with the change, so that its order and content are those of the store: if that
 * fails, the request that made the change fails too, and its client repeats it.
 */
import { sequencerOf } from './clock.ts';
import type { S3Object, S3Store } from './fauxqs.ts';

/** A change of one key, with the object that it has afterwards. */
interface ObjectChange {
  readonly bucket: string;
  readonly key: string;
  /** Absent: the object was deleted. */
  readonly object?: S3Object;
}

/** Calls `changed` for every change of the store's objects, in order: before a deletion, and after any other change. `requestBucket`: the bucket of the request that is being processed. */
export function watchObjects(store: S3Store, requestBucket: () => string, changed: (change: ObjectChange) => void): void {
  const putObject = store.putObject.bind(store);
  store.putObject = (...parameters) => {
    const object = putObject(...parameters);
    changed({ bucket: parameters[0], key: object.key, object });
    return object;
  };

  const deleteObject = store.deleteObject.bind(store);
  store.deleteObject = (bucket, key) => {
    // published first: when the request is repeated, the object is gone. fauxqs always removes it from memory, even if the disk fails
    if (objectAt(store, bucket, key) !== undefined) changed({ bucket, key });
    deleteObject(bucket, key);
  };

  const renameObject = store.renameObject.bind(store);
  store.renameObject = (bucket, source, target) => {
    renameObject(bucket, source, target);
    if (source !== target) changed({ bucket, key: source });
    changed({ bucket, key: target, object: store.headObject(bucket, target) });
  };

  const completeMultipartUpload = store.completeMultipartUpload.bind(store);
  store.completeMultipartUpload = (uploadId, parts) => {
    const object = completeMultipartUpload(uploadId, parts);
    changed({ bucket: requestBucket(), key: object.key, object });
    return object;
  };
}

/** The object of a key; undefined if the key or its bucket does not exist. */
function objectAt(store: S3Store, bucket: string, key: string): S3Object | undefined {
  try {
    return store.headObject(bucket, key);
  } catch {
    return undefined; // it throws only NoSuchBucket and NoSuchKey
  }
}

/** The message of “Event message structure” in the S3 user guide, without the fields about the requester. Every kind of put is named as one. */
export function notificationOf({ bucket, key, object }: ObjectChange, region: string, moment: number): string {
  const record = {
    eventVersion: '2.1',
    eventSource: 'aws:s3',
    awsRegion: region,
    eventTime: new Date(Math.floor(moment / 1_000)).toISOString(),
    eventName: object === undefined ? 'ObjectRemoved:Delete' : 'ObjectCreated:Put',
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
