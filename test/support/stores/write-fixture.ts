/**
 * `npm run fixtures`: stores what this version writes, for the tests of later versions. In a folder of test/fixtures/stores it
 * writes the SQLite file and the lines of the OpenSearch indices of a registry that ran for some minutes, each with every kind
 * of record, and the secrets of a session and a key, by which a later version must know them. It needs an OpenSearch:
 * TALLY_TEST_OPENSEARCH_URL, by default http://127.0.0.1:9200.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { embeddedQueues, embeddedQueueUrl } from '../../../src/adapters/embedded/addresses.ts';
import { createOpenSearchStore } from '../../../src/adapters/opensearch/store.ts';
import { createSqliteStore } from '../../../src/adapters/sqlite/store.ts';
import { systemClock } from '../../../src/adapters/system-clock.ts';
import { stateKinds, type StateKind } from '../../../src/domain/state-kind.ts';
import type { Store } from '../../../src/pipeline/ports/store.ts';
import { updateRecord } from '../../../src/pipeline/records/stored.ts';
import { startRegistryWorld, type RegistryWorld } from '../identity/registry-world.ts';
import { FIXTURES, grant, objects, PREFIX, version } from './fixture.ts';
import { askAt, dump } from './opensearch-dump.ts';
import { refs } from '../../../src/pipeline/provision/refs.ts';

/** Schedules and the events of an hour are stored within the first minutes. */
const STORED_MAX_MS = 400_000;
/** What lives too shortly in a run of minutes, or needs more of AWS than the embedded server has. */
const UNREACHED: ReadonlySet<StateKind> = new Set(['gap-history', 'connection', 'probe']);

/** An event of a bucket as S3 sends it, in two forms: with its exact place in the order of the key's changes, and without one. */
function eventOf(bucket: string, isExact: boolean): string {
  const object = { key: 'a.txt', size: 1, eTag: '0123456789abcdef0123456789abcdef', ...(isExact && { sequencer: '0055AED6DCD90281E5' }) };
  const s3 = { s3SchemaVersion: '1.0', bucket: { name: bucket, arn: `arn:aws:s3:::${bucket}` }, object };
  const eventName = isExact ? 'ObjectCreated:Put' : 'ObjectCreated:CompleteMultipartUpload';
  const head = { eventVersion: '2.1', eventSource: 'aws:s3', awsRegion: 'us-east-1', eventTime: new Date().toISOString() };
  return JSON.stringify({ Records: [{ ...head, eventName, s3 }] });
}

/** Everything that people, buckets and queues do to a registry, and what it stores of it. */
async function live(world: RegistryWorld): Promise<{ readonly token: string; readonly secret: string }> {
  const aws = world.daemon.embeddedUrl;
  const s3 = async (method: 'PUT' | 'DELETE', path: string): Promise<void> => {
    const { ok, status } = await fetch(`${aws}/${path}`, { method, ...(method === 'PUT' && { body: path }) });
    if (!ok) throw new Error(`${method} ${path}: ${status}`);
  };
  const send = (body: string) =>
    fetch(aws, {
      method: 'POST',
      headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'AmazonSQS.SendMessage' },
      body: JSON.stringify({ QueueUrl: embeddedQueueUrl(aws, embeddedQueues.bucket), MessageBody: body }),
    });
  const admin = await world.logIn('root');
  const act = async (path: string, body: object, token = admin.token, method = 'POST'): Promise<string> => {
    const { status, text } = await world.send(method, path, { token, body });
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return text;
  };

  for (const key of [objects.found, objects.deleted, 'photos/cat.jpg']) await s3('PUT', `demo/${encodeURIComponent(key)}`);
  await s3('DELETE', `demo/${encodeURIComponent(objects.deleted)}`);
  const { token } = await world.logIn('alice');
  const { secret } = JSON.parse(await act('/v1/api-keys', { name: 'nightly', expires_in_days: 90 }, token)) as { readonly secret: string };
  await act('/v1/admin/grants', grant);
  await act('/v1/admin/users/bob@example.com', { role: 'admin' }, admin.token, 'PATCH');
  // a login that ends nowhere
  await world.send('GET', '/login/authorize?return_to=%2Fpanel%2F', { headers: { accept: 'text/html', 'sec-fetch-mode': 'navigate' } });

  await send('not an event');
  await send(eventOf('elsewhere', true));
  await s3('PUT', 'gone');
  await act('/v1/buckets', { bucket: 'gone', source: 'notification', wired_by_hand: true });
  await s3('DELETE', 'gone');
  await send(eventOf('gone', false));
  await act('/v1/buckets/demo/reindex', { mode: 'report' });
  return { token, secret };
}

