/**
 * What stands between Tally and S3 may answer in its place: proxies, caches, sign-in pages. None of their answers deletes a
 * document, on any path that writes tombstones; the neighbour of each key is served by what S3 says.
 */
import { allowance } from '../support/worlds/reindex.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createS3Listing } from '../../src/aws/s3-listing.ts';
import { createS3Storage } from '../../src/aws/s3-storage.ts';
import { createFauxqs, type Fauxqs } from '../../src/demo/fauxqs.ts';
import { systemClock } from '../../src/process/clock.ts';
import { type ObjectDocument, clockOfMs } from '../../src/ordering/document.ts';
import { createVisitLifecycle } from '../../src/repair/lifecycle.ts';
import { createVisitUnsettled } from '../../src/repair/sweeps.ts';
import { createBackgroundWriter } from '../../src/repair/background-writer.ts';
import { createReconcileTurn } from '../../src/repair/reconcile-turn.ts';
import { createBulkWriter } from '../../src/observing/bulk-writer.ts';
import { createObserving } from '../../src/observing/observer.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { recordOf } from '../support/fakes/bucket-record.ts';
import { createTestCircuits } from '../support/fakes/circuits.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeTelemetry } from '../support/fakes/ports.ts';
import { type TestAws, createTestAws } from '../support/servers/aws.ts';
import { startFaultProxy, type FaultProxy, type PassingRequest } from '../support/servers/fault-proxy.ts';

/** In key order: the neighbour is settled with the forged key. */
const KEY = 'live.txt';
const NEIGHBOUR = 'neighbour.txt';
const never = new AbortController().signal;
const DAY_MS = 86_400_000;

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What is answered in the place of S3: to HEAD of the key, to a listing of it, and to HeadBucket. S3 answers what is absent. */
interface Forgery {
  readonly what: string;
  readonly head: Answer;
  readonly list?: Answer;
  readonly bucket?: Answer;
}

