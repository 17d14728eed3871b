/**
 * One process's memory of what does not answer: the index store, a bucket's index, a bucket in S3. It decides who may try, and never
 * that something is lost.
 *
 *            failures in a row          after 30 s, a first receive after 1 s
 *   closed ──────────────────────► open ──────────────────────────────────────► one attempt ── succeeded ──► closed
 *                                    ▲                                               │
 *                                    └──────────────────── failed ───────────────────┘
 *
 * Only records make attempts, so where nothing arrives, Tally tries nothing. A probe asks the index store, because Tally receives
 * nothing while the store fails.
 */
import { adviceAbout, circuitOf, faultOf, opensAtOnce, type Fault } from '../base/fault.ts';
import { inTime } from '../base/in-time.ts';
import type { BucketLocation } from '../aws/storage.ts';
import { endedWithin } from '../process/async.ts';
import type { Clock } from '../process/clock.ts';
import type { LabelsOf, Telemetry } from '../process/telemetry.ts';
import type { WithPorts } from '../store/store.ts';

/** How many failures in a row open a circuit: one request or item may fail by chance. */
const FAILURES_MAX = 3;
const STORE_MIN_MS = 1_000;
/** The first message that was hidden comes back after this time, and becomes the attempt. A recovery is seen within a minute, and two requests a minute do not burden what is recovering. */
const TRY_MS = 30_000;
/** If only a prefix is slow, the rest of its bucket can be served: one new message a second finds that out. */
const FIRST_TRY_MS = 1_000;
/** How often the index store is probed: early at first, because receiving has stopped; one probe in 15 s is no load on a cluster that is starting. */
const PROBE_MIN_MS = 1_000;
const PROBE_MAX_MS = 15_000;
/** A failed message is hidden for at most a quarter of an hour, so anything that still fails is tried again within this time. */
const FORGOTTEN_MS = 1_200_000;

/** What a circuit stands for: the index store, one index in it, S3 in a region (requests wait for it only if they have no place), a bucket there, or the requests that enrich its documents. */
export type CircuitLevel = 'cluster' | 'index' | 'endpoint' | 'bucket' | 'enrichment';
export type CircuitId = 'cluster' | `${Exclude<CircuitLevel, 'cluster'>} ${string}`;
/** The open circuits at which an attempt is the permitted one, and since when (monotonic): while it hangs, another one takes its turn. */
export type Turns = Map<CircuitId, number>;

export interface OpenCircuit {
  readonly level: CircuitLevel;
  /** The bucket; empty for the index store. */
  readonly name: string;
  /** The object for which S3 refused an enrichment request. */
  readonly key?: string;
  readonly fault: Fault;
  readonly sinceMs: number;
}

export interface Circuits {
  /** Whether no circuit is open, which is usual; callers then need not ask further. */
  readonly isQuiet: boolean;
  /** Returns the first of these that is open; callers name outer ones first. */
  openOf(ids: readonly CircuitId[]): OpenCircuit | undefined;
  /** Returns all open circuits, except those not heard of for twenty minutes, and why documents are written without enrichment. */
  all(): readonly OpenCircuit[];
  /** Whether the bucket's latest request failed, or its region is failing. */
  readonly isFailing: (target: BucketLocation) => boolean;
  /** Whether the latest requests for several of the region's buckets had no answer. */
  readonly isRegionFailing: (target: BucketLocation) => boolean;
  /**
   * Whether an attempt that needs these circuits may begin. `turns`: those at which it is the one permitted attempt; newly granted
   * ones are added. `isFirst`: its message was received for the first time, or it only enriches a document, which can be written without.
   */
  mayTry(ids: readonly CircuitId[], turns: Turns, isFirst?: boolean): boolean;
  /** Gives back those of the attempt's turns at which it sent nothing. Not for an attempt that failed: the next one waits. */
  notTried(turns: Turns): void;
  /** Resolves to true when the index store answers, and to false after `forMs`; rejects with the signal's reason. */
  untilStoreAnswers(forMs: number, signal: AbortSignal): Promise<boolean>;
  /** Notes S3's answer to a request about one object. `fault`: it failed, or had no answer. */
  storageAnswered(
    target: BucketLocation,
    request: { readonly key: string; readonly sentAtMs: number; readonly fault?: Fault; readonly enriches?: boolean },
  ): void;
  /** Notes that S3 refused an enrichment request for one object. That holds nothing back, because a policy may deny only a part of the bucket; the watch asks for that key again. */
  readonly enrichmentRefused: (bucket: string, key: string, fault: Fault) => void;
  /** Notes that the bucket's index accepted a document, or refused it because it holds something newer. */
  accepted(bucket: string): void;
  /** Notes that an item of the bucket failed. `isWhole`: a request for this index alone failed, or the bucket's record could not be read. */
  indexFailed(bucket: string, fault: Fault, request: { readonly sentAtMs: number; readonly isWhole?: boolean }): void;
  /** Notes that the cluster answered a whole request. */
  clusterAnswered(): void;
  /** Notes that the cluster failed. `isLasting`: this failure alone opens the circuit, because it is the probe's, or that of many requests over half a minute. `sentAtMs`: when the request was sent, if the store may have answered others since. */
  clusterFailed(fault: Fault, how?: { readonly isLasting: boolean; readonly sentAtMs?: number }): void;
}

