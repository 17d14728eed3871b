/** The bench `search`: how long each kind of request takes on a large index while documents are written, and what writing them costs. */
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { createOpenSearchStore } from '../../../src/adapters/opensearch/store.ts';
import { createSqliteStore } from '../../../src/adapters/sqlite/store.ts';
import { systemClock } from '../../../src/adapters/system-clock.ts';
import { facetRows } from '../../../src/api/facets.ts';
import { objectRows } from '../../../src/api/objects.ts';
import { usageRows } from '../../../src/api/usage.ts';
import { RequestError } from '../../../src/domain/request-error.ts';
import { documentOf, type ObjectDocument } from '../../../src/domain/documents/document.ts';
import { createGetFacets, createGetUsage } from '../../../src/pipeline/control/usage.ts';
import { createSearch } from '../../../src/pipeline/control/search.ts';
import { mergedParts, type Readable } from '../../../src/domain/access/readable.ts';
import type { Store } from '../../../src/pipeline/ports/store.ts';
import { refs, updateRecord } from '../../../src/pipeline/records/stored.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { bucketRecord } from '../../support/worlds/reindex.ts';
import { commandOf, listOf, whole } from '../bench-command.ts';
import { quantileOf, tableText } from '../statistics.ts';

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

interface RequestRow {
  readonly request: string;
  readonly found: number;
  /** Rounds in which it was refused, because it would have taken too long. Their durations count as well. */
  readonly refused: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  /** The same for a person who reads as many prefixes as there are grants, in turns with the others. Absent: without grants. */
  readonly granted?: { readonly found: number; readonly p50Ms: number; readonly p95Ms: number };
}

interface IndexReport {
  readonly index: Product;
  readonly documents: number;
  /** CPU of this process for each document that was written at first, and how many were written in a second. */
  readonly cpuUsPerDocument: number;
  readonly documentsPerS: number;
  readonly bytesPerDocument: number;
  /** What was written beside the requests, of what was wanted. */
  readonly writtenPerS: number;
  readonly requests: readonly RequestRow[];
}

interface SearchReport {
  readonly bench: 'search';
  readonly date: string;
  readonly node: string;
  readonly indexes: readonly IndexReport[];
}

/** The bench's command. */
export const searchBench = commandOf<SearchOptions, SearchReport>({ name: 'search', describe, run, text: reportText });

function describe(command: Command): Command {
  return command
    .description('The duration of each kind of search and usage, while documents are written; CPU and bytes of each document.')
    .addOption(new Option('--index <names>', 'comma-separated').argParser(listOf(products)).default(products, products.join(',')))
    .addOption(new Option('--documents <count>', 'of the index').argParser(whole(1_000, 100_000_000)).default(1_000_000))
    .addOption(
      new Option(
        '--clones <count>',
        'OpenSearch: measure again with so many clones of the index as shards of the bucket, since writing as many documents takes long',
      )
        .argParser(whole(1, 100))
        .default(1),
    )
    .addOption(new Option('--rounds <count>', 'of all requests').argParser(whole(1, 1_000)).default(20))
    .addOption(new Option('--rate <count>', 'documents written in a second meanwhile').argParser(whole(0, 100_000)).default(1_000))
    .addOption(
      new Option('--grants <count>', 'measure each request also for a person who reads so many prefixes')
        .argParser(whole(0, 300))
        .default(0),
    )
    .addHelpText('after', '\nTALLY_BENCH_OPENSEARCH_URL names an OpenSearch that holds nothing of value.');
}

async function run({ index, ...options }: SearchOptions, tell: (text: string) => void): Promise<SearchReport> {
  const indexes: IndexReport[] = [];
  for (const product of index) indexes.push(...(await measure(product, options, tell)));
  return { bench: 'search', date: new Date().toISOString(), node: process.version, indexes };
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
  const store = createSqliteStore({ path, hasReaders: true });
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
  const url = process.env['TALLY_BENCH_OPENSEARCH_URL'];
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
      await ask('DELETE', `${prefix}-*`);
      await ask('DELETE', `_index_template/${prefix}-*`);
    },
  };
}

async function measure(
  product: Product,
  options: Omit<SearchOptions, 'index'>,
  tell: (text: string) => void,
): Promise<readonly IndexReport[]> {
  const opened = await openIndex(product);
  const { store } = opened;
  try {
    await store.setup.prepare();
    await store.objects.createBucket(BUCKET);
    tell(`${product}: writing ${options.documents} documents`);
    const filled = await fill(store, options.documents);
    await store.scan.refresh(BUCKET);
    const costs = { ...filled, bytesPerDocument: (await opened.sizeBytes()) / options.documents };
    const reports = [{ index: product, documents: options.documents, ...costs, ...(await measureUnderWrites(store, options, tell)) }];
    if (options.clones > 1 && opened.clone !== undefined) {
      tell(`${product}: cloning`);
      await opened.clone(options.clones);
      const documents = options.documents * options.clones;
      reports.push({ index: product, documents, ...costs, ...(await measureUnderWrites(store, options, tell)) });
    }
    return reports;
  } finally {
    await opened.dispose();
  }
}

