/**
 * The circuits of one process: its memory of what does not answer. They decide who waits, and never that something is lost.
 *
 *   cluster (the index store) ─ index of a bucket          endpoint (S3 in a region) ─ bucket in S3
 *
 * An outer circuit opens only on what no inner one explains. Work waits for the circuits that it needs, and for no others.
 */
import { circuitOf, faultOf, faults, opensAtOnce, type Fault } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { BucketLocation } from '../ports/storage.ts';
import type { CircuitLevel, Telemetry } from '../ports/telemetry.ts';
import { createCircuit, type Circuit } from './circuit.ts';

/** Five looks in a row at three objects: one object that always fails, however often, never opens the circuit of its bucket. */
const LOOKS_MAX = 5;
const OBJECTS_MIN = 3;
/** One request or item can fail by chance. */
const REQUESTS_MAX = 3;
/** Three requests that run side by side fail together; an outage lasts longer. */
const CLUSTER_MIN_MS = 1_000;
/** The indices that count when all of them fail, and how long nothing may have been accepted. */
const INDICES_ASKED_MS = 30_000;
const NOTHING_ACCEPTED_MS = 10_000;
/** The cluster's probes. Receiving has stopped, so they begin early; 15 s are no load on a cluster that starts. */
const PROBE_MIN_MS = 1_000;
const PROBE_MAX_MS = 15_000;
/** A circuit for which nothing was tried for so long says nothing about the present. */
const FORGOTTEN_MS = 600_000;

export type CircuitId = 'cluster' | `${Exclude<CircuitLevel, 'cluster'>} ${string}`;

export interface OpenCircuit {
  readonly level: CircuitLevel;
  /** The bucket or the region; empty for the cluster. */
  readonly name: string;
  readonly fault: Fault;
  readonly sinceMs: number;
}

/** The places that an attempt has in open circuits. It gives them back when it has ended, however it ended. */
export interface Place {
  readonly ids: readonly CircuitId[];
  leave(): void;
}

/** What an attempt needs, and whether it is the first for its key since it began to wait. */
export interface Attempt {
  readonly ids: readonly CircuitId[];
  readonly isNewKey: boolean;
}

export interface Circuits {
  /** Whether no circuit is open: the usual case, in which nothing else need be asked. */
  readonly isQuiet: boolean;
  /** The outermost open circuit of these, if one is open. */
  openOf(ids: readonly CircuitId[]): OpenCircuit | undefined;
  /** All open circuits. */
  all(): readonly OpenCircuit[];
  /** The places in all open circuits that the attempt needs; undefined if it has to wait for one of them. */
  take(attempt: Attempt): Place | undefined;
  /** Waits until the attempt may begin. Resolves to undefined after `forMs`; rejects with the signal's reason. */
  wait(attempt: Attempt, forMs: number, signal: AbortSignal): Promise<Place | undefined>;
  /** Whether the bucket's circuit or its endpoint's is open, or its latest look failed. */
  isFailing(target: BucketLocation): boolean;
  /**
   * S3 answered a request about one object. `fault`: what it answered, or that it did not. `enriches`: the request was for
   * enrichment, which may fail alone, as when only the tags cannot be read.
   */
  looked(
    target: BucketLocation,
    look: { readonly key: string; readonly sentAtMs: number; readonly fault?: Fault; readonly enriches?: boolean },
  ): void;
  /** The index of the bucket accepted a document, or refused it because it holds something newer. */
  accepted(bucket: string): void;
  /** Whether the index of the bucket accepted anything within the last minute. */
  hasAccepted(bucket: string): boolean;
  /** An item of the bucket failed, or a whole request that names its index alone (`isWhole`), or its record could not be read. */
  indexFailed(bucket: string, fault: Fault, request: { readonly sentAtMs: number; readonly isWhole?: boolean }): void;
  /** The cluster answered a whole request, or it did not. */
  clusterAnswered(): void;
  /** `isLasting`: one such failure opens the circuit, since it is the probe's, or that of many requests over half a minute. */
  clusterFailed(fault: Fault, how?: { readonly isLasting: boolean }): void;
}

interface CircuitsDependencies {
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, 'circuitOpened' | 'circuitClosed' | 'warn'>;
  /** Reads and swaps a record of the state index; throws the fault that every write would meet. */
  readonly probeCluster: (signal: AbortSignal) => Promise<void>;
  /** Aborted when the process stops. */
  readonly stopped: AbortSignal;
}

