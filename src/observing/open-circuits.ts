/**
 * The open circuits of one process: who may try, who waits, and when a circuit closes. What makes a circuit open is decided in
 * circuits.ts.
 */
import { adviceWhileServing, circuitOf, faultOf, type Fault } from '../base/fault.ts';
import type { Clock } from '../process/clock.ts';
import type { LabelsOf, Telemetry } from '../process/telemetry.ts';
import { createCircuit, type Circuit, type CircuitLevel } from './circuit.ts';
import {
  createWaitingLine,
  isExplained,
  NO_PERMIT,
  type Attempt,
  type CircuitId,
  type LineDependencies,
  type Permit,
} from './waiting-line.ts';
import type { WithPorts } from '../store/store.ts';

/** The cluster's probes. Receiving has stopped, so they begin early; 15 s are no load on a cluster that starts. */
const PROBE_MIN_MS = 1_000;
const PROBE_MAX_MS = 15_000;
/** A circuit for which nothing was tried for so long says nothing about the present. */
const FORGOTTEN_MS = 600_000;

export interface OpenCircuit {
  readonly level: CircuitLevel;
  /** The bucket or the region; empty for the cluster. */
  readonly name: string;
  readonly fault: Fault;
  readonly sinceMs: number;
}

export interface OpenCircuits {
  /** Whether no circuit is open: the usual case, in which nothing else need be asked. */
  readonly isQuiet: boolean;
  has(id: CircuitId): boolean;
  /** The first of these that is open; callers name outer circuits first. */
  openOf(ids: readonly CircuitId[]): OpenCircuit | undefined;
  /** All open circuits, without those for which nothing was tried for ten minutes. */
  all(): readonly OpenCircuit[];
  /** The permits in all open circuits that the attempt needs; undefined if it has to wait for one of them. */
  take(attempt: Attempt): Permit | undefined;
  /** Waits until the attempt may begin. Resolves to undefined after `forMs`; rejects with the signal's reason. */
  wait(attempt: Attempt, forMs: number, signal: AbortSignal): Promise<Permit | undefined>;
  open(id: CircuitId, fault: Fault): void;
  /** Opens the cluster because none of its indices takes anything. Its probe would succeed, so the indices' own trials close it. */
  openByIndices(fault: Fault): void;
  /**
   * Whether the cluster is open for that reason: then its circuit stops receiving, and holds back no trial of an index. And when
   * it last closed, by the monotonic clock; -Infinity if it never did.
   */
  cluster(): { readonly isOpenByIndices: boolean; readonly closedAtMs: number };
  /** An index took something. */
  closeByIndex(): void;
  succeeded(id: CircuitId): void;
  /** A request failed that was sent at this moment of the monotonic clock. It opens nothing, but it ends a trial. */
  failed(id: CircuitId, fault: Fault, sentAtMs: number): void;
  /** Requests failed that inner circuits explain: the circuit is not forgotten. */
  stillFails(id: CircuitId): void;
}

export interface CircuitsDependencies extends WithPorts<'clock' | 'telemetry'> {
  /** Reads and swaps a record of the state index; throws the fault that every write would meet. */
  readonly probeCluster: (signal: AbortSignal) => Promise<void>;
  /** Aborted when the process stops. */
  readonly stopped: AbortSignal;
}

interface OpenCircuitsDependencies extends CircuitsDependencies {
  readonly failuresOf: LineDependencies['failuresOf'];
}

