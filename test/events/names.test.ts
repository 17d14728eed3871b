import { describe, expect, test } from 'vitest';
import { callChange, eventBridgeChange, nativeChange } from '../../src/events/dialects.ts';

const created = { kind: 'created', copied: false };
const noEffect = { kind: 'ignored', reason: 'no-effect' };
const unknown = { kind: 'unknown' };

// the names that AWS documents are in fixtures.test.ts, each in a body that has it
describe('the event name of a notification', () => {
  const table = [
    ['ObjectAnnotation:Put', noEffect],
    ['ObjectCreated:PutRetention', noEffect],
    ['ObjectCreated:PutLegalHold', noEffect],
    ['ObjectAccessed:Get', noEffect],
    ['BucketRemoved:*', noEffect],
    // whatever is not known is observed: other stores, other cases, later names
    ['ObjectCreated:Append', unknown],
    ['ObjectCreated:PutTagging', unknown],
    ['objectCreated:Put', unknown],
    ['Replication:Create', unknown],
    ['ObjectLifecycle:Expiration:Current', unknown],
    ['ObjectAclX:Put', unknown],
    ['ObjectRemoved:DeleteAllVersions', { kind: 'lost' }],
    ['ObjectRemoved', { kind: 'lost' }],
    ['LifecycleExpiration:Imagined', { kind: 'lifecycle-expired' }],
    ['ObjectRestore:Imagined', { kind: 'storage-changed' }],
    ['ObjectTagging:Imagined', { kind: 'tagged' }],
    ['ObjectAcl:Imagined', unknown],
    ['LifecycleDelMarkerExpiration:Delete', unknown],
    ['', unknown],
    ['constructor', unknown],
    ['__proto__:x', unknown],
  ] as const;

  test.each(table)('%s says what the table says', (eventName, change) => {
    expect(nativeChange(eventName)).toEqual(change);
    expect(nativeChange(`s3:${eventName}`)).toEqual(change);
  });
});

test.each([
  ['Object Created', 's3:ObjectCreated:CompleteMultipartUpload', undefined, { kind: 'multipart-completed' }],
  // not known to state the result, so observed
  ['Object Created', 'SomethingNew', undefined, { kind: 'multipart-completed' }],
  ['Object Created', undefined, undefined, { kind: 'multipart-completed' }],
  ['Object Created', { toString: 1, valueOf: 1 }, undefined, { kind: 'multipart-completed' }],
  // it may be an expiration, whose sequencer is that of midnight
  ['Object Deleted', undefined, undefined, { kind: 'lifecycle-expired' }],
  ['Object Deleted', 'Lifecycle Expiration', 'Delete Marker Created', { kind: 'lifecycle-expired' }],
  ['Object Restore Completed', undefined, undefined, { kind: 'storage-changed' }],
  ['Object Tags Deleted', undefined, undefined, { kind: 'tagged' }],
  ['Async Copy Completion', undefined, undefined, unknown],
  ['Object Imagined', undefined, undefined, unknown],
  ['toString', undefined, undefined, unknown],
])('an EventBridge event of S3: %s (reason %j, %j) says what the table says', (detailType, reason, deletionType, change) => {
  expect(eventBridgeChange(detailType, { reason, deletionType })).toEqual(change);
});

describe('an API call', () => {
  const call = { errorCode: undefined, key: 'a', deleteMarker: undefined };

  test.each([
    ['PostObject', created],
    ['PutObjectTagging', { kind: 'tagged' }],
    ['DeleteObjectTagging', { kind: 'tagged' }],
    ['HeadObject', noEffect],
    ['ListObjectsV2', noEffect],
    ['SelectObjectContent', noEffect],
    ['CreateMultipartUpload', noEffect],
    ['UploadPart', noEffect],
    ['UploadPartCopy', noEffect],
    ['AbortMultipartUpload', noEffect],
    ['PutObjectAcl', noEffect],
    ['PutObjectRetention', noEffect],
    ['PutObjectLegalHold', noEffect],
    ['RestoreObject', unknown],
    ['', unknown],
    ['Getaway', unknown],
    ['constructor', unknown],
  ])('%s says what the table says', (eventName, change) => {
    expect(callChange({ ...call, eventName })).toEqual(change);
  });

  test('that deletes and answers with a delete marker made the marker current', () => {
    const deleted = { ...call, eventName: 'DeleteObject' };
    for (const deleteMarker of [true, 'true']) expect(callChange({ ...deleted, deleteMarker })).toEqual({ kind: 'marker-created' });
    for (const deleteMarker of [false, 'false', '', null, undefined, 'yes', 1])
      expect(callChange({ ...deleted, deleteMarker })).toEqual({ kind: 'deleted' });
    expect(callChange({ ...call, eventName: 'DeleteObjects', deleteMarker: true })).toEqual({ kind: 'bulk-deleted' });
  });

  test('that failed changed nothing, and an error that cannot be read is none', () => {
    expect(callChange({ ...call, eventName: 'PutObject', errorCode: 'AccessDenied' })).toEqual({ kind: 'ignored', reason: 'failed-call' });
    for (const errorCode of ['', null, 7, {}]) expect(callChange({ ...call, eventName: 'PutObject', errorCode })).toEqual(created);
  });

  test('that names no key and is not known concerns the bucket', () => {
    expect(callChange({ ...call, eventName: 'PutBucketPolicy', key: undefined })).toEqual(noEffect);
    expect(callChange({ ...call, eventName: '', key: undefined })).toEqual(unknown);
  });
});
