/** What documents say beyond their events, by a daemon on LocalStack and by the embedded mode. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sequencerOf } from '../../src/adapters/embedded/clock.ts';
import type { ObjectDocument } from '../../src/domain/documents/document.ts';
import { until } from '../support/servers/aws.ts';
import type { World } from '../support/worlds/aws.ts';
import { startWorld } from '../support/worlds/aws.ts';
import { startDaemon } from '../support/servers/daemon.ts';
import type { FaultProxy } from '../support/servers/fault-proxy.ts';
import { startFaultProxy } from '../support/servers/fault-proxy.ts';
import { indexKinds } from '../support/worlds/flow.ts';
import { awsEndpoint } from '../support/servers/found.ts';

const HELLO_ETAG = '5d41402abc4b2a76b9719d911017c592';
const tags = { 'cost.center': '42', Größe: 'ä b', a: '' };
const facts = {
  ContentType: 'text/plain; charset=utf-8',
  Metadata: { Author: '=?UTF-8?Q?J=C3=BCrgen?=', 'a.b': 'x' },
  Tagging: Object.entries(tags)
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`)
    .join('&'),
};
const whole = {
  content_type: 'text/plain; charset=utf-8',
  user_metadata: { author: 'Jürgen', 'a.b': 'x' },
  tags,
  last_modified_exact: true,
};
/** An inexact event is written at once, and settled some 45 s later. */
const SETTLE_TIMEOUT_MS = 300_000;

interface Put {
  readonly bucket: string;
  readonly key: string;
  readonly body?: string;
}

/** Puts an object with all that can be read of it; returns the record of an event that states it exactly, as S3 sends it. */
async function put(world: World, { bucket, key, body = 'hello' }: Put): Promise<object> {
  const { VersionId, ETag = '' } = await world.aws.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body, ...facts }));
  return record(bucket, {
    key: encodeURIComponent(key),
    size: body.length,
    eTag: ETag.replaceAll('"', ''),
    ...(VersionId !== undefined && { versionId: VersionId }),
    sequencer: sequencerOf(Date.now() * 1_000),
  });
}

function record(bucket: string, object: object): object {
  const eventTime = new Date().toISOString();
  return {
    eventVersion: '2.1',
    eventSource: 'aws:s3',
    awsRegion: 'us-east-1',
    eventTime,
    eventName: 'ObjectCreated:Put',
    s3: { bucket: { name: bucket }, object },
  };
}

const tell = (world: World, ...records: readonly object[]): Promise<void> =>
  world.aws.sendBodies(world.queue.url, [JSON.stringify({ Records: records })]);

async function found(world: World, { bucket, key }: Put): Promise<ObjectDocument | undefined> {
  await until(`${key} is found`, async () => (await world.find(bucket, key)) !== undefined, SETTLE_TIMEOUT_MS);
  return world.find(bucket, key);
}

const counted = (world: World, enrich: 'head' | 'tags', result: string): Promise<number> =>
  world.daemon.metric('tally_enrich_total', { enrich, result });

