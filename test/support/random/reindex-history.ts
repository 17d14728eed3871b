/**
 * Random histories of one bucket and its index before and during a re-index: what is there, what changes while it is
 * listed, and when the live path learns of it. Everything follows from the plan's seed.
 */
import type { ObjectDocument, PresentState } from '../../../src/ordering/document.ts';
import { documentOf } from '../../../src/ordering/document.ts';
import type { ShownCounts } from '../../../src/records/counts.ts';
import { awkwardNames, stateOf } from '../servers/listing/key-space.ts';
import type { ListedState } from '../servers/listing/key-space.ts';
import { createRandom } from './seeded.ts';
import type { Random } from './seeded.ts';

export interface HistoryPlan {
  readonly seed: number;
  /** Keys that the bucket, the index or both know. */
  readonly keys: number;
  /** Changes while the bucket is listed, each at one of the first so many requests. */
  readonly changes: number;
  readonly requests: number;
}

/** What the index knows of a key, compared with what the bucket holds. */
const presentCases = ['same', 'same', 'same', 'etag', 'size', 'class', 'date', 'near', 'far', 'lacks-class', 'tombstone', 'none'] as const;
const absentCases = ['live', 'live', 'tombstone', 'none'] as const;
export type KeyCase = (typeof presentCases)[number] | (typeof absentCases)[number];

export interface KeyHistory {
  readonly key: string;
  /** What the bucket holds when the re-index begins; absent: nothing. */
  readonly state?: ListedState;
  readonly document?: ObjectDocument;
  readonly keyCase: KeyCase;
}

/** A change while the bucket is listed, and when its event reaches the live path, both by the count of requests to S3. */
export interface Change {
  readonly key: string;
  /** Undefined: the object is removed. */
  readonly state: ListedState | undefined;
  readonly atRequest: number;
  /** Infinity: after the re-index. */
  readonly toldAtRequest: number;
}

export interface History {
  readonly keys: readonly KeyHistory[];
  readonly changes: readonly Change[];
}

const HOUR_MS = 3_600_000;

/** Plays the plan out. */
export function historyOf(bucket: string, plan: HistoryPlan, nowMs: number): History {
  const random = createRandom(plan.seed);
  const keys = [...randomKeys(random, plan.keys)].map((key, at) => keyHistory({ bucket, key, at, nowMs }, random));
  const names = [...keys.map(({ key }) => key), ...randomKeys(random, Math.ceil(plan.changes / 2))];
  const changes = Array.from({ length: names.length === 0 ? 0 : plan.changes }, (_, at): Change => {
    const atRequest = random.integer(1, plan.requests);
    const when = random.integer(1, 3);
    return {
      key: random.pick(names),
      state: random.integer(1, 3) === 1 ? undefined : { ...stateOf(1_000 + at, 1), lastModifiedMs: Math.floor(nowMs / 1_000) * 1_000 },
      atRequest,
      toldAtRequest: when === 1 ? atRequest : when === 2 ? atRequest + random.integer(1, 10) : Infinity,
    };
  });
  return { keys, changes: changes.toSorted((a, b) => a.atRequest - b.atRequest) };
}

/** A live document as the live path writes it of an exact event. */
export function documentOfEvent(bucket: string, { key, state }: Pick<Change, 'key' | 'state'>, clock: number): ObjectDocument {
  const atMs = Math.floor(clock / 1_000);
  return documentOf({
    bucket,
    key,
    state:
      state === undefined
        ? { present: false }
        : { present: true, etag: state.etag, sizeBytes: state.sizeBytes, lastModifiedMs: atMs, lastModifiedExact: false },
    clock,
    settled: true,
    source: 'native',
    cause: {},
    stateAtMs: atMs,
    nowMs: atMs,
  });
}

/** What a re-index of these keys has to count when nothing changes meanwhile, by the design's own words. */
export function expectedCounts(
  keys: readonly KeyHistory[],
  fill: boolean,
): Pick<
  ShownCounts,
  | 'listed'
  | 'scanned'
  | 'equal'
  | 'incomplete'
  | 'missing'
  | 'stale'
  | 'phantom'
  | 'in_flight'
  | 'written'
  | 'tombstones'
  | 'head_requests'
  | 'bytes_listed'
