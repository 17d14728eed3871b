/** The bench `search`: how long each kind of request takes on a large index while documents are written, and what writing them costs. */
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createOpenSearchStore } from '../../../src/store/opensearch/store.ts';
import { createSqliteStore } from '../../../src/store/sqlite/store.ts';
import { systemClock } from '../../../src/process/clock.ts';
import { objectRows } from '../../../src/registry/contract/objects.ts';
import { usageRows } from '../../../src/registry/contract/usage.ts';
import { RequestError } from '../../../src/base/request-error.ts';
import { documentOf, type ObjectDocument } from '../../../src/ordering/document.ts';
import { createSearch, getUsage } from '../../../src/search/search.ts';
import { mergedParts, type Readable } from '../../../src/store/readable.rules.ts';
import type { Store } from '../../../src/store/store.ts';
import { refs, updateRecord } from '../../../src/store/stored.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { bucketRecord } from '../../support/worlds/reindex.ts';
import { commandOf, countOption, namesOption, OPENSEARCH_HELP, openSearchUrl } from '../bench-command.ts';
import { removeIndices } from '../opensearch.ts';
import { quantileOf } from '../report.ts';
import { goalsOf } from './goals.ts';

export const products = ['opensearch', 'sqlite'] as const;
export type Product = (typeof products)[number];

interface SearchOptions {
  readonly index: readonly Product[];
  readonly documents: number;
  readonly rounds: number;
  readonly rate: number;
  readonly clones: number;
  readonly grants: number;
}

/** The bench's command. */
export const searchBench = commandOf<SearchOptions>({
  name: 'search',
  description: 'The duration of each kind of search and usage, while documents are written; CPU and bytes of each document.',
  options: [
    namesOption('--index <names>', 'of the products', products),
    countOption('--documents <count>', 'of the index', [1_000, 100_000_000], 1_000_000),
    countOption(
      '--clones <count>',
      'OpenSearch: measure again with so many clones of the index as shards of the bucket, since writing as many documents takes long',
      [1, 100],
      1,
    ),
    countOption('--rounds <count>', 'of all requests', [1, 1_000], 20),
    countOption('--rate <count>', 'documents written in a second meanwhile', [0, 100_000], 1_000),
    countOption('--grants <count>', 'measure each request also for a person who reads so many prefixes', [0, 300], 0),
  ],
  help: OPENSEARCH_HELP,
  run,
});

async function run({ index, ...options }: SearchOptions, tell: (text: string) => void) {
  const reports = [];
  for (const product of index) reports.push(...(await measure(product, options, tell)));
  return {
    indexes: reports.map(({ row }) => row),
    requests: reports.flatMap(({ row: { index: of, documents }, requests }) => requests.map((each) => ({ index: of, documents, ...each }))),
    targets: reports.flatMap(({ row, requests }) => goalsOf(`${row.index}, ${row.documents}`, { ...row, requests })),
  };
}

interface Opened {
  readonly store: Store;
  sizeBytes(): Promise<number>;
  /** Clones the index of the bucket until there are so many. The first one is still written. */
  clone?(count: number): Promise<void>;
  dispose(): Promise<void>;
}

const BUCKET = 'photos';

/** Opens a new index of a product; `dispose` removes it. */
export function openIndex(product: Product): Promise<Opened> {
  return product === 'sqlite' ? openSqlite() : openOpenSearch();
}

