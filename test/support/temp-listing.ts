import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import type { S3Client } from '@aws-sdk/client-s3';
import { FaultError } from '../../src/domain/fault.ts';
import { compareKeys } from '../../src/domain/key-order.ts';
import type { BucketListing } from '../../src/pipeline/ports-reindex.ts';

export function createTempListing(clientFor: (region: string) => S3Client): BucketListing {
  return {
    async page({ bucket, region }, { prefix, after, limit }, signal) {
      try {
        const begun = performance.now();
        const page = await clientFor(region).send(
          new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, StartAfter: after, MaxKeys: limit, EncodingType: 'url' }),
          signal === undefined ? {} : { abortSignal: signal },
        );
        const objects = (page.Contents ?? []).map(({ Key, ETag, Size, LastModified, StorageClass }) => ({
          key: decodeURIComponent(Key!.replaceAll('+', ' ')),
          state: {
            present: true as const,
            etag: ETag!.replaceAll('"', ''),
            sizeBytes: Size!,
            lastModifiedMs: LastModified!.getTime(),
            storageClass: StorageClass!,
          },
        }));
        let last = after;
        for (const { key } of objects) {
          if (compareKeys(last, key) >= 0 || !key.startsWith(prefix)) throw new FaultError('listing.disorder', `${last} ${key}`);
          last = key;
        }
        if (page.IsTruncated === undefined || (page.IsTruncated && objects.length === 0)) throw new FaultError('listing.incomplete', 'x');
        return { objects, isTruncated: page.IsTruncated, observedAtMs: Math.floor(Date.now() / 1000) * 1000 - (performance.now() - begun) };
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof FaultError) throw error;
        throw new FaultError('s3.unavailable', String(error));
      }
    },
  };
}