export interface CircuitsDependencies extends WithPorts<'clock' | 'telemetry'> {
  /** Reads and swaps a record of the state index; throws the fault that every write would meet. */
  readonly probeCluster: (signal: AbortSignal) => Promise<void>;
  /** Aborted when the process stops. */
  readonly stopped: AbortSignal;
}

/** The failures in a row of one circuit. */
interface Target {
  count: number;
  /** The objects and their buckets, as many as the rules need. */
  readonly keys: Set<string>;
  readonly buckets: Set<string>;
  fault: Fault;
  /** When the first and the latest occurred, by the monotonic clock; `sinceMs`: the first, by this machine's clock. */
  readonly firstMs: number;
  lastMs: number;
  readonly sinceMs: number;
  isOpen: boolean;
  /** When the latest attempt began, or the circuit opened, by the monotonic clock. */
  triedAtMs: number;
  /** Whether that attempt has no answer yet. Answers to requests sent before it do not count. */
  isTrying: boolean;
}

/** Which failures open a circuit, besides those that open it at once. A single object may fail every time while the others of its bucket are served. */
const isEnough: Readonly<Record<CircuitLevel, (failures: Target) => boolean>> = {
  // requests that run side by side fail together; an outage lasts longer
  cluster: ({ count, firstMs, lastMs }) => count >= FAILURES_MAX && lastMs - firstMs >= STORE_MIN_MS,
  index: ({ count }) => count >= FAILURES_MAX,
  endpoint: ({ keys, buckets }) => keys.size >= FAILURES_MAX && buckets.size > 1,
  bucket: ({ keys }) => keys.size >= FAILURES_MAX,
  enrichment: ({ keys }) => keys.size >= FAILURES_MAX,
};

/** A request that failed. */
interface Failure {
  readonly sentAtMs: number;
  readonly bucket?: string;
  readonly key?: string;
  readonly isEnough?: boolean;
}

function targetThatFails(fault: Fault, clock: Clock): Target {
  const nowMs = clock.monotonicMs();
  const failures = { count: 0, keys: new Set<string>(), buckets: new Set<string>(), firstMs: nowMs, lastMs: nowMs, sinceMs: clock.nowMs() };
  return { fault, isOpen: false, triedAtMs: nowMs, isTrying: false, ...failures };
}

function noteFailure(target: Target, fault: Fault, { bucket = '', key = '', nowMs }: Failure & { readonly nowMs: number }): void {
  target.count += 1;
  target.fault = fault;
  target.lastMs = nowMs;
  if (target.keys.size < FAILURES_MAX) target.keys.add(`${bucket}/${key}`);
  if (target.buckets.size < 2) target.buckets.add(bucket);
}

/** Whether another attempt may begin: one at a time, unless the last has had no answer for long. */
function isDue({ triedAtMs, isTrying }: Target, nowMs: number, isFirst: boolean): boolean {
  return nowMs - triedAtMs >= (isFirst && !isTrying ? FIRST_TRY_MS : TRY_MS);
}

