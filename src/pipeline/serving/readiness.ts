/** Readiness: whether this process can perform its roles now, check by check. Each read runs the checks, so it follows their state. */
import { adviceWhileServing, type Fault } from '../../domain/fault.ts';

export type RoleName = 'ingest' | 'reindex' | 'http';

export interface ReadinessCheck {
  readonly status: 'ok' | 'failed' | 'warning';
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

/** Returns the check of a part with its present fault, if there is one. */
export function checkOfFault(fault: Fault | undefined): ReadinessCheck {
  return fault === undefined ? OK : { status: 'failed', code: fault.code, detail: fault.reason, advice: adviceWhileServing(fault.code) };
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