// enriched-events.test.ts and enriched-looks.test.ts have each case, and the contract of the stores what each keeps of it
describe.skipIf(!awsEndpoint()).each(indexKinds.slice(-1))(
  'a daemon on LocalStack with its index in %s',
  { timeout: 2 * SETTLE_TIMEOUT_MS },
  (store) => {
    let world: World;
    let s3: FaultProxy;
    beforeAll(async () => {
      s3 = await startFaultProxy(awsEndpoint()!);
      world = await startWorld({ store, env: { AWS_ENDPOINT_URL_S3: s3.url } });
      await world.connect({ bucket: await world.aws.createBucket() });
      await world.daemon.ready();
    });
    afterAll(async () => {
      await world?.dispose();
      await s3?.close();
    });

    it.each([false, true])('writes exact events with what S3 says of their very version (versions: %s)', async (versioned) => {
      const bucket = await world.aws.createBucket({ versioned });
      await world.connect({ bucket, enrich: 'tags' });
      await tell(world, await put(world, { bucket, key: 'a b.txt' }));
      const document = await found(world, { bucket, key: 'a b.txt' });
      expect(document).toMatchObject({
        ...whole,
        etag: HELLO_ETAG,
        size: 5,
        settled: true,
        source: 'native',
        clock: expect.any(Number) as number,
      });
      expect(document?.version_id === undefined).toBe(!versioned);
      expect(await counted(world, 'tags', 'ok')).toBeGreaterThan(0);
    });

    it('writes what S3’s own notification tells with it too, whatever it is worth', async () => {
      const bucket = await world.aws.createBucket();
      await world.connect({ bucket, enrich: 'tags' });
      await world.aws.notify(bucket, { queue: world.queue });
      await put(world, { bucket, key: 'told.txt' });
      await until('it has its tags', async () => (await world.find(bucket, 'told.txt'))?.tags !== undefined, SETTLE_TIMEOUT_MS);
      expect(await world.find(bucket, 'told.txt')).toMatchObject(whole);
    });

    it('writes what is refused plain, counts it, says so once, and loses nothing that was read before', async () => {
      const bucket = await world.aws.createBucket();
      await world.connect({ bucket, enrich: 'tags' });
      const told = await put(world, { bucket, key: 'k' });
      await tell(world, told);
      expect(await found(world, { bucket, key: 'k' })).toMatchObject(whole);
      const repeats = (): Promise<number> => world.daemon.metric('tally_records_total', { dialect: 'native', outcome: 'stale' });
      const before = await repeats();
      const body = '<Error><Code>AccessDenied</Code><Message>as scripted</Message></Error>';
      const refusal = s3.interfere({ kind: 'answer', status: 403, body }, ({ path }) => path.startsWith(`/${bucket}/`));
      await tell(world, await put(world, { bucket, key: 'denied' }), told);
      expect(await found(world, { bucket, key: 'denied' })).toMatchObject({ etag: HELLO_ETAG, last_modified_exact: false });
      // what was written before may be told as stale too, so that this alone would not mean the repeat
      const refusals = async (): Promise<number> =>
        (await counted(world, 'head', 'object.denied')) + (await counted(world, 'tags', 'object.denied'));
      await until('both are refused', async () => (await refusals()) >= 4);
      await until('the repeat has ended', async () => (await repeats()) > before);
      refusal.remove();
      expect(await world.find(bucket, 'k')).toMatchObject(whole);
      expect(await counted(world, 'head', 'object.denied')).toBe(2);
      expect(await counted(world, 'tags', 'object.denied')).toBe(2);
      const warnings = world.daemon.logged('documents are written without enrichment').filter((line) => line['bucket'] === bucket);
      expect(warnings.map(({ enrich, result }) => `${String(enrich)} ${String(result)}`)).toEqual([
        'head object.denied',
        'tags object.denied',
      ]);
      expect([await world.letters(), await world.gaps(bucket)]).toEqual([[], []]);
    });
  },
);

describe('the embedded mode', () => {
  it('has content type and user metadata, and no tags, which it does not implement', async () => {
    const data = mkdtempSync(join(tmpdir(), 'tally-enrichment-'));
    const daemon = await startDaemon({ TALLY_EMBEDDED_DATA: data }, ['serve', '--embedded']);
    await daemon.ready();
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const s3 = new S3Client({ endpoint: daemon.embeddedUrl, region: 'us-east-1', credentials, forcePathStyle: true });
    expect(await daemon.request('POST', '/v1/buckets', { bucket: 'demo', enrich: 'tags' })).toMatchObject({ status: 201 });
    const { Tagging: _, ...known } = facts;
    let document: ObjectDocument | undefined;
    // the worker may know the bucket's record of before for ten seconds
    let count = 0;
    await until('an object is enriched', async () => {
      count += 1;
      await s3.send(new PutObjectCommand({ Bucket: 'demo', Key: `k${count}`, Body: 'hello', ...known }));
      await until('it is found', async () => {
        const { body } = await daemon.request('GET', `/v1/objects?bucket=demo&key=k${count}`);
        document = (body as { items: ObjectDocument[] }).items[0];
        return document !== undefined;
      });
      return document?.content_type !== undefined;
    });
    const { tags: _tags, ...without } = whole;
    expect(document).toMatchObject(without);
    expect(document).not.toHaveProperty('tags');
    expect(await daemon.metric('tally_enrich_total', { enrich: 'tags', result: 'object.failed' })).toBeGreaterThan(0);
    s3.destroy();
    await daemon.stop();
    rmSync(data, { recursive: true });
  });
});
