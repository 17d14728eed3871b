/**
 * Readiness: whether this process can perform its roles now, check by check. Each read runs the checks. Below are two checks that
 * remember something: work that no worker claims, and what the role http needs of the index store.
 */
import { type Fault, circuitOf, faultOf, faults } from '../base/fault.ts';
import { isDue, type JobRecord } from '../records/job.ts';
import type { Clock } from '../process/clock.ts';
import type { AuditStore, ObjectIndex, WithPorts } from '../store/store.ts';

export type RoleName = 'ingest' | 'reindex' | 'http';

export interface ReadinessCheck {
  /** `unknown`: the check's subject could not be looked at. */
  readonly status: 'ok' | 'failed' | 'warning' | 'unknown';
  readonly code?: string;
  /** What happened, to which thing. */
  readonly detail?: string;
  /** What to do about it. */
  readonly advice?: string;
}

export interface ReadinessReport {
  readonly ready: boolean;
  readonly roles: Readonly<Partial<Record<RoleName, { readonly ready: boolean }>>>;
  readonly checks: Readonly<Record<string, ReadinessCheck>>;
}

export interface Readiness {
  read(): ReadinessReport;
}

/** A check, and the roles that cannot work while it fails. */
export interface CheckSource {
  readonly name: string;
  readonly neededBy: readonly RoleName[];
  readonly check: () => ReadinessCheck;
}

export const OK: ReadinessCheck = { status: 'ok' };

/** Returns the check of a part that has this fault, or none. */
export function checkOfFault(fault: Fault | undefined): ReadinessCheck {
  return fault === undefined ? OK : { status: 'failed', code: fault.code, detail: fault.reason, advice: faults[fault.code].advice };
}

/** The check of something not looked at since this time, or ever (undefined). */
export function unknownSince(sinceMs: number | undefined, reason: string): ReadinessCheck {
  const since = sinceMs === undefined ? 'not known yet' : `not known since ${new Date(sinceMs).toISOString()}`;
  return { status: 'unknown', detail: `${since}: ${reason}` };
}

/** Looks are half a minute apart, and a look may wait for several answers that take up to 15 s each. */
const LOOK_AGE_MAX_MS = 120_000;

export interface LastLook {
  /** Notes that a look has just succeeded. */
  readonly looked: () => void;
  /** Returns the check's answer while the last look is too old, or there was none; undefined while it counts. */
  readonly unknown: () => ReadinessCheck | undefined;
}

