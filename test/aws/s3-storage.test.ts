import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createS3Storage } from '../../src/aws/s3-storage.ts';
import type { ObjectStorage } from '../../src/aws/storage.ts';
import type { TestAws } from '../support/servers/aws.ts';
import { createTestAws } from '../support/servers/aws.ts';
import { awsEndpoint } from '../support/servers/found.ts';

const HELLO_ETAG = '5d41402abc4b2a76b9719d911017c592';

describe.skipIf(!awsEndpoint())('the S3 storage on LocalStack', () => {
  let aws: TestAws;
  let storage: ObjectStorage;
  const at = (bucket: string) => ({ bucket, region: aws.region });

  beforeAll(() => {
    aws = createTestAws(awsEndpoint()!);
    storage = createS3Storage({ clientFor: aws.clients().s3For, region: aws.region, clock: { monotonicMs: () => performance.now() } });
  });
  afterAll(() => aws.dispose());

  it('sees an object come and go in a bucket without versioning', async () => {
    const bucket = await aws.createBucket();
    expect((await storage.readState(at(bucket), 'k')).state).toEqual({ present: false });
    await aws.put(bucket, 'k', 'hello');
    const { state, observedAtMs } = await storage.readState(at(bucket), 'k');
    expect(state).toEqual({
      present: true,
      etag: HELLO_ETAG,
      sizeBytes: 5,
      lastModifiedMs: expect.any(Number) as number,
      contentType: expect.any(String) as string,
      storageClass: 'STANDARD',
      userMetadata: {},
    });
    expect(Math.abs(observedAtMs - Date.now())).toBeLessThan(60_000);
    await aws.remove(bucket, 'k');
    expect((await storage.readState(at(bucket), 'k')).state).toEqual({ present: false });
  });

  it('sees versions, delete markers and the null version', async () => {
    const bucket = await aws.createBucket({ versioned: true });
    await aws.put(bucket, 'k', 'first');
    const first = (await storage.readState(at(bucket), 'k')).state;
    expect(first).toMatchObject({ present: true, versionId: expect.stringMatching(/.{10,}/) as string });
    await aws.put(bucket, 'k', 'hello');
    const second = (await storage.readState(at(bucket), 'k')).state;
    expect(second).toMatchObject({ present: true, etag: HELLO_ETAG });
    expect(second).not.toMatchObject({ versionId: first.present ? first.versionId : '' });
    await aws.remove(bucket, 'k');
    expect((await storage.readState(at(bucket), 'k')).state).toEqual({ present: false });
    await aws.setVersioning(bucket, 'Suspended');
    await aws.put(bucket, 'k', 'hello');
    expect((await storage.readState(at(bucket), 'k')).state).toMatchObject({ present: true, versionId: 'null' });
  });

  it('sees every awkward key, and that its neighbours are not there, of which one may be another form of one name', async () => {
    const bucket = await aws.createBucket();
    const keys = ['..', '../x', './a', 'a//b', '/lead', 'trailing/', 'a b', 'a+b', '100%', 'a%20b', 'é', '\u{1f600}', '\u0001', '"\\\n'];
    for (const key of [...keys, 'x'.repeat(1_024)]) await aws.put(bucket, key, 'hello');
    for (const key of [...keys, 'x'.repeat(1_024)])
      expect((await storage.readState(at(bucket), key)).state, key).toMatchObject({ present: true, etag: HELLO_ETAG });
    for (const key of [...keys.map((each) => `${each}~`), 'e\u0301'])
      expect((await storage.readState(at(bucket), key)).state, key).toEqual({ present: false });
  });

  it('reads the region and the versioning of a bucket', async () => {
    const bucket = await aws.createBucket();
    expect(await storage.regionOf(bucket)).toBe('us-east-1');
    expect(await storage.versioningOf(at(bucket))).toMatchObject({ status: 'never' });
    await aws.setVersioning(bucket, 'Enabled');
    const { status, observedAtMs } = await storage.versioningOf(at(bucket));
    expect(status).toBe('enabled');
    expect(Math.abs(observedAtMs - Date.now())).toBeLessThan(60_000);
    await aws.setVersioning(bucket, 'Suspended');
    expect(await storage.versioningOf(at(bucket))).toMatchObject({ status: 'suspended' });
  });
});
