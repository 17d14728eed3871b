/**
 * The gate that a shared fault closes. While it is closed nothing is received, and messages in hand wait here, so that they
 * do not use up their permitted receives.
 *
 *            trip(fault)                           probe succeeds
 *   open ───────────────────► closed (reported once) ───────────────► open (reported once)
 *                               │  ▲
 *                               └──┘ a probe every 5 s
 */
import type { Fault, FaultCode } from '../../domain/fault.ts';
import { faultOf, scopeOf } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** Often enough to continue soon after an outage, and seldom enough to put no load on a dependency that recovers. */
const PROBE_INTERVAL_MS = 5_000;

/** Sends a request to the dependency that failed; throws its fault. A fault whose scope is not `shared` shows that the dependency works. */
export type Probe = (signal: AbortSignal) => Promise<void>;

export interface FaultGate {
  /** Closes the gate for this dependency until its probe succeeds. Does nothing if it is closed for this dependency already. */
  trip(dependency: string, fault: Fault, probe: Probe): void;
  /** Resolves when the gate is open; rejects with the signal's reason. */
  passed(signal: AbortSignal): Promise<void>;
  readonly isOpen: boolean;
  /** The faults that keep the gate closed now, by dependency. */
  closedBy(): ReadonlyMap<string, Fault>;
}

interface GateDependencies {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Aborted when the process stops; the probes end then. */
  readonly stopped: AbortSignal;
}

/** Creates an open gate. */
export function createFaultGate({ clock, telemetry, stopped }: GateDependencies): FaultGate {
  const closed = new Map<string, Fault>();
  let waiters: (() => void)[] = [];

  async function probeUntilOpen(dependency: string, probe: Probe): Promise<void> {
    const sinceMs = clock.monotonicMs();
    const first: FaultCode = closed.get(dependency)?.code ?? 'internal.unexpected';
    while (!(await hasRecovered(dependency, probe)));
    closed.delete(dependency);
    telemetry.resumed(first, clock.monotonicMs() - sinceMs);
    if (closed.size > 0) return;
    const released = waiters;
    waiters = [];
    for (const release of released) release();
  }

  async function hasRecovered(dependency: string, probe: Probe): Promise<boolean> {
    await clock.sleep(PROBE_INTERVAL_MS, stopped);
    try {
      await probe(stopped);
      return true;
    } catch (error) {
      stopped.throwIfAborted();
      const fault = faultOf(error);
      if (scopeOf(fault.code) !== 'shared') return true;
      closed.set(dependency, fault);
      return false;
    }
  }

  return {
    trip(dependency, fault, probe) {
      if (closed.has(dependency)) return;
      closed.set(dependency, fault);
      // there are no more probes; messages that wait here end by the signal of the stop
      if (stopped.aborted) return;
      telemetry.paused(fault.code, fault.reason);
      probeUntilOpen(dependency, probe).catch((error: unknown) => {
        // only the stop of the process ends the probes; every other end must be reported
        if (!stopped.aborted)
          telemetry.warn('the probes of a failed dependency ended unexpectedly', { dependency, error: faultOf(error).reason });
      });
    },
    async passed(signal) {
      signal.throwIfAborted();
      if (closed.size === 0) return;
      await new Promise<void>((resolve, reject) => {
        const abandon = (): void => {
          waiters = waiters.filter((waiter) => waiter !== release);
          reject(signal.reason);
        };
        const release = (): void => {
          signal.removeEventListener('abort', abandon);
          resolve();
        };
        signal.addEventListener('abort', abandon, { once: true });
        waiters.push(release);
      });
    },
    get isOpen() {
      return closed.size === 0;
    },
    closedBy: () => closed,
  };
}
