/** Random operations on a real bucket with versions, and the calls that an audit trail tells of them. */
import {
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import * as fc from 'fast-check';
import type { Call } from '../audit-trail.ts';
import type { TestAws } from '../servers/aws.ts';

export type Operation =
  | { readonly kind: 'put' | 'multipart'; readonly key: string; readonly body: string }
  | { readonly kind: 'copy'; readonly from: string; readonly key: string }
  | { readonly kind: 'delete'; readonly key: string }
  /** Of the versions and markers that the key has had here, the one at this share of them, from the oldest. */
  | { readonly kind: 'delete-version'; readonly key: string; readonly share: number }
  | { readonly kind: 'delete-many'; readonly keys: readonly string[] };

/** Operations on few enough keys that each is met several times. */
export function operationArbitrary(keys: readonly string[]): fc.Arbitrary<Operation> {
  const key = fc.constantFrom(...keys);
  const body = fc.string({ maxLength: 20 });
  const manyKeys = fc.uniqueArray(fc.constantFrom(...keys.filter(fitsXml)), { minLength: 1, maxLength: 5 });
  return fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('put' as const), key, body }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('copy' as const), from: key, key }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('multipart' as const), key, body }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('delete' as const), key }) },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('delete-version' as const), key, share: fc.double({ min: 0, max: 0.99, noNaN: true }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete-many' as const), keys: manyKeys }) },
  );
}

/** XML 1.0 cannot name the control characters below a space, except three of white space. */
function fitsXml(key: string): boolean {
  return !Array.from(key).some((character) => character < ' ' && !'\t\n\r'.includes(character));
}

/** Does operations on a bucket; resolves with the calls that a trail would tell. An operation that the bucket refuses (a copy of what is not there) comes to none. */
export function createOperator({ s3 }: TestAws, bucket: string): (operation: Operation) => Promise<readonly Call[]> {
  const versions = new Map<string, string[]>();

  function called(call: Omit<Call, 'bucket'> & { readonly key: string }, made: string | undefined): Call {
    if (made !== undefined) versions.set(call.key, [...(versions.get(call.key) ?? []), made]);
    return { ...call, bucket, ...(made !== undefined && { versionId: made }) };
  }

  return async function operate(operation) {
    const timeMs = Date.now();
    switch (operation.kind) {
      case 'put': {
        const { key, body } = operation;
        const { VersionId } = await s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: Buffer.from(body) }));
        return [called({ eventName: 'PutObject', key, timeMs }, VersionId)];
      }
      case 'copy': {
        const { from, key } = operation;
        const CopySource = `${bucket}/${encodeURIComponent(from)}`;
        try {
          // S3 refuses a copy to itself that changes nothing
          const command = new CopyObjectCommand({ Bucket: bucket, Key: key, CopySource, MetadataDirective: 'REPLACE' });
          const { VersionId } = await s3.send(command);
          return [called({ eventName: 'CopyObject', key, timeMs }, VersionId)];
        } catch (error) {
          if (error instanceof Error && ['NoSuchKey', 'NotFound', 'InvalidRequest'].includes(error.name)) return [];
          throw error;
        }
      }
      case 'multipart': {
        const { key, body } = operation;
        const at = { Bucket: bucket, Key: key };
        const { UploadId } = await s3.send(new CreateMultipartUploadCommand(at));
        const { ETag } = await s3.send(new UploadPartCommand({ ...at, UploadId, PartNumber: 1, Body: Buffer.from(body) }));
        const completedAtMs = Date.now();
        const MultipartUpload = { Parts: [{ ETag, PartNumber: 1 }] };
        const { VersionId } = await s3.send(new CompleteMultipartUploadCommand({ ...at, UploadId, MultipartUpload }));
        return [called({ eventName: 'CompleteMultipartUpload', key, timeMs: completedAtMs }, VersionId)];
      }
      case 'delete': {
        const { key } = operation;
        const { VersionId } = await s3.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }));
        return [called({ eventName: 'DeleteObject', key, isDeleteMarker: true, timeMs }, VersionId)];
      }
      case 'delete-version': {
        const { key, share } = operation;
        const known = versions.get(key) ?? [];
        const [VersionId] = known.splice(Math.floor(known.length * share), 1);
        if (VersionId === undefined) return [];
        const { DeleteMarker } = await s3.send(new DeleteObjectCommand({ Bucket: bucket, Key: key, VersionId }));
        return [{ eventName: 'DeleteObject', bucket, key, versionId: VersionId, isDeleteMarker: DeleteMarker === true, timeMs }];
      }
      case 'delete-many': {
        const Objects = operation.keys.map((Key) => ({ Key }));
        const { Deleted = [] } = await s3.send(new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects } }));
        // a trail tells the call without its keys, and newer ones each key as well
        const each = Deleted.map(({ Key, DeleteMarkerVersionId }) =>
          called({ eventName: 'DeleteObject', key: Key!, isDeleteMarker: true, timeMs }, DeleteMarkerVersionId),
        );
        return [{ eventName: 'DeleteObjects', bucket, timeMs }, ...each];
      }
    }
  };
}

/** What a bucket holds now, by ListObjectsV2. */
export async function listBucket({ s3 }: TestAws, bucket: string): Promise<{ key: string; etag: string; size: number }[]> {
  const objects: { key: string; etag: string; size: number }[] = [];
  let ContinuationToken: string | undefined;
  do {
    // without the encoding a key with control characters would not survive XML
    const { Contents = [], NextContinuationToken } = await s3.send(
      new ListObjectsV2Command({ Bucket: bucket, EncodingType: 'url', ContinuationToken }),
    );
    for (const { Key, ETag, Size } of Contents) {
      objects.push({ key: decodeURIComponent(Key!.replaceAll('+', ' ')), etag: ETag!.replaceAll('"', ''), size: Size! });
    }
    ContinuationToken = NextContinuationToken;
  } while (ContinuationToken !== undefined);
  return objects;
}