/** Creates the circuits, all closed. Their memory is bounded by the buckets of failing requests. */
export function createCircuits({ clock, telemetry, probeCluster, stopped }: CircuitsDependencies): Circuits {
  const targets = new Map<CircuitId, Target>();
  let openCount = 0;
  let clusterClosedAtMs = -Infinity;
  let storeBack = Promise.withResolvers<void>();
  /** Why documents of buckets are written without enrichment. */
  const refusals = new Map<string, OpenCircuit & { readonly lastMs: number }>();

  const isOpen = (id: CircuitId): boolean => openCount > 0 && targets.get(id)?.isOpen === true;

  /** None, if it is closed. */
  function openAt(id: CircuitId): readonly OpenCircuit[] {
    const target = targets.get(id);
    return target?.isOpen === true ? [{ ...parseId(id), fault: target.fault, sinceMs: target.sinceMs }] : [];
  }

  const allOpen = (): readonly OpenCircuit[] => [...targets.keys()].flatMap(openAt);

  function targetOf(id: CircuitId, fault: Fault): Target {
    const known = targets.get(id);
    if (known !== undefined && (known.isOpen || clock.monotonicMs() - known.lastMs < FORGOTTEN_MS)) return known;
    const target = targetThatFails(fault, clock);
    targets.set(id, target);
    return target;
  }

  function failed(id: CircuitId, fault: Fault, failure: Failure): void {
    const target = targetOf(id, fault);
    const nowMs = clock.monotonicMs();
    noteFailure(target, fault, { ...failure, nowMs });
    if (target.isOpen) target.isTrying &&= failure.sentAtMs < target.triedAtMs;
    else if (failure.isEnough === true || opensAtOnce(fault.code) || isEnough[parseId(id).level](target)) open(id, target);
  }

  /** A region's circuit leaves holding back to its buckets' circuits. A refusal of single objects holds nothing back, because a policy may deny only a prefix. */
  function holdsBack(id: CircuitId): boolean {
    const code = targets.get(id)?.fault.code;
    return !id.startsWith('endpoint ') && code !== undefined && circuitOf(code) !== 'object';
  }

  function open(id: CircuitId, target: Target): void {
    if (stopped.aborted) return;
    target.isOpen = true;
    target.triedAtMs = clock.monotonicMs();
    openCount += 1;
    reportOpened(telemetry, { ...parseId(id), fault: target.fault }, allOpen());
    if (id === 'cluster') probeUntilClosed();
  }

  function succeeded(id: CircuitId): void {
    const target = targets.get(id);
    if (target === undefined) return;
    targets.delete(id);
    if (!target.isOpen) return;
    openCount -= 1;
    if (id === 'cluster') {
      clusterClosedAtMs = clock.monotonicMs();
      storeBack.resolve();
      storeBack = Promise.withResolvers();
    }
    reportClosed(telemetry, parseId(id), Math.max(0, clock.nowMs() - target.sinceMs), allOpen());
  }

  function answered(id: CircuitId, fault: Fault | undefined, failure: Failure): void {
    if (fault === undefined) succeeded(id);
    else failed(id, fault, failure);
  }

  function probeUntilClosed(): void {
    const noteFault = (fault: Fault): void => void Object.assign(targetOf('cluster', fault), { fault });
    untilProbeSucceeds({ clock, probeCluster, stopped }, noteFault).then(
      () => succeeded('cluster'),
      (error: unknown) => {
        // only the process's stop may end the probes; report any other end
        if (!stopped.aborted) telemetry.warn('the probes of the index store ended unexpectedly', { reason: faultOf(error).reason });
      },
    );
  }

  return {
    get isQuiet() {
      return openCount === 0;
    },
    openOf: (ids) => (openCount === 0 ? undefined : ids.flatMap(openAt)[0]),
    all() {
      for (const [id, { lastMs }] of targets) if (id !== 'cluster' && clock.monotonicMs() - lastMs >= FORGOTTEN_MS) succeeded(id);
      for (const [bucket, { lastMs }] of refusals) if (clock.monotonicMs() - lastMs >= FORGOTTEN_MS) refusals.delete(bucket);
      return [...allOpen(), ...refusals.values()];
    },
    isFailing: ({ bucket, region }) => targets.size > 0 && (targets.has(`bucket ${bucket}`) || isOpen(`endpoint ${region}`)),
    isRegionFailing: ({ region }) => isOpen(`endpoint ${region}`),
    mayTry(ids, turns, isFirst = false) {
      const nowMs = clock.monotonicMs();
      const failing = ids.filter((id) => isOpen(id) && !turns.has(id) && holdsBack(id));
      const due = failing.flatMap((id) => targets.get(id) ?? []).filter((target) => isDue(target, nowMs, isFirst));
      if (due.length < failing.length || failing.includes('cluster')) return false;
      for (const id of failing) turns.set(id, nowMs);
      for (const target of due) Object.assign(target, { triedAtMs: nowMs, isTrying: true });
      return true;
    },
    notTried(turns) {
      for (const [id, sinceMs] of turns) {
        const target = targets.get(id);
        // whatever was sent has had its answer; a turn that another attempt has taken is not this one's to give
        if (target?.isTrying === true && target.triedAtMs === sinceMs) Object.assign(target, { triedAtMs: -Infinity, isTrying: false });
      }
      turns.clear();
    },
    async untilStoreAnswers(forMs, signal) {
      if (isOpen('cluster')) await endedWithin(clock, Math.max(0, forMs), inTime(storeBack.promise, signal));
      signal.throwIfAborted();
      return !isOpen('cluster');
    },
    storageAnswered({ bucket, region }, { key, sentAtMs, fault, enriches = false }) {
      const ofBucket: CircuitId = `bucket ${bucket}`;
      const id: CircuitId = enriches ? `enrichment ${bucket}` : ofBucket;
      const failure = { bucket, key, sentAtMs };
      const isEndpoints = fault !== undefined && circuitOf(fault.code) === 'endpoint';
      // any answer, even a refusal, shows that the region works; a bucket whose circuit is open says nothing about it
      if (!isEndpoints) succeeded(`endpoint ${region}`);
      else if (!isOpen(ofBucket) && !isOpen(id)) failed(`endpoint ${region}`, fault, failure);
      // an enrichment request is also an attempt at an open bucket, but never opens the bucket's circuit
      const ids = enriches && isOpen(ofBucket) ? [ofBucket, id] : [id];
      for (const each of ids) answered(each, fault, failure);
    },
    enrichmentRefused(bucket, key, fault) {
      refusals.set(bucket, { level: 'enrichment', name: bucket, key, fault, sinceMs: clock.nowMs(), lastMs: clock.monotonicMs() });
    },
    accepted: (bucket) => succeeded(`index ${bucket}`),
    indexFailed: (bucket, fault, { sentAtMs, isWhole = false }) => failed(`index ${bucket}`, fault, { sentAtMs, isEnough: isWhole }),
    clusterAnswered() {
      if (!isOpen('cluster')) targets.delete('cluster');
    },
    clusterFailed(fault, { isLasting, sentAtMs = clock.monotonicMs() } = { isLasting: false }) {
      if (sentAtMs >= clusterClosedAtMs) failed('cluster', fault, { sentAtMs, isEnough: isLasting });
    },
  };
}