async function measureUnderWrites(
  store: Store,
  options: Omit<SearchOptions, 'index'>,
  tell: (text: string) => void,
): Promise<Pick<IndexReport, 'writtenPerS' | 'requests'>> {
  tell(`${options.rounds} rounds of requests`);
  const stop = new AbortController();
  const writing = writeOn(store, options, stop.signal);
  const requests = await measureBeside(writing, stop, () => measureRequests(store, options));
  return { writtenPerS: await writing, requests };
}

/** Measures while the writer writes. The writer has ended when this ends, also when a request failed, so that the store can be closed. */
async function measureBeside<Result>(writing: Promise<unknown>, stop: AbortController, measureAll: () => Promise<Result>): Promise<Result> {
  try {
    return await measureAll();
  } finally {
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

async function fill(store: Store, documents: number): Promise<Pick<IndexReport, 'cpuUsPerDocument' | 'documentsPerS'>> {
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

/** Writes documents of the index again, ten times a second, until the signal is aborted. Resolves with how many a second. */
async function writeOn(store: Store, { documents, rate }: Pick<SearchOptions, 'documents' | 'rate'>, signal: AbortSignal): Promise<number> {
  const beganMs = Date.now();
  let written = 0;
  while (!signal.aborted) {
    const due = Math.floor(((Date.now() - beganMs) / 1_000) * rate);
    const count = Math.min(BATCH, due - written);
    const batch = Array.from({ length: count }, (_, index) => documentAt(((written + index) * 104_729) % documents, Date.now()));
    const unique = [...new Map(batch.map((document) => [document.key, document])).values()];
    if (unique.length > 0) await writeAll(store, unique);
    written += Math.max(0, count);
    await sleep(100);
  }
  return written / ((Date.now() - beganMs) / 1_000);
}

/** Folders of two kinds: half of the teams, and some users. */
function readableOf(grants: number): Readable {
  const prefixes = Array.from({ length: grants }, (_, at) => (at % 2 === 0 ? `warehouse/team-${at}/` : `users/user${at}/`));
  return mergedParts(prefixes.map((prefix) => ({ bucket: BUCKET, prefix })));
}

/** The requests of the bench. Each resolves with how much it found. */
function requestsOf(store: Store, state: Store['state'], readable: Readable): Readonly<Record<string, () => Promise<number>>> {
  const clock = systemClock;
  const search = createSearch({ objects: store.objects, state, clock });
  const getUsage = createGetUsage({ usage: store.usage, state, clock });
  const getFacets = createGetFacets({ usage: store.usage, state, clock });
  const searching = (query: Readonly<Record<string, string | number>>) => async () =>
    (await search(objectRows['GET /v1/objects'].query.parse({ bucket: BUCKET, ...query }), readable)).items.length;
  const summing = (query: Readonly<Record<string, string | number>>) => async () =>
    (await getUsage(usageRows['GET /v1/usage'].query.parse({ bucket: BUCKET, ...query }), readable)).items.length;
  const grouping = (query: Readonly<Record<string, string>>) => async () =>
    (await getFacets(facetRows['GET /v1/objects/facets'].query.parse({ bucket: BUCKET, ...query }), readable)).objects;
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

async function measureRequests(store: Store, { rounds, grants }: Pick<SearchOptions, 'rounds' | 'grants'>): Promise<readonly RequestRow[]> {
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
    refused: all.refused,
    ...times(all),
    ...(granted !== undefined && { granted: { found: some.found, ...times(some) } }),
  }));
}

function reportText({ indexes, node, date }: SearchReport): string {
  const parts = indexes.map(({ index, documents, requests, ...costs }) => {
    const hasGrants = requests.some(({ granted }) => granted !== undefined);
    const heads = ['request', 'found', 'refused', 'p50 ms', 'p95 ms'];
    const rows = requests.map(({ request, found, refused, p50Ms, p95Ms, granted }) => [
      request,
      String(found),
      String(refused),
      p50Ms.toFixed(1),
      p95Ms.toFixed(1),
      ...(granted === undefined ? [] : [String(granted.found), granted.p95Ms.toFixed(1), (granted.p95Ms / p95Ms).toFixed(2)]),
    ]);
    const facts = [
      `${index}, ${documents} documents`,
      `written at first: ${costs.cpuUsPerDocument.toFixed(1)} µs of CPU of this process and ${costs.bytesPerDocument.toFixed(0)} bytes for each, ${costs.documentsPerS.toFixed(0)}/s`,
      `written beside the requests: ${costs.writtenPerS.toFixed(0)}/s`,
    ];
    return [...facts, tableText([[...heads, ...(hasGrants ? ['found, granted', 'p95 ms, granted', 'ratio'] : [])], ...rows])].join('\n');
  });
  return [`search, Node ${node}, ${date}`, ...parts].join('\n\n');
}