/** Creates the circuits, all closed. Their memory is bounded by the buckets and regions of failing requests. */
export function createOpenCircuits({ clock, telemetry, probeCluster, stopped, failuresOf }: OpenCircuitsDependencies): OpenCircuits {
  const circuits = new Map<CircuitId, Circuit>();
  const open = new Set<CircuitId>();
  let isByIndices = false;
  let clusterClosedAtMs = -Infinity;
  const line = createWaitingLine({ clock, open, failuresOf, take, afterRound });
  const roundAt = createAlarm({ clock, stopped }, line.startRound);

  function circuitOfId(id: CircuitId): Circuit {
    const known = circuits.get(id);
    if (known !== undefined) return known;
    const circuit = createCircuit(clock);
    circuits.set(id, circuit);
    return circuit;
  }

  function openCircuit(id: CircuitId, fault: Fault): void {
    if (stopped.aborted || !circuitOfId(id).open(fault)) return;
    open.add(id);
    reportOpened(telemetry, { ...partsOf(id), fault }, shownAll());
    if (id === 'cluster' && !isByIndices) probeUntilClosed();
    else roundAt(circuitOfId(id).trialAtMs);
  }

  function closed(id: CircuitId): void {
    const circuit = circuitOfId(id);
    open.delete(id);
    if (id === 'cluster') clusterClosedAtMs = clock.monotonicMs();
    reportClosed(telemetry, partsOf(id), Math.max(0, clock.nowMs() - circuit.sinceMs), shownAll());
    line.startRound();
  }

  function shownAll(): readonly OpenCircuit[] {
    return [...open].map((id) => shown(id, circuitOfId(id)));
  }

  function succeeded(id: CircuitId): void {
    if (circuits.get(id)?.succeeded() === true) closed(id);
    else if (open.has(id)) line.startRound();
  }

  function failed(id: CircuitId, fault: Fault, sentAtMs: number): void {
    const circuit = circuits.get(id);
    circuit?.failed(fault, sentAtMs);
    if (circuit?.fault !== undefined) roundAt(circuit.trialAtMs);
  }

  /** The cluster has no trials by records, because nothing is received while it is open: its probe is the trial. */
  function probeUntilClosed(): void {
    const cluster = circuitOfId('cluster');
    const noteFault = (fault: Fault): void => cluster.failed(fault, clock.monotonicMs());
    untilProbeSucceeds({ clock, probeCluster, stopped }, noteFault).then(
      () => forget('cluster'),
      (error: unknown) => {
        // only the stop of the process ends the probes; every other end must be reported
        if (!stopped.aborted) telemetry.warn('the probes of the index store ended unexpectedly', { reason: faultOf(error).reason });
      },
    );
  }

  function forget(id: CircuitId): void {
    closed(id);
    circuits.delete(id);
  }

  function take({ ids, isNewKey }: Attempt): Permit | undefined {
    // the circuits themselves, because an id that was forgotten meanwhile names another one
    const taken = new Map<CircuitId, () => void>();
    for (const id of ids) {
      if (!open.has(id)) continue;
      if (id === 'cluster' && isByIndices) continue;
      const giveBackPlace = id === 'cluster' ? undefined : takeOne(circuitOfId(id), isNewKey, isExplained(id, ids, open));
      if (giveBackPlace === undefined) {
        // these permits were free before as well, so no other attempt may begin because of them
        giveBack(taken);
        return undefined;
      }
      taken.set(id, giveBackPlace);
    }
    if (taken.size === 0) return NO_PERMIT;
    const leave = (): void => {
      giveBack(taken);
      line.startRound();
    };
    return { ids: [...taken.keys()], leave };
  }

  /** Closes the circuits whose attempts succeed and for which nothing waits. */
  function afterRound(awaited: ReadonlySet<CircuitId>): void {
    for (const id of open) {
      const circuit = circuitOfId(id);
      if (!awaited.has(id) && circuit.closeIfIdle()) closed(id);
      // a timer may be over a millisecond early, and nothing else may come that begins another round
      else if (awaited.has(id)) for (const atMs of dueAfter(circuit, clock.monotonicMs())) roundAt(atMs);
    }
  }

  function forgetIdle(): void {
    for (const id of open) {
      // where something waits, a trial is due each minute
      const isIdle = id !== 'cluster' && clock.monotonicMs() - circuitOfId(id).freshAtMs >= FORGOTTEN_MS;
      if (isIdle) forget(id);
    }
  }

  return {
    get isQuiet() {
      return open.size === 0;
    },
    has: (id) => open.has(id),
    openOf(ids) {
      const id = ids.find((each) => open.has(each));
      return id === undefined ? undefined : shown(id, circuitOfId(id));
    },
    all() {
      forgetIdle();
      return shownAll();
    },
    take: (attempt) => (open.size === 0 ? NO_PERMIT : take(attempt)),
    wait: (attempt, forMs, signal) => line.wait(attempt, { forMs, signal }),
    open(id, fault) {
      // what the cluster itself answers counts more than what its indices do
      if (id === 'cluster' && isByIndices) {
        isByIndices = false;
        probeUntilClosed();
      }
      openCircuit(id, fault);
    },
    openByIndices(fault) {
      if (open.has('cluster')) return;
      isByIndices = true;
      openCircuit('cluster', fault);
    },
    cluster: () => ({ isOpenByIndices: isByIndices, closedAtMs: clusterClosedAtMs }),
    closeByIndex() {
      if (!isByIndices) return;
      isByIndices = false;
      forget('cluster');
    },
    succeeded,
    failed,
    stillFails: (id) => circuits.get(id)?.stillFails(),
  };
}

function shown(id: CircuitId, { fault, sinceMs }: Circuit): OpenCircuit {
  return { ...partsOf(id), fault: fault ?? { code: 'internal.unexpected', reason: 'the reason is unknown' }, sinceMs };
}

/** Calls at the earliest of the requested moments. Later ones are requested again by then, so one timer is enough for all circuits. */
function createAlarm({ clock, stopped }: Pick<CircuitsDependencies, 'clock' | 'stopped'>, ring: () => void): (atMs: number) => void {
  let nextMs = Infinity;
  return (atMs) => {
    if (atMs >= nextMs) return;
    nextMs = atMs;
    const isOver = (): void => {
      if (nextMs === atMs) nextMs = Infinity;
      ring();
    };
    clock.sleep(Math.max(1, atMs - clock.monotonicMs()), stopped).then(isOver, () => undefined);
  };
}

/** Takes a permit. Returns the function that gives it back; undefined if none is free. */
function takeOne(circuit: Circuit, isNewKey: boolean, isInnerOpen: boolean): (() => void) | undefined {
  if (isInnerOpen) return circuit.takeExplained() ? () => circuit.giveBackExplained() : undefined;
  return circuit.take(isNewKey) ? () => circuit.giveBack() : undefined;
}

