/** An in-memory {@link Store} for tests of the pipeline: the port's promises in the plainest form. */
import type { ObjectDocument } from '../../../src/ordering/document.ts';
import type { Position as FeedPosition } from '../../../src/records/position.ts';
import type { BucketPart } from '../../../src/store/readable.rules.ts';
import type {
  IndexWrite,
  IndexWriteAnswer,
  ObjectIndex,
  ObjectQuery,
  StateEntry,
  StateStore,
  Store,
  ObjectScan,
  ScannedDocument,
} from '../../../src/store/store.ts';
import { FaultError } from '../../../src/base/fault.ts';
import { compareKeys } from '../../../src/base/key-order.ts';
import { createMemoryAudit } from './memory-audit.ts';
import { isInOneOf, matchesFilter } from './matching.ts';
import { createMemoryUsage } from './memory-usage.ts';
import { createMemoryMaintenance, written } from './memory-maintenance.ts';

export function createMemoryStore(): Store {
  const buckets: Buckets = new Map();
  return {
    objects: createMemoryObjects(buckets),
    scan: createMemoryScan(buckets),
    maintenance: createMemoryMaintenance(buckets),
    usage: createMemoryUsage(buckets),
    state: createMemoryState(),
    audit: createMemoryAudit(),
    setup: { prepare: async () => {} },
    product: 'sqlite',
    close: async () => {},
  };
}

/** Documents by key, of each bucket. */
type Buckets = Map<string, Map<string, ObjectDocument>>;

const identities = new WeakMap<object, string>();
let made = 0;

/** Another for each index that was made. */
function identityOf(documents: Map<string, ObjectDocument> | undefined): string | undefined {
  if (documents === undefined) return undefined;
  const id = identities.get(documents) ?? `index-${(made += 1)}`;
  identities.set(documents, id);
  return id;
}

function createMemoryObjects(buckets: Buckets): ObjectIndex {
  let count = 0;

  function writeOne({ document, equalClock }: IndexWrite): IndexWriteAnswer {
    const documents = buckets.get(document.bucket);
    if (documents === undefined)
      return { kind: 'fault', fault: { code: 'bucket.index-missing', reason: `no index of ${document.bucket}` } };
    const stored = documents.get(document.key);
    if (stored !== undefined && stored.clock > document.clock) return { kind: 'superseded' };
    if (stored !== undefined && stored.clock === document.clock && equalClock === 'refuse') return { kind: 'equal' };
    documents.set(document.key, copyOf(document));
    const isTold = !document.deleted || (stored !== undefined && written.has(stored));
    count += 1;
    if (isTold) written.set(documents.get(document.key)!, count);
    return { kind: 'written' };
  }

  function positionIn(bucket: string): FeedPosition {
    const documents = buckets.get(bucket);
    return documents === undefined ? {} : { '0': { history: identityOf(documents) ?? '', at: count } };
  }

  function writtenIn(bucket: string, prefix: string, within: readonly BucketPart[] | undefined) {
    return [...(buckets.get(bucket)?.values() ?? [])]
      .flatMap((document) => (written.has(document) ? [{ document, at: written.get(document) ?? 0 }] : []))
      .filter(({ document }) => document.key.startsWith(prefix) && (within === undefined || isInOneOf(within, document)))
      .toSorted((a, b) => a.at - b.at);
  }

  return {
    write: async (writes, signal) => {
      signal?.throwIfAborted();
      return writes.map(writeOne);
    },
    getMany: async (bucket, keys, signal) => {
      signal?.throwIfAborted();
      const documents = buckets.get(bucket);
      if (documents === undefined) throw new FaultError('bucket.index-missing', `no index of ${bucket}`);
      return keys.map((key) => documents.get(key)).map((document) => (document === undefined ? undefined : copyOf(document)));
    },
    search: async (query, signal) => {
      signal?.throwIfAborted();
      return [...buckets.values()]
        .flatMap((documents) => [...documents.values()])
        .filter((document) => matchesFilter(document, query) && isAfter(document, query))
        .sort((a, b) => compareInOrder(a, b, query.sort))
        .slice(0, query.limit)
        .map(copyOf);
    },
    count: async (filter, max, signal) => {
      signal?.throwIfAborted();
      const found = [...buckets.values()].flatMap((documents) => [...documents.values()]).filter((each) => matchesFilter(each, filter));
      return Math.min(found.length, max + 1);
    },
    changes: async (bucket, { after, prefix, within, limit }, signal) => {
      signal?.throwIfAborted();
      const [end, from] = [positionIn(bucket)['0'], after['0']];
      if (end === undefined) return from === undefined ? { documents: [], position: {}, more: false } : 'lost';
      if (from !== undefined && from.history !== end.history) return 'lost';
      const found = writtenIn(bucket, prefix, within).filter(({ at }) => at > (from?.at ?? 0));
      const page = found.slice(0, limit);
      const at = page.length < found.length ? (page.at(-1)?.at ?? end.at) : end.at;
      return { documents: page.map(({ document }) => copyOf(document)), position: { '0': { ...end, at } }, more: at < end.at };
    },
    latest: async (bucket, { prefix, within, limit }, signal) => {
      signal?.throwIfAborted();
      const newest = writtenIn(bucket, prefix, within).toReversed().slice(0, limit);
      return newest.map(({ document }) => copyOf(document));
    },
    position: async (bucket) => positionIn(bucket),
    createBucket: async (bucket) => {
      if (!buckets.has(bucket)) buckets.set(bucket, new Map());
    },
    identities: async (names) => names.map((name) => identityOf(buckets.get(name))),
    removeBucket: async (bucket) => {
      buckets.delete(bucket);
    },
    probe: async () => {},
    probeBucket: async (bucket, signal) => {
      signal?.throwIfAborted();
      if (!buckets.has(bucket)) throw new FaultError('bucket.index-missing', `no index of ${bucket}`);
    },
  };
}

