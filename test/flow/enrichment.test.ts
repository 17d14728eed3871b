/** What documents say beyond their events. test/observing/enrichment.test.ts has each case. */
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { expect, it } from 'vitest';
import { until } from '../support/servers/aws.ts';
import { awsEndpoint } from '../support/servers/found.ts';
import { startWorld } from '../support/worlds/aws.ts';
import { indexKinds } from '../support/worlds/flow.ts';
import { nativeRecord } from '../support/worlds/ingest.ts';

const HELLO_ETAG = '5d41402abc4b2a76b9719d911017c592';
const tags = { 'cost.center': '42', Größe: 'ä b', a: '' };
const put = {
  Body: 'hello',
  ContentType: 'text/plain; charset=utf-8',
  Metadata: { Author: '=?UTF-8?Q?J=C3=BCrgen?=', 'a.b': 'x' },
};
const facts = {
  content_type: 'text/plain; charset=utf-8',
  user_metadata: { author: 'Jürgen', 'a.b': 'x' },
  last_modified_exact: true,
};

it.skipIf(!awsEndpoint())('a daemon on LocalStack writes an exact event with what S3 says of its very version', async () => {
  const world = await startWorld({ store: indexKinds.at(-1) ?? 'sqlite' });
  const { aws, queue, daemon } = world;
  const bucket = await aws.createBucket({ versioned: true });
  await world.connect({ bucket, enrich: 'tags' });
  const Tagging = new URLSearchParams(tags).toString().replaceAll('+', '%20');
  const { VersionId = '' } = await aws.s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'docs/a.txt', Tagging, ...put }));
  const object = { etag: HELLO_ETAG, sizeBytes: 5, versionId: VersionId };
  const record = nativeRecord('docs/a.txt', { bucket, eventTimeMs: Date.now(), object });
  await aws.sendBodies(queue.url, [JSON.stringify({ Records: [record] })]);
  await until('it is found', async () => (await world.find(bucket, 'docs/a.txt')) !== undefined);
  const exact = { etag: HELLO_ETAG, size: 5, version_id: VersionId, settled: true, source: 'native' };
  expect(await world.find(bucket, 'docs/a.txt')).toMatchObject({ ...facts, tags, ...exact });
  expect(await daemon.metric('tally_enrich_total', { enrich: 'tags', result: 'ok' })).toBeGreaterThan(0);
  await world.dispose();
});
