import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { createS3Lifecycle } from '../../../src/adapters/aws/s3-lifecycle.ts';
import { createS3Listing } from '../../../src/adapters/aws/s3-listing.ts';
import { createS3Storage } from '../../../src/adapters/aws/s3-storage.ts';
import { createTestAws } from '../../support/servers/aws.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

/** An S3 that notes which owner each request expects, and refuses it. */
async function startS3() {
  const owners: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    owners.push(String(request.headers['x-amz-expected-bucket-owner'] ?? 'none'));
    response.writeHead(403, { date: new Date().toUTCString(), 'x-amz-request-id': 'TESTREQUEST00001' }).end();
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  stops.push(() => new Promise((resolve) => void server.close(resolve)));
  const aws = createTestAws(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  stops.push(() => aws.dispose());
  const clock = { monotonicMs: () => 1_000 };
  const { s3For: clientFor } = aws.clients({ s3TimeoutMs: 60_000 });
  return {
    owners,
    storage: createS3Storage({ clientFor, region: 'us-east-1', clock }),
    listing: createS3Listing({ clientFor, clock }),
    lifecycle: createS3Lifecycle({ clientFor, clock }),
  };
}

it.each([
  ['123456789012', '123456789012'],
  [undefined, 'none'],
])('every request about a bucket of the account %s expects it as the owner', async (account, expected) => {
  const { owners, storage, listing, lifecycle } = await startS3();
  const bucket = { bucket: 'some-bucket', region: 'eu-west-1', account };
  const requests: readonly (() => Promise<unknown>)[] = [
    () => storage.observe(bucket, 'k'),
    () => storage.observe(bucket, 'k', undefined, { byListing: true }),
    () => storage.firstKey(bucket),
    () => storage.versioningOf(bucket),
    () => storage.readVersion(bucket, { key: 'k' }),
    () => storage.readTags(bucket, { key: 'k' }),
    () => listing.page(bucket, { prefix: '', after: '', limit: 1 }),
    () => lifecycle.rulesOf(bucket),
  ];
  for (const request of requests) {
    const before = owners.length;
    await request().catch(() => undefined);
    expect(owners.length).toBeGreaterThan(before);
  }
  expect(new Set(owners)).toEqual(new Set([expected]));
});
