import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSqliteStore } from '../../src/store/sqlite/store.ts';
import type { ObjectDocument } from '../../src/ordering/document.ts';
import type { Store } from '../../src/store/store.ts';
import type { ListedEntry } from '../support/servers/listing/contents.ts';
import { startListingServer } from '../support/servers/listing/listing-server.ts';
import type { ListingServer } from '../support/servers/listing/listing-server.ts';
import type { Fault } from '../support/servers/listing/listing-faults.ts';
import { isLong } from '../support/breadth.ts';
import { openTestStore } from '../support/servers/opensearch.ts';
import { createReindexer } from '../support/random/reindex.ts';
import type { Reindexer } from '../support/random/reindex.ts';
import { expectedCounts, historyOf } from '../support/random/reindex-history.ts';
import { opensearchUrl } from '../support/servers/found.ts';

interface OpenedStore {
  readonly store: Store;
  readonly close: () => Promise<void>;
}

async function openSqlite(): Promise<OpenedStore> {
  const folder = await mkdtemp(join(tmpdir(), 'tally-reindex-'));
  const store = createSqliteStore(join(folder, 'index.sqlite'));
  return {
    store,
    close: async () => {
      await store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function openOpenSearch(): Promise<OpenedStore> {
  const opened = openTestStore();
  return { store: opened.store, close: () => opened.dispose() };
}

const stores = [
  ['SQLite', openSqlite, isLong ? 45 : 15],
  ...(opensearchUrl() === undefined ? [] : ([['OpenSearch', openOpenSearch, isLong ? 10 : 4]] as const)),
] as const;

const PREFIXES = ['', '', '', 'a', 'a/', 'ab', '\u{1f600}', '\ufffd/', ' ', 'none such/'];

const planOf = fc.record({
  seed: fc.integer({ min: 1, max: 1_000_000 }),
  keys: fc.integer({ min: 0, max: 150 }),
  pageMax: fc.integer({ min: 1, max: 40 }),
  prefix: fc.constantFrom(...PREFIXES),
  fill: fc.boolean(),
  parts: fc.integer({ min: 1, max: 4 }),
  slicesMax: fc.integer({ min: 1, max: 5 }),
});

/** What makes a turn end with a fault, and may be tried again. */
const passing: readonly Fault[] = [
  { kind: 'slow-down', share: 0.05 },
  { kind: 'reset', share: 0.05 },
  { kind: 'error', status: 500, code: 'InternalError', share: 0.05, operations: ['list', 'head'] },
  { kind: 'cut-xml', share: 0.05 },
  { kind: 'cut-body', share: 0.05 },
  { kind: 'no-end', share: 0.05 },
  { kind: 'empty', share: 0.05 },
  { kind: 'swapped', share: 0.05 },
  { kind: 'repeated', share: 0.05 },
  { kind: 'restarted', share: 0.05 },
  { kind: 'foreign', share: 0.05 },
];

type Play = Parameters<Reindexer['run']>[2] & { readonly pageMax: number; readonly isComplete?: boolean };

/** A run that fails is made smaller for so long, and no longer: what hangs would hang in every smaller run. */
const ended = { interruptAfterTimeLimit: 500_000, markInterruptAsFailure: true };

describe.each(stores)('a re-index of a random bucket into %s', (_, open, numRuns) => {
  let server: ListingServer;
  let opened: OpenedStore;
  let reindexer: Reindexer;

  beforeAll(async () => {
    server = await startListingServer();
    opened = await open();
    await opened.store.setup.prepare();
    reindexer = createReindexer(opened.store, server);
  });
  afterAll(async () => {
    reindexer.close();
    await opened.close();
    await server.close();
  });

  /** A bucket of its own for each run: what one leaves is no start for the next. */
  async function inBucket(work: (bucket: string) => Promise<void>): Promise<void> {
    const bucket = `random-${randomBytes(6).toString('hex')}`;
    try {
      await work(bucket);
    } finally {
      server.setFaults();
      server.setPageMax(1_000);
      server.removeBucket(bucket);
      await opened.store.objects.removeBucket(bucket);
    }
  }

  /** Plays a re-index, after which the index says under its prefix what the bucket says. `isComplete`: and says all. */
  async function play(bucket: string, history: ReturnType<typeof historyOf>, { pageMax, isComplete = false, ...plan }: Play) {
    const contents = await reindexer.begin(bucket, history);
    server.setPageMax(pageMax);
    const counts = await reindexer.run(bucket, history, plan);
    const documents = await reindexer.documents(bucket);
    const { entries } = contents.slice({ prefix: plan.prefix, after: '', limit: 100_000 });
    expectSame(
      documents.filter(({ key }) => key.startsWith(plan.prefix)),
      entries,
      isComplete,
    );
    return { counts, documents };
  }

  test('ends equal, and counts what the oracle counts', async () => {
    const property = fc.asyncProperty(planOf, ({ keys, ...plan }) =>
      inBucket(async (bucket) => {
        const history = historyOf(bucket, { seed: plan.seed, keys, changes: 0, requests: 1 }, Date.now());
        const { counts, documents } = await play(bucket, history, { ...plan, isDisturbed: false, isComplete: plan.fill });
        const inPrefix = history.keys.filter(({ key }) => key.startsWith(plan.prefix));
        expect(counts).toMatchObject(expectedCounts(inPrefix, plan.fill));
        const untouched = history.keys.filter(({ key, document }) => !key.startsWith(plan.prefix) && document?.deleted === false);
        expect(documents.filter(({ key }) => !key.startsWith(plan.prefix))).toEqual(sorted(untouched.map(({ document }) => document!)));
      }),
    );
    await fc.assert(property, { numRuns, ...ended });
  }, 600_000);

  test('ends equal with changes made while it lists, turns ended, limited and killed, and told late', async () => {
    const changing = fc.tuple(planOf, fc.integer({ min: 1, max: 80 }));
    const property = fc.asyncProperty(changing, ([{ keys, ...plan }, changes]) =>
      inBucket(async (bucket) => {
        const requests = 2 + Math.ceil(keys / plan.pageMax);
        const history = historyOf(bucket, { seed: plan.seed, keys, changes, requests }, Date.now());
        await play(bucket, history, { ...plan, isDisturbed: true });
      }),
    );
    await fc.assert(property, { numRuns, ...ended });
  }, 600_000);

  test('ends equal where pages of the listing and of the index end anywhere in it', async () => {
    const large = fc.record({
      seed: fc.integer({ min: 1, max: 1_000_000 }),
      keys: fc.integer({ min: 2_500, max: 4_000 }),
      pageMax: fc.integer({ min: 200, max: 1_000 }),
      slicesMax: fc.integer({ min: 1, max: 2 }),
    });
    const property = fc.asyncProperty(large, ({ keys, ...sizes }) =>
      inBucket(async (bucket) => {
        const history = historyOf(bucket, { seed: sizes.seed, keys, changes: 0, requests: 1 }, Date.now());
        const plan = { ...sizes, prefix: '', fill: true, parts: 1, isDisturbed: false, isComplete: true };
        const { counts } = await play(bucket, history, plan);
        expect(counts).toMatchObject(expectedCounts(history.keys, true));
      }),
    );
    await fc.assert(property, { numRuns: Math.ceil(numRuns / 15), ...ended });
  }, 600_000);

  test('ends equal through every fault of a listing that passes', async () => {
    const property = fc.asyncProperty(planOf, ({ keys, ...plan }) =>
      inBucket(async (bucket) => {
        const history = historyOf(bucket, { seed: plan.seed, keys, changes: 5, requests: 10 }, Date.now());
        server.setFaults(...passing);
        await play(bucket, history, { ...plan, pageMax: Math.max(5, plan.pageMax), isDisturbed: false });
      }),
    );
    await fc.assert(property, { numRuns: Math.ceil(numRuns / 4), ...ended });
  }, 600_000);
});

/** The index says of each object what the bucket says, where it says anything. `isComplete`: and says all. */
function expectSame(documents: readonly ObjectDocument[], entries: readonly ListedEntry[], isComplete: boolean): void {
  const wanted = entries.map(({ key, state: { etag, sizeBytes, storageClass } }) => ({ key, etag, size: sizeBytes, storageClass }));
  const found = documents.map(({ key, etag, size, storage_class: storageClass }, at) => {
    return { key, etag, size, storageClass: storageClass ?? (isComplete ? undefined : entries[at]?.state.storageClass) };
  });
  expect(found).toEqual(wanted);
}

function sorted(documents: readonly ObjectDocument[]): readonly ObjectDocument[] {
  return documents.toSorted((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
}
