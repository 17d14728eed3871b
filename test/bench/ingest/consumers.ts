/** What is measured: the null consumer (a), Tally on SQLite (b), Tally on OpenSearch (c), each as processes of their own. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  addBucket,
  answersReady,
  ANY_PORT,
  servedAt,
  startProcess,
  untilReady,
  type Environment,
  type MeasuredProcess,
} from '../processes.ts';
import { MAIN, nodeOptions, ownVariables } from '../../support/servers/program.ts';
import { givenSettings } from '../bench-command.ts';
import { removeIndices } from '../opensearch.ts';
import { openIndex, type BenchIndex } from './index-of-run.ts';
import { BUCKET } from './messages.ts';
import { metricsOf, type Metrics } from '../../support/metrics.ts';

export const consumerKinds = ['null', 'sqlite', 'opensearch'] as const;
export type ConsumerKind = (typeof consumerKinds)[number];

export interface ConsumerOptions {
  readonly queueUrl: string;
  /** Of SQS and S3. */
  readonly endpoint: string;
  /** Of S3 alone, and the authority of its certificate; absent: that of SQS. */
  readonly s3?: { readonly url: string; readonly caFile?: string };
  /** Processes on the one queue. */
  readonly workers: number;
  readonly opensearchUrl: string | undefined;
}

export interface Consumer {
  readonly processes: readonly MeasuredProcess[];
  /** Undefined: it has none (the null consumer). */
  readonly index: BenchIndex | undefined;
  /** Counters summed over all processes; undefined as above. */
  readonly metrics: (() => Promise<Metrics>) | undefined;
  /** Ends the processes and removes what they left. */
  stop(): Promise<void>;
}

/** As many as the null consumer was always measured with. */
const NULL_POLLERS = 16;
const NULL_CONSUMER = new URL('null-consumer.ts', import.meta.url).pathname;

/** Starts a consumer on an empty queue; resolves when it receives. Throws with its output when it does not come to that. */
export async function startConsumer(kind: ConsumerKind, options: ConsumerOptions): Promise<Consumer> {
  switch (kind) {
    case 'null':
      return startNull(options);
    case 'sqlite': {
      const folder = await mkdtemp(join(tmpdir(), 'tally-bench-'));
      const remove = (): Promise<void> => rm(folder, { recursive: true });
      return startTally(options, { url: `sqlite:${join(folder, 'index.sqlite')}`, prefix: 'bench', remove });
    }
    case 'opensearch': {
      const { opensearchUrl: url } = options;
      if (url === undefined) throw new Error('no OpenSearch was given');
      const prefix = `bench${randomBytes(6).toString('hex')}`;
      return startTally(options, { url, prefix, remove: () => removeIndices(url, prefix) });
    }
  }
}

function awsOf(endpoint: string): Environment {
  return { AWS_REGION: 'us-east-1', AWS_ENDPOINT_URL: endpoint, AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: 'bench' };
}

async function startNull(options: ConsumerOptions): Promise<Consumer> {
  const args = [NULL_CONSUMER, options.queueUrl, String(NULL_POLLERS)];
  const processes = Array.from({ length: options.workers }, () => startProcess(args, awsOf(options.endpoint)));
  for (const each of processes) await untilReady(each, () => each.text().includes('ready'));
  return { processes, index: undefined, metrics: undefined, stop: () => stopAll(processes) };
}

interface IndexOfRun {
  readonly url: string;
  readonly prefix: string;
  readonly remove: () => Promise<void>;
}

/** The real daemon with the settings of a user: all at their defaults but addresses, and TALLY_ variables that this process was given. */
async function startTally(options: ConsumerOptions, { url, prefix, remove }: IndexOfRun): Promise<Consumer> {
  const env = {
    ...ownVariables(),
    ...awsOf(options.endpoint),
    ...(options.s3 && { AWS_ENDPOINT_URL_S3: options.s3.url }),
    ...(options.s3?.caFile !== undefined && { NODE_EXTRA_CA_CERTS: options.s3.caFile }),
    ...givenSettings(),
    TALLY_QUEUE_URL: options.queueUrl,
    TALLY_INDEX_URL: url,
    TALLY_INDEX_PREFIX: prefix,
    // one node cannot hold a replica
    TALLY_INDEX_REPLICAS: '0',
    TALLY_HEALTH_ADDRESS: ANY_PORT,
    TALLY_HTTP_ADDRESS: ANY_PORT,
  };
  const serve = (role: string): MeasuredProcess =>
    startProcess([...nodeOptions(), MAIN, 'serve'], {
      ...env,
      TALLY_ROLES: role,
      TALLY_SOCKET: join(tmpdir(), `${prefix}-${process.pid}.sock`),
    });
  const healthUrls: string[] = [];
  const workers: MeasuredProcess[] = [];
  const stop = async (): Promise<void> => {
    await stopAll(workers);
    await remove();
  };
  try {
    // a worker is measured without a registry
    await addBucket(serve('http'), env, [BUCKET, '--no-reindex', '--wired-by-hand']);
    for (let number = 0; number < options.workers; number += 1) workers.push(serve('ingest'));
    for (const worker of workers) healthUrls.push((await servedAt(worker)).healthUrl);
    for (const [at, worker] of workers.entries()) await untilReady(worker, async () => answersReady(healthUrls[at] ?? ''));
  } catch (error) {
    await stop();
    throw error;
  }
  const index = openIndex({ url, prefix });
  return {
    processes: workers,
    index,
    metrics: () => metricsOf(healthUrls.map((healthUrl) => `${healthUrl}/metrics`)),
    stop: async () => {
      await index.close();
      await stop();
    },
  };
}

async function stopAll(processes: readonly MeasuredProcess[]): Promise<void> {
  await Promise.all(processes.map((each) => each.stop()));
}
