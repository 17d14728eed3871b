/** One bucket, its index and one range of a reconcile: the turn on a memory store and an S3 in memory. */
import type { Tombstones } from '../../../src/repair/settle-slice.ts';
import { type ObjectDocument, type ObjectState, type PresentState, documentOf, clockOfMs } from '../../../src/ordering/document.ts';
import { compareKeys } from '../../../src/base/key-order.ts';
import type { ObjectScan, ScannedDocument, IndexWrite, ObjectIndex, Store } from '../../../src/store/store.ts';
import type { BucketListing, ListingPage, ObjectStorage } from '../../../src/aws/storage.ts';
import type { Clock } from '../../../src/process/clock.ts';
import { createBackgroundWriter } from '../../../src/repair/background-writer.ts';
import { shownCounts, type ShownCounts } from '../../../src/records/comparison.ts';
import type { TurnEnd } from '../../../src/repair/job.rules.ts';
import { createReconcileTurn, type TurnControls, type TurnRequest } from '../../../src/repair/reconcile-turn.ts';
import { recordOf } from '../fakes/bucket-record.ts';
import { headOf } from '../fakes/details.ts';
import { createFakeClock, createFakeStorage, createFakeTelemetry } from '../fakes/ports.ts';
import { createMemoryStore } from '../fakes/memory-store.ts';
import { createTestCircuits } from '../fakes/circuits.ts';

export const BUCKET = 'b';

export interface FakeBucketS3 extends ObjectStorage, BucketListing {
  readonly objects: Map<string, PresentState>;
  /** Called with each page before it is answered: the moment to change things, or to throw. */
  onPage: (page: ListingPage, asked: { readonly after: string; readonly token?: string }) => void | Promise<void>;
  /** Called before each HEAD is answered. */
  onHead: (key: string) => void | Promise<void>;
  /** Called before the tags of a key are answered. */
  onTags: (key: string) => void | Promise<void>;
  /** Objects a page. */
  pageSize: number;
  /** How many pages without keys come before the page after this key. */
  emptyPages: (after: string) => number;
  readonly pages: { readonly after: string; readonly limit: number; readonly token?: string }[];
  readonly heads: string[];
}

/** An S3 in memory with one bucket that is listed in UTF-8 byte order; D is the clock's whole second. */
export function createFakeBucketS3(clock: Clock): FakeBucketS3 {
  const observedAtMs = (): number => Math.floor(clock.nowMs() / 1_000) * 1_000;
  const s3: FakeBucketS3 = {
    ...createFakeStorage(clock),
    objects: new Map(),
    onPage: () => {},
    onHead: () => {},
    onTags: () => {},
    pageSize: 1_000,
    emptyPages: () => 0,
    pages: [],
    heads: [],
    async page(_location, { prefix, after, limit, followMsMax }, signal) {
      signal?.throwIfAborted();
      const count = followMsMax === 0 ? Math.min(1, s3.emptyPages(after)) : s3.emptyPages(after);
      let firstAtMs: number | undefined;
      // the token is the number of the page
      const askedFor = (page: number) => ({ after, limit, ...(page > 0 && { token: `${page}` }) });
      for (let passed = 0; passed < count; passed += 1) {
        s3.pages.push(askedFor(passed));
        const empty = { objects: [], observedAtMs: observedAtMs(), isTruncated: true };
        firstAtMs ??= empty.observedAtMs;
        await s3.onPage(empty, askedFor(passed));
        signal?.throwIfAborted();
        if (followMsMax === 0) return empty;
      }
      const asked = askedFor(count);
      const sentMs = clock.monotonicMs();
      s3.pages.push(asked);
      const all = [...s3.objects.keys()].filter((key) => key.startsWith(prefix) && compareKeys(key, after) > 0).sort(compareKeys);
      const objects = all.slice(0, Math.min(limit, s3.pageSize)).flatMap((key) => {
        const state = s3.objects.get(key);
        return state === undefined ? [] : [{ key, state: listedOf(state) }];
      });
      const followed = count === 0 ? {} : { requests: count + 1, sentMs };
      const page = { objects, observedAtMs: firstAtMs ?? observedAtMs(), isTruncated: all.length > objects.length, ...followed };
      await s3.onPage(page, asked);
      signal?.throwIfAborted();
      return page;
    },
    async readState(_bucket, key, signal) {
      signal?.throwIfAborted();
      s3.heads.push(key);
      await s3.onHead(key);
      return { state: headOf(s3.objects.get(key) ?? { present: false }), observedAtMs: observedAtMs() };
    },
    firstKey: async () => [...s3.objects.keys()].toSorted(compareKeys)[0],
    async readVersion(_bucket, { key, etag }, signal) {
      signal?.throwIfAborted();
      const state = s3.objects.get(key);
      return state === undefined || (etag !== undefined && state.etag !== etag) ? 'gone' : headOf(state);
    },
    async readTags(_bucket, { key }, signal) {
      signal?.throwIfAborted();
      await s3.onTags(key);
      const state = s3.objects.get(key);
      return state === undefined ? 'gone' : (state.tags ?? {});
    },
  };
  return s3;
}

/** What a listing says of an object: no more than the fields that LIST has. */
export function listedOf(state: PresentState): PresentState {
  const { versionId: _, expiresAtMs: __, contentType: ___, userMetadata: ____, tags: _____, ...listed } = state;
  return listed;
}

export const bucketRecord = recordOf(BUCKET, { versioning: { status: 'unknown', observedAtMs: 0 } });