> {
  const count = (...cases: readonly KeyCase[]): number => keys.filter(({ keyCase }) => cases.includes(keyCase)).length;
  const present = keys.filter(({ state }) => state !== undefined);
  const missing = present.filter(({ keyCase }) => keyCase === 'tombstone' || keyCase === 'none').length;
  const stale = count('etag', 'size', 'class', 'date', 'far');
  return {
    listed: present.length,
    scanned: keys.filter(({ document }) => document?.deleted === false).length,
    equal: count('same', 'near'),
    incomplete: count('lacks-class'),
    missing,
    stale,
    phantom: count('live'),
    in_flight: 0,
    // the true LastModified in passing
    written: missing + stale + count('near') + (fill ? count('lacks-class') : 0),
    tombstones: count('live'),
    head_requests: count('live'),
    bytes_listed: present.reduce((sum, { state }) => sum + (state?.sizeBytes ?? 0), 0),
  };
}

const FOLDERS = ['', '', 'a/', 'a/b/', 'ab/', '\u{1f600}/', '\ufffd/', ' /', 'a%2Fb/'];

/** Different keys: many in the same folders, many that are the beginning of others, every awkward name among them. */
function randomKeys(random: Random, count: number): ReadonlySet<string> {
  const keys = new Set<string>();
  while (keys.size < count) {
    const folder = random.pick(FOLDERS);
    const name = random.pick(awkwardNames);
    const number = random.integer(0, 3) === 0 ? '' : String(random.integer(0, count));
    const key = random.integer(0, 1) === 0 ? `${folder}${name}${number}` : `${folder}${number}${name}`;
    if (Buffer.byteLength(key) <= 1_024) keys.add(key);
  }
  return keys;
}

interface KeyPlace {
  readonly bucket: string;
  readonly key: string;
  readonly at: number;
  readonly nowMs: number;
}

function keyHistory({ bucket, key, at, nowMs }: KeyPlace, random: Random): KeyHistory {
  const isPresent = random.integer(1, 5) > 1;
  const keyCase = isPresent ? random.pick(presentCases) : random.pick(absentCases);
  const state = stateOf(at, 3);
  // hours ago, and the index knew it later than the bucket
  const writtenMs = nowMs - random.integer(1, 48) * HOUR_MS;
  const facts = { bucket, key, clock: writtenMs * 1_000 + random.integer(0, 999), settled: true, source: 'native', cause: {} } as const;
  const indexed = indexedState(keyCase, state);
  const document = indexed === undefined ? undefined : documentOf({ ...facts, state: indexed, stateAtMs: writtenMs, nowMs: writtenMs });
  return { key, keyCase, ...(isPresent && { state }), ...(document !== undefined && { document }) };
}

function indexedState(
  keyCase: KeyCase,
  { etag, sizeBytes, lastModifiedMs, storageClass }: ListedState,
): PresentState | { readonly present: false } | undefined {
  const same: PresentState = { present: true, etag, sizeBytes, lastModifiedMs, storageClass };
  switch (keyCase) {
    case 'same':
    case 'live':
      return same;
    case 'etag':
      return { ...same, etag: `${etag.slice(1)}0` };
    case 'size':
      return { ...same, sizeBytes: sizeBytes + 1 };
    case 'class':
      return { ...same, storageClass: 'GLACIER' };
    case 'date':
      return { ...same, lastModifiedMs: lastModifiedMs - HOUR_MS };
    case 'near':
      return { ...same, lastModifiedMs: lastModifiedMs + 1_700, lastModifiedExact: false };
    case 'far':
      return { ...same, lastModifiedMs: lastModifiedMs + HOUR_MS, lastModifiedExact: false };
    case 'lacks-class':
      return { present: true, etag, sizeBytes, lastModifiedMs };
    case 'tombstone':
      return { present: false };
    case 'none':
      return undefined;
  }
}
