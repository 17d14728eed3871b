/**
 * What the workers ask, answering in virtual time as the real ones were measured to. They count what they are asked.
 *
 * S3: LIST 80 to 150 ms. OpenSearch 3.6: 17 µs of server CPU for each scanned document of an index in the order of its keys, and
 * 3 ms for the page; 10 µs for each key of a realtime read that finds nothing, 26 µs for a whole document; 40 µs for each
 * document of a bulk request, and 3 ms for the request; state: reads by id 2 ms, writes that wait for the next refresh (200 ms).
 * SQS: 15 ms for a request. A worker: a core of its own, 9 µs for each object of a listing, 4 µs for a scanned document, 8 µs for
 * one that is written.
 */
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import { documentOf } from '../../../src/ordering/document.ts';
import type { IndexWrite, ObjectIndex, ObjectScan, ScannedDocument } from '../../../src/store/store.ts';
import type { BucketListing } from '../../../src/aws/storage.ts';
import type { Random } from '../../support/random/seeded.ts';
import { createNumberSet, runsOf, type LargeObjects } from './objects.ts';
import type { Clock } from '../../../src/process/clock.ts';

const S3 = { listMinMs: 80, listMaxMs: 150 };
const INDEX = {
  networkMs: 1,
  pageMs: 3,
  scannedMs: 0.017,
  absentMs: 0.01,
  readMs: 0.026,
  bulkMs: 3,
  writtenMs: 0.04,
  countMs: 5,
  refreshMs: 20,
};
const WORKER = { listedMs: 0.009, scannedMs: 0.004, writtenMs: 0.008 };
/** The interval at which OpenSearch shows searches what was written. */
const REFRESH_MS = 1_000;

/** Cores that serve one request each at a time, in the order in which the requests come. */
export interface Cores {
  /** Resolves when a core has spent this long on the request. */
  use(costMs: number): Promise<void>;
  /** How long the cores were used, summed up. */
  usedMs(): number;
}

/** Creates cores of a machine on the clock. */
export function createCores(clock: Clock, count: number): Cores {
  const freeAtMs = Array.from({ length: count }, () => 0);
  let usedMs = 0;
  return {
    use(costMs) {
      let first = 0;
      for (let at = 1; at < count; at += 1) if ((freeAtMs[at] ?? 0) < (freeAtMs[first] ?? 0)) first = at;
      const endMs = Math.max(clock.monotonicMs(), freeAtMs[first] ?? 0) + costMs;
      freeAtMs[first] = endMs;
      usedMs += costMs;
      return clock.sleep(endMs - clock.monotonicMs());
    },
    usedMs: () => usedMs,
  };
}

export interface Counted {
  /** Pages of 1,000 keys, and smaller ones, which are probes for a boundary. */
  lists: number;
  listProbes: number;
  listed: number;
  /** LIST requests that run now, and the most that ever ran at the same time. */
  listsRunning: number;
  listsAtOnce: number;
  scans: number;
  scanned: number;
  reads: number;
  bulks: number;
  written: number;
  /** Documents that were written again. */
  rewritten: number;
}

export function noRequests(): Counted {
  return {
    lists: 0,
    listProbes: 0,
    listed: 0,
    listsRunning: 0,
    listsAtOnce: 0,
    scans: 0,
    scanned: 0,
    reads: 0,
    bulks: 0,
    written: 0,
    rewritten: 0,
  };
}

/** What all workers share. */
export interface Shared {
  readonly objects: LargeObjects;
  readonly clock: Clock;
  readonly random: Random;
  readonly counted: Counted;
}

/** S3's listing as one worker reads it. `own`: the worker's core, which takes the page in. */
export function createLargeListing({ objects, clock, random, counted }: Shared, own: Cores): BucketListing {
  return {
    async page(_location, { after, limit }, signal) {
      if (limit === 1_000) counted.lists += 1;
      else counted.listProbes += 1;
      counted.listsRunning += 1;
      counted.listsAtOnce = Math.max(counted.listsAtOnce, counted.listsRunning);
      const sentAtMs = clock.nowMs();
      try {
        await clock.sleep(random.integer(S3.listMinMs, S3.listMaxMs), signal);
      } finally {
        counted.listsRunning -= 1;
      }
      const from = objects.firstAfter(after);
      const to = Math.min(objects.count, from + limit);
      counted.listed += to - from;
      await own.use((to - from) * WORKER.listedMs);
      signal?.throwIfAborted();
      const listed = Array.from({ length: to - from }, (_, index) => ({
        key: objects.keyAt(from + index),
        state: objects.stateAt(from + index),
      }));
      return { objects: listed, observedAtMs: Math.floor(sentAtMs / 1_000) * 1_000, isTruncated: to < objects.count };
    },
  };
}

