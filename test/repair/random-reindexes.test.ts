/** Re-indexes of random buckets into real stores, by the product's own turn: parts at once, turns and pages that end anywhere, changes while it lists. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compareKeys } from '../../src/base/key-order.ts';
import { createSqliteStore } from '../../src/store/sqlite/store.ts';
import type { Store } from '../../src/store/store.ts';
import { isLong } from '../support/breadth.ts';
import { opensearchUrl } from '../support/servers/found.ts';
import { awkwardKeys } from '../contracts/world.ts';
import { openTestStore } from '../support/servers/opensearch.ts';
import { createReindexWorld } from '../support/worlds/reindex.ts';

interface OpenedStore {
  readonly store: Store;
  readonly dispose: () => Promise<void>;
}

function openSqlite(): OpenedStore {
  const folder = mkdtempSync(join(tmpdir(), 'tally-reindex-'));
  const store = createSqliteStore(join(folder, 'index.sqlite'));
  const dispose = async (): Promise<void> => {
    await store.close();
    rmSync(folder, { recursive: true });
  };
  return { store, dispose };
}

const stores = [
  ['SQLite', openSqlite, isLong ? 60 : 15],
  ...(opensearchUrl() === undefined ? [] : ([['OpenSearch', openTestStore, isLong ? 10 : 3]] as const)),
] as const;

const keyOf = fc
  .tuple(
    fc.constantFrom('', 'a/', 'ab/', '\u{1f600}/', '\u{1f600}', '\ufffd/', '\ufffd', 'a%2Fb/'),
    fc.constantFrom(...awkwardKeys.filter((key) => Buffer.byteLength(key) <= 1_000)),
    fc.nat(3),
  )
  .map(([folder, name, number]) => `${folder}${name}${number === 0 ? '' : number}`);

/** What the bucket and the index say of a key when the re-index begins, and what happens to it while the bucket is listed. */
const historyOf = fc.record({
  key: keyOf,
  inBucket: fc.boolean(),
  inIndex: fc.constantFrom('same' as const, 'other' as const, 'tombstone' as const, 'none' as const),
  change: fc.constantFrom('none' as const, 'none' as const, 'put' as const, 'delete' as const),
  atPage: fc.integer({ min: 1, max: 10 }),
  isToldLate: fc.boolean(),
});

type KeyHistory = typeof historyOf extends fc.Arbitrary<infer Drawn> ? Drawn : never;

const planOf = fc.record({
  histories: fc.uniqueArray(historyOf, { selector: ({ key }) => key, maxLength: 80, size: 'max' }),
  prefix: fc.constantFrom('', '', '', 'a', 'a/', 'ab', '\u{1f600}', '\ufffd/', ' ', 'none such/'),
  /** The keys at which its parts end, by their places. */
  ends: fc.array(fc.nat(), { maxLength: 3, size: 'max' }),
  pageSize: fc.integer({ min: 1, max: 40 }),
  /** After how many slices each turn ends. */
  slices: fc.integer({ min: 1, max: 5 }),
  /** Nothing changes meanwhile, so that it is known what is counted. */
  isCalm: fc.boolean(),
});

/** What a re-index of these keys has to count when nothing changes meanwhile. */
function countsOf(histories: readonly KeyHistory[]) {
  const present = histories.filter(({ inBucket }) => inBucket);
  return {
    listed: present.length,
    missing: present.filter(({ inIndex }) => inIndex === 'tombstone' || inIndex === 'none').length,
    stale: present.filter(({ inIndex }) => inIndex === 'other').length,
    phantom: histories.filter(({ inBucket, inIndex }) => !inBucket && (inIndex === 'same' || inIndex === 'other')).length,
  };
}

describe.each(stores)('a re-index of a random bucket into %s', (_, open, numRuns) => {
  let opened: OpenedStore;
  beforeAll(async () => {
    opened = open();
    await opened.store.setup.prepare();
  });
  afterAll(() => opened.dispose());

  it('makes the index say under its prefix what the bucket says, and leaves the rest', async () => {
    const property = fc.asyncProperty(planOf, async ({ histories, prefix, ends, pageSize, slices, isCalm }) => {
      const { store } = opened;
      const bucket = `random-${randomBytes(6).toString('hex')}`;
      const world = await createReindexWorld({ store, bucket });
      for (const { key, inBucket, inIndex } of histories) {
        const state = world.put(key);
        if (inIndex !== 'none')
          await world.index(
            key,
            inIndex === 'tombstone' ? { present: false } : { ...state, ...(inIndex === 'other' && { etag: 'other' }) },
          );
        if (!inBucket) world.s3.objects.delete(key);
      }
      await store.scan.refresh(bucket);
      const before = await world.found();

      const late: (() => Promise<unknown>)[] = [];
      let pages = 0;
      world.s3.pageSize = pageSize;
      world.s3.onPage = async () => {
        pages += 1;
        for (const { key, change, atPage, isToldLate } of histories) {
          if (isCalm || change === 'none' || atPage !== pages || !key.startsWith(prefix)) continue;
          const state = change === 'put' ? world.put(key, { etag: 'changed' }) : ({ present: false } as const);
          if (change === 'delete') world.s3.objects.delete(key);
          const document = world.documentFor(key, state, { ageMs: 0 });
          const tell = (): Promise<unknown> => store.objects.write([{ document, equalClock: 'refuse' }]);
          await (isToldLate ? late.push(tell) : tell());
        }
      };
      const counts = { listed: 0, missing: 0, stale: 0, phantom: 0 };
      async function runPart(after: string, upTo: string | undefined): Promise<void> {
        let cursor = after;
        for (let isDone = false; !isDone;) {
          let left = slices;
          const request = { prefix, after: cursor, ...(upTo !== undefined && { upTo }) };
          const turn = await world.run(request, { shouldEnd: () => (left -= 1) < 0 });
          ({ done: isDone, cursor } = turn);
          for (const name of ['listed', 'missing', 'stale', 'phantom'] as const) counts[name] += turn.counts[name];
        }
      }
      const endKeys = histories.length === 0 ? [] : ends.map((place) => histories[place % histories.length]!.key);
      const bounds = ['', ...[...new Set(endKeys)].toSorted(compareKeys), undefined];
      const over = new AbortController();
      const running = Promise.all(bounds.slice(1).map((upTo, at) => runPart(bounds[at] ?? '', upTo))).finally(() => over.abort());
      // no faster than real time, which a real store takes: answers of S3 that grow too old meanwhile are asked again, and counted otherwise
      while (!over.signal.aborted) {
        await world.clock.advance(20);
        await delay(20);
      }
      await running;
      for (const tell of late) await tell();

      await store.scan.refresh(bucket);
      const isWithin = (found: string): boolean => found.startsWith(prefix);
      const found = await world.found();
      expect(found.filter(isWithin)).toEqual(world.bucketHolds().filter(isWithin));
      expect(found.filter((each) => !isWithin(each))).toEqual(before.filter((each) => !isWithin(each)));
      if (isCalm) expect(counts).toEqual(countsOf(histories.filter(({ key }) => isWithin(key))));
      await store.objects.removeBucket(bucket);
    });
    // a run that fails is made smaller for so long, and no longer: what hangs would hang in every smaller run
    await fc.assert(property, { numRuns, interruptAfterTimeLimit: 500_000, markInterruptAsFailure: true });
  });
});