interface Streak {
  count: number;
  readonly firstMs: number;
  /** At most as many as the rule needs. */
  readonly keys: Set<string>;
}

interface Waiter extends Attempt {
  readonly resolve: (place: Place) => void;
}

const NO_PLACE: Place = { ids: [], leave: () => undefined };

/** Creates the circuits, all closed. Their memory is bounded by the buckets and regions of failing requests. */
export function createCircuits({ clock, telemetry, probeCluster, stopped }: CircuitsDependencies): Circuits {
  const circuits = new Map<CircuitId, Circuit>();
  const open = new Set<CircuitId>();
  const streaks = new Map<CircuitId, Streak>();
  const waiters = new Set<Waiter>();
  /** When a bucket's index last accepted a write, and when each last failed, by the monotonic clock. */
  const acceptedAtMs = new Map<string, number>();
  const failedAtMs = new Map<string, number>();
  let lastAcceptedMs = -Infinity;
  let isPumpDue = false;

  // ── opening and closing ──

  function circuitOfId(id: CircuitId): Circuit {
    const known = circuits.get(id);
    if (known !== undefined) return known;
    const circuit = createCircuit(clock);
    circuits.set(id, circuit);
    return circuit;
  }

  function openCircuit(id: CircuitId, fault: Fault): void {
    streaks.delete(id);
    if (stopped.aborted || !circuitOfId(id).open(fault)) return;
    open.add(id);
    telemetry.circuitOpened({ ...partsOf(id), code: fault.code, reason: fault.reason });
    if (id === 'cluster') probeUntilClosed();
    else pumpAfter(circuitOfId(id).trialAtMs - clock.monotonicMs());
  }

  function closed(id: CircuitId): void {
    const circuit = circuitOfId(id);
    open.delete(id);
    telemetry.circuitClosed({ ...partsOf(id), openMs: Math.max(0, clock.nowMs() - circuit.sinceMs) });
    schedulePump();
  }

  function succeeded(id: CircuitId): void {
    if (streaks.size > 0) streaks.delete(id);
    if (circuits.get(id)?.succeeded() === true) closed(id);
    else if (open.has(id)) schedulePump();
  }

  function failed(id: CircuitId, fault: Fault, sentAtMs: number): void {
    const circuit = circuits.get(id);
    circuit?.failed(fault, sentAtMs);
    if (circuit?.fault !== undefined) pumpAfter(circuit.trialAtMs - clock.monotonicMs());
  }

  /** Counts a failure, and returns the failures in a row and of how many keys. */
  function countFailure(id: CircuitId, key: string): Streak {
    const streak = streaks.get(id) ?? { count: 0, firstMs: clock.monotonicMs(), keys: new Set<string>() };
    streak.count += 1;
    if (streak.keys.size < OBJECTS_MIN) streak.keys.add(key);
    streaks.set(id, streak);
    return streak;
  }

  function probeUntilClosed(): void {
    const probing = async (): Promise<void> => {
      for (let waitMs = PROBE_MIN_MS; ; waitMs = Math.min(PROBE_MAX_MS, waitMs * 2)) {
        await clock.sleep(waitMs, stopped);
        try {
          await probeCluster(stopped);
          break;
        } catch (error) {
          stopped.throwIfAborted();
          const fault = faultOf(error);
          // an answer that is not about the cluster shows that the cluster works
          if (circuitOf(fault.code) !== 'cluster' && fault.code !== 'internal.unexpected') break;
          circuitOfId('cluster').failed(fault, clock.monotonicMs());
        }
      }
      circuits.delete('cluster');
      streaks.delete('cluster');
      open.delete('cluster');
    };
    const { sinceMs } = circuitOfId('cluster');
    probing().then(
      () => {
        telemetry.circuitClosed({ ...partsOf('cluster'), openMs: Math.max(0, clock.nowMs() - sinceMs) });
        schedulePump();
      },
      (error: unknown) => {
        // only the stop of the process ends the probes; every other end must be reported
        if (!stopped.aborted) telemetry.warn('the probes of the index store ended unexpectedly', { reason: faultOf(error).reason });
      },
    );
  }

  // ── waiting ──

  function take({ ids, isNewKey }: Attempt): Place | undefined {
    const taken: CircuitId[] = [];
    const leave = (): void => {
      for (const id of taken.splice(0)) circuits.get(id)?.giveBack();
      schedulePump();
    };
    for (const id of ids) {
      if (!open.has(id)) continue;
      if (id === 'cluster' || !circuitOfId(id).take(isNewKey)) {
        leave();
        return undefined;
      }
      taken.push(id);
    }
    return taken.length === 0 ? NO_PLACE : { ids: [...taken], leave };
  }

  function schedulePump(): void {
    if (isPumpDue || (waiters.size === 0 && open.size === 0)) return;
    isPumpDue = true;
    queueMicrotask(pump);
  }

  function pumpAfter(ms: number): void {
    clock.sleep(Math.max(0, ms), stopped).then(schedulePump, () => undefined);
  }

  /**
   * Lets those go that may, then closes the circuits whose attempts succeed and for which nothing waits. First go those that
   * fewest circuits hold back, since their attempts say most about an outer circuit, and of these the new keys.
   */
  function pump(): void {
    const rank = ({ ids, isNewKey }: Waiter): number => 2 * ids.filter((id) => open.has(id)).length + (isNewKey ? 0 : 1);
    for (const waiter of [...waiters].sort((a, b) => rank(a) - rank(b))) {
      const place = take(waiter);
      if (place === undefined) continue;
      waiters.delete(waiter);
      waiter.resolve(place);
    }
    const awaited = new Set([...waiters].flatMap(({ ids }) => ids));
    for (const id of open) if (!awaited.has(id) && circuitOfId(id).closeIfIdle()) closed(id);
    isPumpDue = false;
  }

  async function wait(attempt: Attempt, forMs: number, signal: AbortSignal): Promise<Place | undefined> {
    signal.throwIfAborted();
    const ended = new AbortController();
    const { promise, resolve } = Promise.withResolvers<Place>();
    const waiter: Waiter = { ...attempt, resolve };
    waiters.add(waiter);
    schedulePump();
    const timeout = clock.sleep(forMs, AbortSignal.any([signal, ended.signal])).then(() => undefined);
    try {
      return await Promise.race([promise, timeout]);
    } finally {
      waiters.delete(waiter);
      ended.abort(new Error('the wait is over'));
      timeout.catch(() => undefined);
    }
  }

  // ── what the answers mean ──

  function endpointFailed(target: BucketLocation, key: string, failure: { readonly fault: Fault; readonly sentAtMs: number }): void {
    const id: CircuitId = `endpoint ${target.region}`;
    if (opensAtOnce(failure.fault.code)) openCircuit(id, failure.fault);
    failed(id, failure.fault, failure.sentAtMs);
    if (open.has(id)) return;
    const streak = countFailure(id, `${target.bucket}/${key}`);
    if (streak.count < REQUESTS_MAX) return;
    const failing = new Set([...streak.keys].map((each) => each.slice(0, each.indexOf('/'))));
    // the circuit of a single failing bucket is enough: nothing shows that others would fail
    if (failing.size > 1) openCircuit(id, failure.fault);
  }

  /** Whether every index that was asked lately is open and none accepts: then it is the cluster, as when its disks are full. */
  function isWholeCluster(): boolean {
    const nowMs = clock.monotonicMs();
    for (const [bucket, atMs] of failedAtMs) if (nowMs - atMs > INDICES_ASKED_MS) failedAtMs.delete(bucket);
    if (failedAtMs.size < 2 || nowMs - lastAcceptedMs < NOTHING_ACCEPTED_MS) return false;
    const isOpen = (bucket: string): boolean => open.has(`index ${bucket}`);
    const accepting = [...acceptedAtMs].filter(([, atMs]) => nowMs - atMs <= INDICES_ASKED_MS);
    return [...failedAtMs.keys()].every(isOpen) && accepting.every(([bucket]) => isOpen(bucket));
  }

  /** Forgets the open circuits for which nothing was tried for a long time. */
  function forgetIdle(): void {
    const awaited = new Set([...waiters].flatMap(({ ids }) => ids));
    for (const id of open) {
      const circuit = circuitOfId(id);
      if (id === 'cluster' || awaited.has(id) || clock.monotonicMs() - circuit.trialAtMs < FORGOTTEN_MS) continue;
      circuits.delete(id);
      open.delete(id);
      telemetry.circuitClosed({ ...partsOf(id), openMs: Math.max(0, clock.nowMs() - circuit.sinceMs) });
    }
  }

  function shown(id: CircuitId): OpenCircuit {
    const { fault, sinceMs } = circuitOfId(id);
    return { ...partsOf(id), fault: fault ?? { code: 'internal.unexpected', reason: 'the reason is unknown' }, sinceMs };
  }

  return {
    get isQuiet() {
      return open.size === 0;
    },
    openOf(ids) {
      const id = ids.find((each) => open.has(each));
      return id === undefined ? undefined : shown(id);
    },
    all() {
      forgetIdle();
      return [...open].map(shown);
    },
    take: (attempt) => (open.size === 0 ? NO_PLACE : take(attempt)),
    wait,
    isFailing: (target) =>
      (open.size > 0 || streaks.size > 0) && storageCircuits(target).some((id) => open.has(id) || streaks.has(id)),
    looked(target, { key, sentAtMs, fault, enriches = false }) {
      const id: CircuitId = enriches ? `enrichment ${target.bucket}` : `bucket ${target.bucket}`;
      const level = fault === undefined ? undefined : circuitOf(fault.code);
      // any answer, even a refusal, shows that the endpoint works
      if (level !== 'endpoint') succeeded(`endpoint ${target.region}`);
      if (fault === undefined) return succeeded(id);
      if (level === 'endpoint') endpointFailed(target, key, { fault, sentAtMs });
      // credentials are the endpoint's; of the rest each may be the bucket's
      if (fault.code === 's3.credentials') return;
      failed(id, fault, sentAtMs);
      const streak = countFailure(id, key);
      if ((streak.count >= LOOKS_MAX && streak.keys.size >= OBJECTS_MIN) || opensAtOnce(fault.code)) openCircuit(id, fault);
    },
    accepted(bucket) {
      const nowMs = clock.monotonicMs();
      lastAcceptedMs = nowMs;
      acceptedAtMs.set(bucket, nowMs);
      if (open.size === 0 && streaks.size === 0) return;
      succeeded(`index ${bucket}`);
    },
    hasAccepted: (bucket) => clock.monotonicMs() - (acceptedAtMs.get(bucket) ?? -Infinity) < 60_000,
    indexFailed(bucket, fault, { sentAtMs, isWhole = false }) {
      const id: CircuitId = `index ${bucket}`;
      failedAtMs.set(bucket, clock.monotonicMs());
      failed(id, fault, sentAtMs);
      const { count } = countFailure(id, '');
      if (isWhole || count >= REQUESTS_MAX || opensAtOnce(fault.code)) openCircuit(id, fault);
      if (isWholeCluster()) openCircuit('cluster', fault);
    },
    clusterAnswered() {
      if (streaks.size > 0) streaks.delete('cluster');
    },
    clusterFailed(fault, { isLasting } = { isLasting: false }) {
      const { count, firstMs } = countFailure('cluster', '');
      const isRepeated = count >= REQUESTS_MAX && clock.monotonicMs() - firstMs >= CLUSTER_MIN_MS;
      if (isLasting || isRepeated || opensAtOnce(fault.code)) openCircuit('cluster', fault);
    },
  };
}

const levels: readonly CircuitLevel[] = ['index', 'endpoint', 'bucket', 'enrichment'];

function partsOf(id: CircuitId): { readonly level: CircuitLevel; readonly name: string } {
  if (id === 'cluster') return { level: 'cluster', name: '' };
  const space = id.indexOf(' ');
  const level = levels.find((each) => each === id.slice(0, space));
  return { level: level ?? 'bucket', name: id.slice(space + 1) };
}

/** The circuits that an exact write needs, and those that a look needs as well. */
export function indexCircuits(bucket: string): readonly CircuitId[] {
  return ['cluster', `index ${bucket}`];
}

export function lookCircuits(target: BucketLocation): readonly CircuitId[] {
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

/** What happened and what to do about it, for people. */
export function circuitText({ fault }: Pick<OpenCircuit, 'fault'>): string {
  return `${fault.reason}. ${faults[fault.code].advice}`;
}