export interface LargeIndex {
  /** Both ports as one worker asks them. `own`: its core. */
  portsOf(own: Cores): { readonly objects: ObjectIndex; readonly scan: ObjectScan };
  /** How many documents it has. */
  readonly size: number;
}

/** An index of one bucket, on cores that all workers share. `isFull`: it agrees with the bucket; else it is empty. */
export function createLargeIndex({ objects, clock, counted }: Shared, cores: Cores, isFull: boolean): LargeIndex {
  const stored = createNumberSet(isFull ? 0 : objects.count);
  /** The part of them that searches find. */
  const shown = createNumberSet(isFull ? 0 : objects.count);
  /** The clock of the last write in each thousand of numbers, whose writes come from one or two listing pages. */
  const clocks = new Float64Array(Math.ceil(objects.count / 1_000));
  let unshown: { readonly from: number; readonly length: number }[] = [];
  let shownAtMs = 0;

  function show(): void {
    for (const { from, length } of unshown) shown.addRun(from, length);
    unshown = [];
    shownAtMs = clock.monotonicMs();
  }

  function pageOf(from: number, to: number, limit: number): readonly ScannedDocument[] {
    const page: ScannedDocument[] = [];
    for (let at = nextShown(from, to); at < to && page.length < limit; at = nextShown(at + 1, to)) page.push(objects.documentAt(at));
    return page;
  }

  const nextShown = (from: number, to: number): number => (isFull ? from : shown.next(from, to));

  function store(writes: readonly IndexWrite[]): void {
    const before = stored.size;
    let first = 0;
    for (const { from, length } of runsOf(
      objects,
      writes.map(({ document }) => document.key),
    )) {
      for (const { document } of writes.slice(first, first + length)) if (document.deleted) throw new Error(`${document.key} was deleted`);
      stored.addRun(from, length);
      unshown.push({ from, length });
      clocks.fill(writes[first]?.document.clock ?? 0, Math.floor(from / 1_000), Math.floor((from + length - 1) / 1_000) + 1);
      first += length;
    }
    counted.written += writes.length;
    counted.rewritten += writes.length - (stored.size - before);
  }

  function documentAt(bucket: string, at: number): ObjectDocument | undefined {
    if (!isFull && !stored.has(at)) return undefined;
    const facts = { bucket, key: objects.keyAt(at), state: objects.stateAt(at), settled: true, source: 'listing', cause: {} } as const;
    return documentOf({ ...facts, clock: clocks[Math.floor(at / 1_000)] ?? 0, stateAtMs: 0, nowMs: clock.nowMs() });
  }

  async function ask(costMs: number, signal?: AbortSignal): Promise<void> {
    await clock.sleep(INDEX.networkMs, signal);
    await cores.use(costMs);
    signal?.throwIfAborted();
  }

  const portsOf: LargeIndex['portsOf'] = (own) => ({
    objects: {
      async write(writes) {
        counted.bulks += 1;
        await own.use(writes.length * WORKER.writtenMs);
        await ask(INDEX.bulkMs + writes.length * INDEX.writtenMs);
        store(writes);
        return writes.map(() => ({ kind: 'written' }));
      },
      async getMany(bucket, keys, signal) {
        counted.reads += keys.length;
        const found = runsOf(objects, keys).flatMap(({ from, length }) =>
          Array.from({ length }, (_, index) => documentAt(bucket, from + index)),
        );
        const present = found.filter((document) => document !== undefined).length;
        await ask(INDEX.networkMs + present * INDEX.readMs + (keys.length - present) * INDEX.absentMs, signal);
        return found;
      },
      search: unasked,
      count: unasked,
      changes: unasked,
      latest: unasked,
      position: unasked,
      createBucket: unasked,
      identities: unasked,
      removeBucket: unasked,
      probe: async () => undefined,
      probeBucket: async () => undefined,
    },
    scan: {
      async scan(_bucket, { after, upTo, limit }, signal) {
        counted.scans += 1;
        if (clock.monotonicMs() - shownAtMs >= REFRESH_MS) show();
        const page = pageOf(objects.firstAfter(after), upTo === undefined ? objects.count : objects.firstAfter(upTo), limit);
        counted.scanned += page.length;
        await ask(INDEX.pageMs + page.length * INDEX.scannedMs, signal);
        await own.use(page.length * WORKER.scannedMs);
        signal?.throwIfAborted();
        return page;
      },
      async refresh() {
        await ask(INDEX.refreshMs);
        show();
      },
      async countLive() {
        await ask(INDEX.countMs);
        return isFull ? objects.count : shown.size;
      },
    },
  });

  return {
    portsOf,
    get size() {
      return isFull ? objects.count : stored.size;
    },
  };
}

function unasked(): never {
  throw new Error('a re-index does not ask this');
}