/** Sees every write at once. */
function createMemoryScan(buckets: Buckets): ObjectScan {
  const live = (bucket: string, prefix: string): readonly ObjectDocument[] =>
    [...(buckets.get(bucket)?.values() ?? [])].filter(({ deleted, key }) => !deleted && key.startsWith(prefix));

  return {
    scan: async (bucket, { prefix, after, upTo, limit }, signal) => {
      signal?.throwIfAborted();
      return live(bucket, prefix)
        .filter(({ key }) => compareKeys(key, after) > 0 && (upTo === undefined || compareKeys(key, upTo) <= 0))
        .sort(comparePositions)
        .slice(0, limit)
        .map(({ key, size, etag, last_modified, last_modified_exact, storage_class, clock, settled, user_metadata, tags }) =>
          copyOf<ScannedDocument>({
            key,
            size,
            etag,
            last_modified,
            last_modified_exact,
            storage_class,
            clock,
            settled,
            user_metadata,
            tags,
          } as ScannedDocument),
        );
    },
    refresh: async (_bucket, signal) => signal?.throwIfAborted(),
    countLive: async (bucket, prefix, signal) => {
      signal?.throwIfAborted();
      return live(bucket, prefix).length;
    },
  };
}

type Order = ObjectQuery['sort'];
type Sorted = Position & { readonly value?: number };

/** The value by which a document is sorted; an absent one is −1. */
function valueOf(document: ObjectDocument, by: NonNullable<Order>['by']): number {
  if (by === 'key') return 0;
  const value = document[by];
  return typeof value === 'string' ? Date.parse(value) : (value ?? -1);
}

function compareInOrder(a: ObjectDocument, b: ObjectDocument, { by, order }: NonNullable<Order> = { by: 'key', order: 'asc' }): number {
  return compareSorted({ ...a, value: valueOf(a, by) }, { ...b, value: valueOf(b, by) }, { by, order });
}

