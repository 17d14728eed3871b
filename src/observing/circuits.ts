/**
 * The circuits of one process: its memory of what does not answer. They decide who waits, and never that something is lost.
 *
 *   cluster (the index store) ─ index of a bucket          endpoint (S3 in a region) ─ bucket in S3
 *
 * An outer circuit opens only on what no inner one explains. Work waits for the circuits that it needs, and for no others.
 */
import { circuitOf, opensAtOnce, type Fault } from '../base/fault.ts';
import type { BucketLocation } from '../aws/storage.ts';
import { createOpenCircuits, type CircuitsDependencies, type OpenCircuit, type OpenCircuits } from './open-circuits.ts';
import { isExplained, type CircuitId } from './waiting-line.ts';

/** Five requests in a row about three objects: one object that always fails, however often, never opens the circuit of its bucket. */
const OBJECT_REQUESTS_MAX = 5;
const OBJECTS_MIN = 3;
/** One request or item can fail by chance. */
const REQUESTS_MAX = 3;
/** Three requests that run side by side fail together; an outage lasts longer. */
const CLUSTER_MIN_MS = 1_000;
/** The indices that count when all of them fail, and how long nothing may have been accepted. */
const INDICES_ASKED_MS = 30_000;
const NOTHING_ACCEPTED_MS = 10_000;

/** A message that failed is hidden for a quarter of an hour at most, so that what still fails was tried within this time: later failures are others. */
const SHOWN_MS = 1_200_000;

export interface Circuits extends Pick<OpenCircuits, 'isQuiet' | 'openOf' | 'all' | 'take' | 'wait' | 'cluster'> {
  /** What records wait for: all open circuits, and the buckets whose requests fail for one object or two, which leaves their circuits closed. */
  readonly waitedFor: OpenCircuits['all'];
  /** Whether the bucket's circuit or its endpoint's is open, or its latest request failed. */
  readonly isFailing: (target: BucketLocation) => boolean;
  /**
   * S3 answered a request about one object. `fault`: what it answered, or that it did not. `enriches`: the request was for
   * enrichment, which may fail alone, as when only the tags cannot be read.
   */
  storageAnswered(
    target: BucketLocation,
    request: { readonly key: string; readonly sentAtMs: number; readonly fault?: Fault; readonly enriches?: boolean },
  ): void;
  /** S3 answered what enriches one object, or refused it. A refusal opens no circuit, since a policy may deny a part of the bucket; it is over at the next answer. */
  readonly enrichmentAnswered: (bucket: string, refusal?: Fault) => void;
  /** The index of the bucket accepted a document, or refused it because it holds something newer. */
  accepted(bucket: string): void;
  /** An item of the bucket failed, or a whole request that names its index alone (`isWhole`), or its record could not be read. */
  indexFailed(bucket: string, fault: Fault, request: { readonly sentAtMs: number; readonly isWhole?: boolean }): void;
  /** The cluster answered a whole request, or it did not. */
  clusterAnswered(): void;
  /**
   * `isLasting`: one such failure opens the circuit, since it is the probe's, or that of many requests over half a minute.
   * `sentAtMs`: when the request was sent, if that may be before the circuit closed last: then it says nothing about now.
   */
  clusterFailed(fault: Fault, how?: { readonly isLasting: boolean; readonly sentAtMs?: number }): void;
}

/** A request about one object, as far as its circuits need it. */
interface ObjectRequest {
  readonly key: string;
  readonly sentAtMs: number;
  readonly enriches: boolean;
}

interface Streak {
  count: number;
  /** The latest failure, and when it came by the monotonic clock. */
  fault: Fault;
  lastMs: number;
  readonly firstMs: number;
  /** When the first came, by this machine's clock. */
  readonly sinceMs: number;
  /** At most as many of each as the rules need. */
  readonly keys: Set<string>;
  readonly buckets: Set<string>;
}

