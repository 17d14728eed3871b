/** An S3 in memory with buckets in several regions and no versions: objects are observed and listed as they are now. */
import type { PresentState } from '../../../src/domain/documents/document.ts';
import { compareKeys } from '../../../src/domain/documents/key-order.ts';
import { FaultError } from '../../../src/domain/fault.ts';
import type { Clock } from '../../../src/pipeline/ports/clock.ts';
import type { BucketListing, ObjectStorage } from '../../../src/pipeline/ports/storage.ts';
import { headOf } from './details.ts';

interface RegionalBucket {
  readonly region: string;
  readonly objects: Map<string, PresentState>;
}

export interface RegionalStorage extends ObjectStorage, BucketListing {
  createBucket(bucket: string, region: string): void;
  put(bucket: string, key: string): PresentState;
  delete(bucket: string, key: string): void;
  /** Etags by key. */
  etags(bucket: string): ReadonlyMap<string, string | undefined>;
}

/** Creates an S3 without buckets. Its Date header has whole seconds, as the real one's. */
export function createRegionalStorage(clock: Clock): RegionalStorage {
  const buckets = new Map<string, RegionalBucket>();
  const observedAtMs = (): number => Math.floor(clock.nowMs() / 1_000) * 1_000;
  let count = 0;

  function existing(bucket: string): RegionalBucket {
    const found = buckets.get(bucket);
    if (found === undefined) throw new FaultError('bucket.missing', `no bucket ${bucket}`);
    return found;
  }

  return {
    createBucket: (bucket, region) => void buckets.set(bucket, { region, objects: new Map() }),
    put(bucket, key) {
      count += 1;
      const state = { present: true, etag: `etag-${count}`, sizeBytes: count, lastModifiedMs: observedAtMs(), userMetadata: {} } as const;
      existing(bucket).objects.set(key, state);
      return state;
    },
    delete: (bucket, key) => void existing(bucket).objects.delete(key),
    etags: (bucket) => new Map([...existing(bucket).objects].map(([key, { etag }]) => [key, etag])),
    observe: async ({ bucket }, key) => {
      const state = existing(bucket).objects.get(key) ?? ({ present: false } as const);
      return { state: headOf(state), observedAtMs: observedAtMs() };
    },
    firstKey: async ({ bucket }) => [...existing(bucket).objects.keys()].toSorted(compareKeys)[0],
    regionOf: async (bucket) => existing(bucket).region,
    versioningOf: async () => ({ status: 'never', observedAtMs: observedAtMs() }),
    readVersion: async ({ bucket }, { key, etag }) => {
      const state = existing(bucket).objects.get(key);
      return state === undefined || (etag !== undefined && state.etag !== etag) ? 'gone' : headOf(state);
    },
    readTags: async () => ({}),
    page: async ({ bucket }, { prefix, after, limit }) => {
      const following = [...existing(bucket).objects]
        .filter(([key]) => key.startsWith(prefix) && compareKeys(key, after) > 0)
        .sort(([a], [b]) => compareKeys(a, b));
      const objects = following.slice(0, limit).map(([key, state]) => ({ key, state: listedOf(state) }));
      return { objects, observedAtMs: observedAtMs(), isTruncated: following.length > objects.length };
    },
  };
}

/** What a listing says of an object. */
function listedOf(state: PresentState): PresentState {
  const { userMetadata: _, ...listed } = state;
  return listed;
}
