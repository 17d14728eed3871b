/** Readiness: whether this process can perform its roles now, check by check. Each read runs the checks. */
import { type Fault, faults } from '../base/fault.ts';
import type { Clock } from '../process/clock.ts';

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

/** Creates the memory of a check that looks at something repeatedly, and has not looked yet. `at` names the thing for people. */
export function createLastLook(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>, at: string) {
  let last: { readonly nowMs: number; readonly monotonicMs: number } | undefined;
  return {
    /** Notes that a look has just succeeded. */
    looked: (): void => {
      last = { nowMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
    },
    /** Returns the check's answer while the last look is too old, or there was none; undefined while it counts. */
    unknown: (): ReadinessCheck | undefined => {
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

// ── why requests of one kind are failing ────────────────────────────────────────────────────────────────────────────

/** After this long without an attempt, a failure says nothing about the present. A failed message is hidden for at most a quarter of an hour. */
const FORGOTTEN_MS = 1_200_000;

/** Creates the memory, in which nothing has failed yet. `of`: the requests' target, because one queue may fail while another works. */
export function createLastFailure(clock: Pick<Clock, 'monotonicMs'>) {
  /** By target. There are as many as there are queues. */
  const last = new Map<string, { readonly fault: Fault; readonly atMs: number; readonly firstMs: number }>();
  return {
    succeeded: (of: string): void => void last.delete(of),
    failed: (of: string, { code, reason }: Fault): void => {
      const atMs = clock.monotonicMs();
      last.set(of, { fault: { code, reason }, atMs, firstMs: last.get(of)?.firstMs ?? atMs });
    },
    /** Why the last request to this target, or to any, failed; undefined if it succeeded, or nothing was tried for twenty minutes. */
    current: (of?: string): Fault | undefined => {
      for (const [each, { atMs }] of last) if (clock.monotonicMs() - atMs >= FORGOTTEN_MS) last.delete(each);
      const [first] = last.values();
      return (of === undefined ? first : last.get(of))?.fault;
    },
    /** For how long requests to this target have been failing; 0 if they are not. */
    forMs: (of: string): number => clock.monotonicMs() - (last.get(of)?.firstMs ?? clock.monotonicMs()),
  };
}