/** Creates the circuits, all closed. */
export function createCircuits(dependencies: CircuitsDependencies): Circuits {
  const { clock } = dependencies;
  const streaks = new Map<CircuitId, Streak>();
  const circuits = createOpenCircuits({ ...dependencies, failuresOf: (id) => streaks.get(id)?.count ?? 0 });
  /** The bucket of an endpoint that failed last while its own circuit was open. */
  const explainedBy = new Map<CircuitId, string>();
  const refusals = createRefusals(clock);
  /** When a bucket's index last accepted a write, and when each last failed, by the monotonic clock. */
  const acceptedAtMs = new Map<string, number>();
  const failedAtMs = new Map<string, number>();
  let lastAcceptedMs = -Infinity;

  function open(id: CircuitId, fault: Fault): void {
    streaks.delete(id);
    circuits.open(id, fault);
  }

  function succeeded(id: CircuitId): void {
    if (streaks.size > 0) streaks.delete(id);
    if (!circuits.isQuiet) circuits.succeeded(id);
  }

  /** Counts a failure, and returns the failures in a row and of how many keys. */
  function countFailure(id: CircuitId, fault: Fault, { key = '', bucket = '' } = {}): Streak {
    const nowMs = clock.monotonicMs();
    const none = {
      count: 0,
      fault,
      lastMs: nowMs,
      firstMs: nowMs,
      sinceMs: clock.nowMs(),
      keys: new Set<string>(),
      buckets: new Set<string>(),
    };
    const known = streaks.get(id);
    const streak = known !== undefined && nowMs - known.lastMs < SHOWN_MS ? known : none;
    streak.count += 1;
    streak.fault = fault;
    streak.lastMs = nowMs;
    if (streak.keys.size < OBJECTS_MIN) streak.keys.add(`${bucket}/${key}`);
    if (streak.buckets.size < 2) streak.buckets.add(bucket);
    streaks.set(id, streak);
    return streak;
  }

  function failed(id: CircuitId, fault: Fault, { sentAtMs, isEnough }: { sentAtMs: number; isEnough: () => boolean }): void {
    circuits.failed(id, fault, sentAtMs);
    if (isEnough() || opensAtOnce(fault.code)) open(id, fault);
  }

  function failing(): readonly OpenCircuit[] {
    const buckets = [...streaks].filter(([id]) => id.startsWith('bucket ') && !circuits.has(id));
    const shown = buckets.filter(([, { count, lastMs }]) => count >= REQUESTS_MAX && clock.monotonicMs() - lastMs < SHOWN_MS);
    return shown.map(([id, { fault, sinceMs }]) => ({ level: 'bucket', name: id.slice('bucket '.length), fault, sinceMs }));
  }

  /** Of one bucket alone it says nothing; but while two fail, the endpoint may, and is not forgotten. */
  function noteExplained(id: CircuitId, bucket: string): void {
    if ((explainedBy.get(id) ?? bucket) !== bucket) circuits.stillFails(id);
    explainedBy.set(id, bucket);
  }

  function endpointFailed(target: BucketLocation, fault: Fault, { key, sentAtMs, enriches }: ObjectRequest): void {
    const { region, bucket } = target;
    const id: CircuitId = `endpoint ${region}`;
    const ids = enriches ? enrichmentCircuits(target) : storageCircuits(target);
    // it must neither open the outer circuit nor decide its trials for the other buckets
    if (isExplained(id, ids, circuits) && !opensAtOnce(fault.code)) return noteExplained(id, bucket);
    const { keys, buckets } = countFailure(id, fault, { key, bucket });
    // the circuit of a single failing bucket is enough: nothing shows that others would fail; and objects of two buckets may fail alone
    failed(id, fault, { sentAtMs, isEnough: () => keys.size >= OBJECTS_MIN && buckets.size > 1 });
  }

  /** A request of enrichment has a permit of the circuit of its bucket, so it is a trial of that circuit. It never opens it. */
  function enrichmentTried(bucket: string, fault: Fault | undefined, sentAtMs: number): void {
    if (fault === undefined) circuits.succeeded(`bucket ${bucket}`);
    else circuits.failed(`bucket ${bucket}`, fault, sentAtMs);
  }

  /** Whether every index that was written to lately is open and none accepts: then it is the cluster, as when its disks are full. */
  function isWholeCluster(): boolean {
    const nowMs = clock.monotonicMs();
    for (const [bucket, atMs] of failedAtMs) if (nowMs - atMs > INDICES_ASKED_MS) failedAtMs.delete(bucket);
    if (failedAtMs.size < 2 || nowMs - lastAcceptedMs < NOTHING_ACCEPTED_MS) return false;
    const isOpen = (bucket: string): boolean => circuits.has(`index ${bucket}`);
    const accepting = [...acceptedAtMs].filter(([, atMs]) => nowMs - atMs <= INDICES_ASKED_MS);
    return [...failedAtMs.keys()].every(isOpen) && accepting.every(([bucket]) => isOpen(bucket));
  }

  return {
    get isQuiet() {
      return circuits.isQuiet;
    },
    cluster: () => circuits.cluster(),
    openOf: (ids) => circuits.openOf(ids),
    all: () => circuits.all(),
    waitedFor: () => [...circuits.all(), ...failing(), ...refusals.all()],
    take: (attempt) => circuits.take(attempt),
    wait: (attempt, forMs, signal) => circuits.wait(attempt, forMs, signal),
    isFailing: ({ bucket, region }) =>
      (streaks.size > 0 || !circuits.isQuiet) &&
      // a failure of one bucket shows nothing about the others of its endpoint before the circuit of that opens
      (circuits.has(`endpoint ${region}`) || circuits.has(`bucket ${bucket}`) || streaks.has(`bucket ${bucket}`)),
    storageAnswered(target, { key, sentAtMs, fault, enriches = false }) {
      const id: CircuitId = enriches ? `enrichment ${target.bucket}` : `bucket ${target.bucket}`;
      const isEndpoints = fault !== undefined && circuitOf(fault.code) === 'endpoint';
      if (isEndpoints) endpointFailed(target, fault, { key, sentAtMs, enriches });
      // any answer, even a refusal, shows that the endpoint works
      else succeeded(`endpoint ${target.region}`);
      if (enriches && !circuits.isQuiet) enrichmentTried(target.bucket, fault, sentAtMs);
      if (fault === undefined) return succeeded(id);
      // credentials are never the bucket's; of the other faults each may be
      if (isEndpoints && opensAtOnce(fault.code)) return;
      const { count, keys } = countFailure(id, fault, { key });
      failed(id, fault, { sentAtMs, isEnough: () => count >= OBJECT_REQUESTS_MAX && keys.size >= OBJECTS_MIN });
    },
    enrichmentAnswered: refusals.answered,
    accepted(bucket) {
      lastAcceptedMs = clock.monotonicMs();
      acceptedAtMs.set(bucket, lastAcceptedMs);
      succeeded(`index ${bucket}`);
      circuits.closeByIndex();
    },
    indexFailed(bucket, fault, { sentAtMs, isWhole = false }) {
      const id: CircuitId = `index ${bucket}`;
      failedAtMs.set(bucket, clock.monotonicMs());
      const { count } = countFailure(id, fault);
      failed(id, fault, { sentAtMs, isEnough: () => isWhole || count >= REQUESTS_MAX });
      if (isWholeCluster()) circuits.openByIndices(fault);
    },
    clusterAnswered() {
      if (streaks.size > 0) streaks.delete('cluster');
    },
    clusterFailed(fault, { isLasting, sentAtMs = clock.monotonicMs() } = { isLasting: false }) {
      if (sentAtMs < circuits.cluster().closedAtMs) return;
      const { count, firstMs } = countFailure('cluster', fault);
      const isRepeated = count >= REQUESTS_MAX && clock.monotonicMs() - firstMs >= CLUSTER_MIN_MS;
      failed('cluster', fault, { sentAtMs, isEnough: () => isLasting || isRepeated });
    },
  };
}