/** Creates the memory of a check that looks at something repeatedly, and has not looked yet. `at` names the thing for people. */
export function createLastLook(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>, at: string): LastLook {
  let last: { readonly nowMs: number; readonly monotonicMs: number } | undefined;
  return {
    looked() {
      last = { nowMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
    },
    unknown() {
      if (last !== undefined && clock.monotonicMs() - last.monotonicMs <= LOOK_AGE_MAX_MS) return undefined;
      return unknownSince(last?.nowMs, `this process has not looked at ${at}; the log says why, if that fails`);
    },
  };
}

/** Creates the readiness of a process with these roles. */
export function createReadiness(roles: readonly RoleName[], sources: readonly CheckSource[]): Readiness {
  return {
    read() {
      const results = sources.map((source) => ({ ...source, result: source.check() }));
      const isReady = (role: RoleName): boolean =>
        results.every(({ neededBy, result }) => result.status !== 'failed' || !neededBy.includes(role));
      return {
        ready: roles.every(isReady),
        roles: Object.fromEntries(roles.map((role) => [role, { ready: isReady(role) }])),
        checks: Object.fromEntries(results.map(({ name, result }) => [name, result])),
      };
    },
  };
}

// ── work that no worker claims ─────────────────────────────────────────────────────────────────────────────────────

/** Due work is claimed within seconds; within a minute after a fault of the store, and within two after its worker died. */
const UNCLAIMED_MS = 180_000;

export interface UnclaimedJobs {
  /** Notes the jobs and schedules that are stored now. */
  see(jobs: readonly Pick<JobRecord, 'id' | 'dueAtMs'>[]): void;
  readonly check: () => ReadinessCheck;
}

/**
 * Creates the check; nothing has been seen yet. The process that stored the work may have another clock, so what counts is for how
 * long this process has seen the work due at an unchanged time. Each claim changes that time.
 */
export function createUnclaimedJobs(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>): UnclaimedJobs {
  const look = createLastLook(clock, 'the stored jobs');
  let isUnclaimed = false;
  /** When due work was first seen, by this process's monotonic clock. There are as many entries as open jobs. */
  let seen: ReadonlyMap<string, number> = new Map();
  return {
    see(jobs) {
      const atMs = clock.monotonicMs();
      const due = jobs.filter((job) => isDue(job, clock.nowMs())).map(({ id, dueAtMs }) => `${id} ${dueAtMs}`);
      seen = new Map(due.map((job) => [job, seen.get(job) ?? atMs]));
      isUnclaimed = due.some((job) => atMs - (seen.get(job) ?? atMs) > UNCLAIMED_MS);
      look.looked();
    },
    check: () => look.unknown() ?? (isUnclaimed ? UNCLAIMED : OK),
  };
}

const UNCLAIMED: ReadinessCheck = {
  status: 'warning',
  code: 'no-worker',
  detail: 'no worker has taken the due work of the role reindex: jobs wait, gaps stay open, and connections are not checked',
  advice: 'Check that a process with the role reindex (TALLY_ROLES) is running, and check its /readyz.',
};

/**
 * Whether the role http can do what its requests need of the index store: search objects, and store audit records. The store's probe
 * shows neither, because an OpenSearch role may lack only one of these rights, and a single index may be blocked.
 */

interface AccessDependencies extends WithPorts<'clock' | 'telemetry'> {
  readonly objects: Pick<ObjectIndex, 'count'>;
  readonly audit: Pick<AuditStore, 'probe'>;
}

export interface StoreAccess {
  /** Tries both; call it repeatedly. Throws the fault of a store that does not answer, which says nothing about rights. */
  readonly look: (signal: AbortSignal) => Promise<void>;
  readonly checks: readonly CheckSource[];
}

/** No object has this key, so that each shard answers at once. */
const NO_OBJECT = { key: '' };

/** The text names no bucket, because anyone who reaches the health listener can read it; the log does. */
const ONE_INDEX_FAILS = "one bucket's index cannot be searched, so searches of all buckets fail; searches of other buckets work";

export function createStoreAccess({ objects, audit, clock, telemetry }: AccessDependencies): StoreAccess {
  const lastLook = createLastLook(clock, 'what searches and acts need of the index store');
  let searching: Fault | undefined;
  let recording: Fault | undefined;

  async function refusal(operation: string, request: Promise<unknown>, signal: AbortSignal): Promise<Fault | undefined> {
    try {
      await request;
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const fault = faultOf(error);
      if (fault.code === 'index.unreachable' || fault.code === 'index.overloaded') throw error;
      telemetry.requestFailed(operation, error);
      return fault;
    }
  }

  return {
    async look(signal) {
      searching = await refusal('search all buckets', objects.count(NO_OBJECT, 0, signal), signal);
      recording = await refusal('store an audit record', audit.probe(clock.nowMs(), signal), signal);
      lastLook.looked();
    },
    checks: [
      {
        name: 'search',
        neededBy: ['http'],
        check() {
          const check = lastLook.unknown() ?? checkOfFault(searching);
          const isOfOne = check.status === 'failed' && searching !== undefined && circuitOf(searching.code) === 'index';
          return isOfOne ? { ...check, status: 'warning', detail: ONE_INDEX_FAILS } : check;
        },
      },
      { name: 'audit', neededBy: ['http'], check: () => lastLook.unknown() ?? checkOfFault(recording) },
    ],
  };
}
