import { describe, expect, test } from 'vitest';
import { unwrap } from '../../src/events/envelope.ts';
import { fixtureNames, messagesOf, resultsOf } from '../support/event-fixtures.ts';

const PHOTO = 'photos/été 1+1.jpg';

type Row = readonly [operation: string, eventName: string, change: string, key: string];

/** Each message's records as rows. */
function rowsOf(name: Parameters<typeof messagesOf>[0]): readonly Row[] {
  return messagesOf(name)
    .filter(({ body }) => unwrap(body).kind !== 'test-event')
    .flatMap(({ operation, body }) =>
      resultsOf(body).map((result): Row => {
        if (!result.ok) throw new Error(JSON.stringify(result));
        const { eventName, change, key } = result.record;
        const words = Object.entries(change).flatMap(([name_, value]) => (value === true ? name_ : value === false ? [] : String(value)));
        return [operation, eventName, words.join(' '), key];
      }),
    );
}

describe('what AWS or another source documents is read as what was done', () => {
  const routed: Row[] = [
    ['PutObject', 'PutObject', 'created', PHOTO],
    ['PutObject, versioned', 'PutObject', 'created', PHOTO],
    ['CopyObject', 'CopyObject', 'created copied', PHOTO],
    ['CompleteMultipartUpload', 'CompleteMultipartUpload', 'multipart-completed', PHOTO],
    ['DeleteObject', 'DeleteObject', 'deleted', PHOTO],
    ['DeleteObject, versioned', 'DeleteObject', 'marker-created', PHOTO],
    ['DeleteObjects', 'DeleteObjects', 'bulk-deleted', ''],
  ];

  test.each([
    [
      'aws-notification',
      [
        ['PutObject', 'ObjectCreated:Put', 'created', PHOTO],
        ['POST form', 'ObjectCreated:Post', 'created', PHOTO],
        ['CopyObject', 'ObjectCreated:Copy', 'created copied', PHOTO],
        ['CompleteMultipartUpload', 'ObjectCreated:CompleteMultipartUpload', 'multipart-completed', PHOTO],
        ['DeleteObject', 'ObjectRemoved:Delete', 'deleted', PHOTO],
        ['DeleteObject, versioned', 'ObjectRemoved:DeleteMarkerCreated', 'marker-created', PHOTO],
        ['Lifecycle expiration', 'LifecycleExpiration:Delete', 'lifecycle-expired', 'expiration/delete'],
        ['Lifecycle expiration, versioned', 'LifecycleExpiration:DeleteMarkerCreated', 'lifecycle-expired', 'expiration/delete'],
        ['Lifecycle transition', 'LifecycleTransition', 'storage-changed', PHOTO],
        ['Archived by Intelligent-Tiering', 'IntelligentTiering', 'storage-changed', PHOTO],
        ['RestoreObject completed', 'ObjectRestore:Completed', 'storage-changed', PHOTO],
        ['PutObjectTagging', 'ObjectTagging:Put', 'tagged', PHOTO],
        ['PutObjectAcl', 'ObjectAcl:Put', 'ignored no-effect', ''],
        ['Replication failed', 'Replication:OperationFailedReplication', 'ignored no-effect', ''],
        ['Object lost', 'ReducedRedundancyLostObject', 'lost', PHOTO],
      ],
    ],
    [
      'aws-eventbridge',
      [
        ['PutObject', 'Object Created', 'created', PHOTO],
        ['POST form', 'Object Created', 'created', PHOTO],
        ['CopyObject', 'Object Created', 'created copied', PHOTO],
        ['CompleteMultipartUpload', 'Object Created', 'multipart-completed', PHOTO],
        ['DeleteObject', 'Object Deleted', 'deleted', PHOTO],
        ['DeleteObject, versioned', 'Object Deleted', 'marker-created', PHOTO],
        ['Lifecycle expiration', 'Object Deleted', 'lifecycle-expired', PHOTO],
        ['Archived by Intelligent-Tiering', 'Object Access Tier Changed', 'storage-changed', PHOTO],
        ['Lifecycle transition', 'Object Storage Class Changed', 'storage-changed', PHOTO],
        ['RestoreObject', 'Object Restore Initiated', 'storage-changed', PHOTO],
        ['RestoreObject expired', 'Object Restore Expired', 'storage-changed', PHOTO],
        ['PutObjectTagging', 'Object Tags Added', 'tagged', PHOTO],
        ['PutObjectAcl', 'Object ACL Updated', 'ignored no-effect', ''],
      ],
    ],
    [
      'aws-trail',
      [
        ['PutObject, versioned', 'PutObject', 'created', PHOTO],
        ['PutObject', 'PutObject', 'created', PHOTO],
        ['CopyObject', 'CopyObject', 'created copied', PHOTO],
        ['CompleteMultipartUpload', 'CompleteMultipartUpload', 'multipart-completed', PHOTO],
        ['DeleteObject', 'DeleteObject', 'deleted', PHOTO],
        ['DeleteObject, versioned', 'DeleteObject', 'marker-created', PHOTO],
        ['DeleteObjects', 'DeleteObjects', 'bulk-deleted', ''],
        ['DeleteObject, denied', 'DeleteObject', 'ignored failed-call', ''],
        ['RenameObject', 'RenameObject', 'created', 'new name'],
        ['GetObject', 'GetObject', 'ignored no-effect', ''],
        ['ListBuckets', 'ListBuckets', 'ignored no-effect', ''],
      ],
    ],
    ['aws-routed', [...routed, ...routed]],
  ] as const)('%s', (name, rows) => {
    expect(rowsOf(name)).toEqual(rows);
  });
});

/** S3 began in 2006. A time that is read in the wrong unit, or not at all, makes an observation final too early or too late. Some other stores send none. */
test.each(fixtureNames.filter((name) => name !== 'other-stores'))('each record of %s has its time', (name) => {
  const records = messagesOf(name)
    .filter(({ body }) => unwrap(body).kind !== 'test-event')
    .flatMap(({ body }) => resultsOf(body));
  for (const result of records) expect(result.ok && result.record.eventTimeMs, JSON.stringify(result)).toBeGreaterThan(Date.UTC(2006, 0));
});

test.each(messagesOf('other-stores').map(({ operation, provenance: { store }, body, keys }) => [store, operation, keys, body] as const))(
  'what %s sends of “%s” is read, with its key as the store spells it (%s)',
  (_, __, keys, body) => {
    const spelled = /"key\\?":\s*\\?"([^"\\]+)/.exec(body)?.[1] ?? '';
    const key = keys === 'form' ? decodeURIComponent(spelled.replaceAll('+', ' ')) : spelled;
    // a key that can be read in two ways is two records
    const records = resultsOf(body, false).map((result) => result.ok && result.record);
    for (const record of records) expect(record).toMatchObject({ bucket: 'media' });
    expect(records).toContainEqual(expect.objectContaining({ key }));
  },
);