/** Why documents of buckets are written without enrichment. */
function createRefusals(clock: CircuitsDependencies['clock']) {
  const refusals = new Map<string, OpenCircuit & { readonly lastMs: number }>();
  return {
    answered: (bucket: string, fault?: Fault): void => {
      if (fault === undefined) refusals.delete(bucket);
      else refusals.set(bucket, { level: 'enrichment', name: bucket, fault, sinceMs: clock.nowMs(), lastMs: clock.monotonicMs() });
    },
    all: (): readonly OpenCircuit[] => {
      for (const [bucket, { lastMs }] of refusals) if (clock.monotonicMs() - lastMs >= SHOWN_MS) refusals.delete(bucket);
      return [...refusals.values()];
    },
  };
}

/** The circuits that an exact write needs, and that an observation needs as well. */
export function indexCircuits(bucket: string): readonly CircuitId[] {
  return ['cluster', `index ${bucket}`];
}

export function observationCircuits(target: BucketLocation): readonly CircuitId[] {
  return [...indexCircuits(target.bucket), ...storageCircuits(target)];
}

/** The circuits that a request about one object needs. */
export function storageCircuits({ bucket, region }: BucketLocation): readonly CircuitId[] {
  return [`endpoint ${region}`, `bucket ${bucket}`];
}

/** The circuits that a request of enrichment needs. */
export function enrichmentCircuits(target: BucketLocation): readonly CircuitId[] {
  return [...storageCircuits(target), `enrichment ${target.bucket}`];
}