function compareSorted(a: Sorted, b: Sorted, { by, order }: NonNullable<Order>): number {
  const turn = order === 'asc' ? 1 : -1;
  if (by === 'key') return turn * comparePositions(a, b);
  return turn * ((a.value ?? -1) - (b.value ?? -1)) || comparePositions(a, b);
}

function isAfter(document: ObjectDocument, { after, sort = { by: 'key', order: 'asc' } }: ObjectQuery): boolean {
  return after === undefined || compareSorted({ ...document, value: valueOf(document, sort.by) }, after, sort) > 0;
}

type Position = Pick<ObjectDocument, 'bucket' | 'key'>;

function comparePositions(a: Position, b: Position): number {
  return compareKeys(a.bucket, b.bucket) || compareKeys(a.key, b.key);
}

function createMemoryState(): StateStore {
  const entries = new Map<string, StateEntry>();
  /** Of each kind that was listed since one of its entries was written. */
  const inOrder = new Map<string, readonly StateEntry[]>();
  let versions = 0;

  function ofKind(kind: string): readonly StateEntry[] {
    const known = inOrder.get(kind) ?? [...entries.values()].filter((entry) => entry.kind === kind).sort((a, b) => compareKeys(a.id, b.id));
    inOrder.set(kind, known);
    return known;
  }

  async function list(...[kind, { after, limit }, signal]: Parameters<StateStore['list']>): Promise<readonly StateEntry[]> {
    signal?.throwIfAborted();
    const all = ofKind(kind);
    return (after === undefined ? all : all.filter(({ id }) => compareKeys(id, after) > 0)).slice(0, limit);
  }

  return {
    get: async (id, signal) => {
      signal?.throwIfAborted();
      return entries.get(id);
    },
    put: async ({ id, kind, record }, expected, signal) => {
      signal?.throwIfAborted();
      if ((entries.get(id)?.version ?? null) !== expected) return 'conflict';
      versions += 1;
      const stored = frozen(copyOf({ id, kind, record, version: String(versions) }));
      entries.set(id, stored);
      inOrder.delete(kind);
      return stored;
    },
    remove: async (id, expected, signal) => {
      signal?.throwIfAborted();
      const entry = entries.get(id);
      if (entry !== undefined && entry.version !== expected) return 'conflict';
      entries.delete(id);
      if (entry !== undefined) inOrder.delete(entry.kind);
      return 'removed';
    },
    list,
    due: async ({ nowMs, aheadMaxMs, limit }, signal) => {
      signal?.throwIfAborted();
      const due = [...entries.values()].filter((entry) => {
        const atMs = dueAtMs(entry);
        return atMs !== undefined && (atMs <= nowMs || atMs > nowMs + aheadMaxMs);
      });
      return due.slice(0, limit).map(({ id }) => id);
    },
    version: async (id) => entries.get(id)?.version,
    count: async (kind) => ofKind(kind).length,
  };
}

/** When the job is due; undefined of one that has ended. Simulated years ask a hundred thousand times, too often for a schema. */
function dueAtMs({ kind, record }: StateEntry): number | undefined {
  if (kind !== 'job' || typeof record !== 'object' || record === null || !('dueAtMs' in record)) return undefined;
  return typeof record.dueAtMs === 'number' ? record.dueAtMs : undefined;
}

/** The value, which can no longer be changed: every reader gets the same one. */
function frozen<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) for (const field of Object.values(Object.freeze(value))) frozen(field);
  return value;
}

/** As JSON would bring it back: what is undefined is gone, and nothing is shared. */
function copyOf<Value>(value: Value): Value {
  if (typeof value === 'number') return (Number.isFinite(value) ? value : null) as Value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((each: unknown) => (each === undefined ? null : copyOf(each))) as Value;
  // simulated years copy millions of records: this takes a quarter of what Object.fromEntries does
  const copy: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) {
    // an assignment to __proto__ would make no field
    if (name === '__proto__') Object.defineProperty(copy, name, { value: copyOf<unknown>(field), enumerable: true });
    else if (field !== undefined) copy[name] = copyOf<unknown>(field);
  }
  return copy as Value;
}
