/** What idles: a registry with connected buckets, its queue and its index, as they are a month after they were connected. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { indexNames } from '../../../src/store/opensearch/setup.ts';
import { createOpenSearchStore } from '../../../src/store/opensearch/store.ts';
import { createSqliteStore } from '../../../src/store/sqlite/store.ts';
import { systemClock } from '../../../src/process/clock.ts';
import type { BucketRecord } from '../../../src/records/bucket.ts';
import type { StateStore, Store } from '../../../src/store/store.ts';
import { readRecord, updateRecord, refs } from '../../../src/store/stored.ts';
import { MAIN, nodeOptions, ownVariables } from '../../support/servers/program.ts';
import { startForked } from '../forked.ts';
import { removeIndices } from '../opensearch.ts';
import { addBucket, ANY_PORT, servedAt, startProcess, type Environment, type MeasuredProcess } from '../processes.ts';
import type { AwsReply, AwsRequest } from './aws-server.ts';
import { FAST_CLOCK, type FastClock } from './fast-clock.ts';
import { startOpenSearchCounts } from './opensearch-counts.ts';
import PQueue from 'p-queue';

const WEEK_MS = 604_800_000;

export interface IdleWorld {
  /** Starts workers of all roles, whose time passes at this speed from one in the morning on. */
  startWorkers(count: number, speed: number): Promise<readonly MeasuredProcess[]>;
  /** Lets events of puts come from now on, for all buckets in turn. */
  tell(eventsPerS: number): Promise<void>;
  /** Requests to AWS and OpenSearch since the last call. */
  counts(): Promise<Readonly<Record<string, number>>>;
  close(): Promise<void>;
}

const MAIN_FAST_CLOCK = new URL('fast-clock.ts', import.meta.url).href;
const ANY_ADDRESSES = { TALLY_HTTP_ADDRESS: ANY_PORT, TALLY_HEALTH_ADDRESS: ANY_PORT };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Connected some weeks ago. */
const AGE_MS = 30 * DAY_MS;
/** Indexes that OpenSearch makes side by side without a wait for their state. */
const MADE_AT_ONCE = 8;

/** Creates the world, with buckets that hold nothing. Without an OpenSearch its index is SQLite's. */
export async function openIdleWorld(buckets: number, openSearchUrl: string | undefined): Promise<IdleWorld> {
  const folder = await mkdtemp(join(tmpdir(), 'tally-idle-'));
  const prefix = `bench${randomBytes(5).toString('hex')}`;
  const aws = startForked<AwsRequest, AwsReply>(new URL('aws-server.ts', import.meta.url));
  const { endpoint, queueUrl } = await aws.next();
  const counted = openSearchUrl === undefined ? undefined : await startOpenSearchCounts(openSearchUrl, indexNames(prefix).state);
  const file = join(folder, 'index.sqlite');
  const env: Environment = {
    ...ownVariables(),
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'bench',
    AWS_SECRET_ACCESS_KEY: 'bench',
    AWS_ENDPOINT_URL: endpoint,
    TALLY_QUEUE_URL: queueUrl,
    TALLY_INDEX_URL: counted?.url ?? `sqlite:${file}`,
    TALLY_INDEX_PREFIX: prefix,
    TALLY_INDEX_REPLICAS: '0',
  };
  const openStore = (): Store =>
    counted === undefined
      ? createSqliteStore(file)
      : createOpenSearchStore({ urls: [counted.url], prefix, shards: 1, replicas: 0, clock: systemClock });
  const workers: MeasuredProcess[] = [];
  const names = Array.from({ length: buckets }, (_, number) => `idle-${String(number).padStart(5, '0')}`);
  // tomorrow, so that the clock only goes forward
  const isMs = Math.ceil(Date.now() / DAY_MS) * DAY_MS + HOUR_MS;

  async function startWorkers(count: number, speed: number): Promise<readonly MeasuredProcess[]> {
    const clock: FastClock = { speed, fromMs: Date.now(), isMs };
    await aws.ask({ kind: 'accelerate', clock });
    const args = [...nodeOptions(), '--import', MAIN_FAST_CLOCK, MAIN, 'serve'];
    for (let number = 0; number < count; number += 1) {
      workers.push(startProcess(args, { ...env, ...ANY_ADDRESSES, [FAST_CLOCK]: JSON.stringify(clock) }));
    }
    for (const worker of workers) await servedAt(worker);
    return workers;
  }

  /** Connects the first bucket as a user does, and makes the others like it. */
  async function connect([first = '', ...others]: readonly string[]): Promise<void> {
    const store = openStore();
    await store.setup.prepare();
    await aws.ask({ kind: 'create-buckets', buckets: [first] });
    await startProcess([...nodeOptions(), MAIN, 'setup', '--apply'], env).ended;
    const registry = startProcess([...nodeOptions(), MAIN, 'serve'], { ...env, ...ANY_ADDRESSES, TALLY_ROLES: 'http' });
    await addBucket(registry, env, [first, '--no-reindex']);
    const record = await readRecord(store.state, refs.bucket(first));
    if (record?.connection === undefined) throw new Error(`${first} was not connected`);
    await aws.ask({ kind: 'clone-bucket', bucket: first, buckets: others });
    const like = <Value>(value: Value, bucket: string): Value => JSON.parse(JSON.stringify(value).replaceAll(first, bucket)) as Value;
    const turns = new PQueue({ concurrency: MADE_AT_ONCE });
    await turns.addAll(
      names.map((bucket, number) => async () => {
        if (bucket !== first) await store.objects.createBucket(bucket);
        const [indexId] = await store.objects.identities([bucket]);
        const made = { ...like(record, bucket), ...(indexId !== undefined && { indexId }) };
        await storeAged(store.state, made, { isMs, share: number / buckets });
      }),
    );
    await store.close();
  }

  async function close(): Promise<void> {
    await Promise.all(workers.map((worker) => worker.stop()));
    aws.close();
    await counted?.close();
    await rm(folder, { recursive: true });
    if (openSearchUrl !== undefined) await removeIndices(openSearchUrl, prefix);
  }

  try {
    if (buckets > 0) await connect(names);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    startWorkers,
    async tell(eventsPerS) {
      await aws.ask({ kind: 'tell', eventsPerS, buckets: names });
    },
    async counts() {
      const ofAws = (await aws.ask({ kind: 'counts' })).counts;
      return { ...ofAws, ...counted?.counts() };
    },
    close,
  };
}

/** Stores the records of a bucket that was connected long ago and whose checks are spread over their intervals: this one at the share. */
async function storeAged(
  state: StateStore,
  record: BucketRecord,
  { isMs, share }: { readonly isMs: number; readonly share: number },
): Promise<void> {
  const { bucket, connection } = record;
  const at = (intervalMs: number): number => isMs - intervalMs * share;
  const createdAtMs = isMs - AGE_MS;
  const aged: BucketRecord = {
    ...record,
    createdAtMs,
    provenAtMs: createdAtMs,
    waySinceMs: createdAtMs,
    checkedAtMs: at(DAY_MS),
    lastComparedAtMs: at(WEEK_MS),
    scheduled: { jobId: 'none', atMs: at(WEEK_MS) },
    ...(connection && { connection: { ...connection, changedAtMs: createdAtMs } }),
    connectionCheck: { state: 'ok', atMs: at(HOUR_MS), sinceMs: createdAtMs, findings: [] },
  };
  await updateRecord(state, refs.bucket(bucket), () => aged, 'soon');
}