const FROM_S3 = { 'x-amz-request-id': 'FORGED0000000001', 'content-type': 'application/xml' };
const HTML = { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' };
const SIGN_IN = '<!DOCTYPE html><html><head><title>Sign in</title></head><body><p>Please sign in</p></body></html>';
const portal: Answer = { status: 200, headers: HTML, body: SIGN_IN };
const blocked: Answer = { status: 404, headers: HTML, body: '<html><body>Blocked by policy</body></html>' };
const denied: Answer = { status: 403, headers: FROM_S3 };
const xml = (body: string): Answer => ({ status: 200, headers: FROM_S3, body: `<?xml version="1.0" encoding="UTF-8"?>${body}` });
const listing = (fields: string): string =>
  `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${fields}</ListBucketResult>`;
const NO_MORE = '<KeyCount>0</KeyCount><IsTruncated>false</IsTruncated>';
const ERROR = '<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>';
const named = `<Name>photos</Name><Prefix>${KEY}</Prefix>`;

/**
 * HEAD is refused, so that a listing decides, which is forged as well. The bucket is really there. What else is no listing:
 * s3-listing.test.ts.
 */
const listings: readonly (readonly [what: string, list: Answer])[] = [
  ['a sign-in page that claims to be XML', { ...portal, headers: FROM_S3 }],
  ['truncated XML', xml(listing(named + NO_MORE).slice(0, -20))],
  ['another bucket', xml(listing(`<Name>other</Name><Prefix>${KEY}</Prefix>${NO_MORE}`))],
  ['no prefix', xml(listing(`<Name>photos</Name>${NO_MORE}`))],
  ['an error with status 404', { ...xml(ERROR), status: 404 }],
  ['a cached listing', { ...xml(listing(named + NO_MORE)), headers: { ...FROM_S3, age: '86400' } }],
  ['a redirect', { status: 302, headers: { ...HTML, location: 'http://127.0.0.1:1/sign-in' }, body: SIGN_IN }],
];

const forgeries: readonly Forgery[] = [
  { what: 'a proxy that blocks one key with 404', head: blocked },
  { what: 'a proxy that blocks one key with 404 for every method', head: blocked, list: blocked },
  { what: 'a proxy that says it is a cache, with S3’s old 404', head: { status: 404, headers: { ...FROM_S3, age: '86400' } } },
  { what: 'a cache that has dropped the headers of S3', head: { status: 404, headers: { 'x-cache': 'HIT' } } },
  { what: 'a cache of a delete marker', head: { status: 405, headers: { 'x-amz-delete-marker': 'true', 'x-cache': 'HIT' } } },
  { what: 'a captive portal, 404 to HEAD and 200 to GET', head: blocked, list: portal, bucket: { ...portal, body: '' } },
  { what: 'a captive portal, 404 to all', head: blocked, list: blocked, bucket: blocked },
  { what: 'a captive portal, 200 to all', head: { ...portal, body: '' }, list: portal, bucket: { ...portal, body: '' } },
  { what: 'a captive portal with an etag', head: { status: 200, headers: { ...HTML, etag: '"page"' } }, list: portal },
  {
    what: 'a redirect to a sign-in page',
    head: { status: 302, headers: { location: 'http://127.0.0.1:1/' } },
    list: { ...portal, status: 302 },
  },
  { what: 'a proxy that lacks credentials', head: { status: 403, headers: HTML }, list: portal, bucket: { ...portal, body: '' } },
  { what: 'a proxy that S3 is behind, out of order', head: { status: 502, headers: HTML }, list: { ...portal, status: 502 } },
  ...listings.map(([what, list]) => ({ what: `403 to HEAD, and to a listing ${what}`, head: denied, list })),
  ...listings.map(([what, list]) => ({ what: `a proxy’s 404 to HEAD, and to a listing ${what}`, head: blocked, list })),
];

const bucketOfTest = recordOf('photos', { source: 'routed' });

describe('a forged answer deletes no document', () => {
  let s3: Fauxqs;
  let proxy: FaultProxy;
  let aws: TestAws;

  beforeAll(async () => {
    s3 = await createFauxqs('us-east-1');
    s3.s3.createBucket('photos');
    proxy = await startFaultProxy(await s3.app.listen({ host: '127.0.0.1', port: 0 }));
    aws = createTestAws(proxy.url);
  });
  afterAll(async () => {
    await aws.dispose();
    await proxy.close();
    await s3.app.close();
  });

  const put = (key: string): string => s3.s3.putObject('photos', key, Buffer.from(key)).etag.replaceAll('"', '');

  /** Both objects are in the bucket and in the index, where the documents are old. */
  async function setUp(more: Partial<ObjectDocument>) {
    const index = createMemoryStore();
    const { state, objects, scan, maintenance } = index;
    const clock = systemClock;
    const telemetry = createFakeTelemetry();
    const circuits = createTestCircuits({ clock, telemetry });
    const shared = { clientFor: aws.clients().s3For, clock };
    const storage = createS3Storage({ ...shared, region: 'us-east-1' });
    const limits = { actionsMax: 100, bytesMax: 1_000_000, lingerMs: 0, concurrency: 1 };
    const write = createBulkWriter({ objects, clock, telemetry, circuits, limits });
    const { observe } = createObserving({ storage, index, write, clock, telemetry, circuits, concurrency: 8, stopped: never });
    await updateRecord(state, refs.bucket('photos'), () => bucketOfTest);
    await objects.createBucket('photos');
    const atMs = clock.nowMs() - 40 * DAY_MS;
    const truth = new Map([KEY, NEIGHBOUR].map((key) => [key, put(key)]));
    const at = new Date(atMs).toISOString();
    const document = {
      bucket: 'photos',
      clock: clockOfMs(atMs),
      deleted: false,
      settled: true,
      source: 'check',
      etag: 'old',
      indexed_at: at,
      ...more,
    } as const;
    await objects.write([...truth.keys()].map((key) => ({ document: { ...document, key }, equalClock: 'accept' as const })));
    return { ...shared, truth, state, objects, scan, maintenance, telemetry, circuits, storage, observe };
  }

  type World = Awaited<ReturnType<typeof setUp>>;

  /** The paths that write tombstones. Each observes both keys. */
  const paths: Readonly<Record<string, { readonly document: Partial<ObjectDocument>; readonly run: (world: World) => Promise<void> }>> = {
    'on the live path': {
      document: {},
      async run({ observe, clock }) {
        const hint = { kind: 'observe', clock: clockOfMs(clock.nowMs() - 60_000), settleFromMs: clock.nowMs() - 60_000 } as const;
        const observations = [KEY, NEIGHBOUR].map((key) => observe({ bucket: bucketOfTest, key, hint, cause: {}, source: 'routed' }));
        await Promise.all(observations);
      },
    },
    'of an event that its sequencer orders': {
      document: {},
      async run({ observe, clock }) {
        const hint = { kind: 'resolve', clock: clockOfMs(clock.nowMs() - 1_000) } as const;
        const observations = [KEY, NEIGHBOUR].map((key) => observe({ bucket: bucketOfTest, key, hint, cause: {}, source: 'native' }));
        await Promise.all(observations);
      },
    },
    'in the sweep of unsettled documents': {
      document: { settled: false },
      async run(world) {
        await createVisitUnsettled(world)(bucketOfTest, never).catch(() => undefined);
      },
    },
    'in the checks of lifecycle expirations': {
      document: { expires_at: '2026-01-01T00:00:00.000Z' },
      async run(world) {
        const parts = { ...world, lifecycle: { rulesOf: async () => [] }, gaps: { report: async () => undefined } } as never;
        await createVisitLifecycle(parts)(bucketOfTest, never).catch(() => undefined);
      },
    },
    'in a re-index whose listing lacks the key': {
      document: {},
      async run(world) {
        const { objects, telemetry, circuits, clock, truth } = world;
        // it is there again when its HEAD is sent
        const rule = proxy.interfere({ kind: 'cut' }, ({ path }) => {
          const { searchParams } = new URL(path, 'http://s3');
          if (searchParams.has('list-type') && !searchParams.get('prefix')) s3.s3.deleteObject('photos', KEY);
          else if (truth.has(KEY)) put(KEY);
          return false;
        });
        const limits = { actionsMax: 100, bytesMax: 1_000_000, concurrency: 1 };
        const { writeAll } = createBackgroundWriter({ objects, clock, telemetry, circuits, limits, liveIsBusy: () => false });
        const turn = createReconcileTurn({ ...world, listing: createS3Listing(world), writeAll });
        const controls = { tombstones: allowance(), leave: () => Promise.resolve(false), shouldEnd: () => false, isOver: () => false };
        const request = { bucket: bucketOfTest, prefix: '', after: '', mode: 'apply', fill: false, tags: false } as const;
        // the neighbour’s range is another one: a fault ends the turn of a range
        for (const range of [{ upTo: KEY }, { after: KEY }]) {
          await turn({ ...request, ...range }, controls, never);
        }
        rule.remove();
      },
    },
  };

  describe.each(Object.entries(paths))('%s', (_, { document, run }) => {
    it.each(forgeries)('by $what', async (forgery) => {
      const world = await setUp(document);
      const rules = answersOf(forgery).map(([answer, matches]) => proxy.interfere({ kind: 'answer', ...answer }, matches));
      await run(world);
      for (const rule of rules) rule.remove();
      const [stored, neighbour] = await world.objects.getMany('photos', [KEY, NEIGHBOUR]);
      expect(stored?.deleted).toBe(false);
      expect(['old', world.truth.get(KEY)]).toContain(stored?.etag);
      expect(neighbour).toMatchObject({ deleted: false, settled: true, etag: world.truth.get(NEIGHBOUR) });
    });

    it('but S3’s own answer does', async () => {
      const world = await setUp(document);
      s3.s3.deleteObject('photos', KEY);
      world.truth.delete(KEY);
      await run(world);
      const [stored, neighbour] = await world.objects.getMany('photos', [KEY, NEIGHBOUR]);
      expect(stored).toMatchObject({ deleted: true, settled: true });
      expect(neighbour).toMatchObject({ deleted: false, etag: world.truth.get(NEIGHBOUR) });
    });
  });
});

/** What is answered in the place of S3, and to which requests. */
function answersOf({ head, list, bucket }: Forgery): readonly (readonly [Answer, (request: PassingRequest) => boolean])[] {
  const isHead = (path: string) => (request: PassingRequest) =>
    request.method === 'HEAD' && request.path.replace(/\/?(\?.*)?$/, '') === path;
  const isList = ({ method, path }: PassingRequest) => method === 'GET' && new URL(path, 'http://s3').searchParams.get('prefix') === KEY;
  return [
    [head, isHead(`/photos/${KEY}`)],
    ...(list === undefined ? [] : [[list, isList] as const]),
    ...(bucket === undefined ? [] : [[bucket, isHead('/photos')] as const]),
  ];
}