const MOMENT = Date.UTC(2026, 10, 27);

/** Stores what the run does not reach. */
async function addUnreached({ state }: Store): Promise<void> {
  const reasons = [{ kind: 'loss' as const, count: 1, lastMs: MOMENT, example: 'dead letter: message.moved' }];
  const closed = { id: 'gap:demo:bucket', sinceMs: MOMENT, lastSeenMs: MOMENT, reasons, closedAtMs: MOMENT, jobId: 'job-1' };
  await updateRecord(state, refs.gapHistory('demo'), () => ({ bucket: 'demo', closed: [closed] }));
  const account = '123456789012';
  await updateRecord(state, refs.connection('demo'), () => ({
    installation: 'tally',
    registry: 'r0123456789abcdef',
    bucket: 'demo',
    region: 'us-east-1',
    partition: 'aws',
    account,
    bucketAccount: account,
    source: 'eventbridge' as const,
    enrich: 'none' as const,
    queueArn: `arn:aws:sqs:us-east-1:${account}:bucket-events`,
    state: 'applied' as const,
    made: [],
    changedAtMs: MOMENT,
  }));
  const topicArn = `arn:aws:sns:us-east-1:${account}:tally-events`;
  await updateRecord(state, refs.probe(topicArn), () => ({ topicArn, sentAtMs: MOMENT, hasArrived: true, isLost: false }));
}

/** Waits until there is a record of every kind that the run reaches. */
async function storedAll({ state }: Store): Promise<void> {
  const untilMs = Date.now() + STORED_MAX_MS;
  for (;;) {
    const counts = await Promise.all(stateKinds.map((kind) => state.count(kind)));
    const missing = stateKinds.filter((kind, at) => counts[at] === 0 && !UNREACHED.has(kind));
    if (missing.length === 0) return;
    if (Date.now() > untilMs) throw new Error(`this run has stored no ${missing.join(', ')}`);
    await delay(2_000);
  }
}

async function fixtureOf(env: Readonly<Record<string, string>>, openStore: () => Store): Promise<object> {
  const world = await startRegistryWorld(env);
  const store = openStore();
  const secrets = await live(world);
  await storedAll(store);
  await world.daemon.stop();
  await addUnreached(store);
  await Promise.all([store.close(), world.close()]);
  return secrets;
}

if (import.meta.main) {
  const target = new URL(`${version}/`, FIXTURES).pathname;
  const folder = mkdtempSync(join(tmpdir(), 'tally-fixture-'));
  const path = join(folder, 'index.sqlite');
  const packed = join(folder, 'packed.sqlite');
  const url = process.env['TALLY_TEST_OPENSEARCH_URL'] ?? 'http://127.0.0.1:9200';
  const clear = (): Promise<unknown> =>
    Promise.all(['_index_template/', ''].map((kind) => fetch(`${url}/${kind}${PREFIX}-*?expand_wildcards=all`, { method: 'DELETE' })));
  await clear();
  const env = { TALLY_INDEX_URL: url, TALLY_INDEX_PREFIX: PREFIX, TALLY_INDEX_REPLICAS: '0' };
  const [sqlite, opensearch] = await Promise.all([
    fixtureOf({ TALLY_INDEX_URL: `sqlite:${path}` }, () => createSqliteStore(path)),
    fixtureOf(env, () =>
      createOpenSearchStore({ urls: [url], prefix: PREFIX, shards: 1, replicas: 0, clock: systemClock, requestTimeoutMs: 60_000 }),
    ),
  ]);
  const database = new DatabaseSync(path);
  database.exec(`VACUUM INTO '${packed}'`);
  database.close();

  const lines = await dump(askAt(url), PREFIX);
  await clear();

  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, 'index.sqlite.gz'), gzipSync(readFileSync(packed), { level: 9 }));
  writeFileSync(join(target, 'opensearch.ndjson'), lines);
  writeFileSync(join(target, 'secrets.json'), `${JSON.stringify({ sqlite, opensearch }, undefined, 2)}\n`);
  rmSync(folder, { recursive: true });
  process.exit(0);
}