/** Resolves when the probe succeeds, or fails in a way that shows that the cluster works. Rejects with the reason of the stop. */
async function untilProbeSucceeds(
  { clock, probeCluster, stopped }: Omit<CircuitsDependencies, 'telemetry'>,
  noteFault: (fault: Fault) => void,
): Promise<void> {
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

/** The circuits that an exact write needs. An observation needs them too. */
export function indexCircuits(bucket: string): readonly CircuitId[] {
  return ['cluster', `index ${bucket}`];
}

export function observationCircuits({ bucket, region }: BucketLocation): readonly CircuitId[] {
  return [...indexCircuits(bucket), `endpoint ${region}`, `bucket ${bucket}`];
}

/** The circuits that an enrichment request needs. */
export function enrichmentCircuits({ bucket }: BucketLocation): readonly CircuitId[] {
  return [`bucket ${bucket}`, `enrichment ${bucket}`];
}

const levels: readonly CircuitLevel[] = ['index', 'endpoint', 'bucket', 'enrichment'];

function parseId(id: CircuitId): { readonly level: CircuitLevel; readonly name: string } {
  if (id === 'cluster') return { level: 'cluster', name: '' };
  const space = id.indexOf(' ');
  const level = levels.find((each) => each === id.slice(0, space));
  return { level: level ?? 'bucket', name: id.slice(space + 1) };
}

// ── how open circuits appear in the log and in the metrics ─────────────────────────────────────────────────────────

/** An open circuit, as far as the metrics show it. */
type Open = Omit<OpenCircuit, 'sinceMs'>;

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

/** A circuit's labels: the system, and whether all of it (the index store, S3 in a region) or one bucket's part is down. Enrichment has none, because nothing waits for it. */
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
  telemetry.error(circuitMessages[level].opened, { ...fields, code, reason, advice: adviceAbout(code, fields.bucket) });
}

/** A circuit closed. `all`: those that are open now. */
export function reportClosed(telemetry: Telemetry, { level, name }: Omit<Open, 'fault'>, openMs: number, all: readonly Open[]): void {
  setGauges(telemetry, all);
  telemetry.info(circuitMessages[level].closed, { ...fieldsOf(level, name), openMs: Math.round(openMs) });
}

/** A bucket that waits for its index and for S3 counts once in `tally_parked_buckets`. */
function setGauges(telemetry: Telemetry, all: readonly Open[]): void {
  telemetry.setCounts(
    'tally_circuit_open',
    all.flatMap(({ level }) => circuitLabels[level]),
  );
  telemetry.set(
    'tally_parked_buckets',
    new Set(all.filter(({ level }) => level === 'index' || level === 'bucket').map(({ name }) => name)).size,
  );
  telemetry.setCounts(
    'tally_paused',
    all.filter(({ level }) => level === 'cluster').map(({ fault }) => ({ fault: fault.code })),
  );
}

function fieldsOf(level: CircuitLevel, name: string): { readonly bucket?: string; readonly region?: string } {
  if (level === 'cluster') return {};
  return level === 'endpoint' ? { region: name } : { bucket: name };
}
