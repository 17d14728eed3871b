/** The faults of the fault matrix: each begins as a real one does, as far as a test can make it, and ends when it is told to. */
import { execFileSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { indexNames } from '../../../src/store/opensearch/setup.ts';
import type { FaultProxy, Interference, PassingRequest, Reply } from '../servers/fault-proxy.ts';
import { raw } from '../servers/opensearch.ts';
import type { End, FaultRow } from './fault-row.ts';
import type { Flow } from './flow.ts';

const xml = { 'content-type': 'application/xml', 'x-amz-request-id': 'TESTREQUEST00001' };
const errorXml = (code: string): string => `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`;
const refusal = (status: number, code: string, reason?: string): Interference => ({
  kind: 'answer',
  status,
  headers: xml,
  body: errorXml(code),
  ...(reason !== undefined && { reason }),
});

const unavailable: Interference = { kind: 'answer', status: 503, body: '{}' };

type Requests = (flow: Flow) => (request: PassingRequest) => boolean;

const every: Requests = () => () => true;
const ofBucket: Requests =
  ({ world: { bucket } }) =>
  ({ path }) =>
    new RegExp(`^/${bucket}([/?]|$)`).test(path);
/** HEAD and LIST of keys with a prefix. */
const ofKeys =
  (prefix: string): Requests =>
  (flow) =>
  (request) =>
    ofBucket(flow)(request) && request.path.includes(prefix);
/** HEAD of the bucket itself, and LIST. */
const ofWholeBucket: Requests =
  ({ world: { bucket } }) =>
  ({ path }) =>
    new RegExp(`^/${bucket}/?([?]|$)`).test(path);

function throughProxy(proxy: (flow: Flow) => FaultProxy, interference: Interference, requests: Requests = every) {
  return (flow: Flow): End => {
    const rule = proxy(flow).interfere(interference, requests(flow));
    return () => rule.remove();
  };
}

const s3 = ({ world }: Flow): FaultProxy => world.s3;
const sqs = ({ world }: Flow): FaultProxy => world.sqs;
const cluster = ({ index }: Flow): FaultProxy => index;

/** Longer than the two attempts of several HEAD requests. */
const REGION_HANGS_MS = 15_000;

const broken = { prefix: 'broken', keys: 'one' } as const;
const slow = { prefix: 'slow', keys: 'many' } as const;

/** Both circuits open, and the endpoint's must close while the bucket's stays open. */
function regionThenBucket(flow: Flow): End {
  const region = s3(flow).interfere({ kind: 'hang' });
  const bucket = s3(flow).interfere({ kind: 'hang' }, ofBucket(flow));
  const recovers = setTimeout(() => region.remove(), REGION_HANGS_MS);
  return () => {
    clearTimeout(recovers);
    region.remove();
    bucket.remove();
  };
}

type Row = Omit<FaultRow, 'index'>;

const sqliteRows: readonly Row[] = [
  {
    name: 'S3 answers 500 for one object',
    reach: 'object',
    faulty: broken,
    begin: throughProxy(s3, refusal(500, 'InternalError'), ofKeys(broken.prefix)),
  },
  {
    name: 'S3 denies one object, HEAD and LIST',
    isVariant: true,
    reach: 'object',
    faulty: broken,
    begin: throughProxy(s3, refusal(403, 'AccessDenied'), ofKeys(broken.prefix)),
  },
  {
    name: 'S3 answers SlowDown for a prefix',
    isVariant: true,
    reach: 'bucket',
    faulty: slow,
    begin: throughProxy(s3, refusal(503, 'SlowDown', 'Slow Down'), ofKeys(slow.prefix)),
  },
  { name: 'the bucket is gone', reach: 'bucket', begin: throughProxy(s3, refusal(404, 'NoSuchBucket'), ofBucket) },
  {
    name: 'HeadBucket and LIST are denied',
    isVariant: true,
    reach: 'bucket',
    begin: throughProxy(s3, refusal(403, 'AccessDenied'), ofWholeBucket),
  },
  {
    name: 'all requests for the bucket are denied',
    isVariant: true,
    reach: 'bucket',
    begin: throughProxy(s3, refusal(403, 'AccessDenied'), ofBucket),
  },
  { name: 'S3 does not answer for the bucket', isVariant: true, reach: 'bucket', begin: throughProxy(s3, { kind: 'hang' }, ofBucket) },
  {
    name: 'S3 does not answer for the region, and then for the bucket alone',
    isVariant: true,
    reach: 'bucket',
    begin: regionThenBucket,
  },
  {
    name: 'S3 of the region cannot be reached',
    isVariant: true,
    reach: 'endpoint',
    async begin({ world }) {
      await world.s3.refuse();
      return () => world.s3.accept();
    },
  },
  { name: 'the credentials for S3 have expired', reach: 'endpoint', begin: throughProxy(s3, refusal(400, 'ExpiredToken')) },
  { name: 'SQS answers 503', reach: 'all', begin: throughProxy(sqs, unavailable) },
  { name: 'the bucket record cannot be read', isVariant: true, reach: 'index', begin: unreadableRecord },
  {
    name: 'another process has locked the SQLite file',
    reach: 'all',
    begin({ env }) {
      // the daemon may be writing just now
      const other = new DatabaseSync(sqlitePath(env['TALLY_INDEX_URL']), { timeout: 60_000 });
      other.exec('BEGIN IMMEDIATE');
      return () => other.close();
    },
  },
  {
    name: 'the SQLite file was moved away',
    isVariant: true,
    reach: 'all',
    endsBeforeStart: true,
    async begin({ env }) {
      const path = sqlitePath(env['TALLY_INDEX_URL']);
      await rename(path, `${path}.away`);
      return () => rename(`${path}.away`, path);
    },
  },
];

const CLUSTER_BLOCK = JSON.stringify({
  error: { type: 'cluster_block_exception', reason: 'blocked by: [FORBIDDEN/6/cluster read-only (api)];' },
  status: 403,
});
const isWrite: Requests =
  () =>
  ({ path }) =>
    path.includes('_bulk');

const openSearchRows: readonly Row[] = [
  {
    name: 'the index of the bucket is closed',
    isVariant: true,
    reach: 'index',
    async begin(flow) {
      await raw('POST', `/${objectsIndex(flow)}/_close`);
      return async () => void (await raw('POST', `/${objectsIndex(flow)}/_open`));
    },
  },
  {
    name: 'the index of the bucket has a write block (items 403)',
    reach: 'index',
    begin: withSettings({ 'index.blocks.write': true }, { 'index.blocks.write': null }),
  },
  {
    name: 'the index of the bucket pushes back (items 429)',
    isVariant: true,
    reach: 'index',
    begin(flow) {
      const alias = indexNames(flow.env['TALLY_INDEX_PREFIX'] ?? '').objectsAlias(flow.world.bucket);
      return throughProxy(cluster, { kind: 'reply', reply: pushingBack(alias) }, isWrite)(flow);
    },
  },
  {
    name: 'a pipeline fails for each document of the bucket',
    isVariant: true,
    reach: 'index',
    begin: withPipeline({ fail: { message: 'this pipeline always fails' } }),
  },
  {
    name: 'no document of the bucket fits its mapping',
    isVariant: true,
    reach: 'index',
    // the same error says that a document is bad: three in a row may be, while their index accepts others
    lettersMax: 4,
    begin: withPipeline({ set: { field: 'size', value: 'not a number' } }),
  },
  { name: 'the cluster answers 503', isVariant: true, reach: 'all', begin: throughProxy(cluster, unavailable) },
  {
    name: 'the cluster has a write block',
    isVariant: true,
    reach: 'all',
    begin: throughProxy(cluster, { kind: 'answer', status: 403, body: CLUSTER_BLOCK }, isWrite),
  },
  { name: 'the disks of the cluster are at the flood stage', reach: 'all', begin: floodStage },
];

/** The rows that this run can have, the longest first. */
export function faultRows(hasOpenSearch: boolean): { readonly rows: readonly FaultRow[]; readonly notRun: readonly string[] } {
  const disk = diskRow();
  const on =
    (index: FaultRow['index']) =>
    (row: Row): FaultRow => ({ ...row, index });
  const rows = [
    ...sqliteRows.map(on('sqlite')),
    ...(hasOpenSearch ? openSearchRows.map(on('opensearch')) : []),
    ...(disk === undefined ? [] : [disk].map(on('sqlite'))),
  ];
  const missing = hasOpenSearch ? [] : openSearchRows.map(({ name }) => name);
  return { rows, notRun: disk === undefined ? [...missing, 'the disk of the SQLite file is full'] : missing };
}

function sqlitePath(url = ''): string {
  return url.replace('sqlite:', '');
}

const recordSchema = z.object({ record: z.string() });

/** A record without the fields that this version needs, as one of a newer version may be. */
function unreadableRecord({ env, world }: Flow): End {
  const id = `bucket:${world.bucket}`;
  const change = (next: (record: string) => string): string => {
    const database = new DatabaseSync(sqlitePath(env['TALLY_INDEX_URL']), { timeout: 60_000 });
    try {
      const { record } = recordSchema.parse(database.prepare('SELECT record FROM state WHERE id = ?').get(id));
      database.prepare('UPDATE state SET record = ?, version = ? WHERE id = ?').run(next(record), randomUUID(), id);
      return record;
    } finally {
      database.close();
    }
  };
  const before = change(() => JSON.stringify({ bucket: world.bucket, newer: true }));
  return () => void change(() => before);
}

function objectsIndex({ env, world }: Flow): string {
  return indexNames(env['TALLY_INDEX_PREFIX'] ?? '').objectsIndex(world.bucket);
}

type Settings = Readonly<Record<string, boolean | string | null>>;

function withSettings(begin: Settings, end: Settings) {
  return async (flow: Flow): Promise<End> => {
    await raw('PUT', `/${objectsIndex(flow)}/_settings`, begin);
    return async () => void (await raw('PUT', `/${objectsIndex(flow)}/_settings`, end));
  };
}

/** What each document of the bucket goes through at last, whatever pipelines the request names. */
function withPipeline(processor: Readonly<Record<string, unknown>>) {
  return async (flow: Flow): Promise<End> => {
    const name = `${flow.env['TALLY_INDEX_PREFIX']}-${randomBytes(4).toString('hex')}`;
    await raw('PUT', `/_ingest/pipeline/${name}`, { processors: [processor] });
    const end = await withSettings({ 'index.final_pipeline': name }, { 'index.final_pipeline': '_none' })(flow);
    return async () => {
      await end();
      await raw('DELETE', `/_ingest/pipeline/${name}`);
    };
  };
}

const FLOOD_AGAIN_MS = 500;

/** The block that OpenSearch sets on each index with a shard on a full disk. It takes it away by itself where a disk is not full, so it is set again. */
async function floodStage({ env }: Flow): Promise<End> {
  const path = `/${env['TALLY_INDEX_PREFIX']}-*/_settings?expand_wildcards=all`;
  const block = async (value: true | null): Promise<void> =>
    void (await raw('PUT', path, { 'index.blocks.read_only_allow_delete': value }));
  await block(true);
  let last: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    last = last.then(() => block(true)).catch(() => undefined);
  }, FLOOD_AGAIN_MS);
  return async () => {
    clearInterval(timer);
    await last;
    await block(null);
  };
}

