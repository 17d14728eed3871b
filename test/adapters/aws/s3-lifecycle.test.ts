import { PutBucketLifecycleConfigurationCommand, type LifecycleRule as S3Rule } from '@aws-sdk/client-s3';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createAwsClients } from '../../../src/adapters/aws/clients.ts';
import { createS3Lifecycle } from '../../../src/adapters/aws/s3-lifecycle.ts';
import { faultOf } from '../../../src/domain/fault.ts';
import type { BucketLifecycle } from '../../../src/pipeline/ports/storage.ts';
import type { TestAws } from '../../support/servers/aws.ts';
import { createTestAws } from '../../support/servers/aws.ts';
import { awsEndpoint } from '../../support/servers/found.ts';

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

  it('of a bucket that is not there are a missing bucket', async () => {
    const code = await lifecycle
      .rulesOf({ bucket: 'never-made-by-anybody', region: aws.region })
      .catch((error: unknown) => faultOf(error).code);
    expect(code).toBe('bucket.missing');
  });
});

describe('lifecycle rules as S3 answers them', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  /** A server that answers each request so. */
  async function answering(status: number, body: string): Promise<BucketLifecycle> {
    server = createServer((_, response) => {
      response.writeHead(status, { 'content-type': 'application/xml', date: new Date().toUTCString() });
      response.end(`<?xml version="1.0" encoding="UTF-8"?>${body}`);
    });
    const listening = server;
    await new Promise<void>((resolve) => {
      listening.listen(0, '127.0.0.1', resolve);
    });
    const { port } = listening.address() as AddressInfo;
    const { s3For } = createAwsClients({
      region: 'us-east-1',
      endpoints: { s3: `http://127.0.0.1:${port}` },
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
      s3: { forcePathStyle: true, timeoutMs: 60_000, connectionsMax: 1 },
      sqs: { receivesMax: 1, waitS: 1 },
    });
    return createS3Lifecycle({ clientFor: s3For, clock });
  }

  const location = { bucket: 'photos', region: 'us-east-1' };

  it('in the old form have their prefix beside the filter that they lack', async () => {
    const lifecycle = await answering(
      200,
      '<LifecycleConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Rule><ID>old</ID><Prefix>logs/</Prefix><Status>Enabled</Status>' +
        '<Expiration><Days>10</Days></Expiration></Rule></LifecycleConfiguration>',
    );
    expect(await lifecycle.rulesOf(location)).toEqual([{ id: 'old', isEnabled: true, prefix: 'logs/', tags: {}, expiresAfterDays: 10 }]);
  });

  it.each([
    ['lifecycle.denied', 403, 'AccessDenied'],
    ['s3.throttled', 503, 'SlowDown'],
    ['s3.unavailable', 500, 'InternalError'],
    ['bucket.missing', 404, 'NoSuchBucket'],
    ['s3.credentials', 403, 'InvalidAccessKeyId'],
  ])('are %s for %i %s', async (code, status, name) => {
    const lifecycle = await answering(status, `<Error><Code>${name}</Code><Message>m</Message></Error>`);
    expect(await lifecycle.rulesOf(location).catch((error: unknown) => faultOf(error).code)).toBe(code);
  });
});
