import { PutBucketLifecycleConfigurationCommand, type LifecycleRule as S3Rule } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createS3Lifecycle } from '../../src/aws/s3-storage.ts';
import type { BucketLifecycle } from '../../src/aws/storage.ts';
import { type TestAws, createTestAws } from '../support/servers/aws.ts';
import { awsEndpoint } from '../support/servers/found.ts';
import { errorBody, foreign, scriptedS3, target } from './scripted-s3.ts';

const clock = { monotonicMs: () => performance.now() };

describe.skipIf(!awsEndpoint())('lifecycle rules on LocalStack', () => {
  let aws: TestAws;
  let lifecycle: BucketLifecycle;

  beforeAll(() => {
    aws = createTestAws(awsEndpoint()!);
    lifecycle = createS3Lifecycle({ clientFor: aws.clients().s3For, clock });
  });
  afterAll(() => aws.dispose());

  async function rulesOf(rules: S3Rule[]) {
    const bucket = await aws.createBucket();
    const command = new PutBucketLifecycleConfigurationCommand({ Bucket: bucket, LifecycleConfiguration: { Rules: rules } });
    await aws.clients().s3For(aws.region).send(command);
    return lifecycle.rulesOf({ bucket, region: aws.region });
  }

  it('are none where there is no configuration', async () => {
    const bucket = await aws.createBucket();
    expect(await lifecycle.rulesOf({ bucket, region: aws.region })).toEqual([]);
  });

  it('of each kind are understood', async () => {
    const rules = await rulesOf([
      { ID: 'prefix', Status: 'Enabled', Filter: { Prefix: 'logs/ü ' }, Expiration: { Days: 30 } },
      {
        ID: 'tag',
        Status: 'Enabled',
        Filter: { Tag: { Key: 'class', Value: 'tmp' } },
        Expiration: { Date: new Date('2030-01-01T00:00:00Z') },
      },
      {
        ID: 'and',
        Status: 'Disabled',
        Filter: {
          And: {
            Prefix: 'a/',
            Tags: [
              { Key: 'x', Value: '1' },
              { Key: 'y', Value: '' },
            ],
            ObjectSizeGreaterThan: 500,
            ObjectSizeLessThan: 64_000,
          },
        },
        Expiration: { Days: 1 },
      },
      { ID: 'size', Status: 'Enabled', Filter: { ObjectSizeGreaterThan: 1_024 }, Expiration: { Days: 2 } },
      { ID: 'old versions', Status: 'Enabled', Filter: { Prefix: '' }, NoncurrentVersionExpiration: { NoncurrentDays: 3 } },
      { ID: 'markers', Status: 'Enabled', Filter: { Prefix: 'm/' }, Expiration: { ExpiredObjectDeleteMarker: true } },
      { ID: 'uploads', Status: 'Enabled', Filter: { Prefix: 'u/' }, AbortIncompleteMultipartUpload: { DaysAfterInitiation: 7 } },
    ]);
    expect(rules).toEqual([
      { id: 'prefix', isEnabled: true, prefix: 'logs/ü ', tags: {}, expiresAfterDays: 30 },
      { id: 'tag', isEnabled: true, prefix: '', tags: { class: 'tmp' }, expiresAtMs: Date.UTC(2030, 0, 1) },
      { id: 'and', isEnabled: false, prefix: 'a/', tags: { x: '1', y: '' }, sizeAbove: 500, sizeBelow: 64_000, expiresAfterDays: 1 },
      { id: 'size', isEnabled: true, prefix: '', tags: {}, sizeAbove: 1_024, expiresAfterDays: 2 },
      { id: 'old versions', isEnabled: true, prefix: '', tags: {} },
      { id: 'markers', isEnabled: true, prefix: 'm/', tags: {} },
      { id: 'uploads', isEnabled: true, prefix: 'u/', tags: {} },
    ]);
  });
});

describe('lifecycle rules as S3 answers them', () => {
  it('in the old form have their prefix beside the filter that they lack', async () => {
    const rule = '<ID>old</ID><Prefix>logs/</Prefix><Status>Enabled</Status><Expiration><Days>10</Days></Expiration>';
    const answered = await scriptedS3(() => ({ body: `<LifecycleConfiguration><Rule>${rule}</Rule></LifecycleConfiguration>` }));
    const expected = { id: 'old', isEnabled: true, prefix: 'logs/', tags: {}, expiresAfterDays: 10 };
    expect(await answered.lifecycle.rulesOf(target)).toEqual([expected]);
  });

  it('have the unfinished uploads beside them: how many, and since when', async () => {
    const upload = (at: string): string => `<Upload><Key>k</Key><UploadId>${at}</UploadId><Initiated>${at}</Initiated></Upload>`;
    const list = (more: boolean, ...times: readonly string[]): string =>
      `<ListMultipartUploadsResult><IsTruncated>${more}</IsTruncated>${times.map(upload).join('')}</ListMultipartUploadsResult>`;
    const bodies = [list(true, '2026-03-02T00:00:00Z', '2026-03-01T00:00:00Z'), list(false)];
    const { lifecycle, asked } = await scriptedS3(() => ({ body: bodies.shift() ?? '' }));
    expect(await lifecycle.uploadsOf(target)).toEqual({ count: 2, is_more: true, oldest_at: '2026-03-01T00:00:00.000Z' });
    expect(await lifecycle.uploadsOf(target)).toBeUndefined();
    expect(asked).toHaveLength(2);
  });

  it.each([
    ['lifecycle.denied', { status: 403, body: errorBody('AccessDenied') }],
    ['s3.throttled', { status: 503, body: errorBody('SlowDown') }],
    ['object.failed', { headers: foreign, body: '<html/>' }],
  ])('are %s', async (code, answer) => {
    const { lifecycle } = await scriptedS3(() => answer);
    await expect(lifecycle.rulesOf(target)).rejects.toMatchObject({ code });
  });
});