/** Gives the permits back that were taken, once. */
function giveBack(taken: Map<CircuitId, () => void>): void {
  for (const giveBackPlace of taken.values()) giveBackPlace();
  taken.clear();
}

/** When the circuit may let a waiting attempt begin. */
function dueAfter({ newKeyAtMs, trialAtMs }: Circuit, nowMs: number): readonly number[] {
  return [newKeyAtMs, trialAtMs].filter((atMs) => atMs > nowMs);
}

interface Probing {
  readonly clock: Clock;
  readonly probeCluster: (signal: AbortSignal) => Promise<void>;
  readonly stopped: AbortSignal;
}

/** Resolves when the probe succeeds, or fails by something that shows that the cluster works. Rejects with the reason of the stop. */
async function untilProbeSucceeds({ clock, probeCluster, stopped }: Probing, noteFault: (fault: Fault) => void): Promise<void> {
  for (let waitMs = PROBE_MIN_MS; ; waitMs = Math.min(PROBE_MAX_MS, waitMs * 2)) {
    await clock.sleep(waitMs, stopped);
    try {
      return await probeCluster(stopped);
    } catch (error) {
      stopped.throwIfAborted();
      const fault = faultOf(error);
      if (circuitOf(fault.code) !== 'cluster' && fault.code !== 'internal.unexpected') return;
      noteFault(fault);
    }
  }
}

const levels: readonly CircuitLevel[] = ['index', 'endpoint', 'bucket', 'enrichment'];

function partsOf(id: CircuitId): { readonly level: CircuitLevel; readonly name: string } {
  if (id === 'cluster') return { level: 'cluster', name: '' };
  const space = id.indexOf(' ');
  const level = levels.find((each) => each === id.slice(0, space));
  return { level: level ?? 'bucket', name: id.slice(space + 1) };
}

// ── how open circuits appear in the log and in the metrics ─────────────────────────────────────────────────────────

interface Named {
  readonly level: CircuitLevel;
  /** The bucket or the region; empty for the cluster. */
  readonly name: string;
}

/** An open circuit, as far as the metrics show it. */
interface Open extends Named {
  readonly fault: Fault;
}

export const circuitMessages: Readonly<Record<CircuitLevel, { readonly opened: string; readonly closed: string }>> = {
  cluster: { opened: 'receiving paused', closed: 'receiving resumed' },
  index: {
    opened: "the bucket's index accepts no records: they wait",
    closed: "the bucket's index accepts records again",
  },
  endpoint: {
    opened: 'S3 does not answer in this region: records that need it wait',
    closed: 'S3 answers in this region again',
  },
  bucket: {
    opened: 'S3 does not answer for the bucket: its records that need S3 wait',
    closed: 'S3 answers for the bucket again',
  },
  enrichment: {
    opened: "S3 does not answer the requests that enrich the bucket's documents: they are written without enrichment",
    closed: "the bucket's documents are enriched again",
  },
};

/** The labels of a circuit: the system, and whether it is the whole of it (the index store, S3 in a region) or one bucket's part. Nothing waits for enrichment. */
const circuitLabels: Readonly<Record<CircuitLevel, readonly LabelsOf<'tally_circuit_open'>[]>> = {
  cluster: [{ system: 'index', level: 'whole' }],
  index: [{ system: 'index', level: 'bucket' }],
  endpoint: [{ system: 's3', level: 'whole' }],
  bucket: [{ system: 's3', level: 'bucket' }],
  enrichment: [],
};

/** A circuit opened. `all`: those that are open now. */
export function reportOpened(telemetry: Telemetry, { level, name, fault: { code, reason } }: Open, all: readonly Open[]): void {
  setGauges(telemetry, all);
  const fields = fieldsOf(level, name);
  telemetry.error(circuitMessages[level].opened, { ...fields, code, reason, advice: adviceWhileServing(code, fields.bucket) });
}

/** A circuit closed. `all`: those that are open now. */
export function reportClosed(telemetry: Telemetry, { level, name }: Named, openMs: number, all: readonly Open[]): void {
  setGauges(telemetry, all);
  telemetry.info(circuitMessages[level].closed, { ...fieldsOf(level, name), openMs: Math.round(openMs) });
}

/** A bucket that waits for its index and for S3 counts once in `tally_parked_buckets`. */
function setGauges(telemetry: Telemetry, all: readonly Open[]): void {
  telemetry.setCounts(
    'tally_circuit_open',
    all.flatMap(({ level }) => circuitLabels[level]),
  );
  telemetry.set('tally_parked_buckets', new Set(all.filter(isOfBucket).map(({ name }) => name)).size);
  telemetry.setCounts(
    'tally_paused',
    all.filter(({ level }) => level === 'cluster').map(({ fault }) => ({ fault: fault.code })),
  );
}

function isOfBucket({ level }: Named): boolean {
  return level === 'index' || level === 'bucket';
}

function fieldsOf(level: CircuitLevel, name: string): { readonly bucket?: string; readonly region?: string } {
  if (level === 'cluster') return {};
  return level === 'endpoint' ? { region: name } : { bucket: name };
}
