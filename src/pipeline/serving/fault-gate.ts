/**
 * The gate that shared faults close: while it is closed nothing is received, and what is in hand waits here instead of
 * spending receive counts.
 *
 *            trip(fault)                       probe answers
 *   open ───────────────────► closed (said once) ───────────────► open (said once)
 *                               │  ▲
 *                               └──┘ probe every 5 s
 */
import type { Fault, FaultCode } from '../../domain/fault.ts';
import { faultOf, scopeOf } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** Often enough to go on soon after an outage, seldom enough to be no load on what is recovering. */
const PROBE_INTERVAL_MS = 5_000;

/** Asks the dependency that failed; throws the fault it answers with. A fault of narrower scope than `shared` is an answer: the dependency is there. */
export type Probe = (signal: AbortSignal) => Promise<void>;

export interface FaultGate {
  /** Closes the gate for this dependency until its probe answers. Further faults of a dependency that is already closed change nothing. */
  trip(dependency: string, fault: Fault, probe: Probe): void;
  /** Resolves at once when open, else when it opens; rejects with the signal's reason. */
  passed(signal: AbortSignal): Promise<void>;
  readonly isOpen: boolean;
  /** The faults that keep it closed now, by dependency. */
  closedBy(): ReadonlyMap<string, Fault>;
}

interface GateDependencies {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Aborted when the process stops: probes end. */
  readonly stopped: AbortSignal;
}

/** Creates an open gate. */
export function createFaultGate({ clock, telemetry, stopped }: GateDependencies): FaultGate {
  const closed = new Map<string, Fault>();
  let waiters: (() => void)[] = [];

  async function probeUntilOpen(dependency: string, probe: Probe): Promise<void> {
    const sinceMs = clock.monotonicMs();
    const first: FaultCode = closed.get(dependency)?.code ?? 'internal.unexpected';
    while (!(await answers(dependency, probe)));
    closed.delete(dependency);
    telemetry.resumed(first, clock.monotonicMs() - sinceMs);
    if (closed.size > 0) return;
    const released = waiters;
    waiters = [];
    for (const release of released) release();
  }

  async function answers(dependency: string, probe: Probe): Promise<boolean> {
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
      // nobody probes any more: whoever waits here gives back by the stop's own signal
      if (stopped.aborted) return;
      telemetry.paused(fault.code, fault.reason);
      probeUntilOpen(dependency, probe).catch((error: unknown) => {
        // the only way out is the process's stop; anything else must be seen
        if (!stopped.aborted) telemetry.warn('the probe of a fault ended', { dependency, error: faultOf(error).reason });
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