interface Hooks {
  /** Called before what is stored is read by key. */
  beforeRead: (keys: readonly string[]) => void | Promise<void>;
  /** Called before the turn's writes reach the store: the moment to write something newer, or to throw. */
  beforeWrite: (writes: readonly IndexWrite[]) => void | Promise<void>;
  /** What the turn is told instead of what was scanned. */
  scanned: (documents: readonly ScannedDocument[]) => readonly ScannedDocument[];
}

/** A job's allowance of so many tombstones. */
export function allowance(left = Infinity): Tombstones {
  let isMet = false;
  return {
    async reserve(count) {
      const granted = Math.min(left, count);
      left -= granted;
      isMet = granted < count;
      return granted;
    },
    giveBack: (count) => void (left += count),
    isUsedUp: () => isMet && left === 0,
  };
}

export type ReindexWorld = Awaited<ReturnType<typeof createReindexWorld>>;

/** The world; `store` is a memory store unless one is given whose bucket {@link BUCKET} is fresh. */
export async function createReindexWorld({ store = createMemoryStore(), bucket = BUCKET }: { store?: Store; bucket?: string } = {}) {
  const clock = createFakeClock();
  const telemetry = createFakeTelemetry();
  const s3 = createFakeBucketS3(clock);
  await store.objects.createBucket(bucket);
  const hooks: Hooks = { beforeRead: () => {}, beforeWrite: () => {}, scanned: (documents) => documents };
  const objects: ObjectIndex = {
    ...store.objects,
    getMany: async (...asked) => {
      await hooks.beforeRead(asked[1]);
      return store.objects.getMany(...asked);
    },
    write: async (writes, signal) => {
      await hooks.beforeWrite(writes);
      return store.objects.write(writes, signal);
    },
  };
  const scan: ObjectScan = { ...store.scan, scan: async (...asked) => hooks.scanned(await store.scan.scan(...asked)) };
  const limits = { actionsMax: 1_000, bytesMax: 5_000_000, concurrency: 2 };
  const circuits = createTestCircuits({ clock, telemetry });
  const { writeAll } = createBackgroundWriter({ objects, clock, telemetry, circuits, limits, liveIsBusy: () => false });
  const questioned: number[] = [];
  const questionProof = (_bucket: unknown, changedAtMs: number): void => void questioned.push(changedAtMs);
  const turn = createReconcileTurn({ objects, scan, listing: s3, storage: s3, writeAll, clock, telemetry, circuits, questionProof });
  const controls: TurnControls = {
    tombstones: allowance(),
    leave: () => Promise.resolve(false),
    shouldEnd: () => false,
    isOver: () => false,
  };

  /** One turn over the whole bucket unless the request says otherwise. */
  async function run(
    request: Partial<TurnRequest> = {},
    more: Partial<TurnControls> = {},
    signal = new AbortController().signal,
  ): Promise<TurnEnd & { readonly counts: ShownCounts }> {
    const whole = { bucket: { ...bucketRecord, bucket }, prefix: '', after: '', mode: 'apply', fill: false, tags: false } as const;
    const end = await turn({ ...whole, ...request }, { ...controls, ...more }, signal);
    return { ...end, counts: shownCounts(end.counts) };
  }

  /** An object of S3. Without times: written an hour ago. */
  function put(key: string, state: Partial<PresentState> = {}): PresentState {
    const present: PresentState = {
      present: true,
      etag: `etag-${s3.objects.size}`,
      sizeBytes: key.length,
      lastModifiedMs: Math.floor(clock.nowMs() / 1_000) * 1_000 - 3_600_000,
      storageClass: 'STANDARD',
      ...state,
    };
    s3.objects.set(key, present);
    return present;
  }

  /** A document, an hour old unless `ageMs` says otherwise. */
  function documentFor(
    key: string,
    state: ObjectState,
    { ageMs = 3_600_000, ...more }: Partial<ObjectDocument> & { readonly ageMs?: number } = {},
  ): ObjectDocument {
    const atMs = clock.nowMs() - ageMs;
    const facts = { bucket, key, state, clock: clockOfMs(atMs), settled: true, source: 'native' } as const;
    return { ...documentOf({ ...facts, cause: {}, stateAtMs: atMs, nowMs: atMs }), ...more };
  }

  /** Writes such a document into the index. */
  async function index(...facts: Parameters<typeof documentFor>): Promise<ObjectDocument> {
    const document = documentFor(...facts);
    await store.objects.write([{ document, equalClock: 'accept' }]);
    return document;
  }

  async function stored(key: string): Promise<ObjectDocument | undefined> {
    return (await store.objects.getMany(bucket, [key]))[0];
  }

  /** What searches find, as `key etag`. */
  async function found(): Promise<readonly string[]> {
    const documents = await store.scan.scan(bucket, { prefix: '', after: '', limit: 10_000 });
    return documents.map(({ key, etag }) => `${key} ${etag}`);
  }

  /** What the bucket holds, as `key etag`. */
  function bucketHolds(): readonly string[] {
    return [...s3.objects].sort(([a], [b]) => compareKeys(a, b)).map(([key, { etag }]) => `${key} ${etag}`);
  }

  return {
    clock,
    telemetry,
    store,
    s3,
    hooks,
    /** The times of changes of which no event may have come. */
    questioned,
    run,
    put,
    documentFor,
    index,
    stored,
    found,
    bucketHolds,
  };
}