const bulkAnswerSchema = z.object({ items: z.array(z.unknown()) });
const PUSHED_BACK = { index: { status: 429, error: { type: 'rejected_execution_exception', reason: 'rejected by this test' } } };

/** Refuses the items of one index, and passes the others on. */
function pushingBack(alias: string) {
  return async (body: string, ask: (body: string) => Promise<Reply>): Promise<Reply> => {
    const lines = body.split('\n').filter((line) => line !== '');
    const items = Array.from({ length: lines.length / 2 }, (_, at) => lines.slice(2 * at, 2 * at + 2));
    const isRefused = ([action = '']: readonly string[]): boolean => action.includes(`"${alias}"`);
    const passed = items.filter((item) => !isRefused(item));
    const answer =
      passed.length === 0
        ? undefined
        : await ask(
            passed
              .flat()
              .map((line) => `${line}\n`)
              .join(''),
          );
    if (answer !== undefined && answer.status !== 200) return answer;
    const answered = answer === undefined ? [] : [...bulkAnswerSchema.parse(JSON.parse(answer.body)).items];
    const merged = items.map((item) => (isRefused(item) ? PUSHED_BACK : answered.shift()));
    return { status: 200, body: JSON.stringify({ items: merged }) };
  };
}

/** A disk of its own for the SQLite file: it needs the right to mount one. */
function diskRow(): Row | undefined {
  const folder = join(tmpdir(), `tally-disk-${randomBytes(4).toString('hex')}`);
  const filler = join(folder, 'filler');
  const umount = (): void => {
    execFileSync('umount', ['-l', folder]);
    rmSync(folder, { recursive: true });
  };
  mkdirSync(folder);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', folder], { stdio: 'ignore' });
  } catch (error) {
    rmSync(folder, { recursive: true });
    // .ci/run has the right, and in CI nothing may be left out
    if (process.env['CI'] === 'true') throw error;
    return undefined;
  }
  process.once('exit', () => {
    if (existsSync(folder)) umount();
  });
  return {
    name: 'the disk of the SQLite file is full',
    reach: 'all',
    env: { TALLY_INDEX_URL: `sqlite:${join(folder, 'index.sqlite')}` },
    begin() {
      fill(filler);
      return () => rmSync(filler);
    },
  };
}

function fill(path: string): void {
  const page = Buffer.alloc(4_096);
  try {
    for (;;) writeFileSync(path, page, { flag: 'a' });
  } catch {
    // it is full
  }
}
