/** What a re-index keeps in memory, measured after forced garbage collections: it must not grow with the bucket. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { compareKeys } from '../../src/base/key-order.ts';
import { documentOf, type ObjectDocument } from '../../src/ordering/document.ts';
import { createTelemetry } from '../../src/process/metrics-and-log.ts';
import { systemClock } from '../../src/process/clock.ts';
import { addExamples } from '../../src/records/comparison.ts';
import { createBackgroundWriter } from '../../src/repair/background-writer.ts';
import { createReconcileTurn } from '../../src/repair/reconcile-turn.ts';
import type { BucketListing } from '../../src/aws/storage.ts';
import type { ObjectIndex, ObjectScan } from '../../src/store/store.ts';
import { createTestCircuits } from '../support/fakes/circuits.ts';
import { createMemoryStore } from '../support/fakes/memory-store.ts';
import { createFakeStorage } from '../support/fakes/ports.ts';
import { allowance, bucketRecord } from '../support/worlds/reindex.ts';

/** As many pages as are in memory at once, and five times as many. */
const [SMALL, LARGE] = [20_000, 100_000];
/** The 80 further pages would take 28 MiB; what is in memory at the moment of a measurement differs by about 5. */
const GROWTH_MAX_BYTES = 12 * 1_048_576;
/** Forced collections of one measurement, whatever its size: the largest of more samples would be larger. */
const SAMPLES = 10;

const clock = systemClock;
// the real one: the fake one remembers everything
const { telemetry } = createTelemetry({ level: 'silent', clock });
const circuits = createTestCircuits({ clock, telemetry });

/** So long ago that no document is in flight. */
const WRITTEN_MS = Date.UTC(2024, 0, 1);
const keyAt = (at: number): string => `team/day/part-${String(at).padStart(7, '0')}.json`;
const stateAt = (at: number) => ({
  etag: keyAt(at).padStart(32, 'e'),
  sizeBytes: at,
  storageClass: 'STANDARD',
  lastModifiedMs: WRITTEN_MS,
});
const firstAfter = (key: string): number => (key === '' ? 0 : Number(/\d+/.exec(key)?.[0]) + 1);

/** Both sides of a bucket, computed from the numbers of its keys. A tenth differs, so that all is kept for a moment that can be. */
function sidesOf(count: number) {
  const differs = (at: number): 'missing' | 'stale' | 'phantom' | undefined =>
    at % 10 === 0 ? (['missing', 'stale', 'phantom'] as const)[(at / 10) % 3] : undefined;
  const documentAt = (at: number): ObjectDocument => {
    const { lastModifiedMs, ...state } = stateAt(at);
    const facts = { bucket: bucketRecord.bucket, key: keyAt(at), settled: true, source: 'listing', cause: {} } as const;
    const times = { clock: lastModifiedMs * 1_000, stateAtMs: lastModifiedMs, nowMs: lastModifiedMs };
    return documentOf({ ...facts, ...times, state: { present: true, lastModifiedMs, ...state } });
  };
  /** The numbers of the keys of one side. */
  function numbers(after: string, limit: number, lacks: 'missing' | 'phantom'): readonly number[] {
    const found: number[] = [];
    for (let at = firstAfter(after); at < count && found.length < limit; at += 1) if (differs(at) !== lacks) found.push(at);
    return found;
  }
  const listing: BucketListing = {
    async page(_location, { after, limit }) {
      const found = numbers(after, limit, 'phantom');
      // keys are parts of the text of their page, which V8 keeps as long as one of them
      const keys = found
        .map((at) => `${keyAt(at)}\n${' '.repeat(300)}`)
        .join('')
        .split(/\n */);
      const objects = found.map((at, index) => {
        const state = { present: true, ...stateAt(at) } as const;
        return { key: keys[index] ?? '', state: differs(at) === 'stale' ? { ...state, etag: 'another' } : state };
      });
      return { objects, observedAtMs: clock.nowMs(), isTruncated: objects.length === limit };
    },
  };
  const store = createMemoryStore();
  const objects: ObjectIndex = {
    ...store.objects,
    write: async (writes) => writes.map(() => ({ kind: 'written' })),
    getMany: async (_bucket, keys) =>
      keys.map((key) => firstAfter(key) - 1).map((at) => (differs(at) === 'missing' ? undefined : documentAt(at))),
  };
  const scan: ObjectScan = {
    ...store.scan,
    async scan(_bucket, { after, upTo, limit }) {
      const found = numbers(after, limit, 'missing').map(documentAt);
      return upTo === undefined ? found : found.filter(({ key }) => compareKeys(key, upTo) <= 0);
    },
  };
  return { listing, objects, scan };
}

/** Compares the bucket. Resolves with the most memory that survived a collection, V8's heap and what it keeps outside, and how many keys differed. */
async function measure(count: number): Promise<{ readonly peakBytes: number; readonly differences: number }> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const { listing, objects, scan } = sidesOf(count);
  const limits = { actionsMax: 1_000, bytesMax: 5_000_000, concurrency: 4 };
  const { writeAll } = createBackgroundWriter({ objects, clock, telemetry, circuits, limits, liveIsBusy: () => false });
  const storage = {
    ...createFakeStorage(clock),
    readState: async () => ({ state: { present: false } as const, observedAtMs: clock.nowMs() }),
  };
  const turn = createReconcileTurn({ objects, scan, listing, storage, writeAll, clock, telemetry, circuits });
  let [peakBytes, slices] = [0, 0];
  const look = (): boolean => {
    slices += 1;
    if (slices % Math.ceil(count / 1_000 / SAMPLES) !== 0) return false;
    collect();
    const { heapUsed, external } = process.memoryUsage();
    peakBytes = Math.max(peakBytes, heapUsed + external);
    return false;
  };
  const request = { bucket: bucketRecord, prefix: '', mode: 'apply', fill: false, tags: false } as const;
  const controls = { tombstones: allowance(), leave: () => Promise.resolve(false), shouldEnd: look, isOver: () => false };
  let kept = { after: '', examples: {}, differences: 0 };
  for (let isDone = false; !isDone;) {
    const { done, cursor, counts, examples, fault } = await turn({ ...request, after: kept.after }, controls, new AbortController().signal);
    if (fault !== undefined) throw new Error(fault.reason);
    const differences = kept.differences + counts.missing + counts.stale + counts.phantom;
    kept = { after: cursor, examples: addExamples(kept.examples, examples), differences };
    isDone = done;
  }
  return { peakBytes, differences: kept.differences };
}

it('what a re-index keeps in memory does not grow with the bucket', async () => {
  // what is compiled once belongs to no measurement
  await measure(2_000);
  const small = await measure(SMALL);
  const large = await measure(LARGE);
  expect([small.differences, large.differences]).toEqual([SMALL / 10, LARGE / 10]);
  expect(large.peakBytes).toBeLessThan(small.peakBytes + GROWTH_MAX_BYTES);
});
