import { expect, it } from 'vitest';
import { scriptedS3, target } from './scripted-s3.ts';

it.each([
  ['123456789012', '123456789012'],
  [undefined, undefined],
])('every request about a bucket of the account %s expects it as the owner', async (account, expected) => {
  const { asked, storage, listing, lifecycle } = await scriptedS3(() => ({ status: 403 }));
  const bucket = { ...target, account };
  const requests: readonly (() => Promise<unknown>)[] = [
    () => storage.readState(bucket, 'k'),
    () => storage.readState(bucket, 'k', undefined, { byListing: true }),
    () => storage.firstKey(bucket),
    () => storage.versioningOf(bucket),
    () => storage.readVersion(bucket, { key: 'k' }),
    () => storage.readTags(bucket, { key: 'k' }),
    () => listing.page(bucket, { prefix: '', after: '', limit: 1 }),
    () => lifecycle.rulesOf(bucket),
    () => lifecycle.uploadsOf(bucket),
  ];
  for (const request of requests) {
    const before = asked.length;
    await request().catch(() => undefined);
    expect(asked.length).toBeGreaterThan(before);
  }
  expect(new Set(asked.map(({ headers }) => headers['x-amz-expected-bucket-owner']))).toEqual(new Set([expected]));
});