async function openSqlite(): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), 'tally-bench-search-'));
  const path = join(folder, 'index.sqlite');
  const store = createSqliteStore(path);
  return {
    store,
    sizeBytes: async () => (await stat(path)).size,
    async dispose() {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
}

async function openOpenSearch(): Promise<Opened> {
  const url = openSearchUrl();
  if (url === undefined) throw new Error('TALLY_BENCH_OPENSEARCH_URL must name an OpenSearch that holds nothing of value');
  const prefix = `bench${Date.now().toString(36)}`;
  const store = createOpenSearchStore({ urls: [url], prefix, shards: 1, replicas: 0, clock: systemClock });
  const ask = async (method: string, path: string, body?: unknown): Promise<string> => {
    const content = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    return (await fetch(`${url}/${path}`, { method, ...content })).text();
  };
  const change = async (method: string, path: string, body: unknown): Promise<void> => {
    const answer = await ask(method, path, body);
    if (!answer.includes('"acknowledged":true')) throw new Error(`${method} ${path}: ${answer}`);
  };
  return {
    store,
    async clone(count) {
      const index = `${prefix}-objects-${BUCKET}`;
      const [alias, live] = [`${prefix}-write-${BUCKET}`, `${prefix}-objects`];
      await change('POST', '_aliases', { actions: [{ add: { index, alias, is_write_index: true } }] });
      await change('PUT', `${index}/_settings`, { 'index.blocks.write': true });
      for (let number = 1; number < count; number += 1) {
        await change('PUT', `${index}/_clone/${index}-${number}`, {
          settings: { 'index.blocks.write': null, 'index.number_of_replicas': 0 },
          aliases: { [alias]: { is_write_index: false }, [live]: { filter: { term: { deleted: false } } } },
        });
      }
      await change('PUT', `${index}/_settings`, { 'index.blocks.write': null });
      await ask('GET', `_cluster/health/${index}*?wait_for_status=green&timeout=300s`);
    },
    async sizeBytes() {
      await ask('POST', `${prefix}-objects-${BUCKET}/_flush`);
      const stats = JSON.parse(await ask('GET', `${prefix}-objects-${BUCKET}/_stats/store`)) as {
        _all: { total: { store: { size_in_bytes: number } } };
      };
      return stats._all.total.store.size_in_bytes;
    },
    async dispose() {
      await store.close();
      await removeIndices(url, prefix);
    },
  };
}

async function measure(product: Product, options: Omit<SearchOptions, 'index'>, tell: (text: string) => void) {
  const opened = await openIndex(product);
  const { store } = opened;
  try {
    await store.setup.prepare();
    await store.objects.createBucket(BUCKET);
    tell(`${product}: writing ${options.documents} documents`);
    const filled = await fill(store, options.documents);
    await store.scan.refresh(BUCKET);
    const costs = { ...filled, bytesPerDocument: (await opened.sizeBytes()) / options.documents };
    const report = async (clones: number) => {
      const { requests, ...beside } = await measureUnderWrites(store, options, tell);
      return { row: { index: product, documents: options.documents * clones, ...costs, ...beside }, requests };
    };
    const reports = [await report(1)];
    if (options.clones > 1 && opened.clone !== undefined) {
      tell(`${product}: cloning`);
      await opened.clone(options.clones);
      reports.push(await report(options.clones));
    }
    return reports;
  } finally {
    await opened.dispose();
  }
}

async function measureUnderWrites(store: Store, options: Omit<SearchOptions, 'index'>, tell: (text: string) => void) {
  tell('writing without requests');
  const alone = await writeOn(store, options, AbortSignal.timeout(ALONE_MS));
  tell(`${options.rounds} rounds of requests`);
  const stop = new AbortController();
  const writing = writeOn(store, options, stop.signal);
  try {
    const requests = await measureRequests(store, options);
    stop.abort();
    const { writtenPerS, lagMs: lagBesideMs } = await writing;
    return { writtenPerS, lagAloneMs: alone.lagMs, lagBesideMs, requests };
  } finally {
    // the writer has ended also when a request failed, so that the store can be closed
    stop.abort();
    await Promise.allSettled([writing]);
  }
}

const EXTENSIONS = ['jpg', 'parquet', 'log.gz', 'csv', 'json', 'tar.gz', 'txt', 'PDF'];
const CLASSES = ['STANDARD', 'STANDARD_IA', 'GLACIER'];
const START_MS = Date.UTC(2024, 0, 1);

/** Keys as data lakes and people make them. */
function keyAt(at: number): string {
  const extension = EXTENSIONS[at % EXTENSIONS.length] ?? '';
  const day = new Date(START_MS + (at % 900) * 86_400_000).toISOString().slice(0, 10);
  if (at % 2 === 0) return `warehouse/team-${at % 50}/year=${day.slice(0, 4)}/day=${day}/part-${String(at).padStart(8, '0')}.${extension}`;
  return `users/user${at % 1_000}/Documents/Annual Report ${day} v${at}.${extension}`;
}

function documentAt(at: number, nowMs: number): ObjectDocument {
  const lastModifiedMs = START_MS + ((at * 7_919) % 77_760_000) * 1_000;
  return documentOf({
    bucket: BUCKET,
    key: keyAt(at),
    state: {
      present: true,
      etag: at.toString(16).padStart(32, '0'),
      sizeBytes: (at * 2_654_435_761) % 2 ** 31,
      lastModifiedMs,
      storageClass: CLASSES[at % 3] ?? '',
    },
    clock: nowMs * 1_000,
    settled: true,
    source: 'native',
    cause: { eventName: 'ObjectCreated:Put', eventTimeMs: lastModifiedMs },
    stateAtMs: nowMs,
    nowMs,
  });
}

const BATCH = 1_000;
const AT_ONCE = 4;

/** CPU of this process for each document that is written at first, and how many are written in a second. */
async function fill(store: Store, documents: number) {
  const nowMs = Date.now();
  const before = process.cpuUsage();
  let next = 0;
  async function writeBatches(): Promise<void> {
    for (let from = next; from < documents; from = next) {
      next = Math.min(documents, from + BATCH);
      const batch = Array.from({ length: next - from }, (_, index) => documentAt(from + index, nowMs));
      await writeAll(store, batch);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, writeBatches));
  const { user, system } = process.cpuUsage(before);
  return { cpuUsPerDocument: (user + system) / documents, documentsPerS: documents / ((Date.now() - nowMs) / 1_000) };
}

async function writeAll(store: Store, documents: readonly ObjectDocument[]): Promise<void> {
  const answers = await store.objects.write(documents.map((document) => ({ document, equalClock: 'accept' })));
  const refused = answers.find(({ kind }) => kind !== 'written');
  if (refused !== undefined) throw new Error(`a document was not written: ${JSON.stringify(refused)}`);
}

/** As long as the writer is measured alone: 600 batches. */
const ALONE_MS = 30_000;
const BATCH_EVERY_MS = 50;

/** Writes documents of the index again, twenty times a second, until the signal is aborted. The lag is the p99 from the moment that the first document of a batch is due until the batch is written. */
async function writeOn(store: Store, { documents, rate }: Pick<SearchOptions, 'documents' | 'rate'>, signal: AbortSignal) {
  const beganMs = performance.now();
  const sinceMs = (): number => performance.now() - beganMs;
  const lags: number[] = [];
  let written = 0;
  while (!signal.aborted) {
    const count = Math.min(BATCH, Math.floor((sinceMs() / 1_000) * rate) - written);
    const batch = Array.from({ length: count }, (_, index) => documentAt(((written + index) * 104_729) % documents, Date.now()));
    const unique = [...new Map(batch.map((document) => [document.key, document])).values()];
    if (unique.length > 0) {
      await writeAll(store, unique);
      lags.push(sinceMs() - ((written + 1) / rate) * 1_000);
    }
    written += count;
    await sleep(BATCH_EVERY_MS);
  }
  return { writtenPerS: written / (sinceMs() / 1_000), lagMs: lags.length === 0 ? 0 : quantileOf(lags, 0.99) };
}

/** Folders of two kinds: half of the teams, and some users. */
function readableOf(grants: number): Readable {
  const prefixes = Array.from({ length: grants }, (_, at) => (at % 2 === 0 ? `warehouse/team-${at}/` : `users/user${at}/`));
  return mergedParts(prefixes.map((prefix) => ({ bucket: BUCKET, prefix })));
}

const FACETS = ['bucket', 'extension', 'class', 'size', 'age'];

/** The requests of the bench. Each resolves with how much it found. */
function requestsOf(store: Store, state: Store['state'], readable: Readable): Readonly<Record<string, () => Promise<number>>> {
  const clock = systemClock;
  const search = createSearch({ ...store, state, clock, processes: { troubles: async () => [] }, compareIntervalMs: 0 });
  const searching = (query: Readonly<Record<string, string | number>>) => async () =>
    (await search(objectRows['GET /v1/objects'].query.parse({ bucket: BUCKET, ...query }), readable)).items.length;
  const summing = (query: Readonly<Record<string, string | readonly string[]>>) => async () =>
    (
      await getUsage(
        { usage: store.usage, state, clock },
        usageRows['GET /v1/usage'].query.parse({ bucket: BUCKET, by: 'folder', ...query }),
        readable,
      )
    ).objects;
  const grouping = (query: Readonly<Record<string, string>>) => summing({ ...query, by: FACETS });
  return {
    'first page': searching({}),
    prefix: searching({ prefix: 'users/user77/' }),
    words: searching({ q: 'annual report 2025' }),
    'rare word': searching({ q: 'part 00012344' }),
    extension: searching({ extension: 'parquet' }),
    'dotted extension': searching({ extension: 'tar.gz' }),
    contains: searching({ contains: 'Report 2025-0' }),
    'contains, rare': searching({ contains: 'v12345.' }),
    'contains, nothing': searching({ contains: 'nowhere' }),
    pattern: searching({ match: '*day=2025-01-*.parquet' }),
    'size above': searching({ query: 'size>2147480000' }),
    largest: searching({ sort: 'size', order: 'desc' }),
    newest: searching({ sort: 'last_modified', order: 'desc' }),
    'largest below a prefix': searching({ sort: 'size', order: 'desc', prefix: 'users/user77/' }),
    'words and filters': searching({ query: 'annual report ext:csv size>1G modified>2025' }),
    total: searching({ total: 'true', extension: 'csv' }),
    usage: summing({}),
    'usage below a folder': summing({ prefix: 'warehouse/' }),
    'usage by class': summing({ by: 'class' }),
    'usage by age': summing({ by: 'age' }),
    'usage of a query': summing({ query: 'ext:parquet size>1G' }),
    facets: grouping({}),
    'facets of a query': grouping({ query: 'ext:parquet size>1G' }),
    'facets of words': grouping({ q: 'annual report 2025' }),
    'facets of a rare word': grouping({ q: 'part 00012344' }),
  };
}

/** What was measured of one request. */
interface Measured {
  readonly ms: number[];
  found: number;
  refused: number;
}

async function measureOne(measured: Measured, request: () => Promise<number>, isWarm: boolean): Promise<void> {
  const beganMs = performance.now();
  try {
    measured.found = await request();
  } catch (error) {
    if (!(error instanceof RequestError) || error.code !== 'search.too-wide') throw error;
    measured.refused += 1;
  }
  if (isWarm) measured.ms.push(performance.now() - beganMs);
}

async function measureRequests(store: Store, { rounds, grants }: Pick<SearchOptions, 'rounds' | 'grants'>) {
  const { state } = createMemoryStore();
  await updateRecord(state, refs.bucket(BUCKET), () => ({ ...bucketRecord, bucket: BUCKET }));
  const ofAll = requestsOf(store, state, 'everything');
  const ofGranted = grants === 0 ? {} : requestsOf(store, state, readableOf(grants));
  const none = (): Measured => ({ ms: [], found: 0, refused: 0 });
  const rows = Object.entries(ofAll).map(([name, request]) => ({ name, request, granted: ofGranted[name], all: none(), some: none() }));
  for (let round = 0; round <= rounds; round += 1) {
    for (const { request, granted, all, some } of rows) {
      // the first round warms caches
      await measureOne(all, request, round > 0);
      if (granted !== undefined) await measureOne(some, granted, round > 0);
    }
  }
  const times = ({ ms }: Measured) => ({ p50Ms: quantileOf(ms, 0.5), p95Ms: quantileOf(ms, 0.95) });
  return rows.map(({ name, granted, all, some }) => ({
    request: name,
    found: all.found,
    // their durations count as well
    refused: all.refused,
    ...times(all),
    // for a person who reads as many prefixes as there are grants, in turns with the others
    ...(granted !== undefined && {
      grantedFound: some.found,
      grantedP95Ms: times(some).p95Ms,
      ratio: times(some).p95Ms / times(all).p95Ms,
    }),
  }));
}
