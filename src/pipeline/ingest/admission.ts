/** When to receive: back-pressure, outages and the question whether there is any bucket at all. */
import { faultOf } from '../../domain/fault.ts';
import type { FaultGate, Probe } from '../serving/fault-gate.ts';
import type { HeldSet } from './in-hand.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { QueueWatch } from '../queues/watch.ts';

/** How soon a condition that holds receiving back is looked at again. */
const LOOK_AGAIN_MS = 200;
/** How long an answer to "is any bucket connected" is believed; the store is asked at most this often. */
const BUCKETS_AGE_MAX_MS = 5_000;

export type ReceivingState = Parameters<Telemetry['receiving']>[0];

export interface Admission {
  /** Resolves when a receive may begin; rejects with the signal's reason. */
  admit(signal: AbortSignal): Promise<void>;
  /** What held the last receive back, or `on`. */
  readonly state: ReceivingState;
}

interface AdmissionDependencies {
  readonly gate: FaultGate;
  readonly held: HeldSet;
  readonly queueWatch: QueueWatch;
  readonly store: StateStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly probeIndex: Probe;
  readonly inFlightMax: number;
  readonly autoConnects: boolean;
}

/** Creates the admission. */
export function createAdmission(dependencies: AdmissionDependencies): Admission {
  const { gate, held, queueWatch, store, clock, telemetry, probeIndex, inFlightMax, autoConnects } = dependencies;
  /** Undefined until the first receive is asked for: then whatever it is, is told. */
  let state: ReceivingState | undefined;
  let buckets: { readonly any: boolean; readonly atMs: number } | undefined;
  let asking: Promise<boolean> | undefined;

  async function decide(): Promise<ReceivingState> {
    if (!gate.isOpen) return 'paused';
    if (held.isFull) return 'held-full';
    if (queueWatch.inFlight > inFlightMax) return 'in-flight-cap';
    if (!(await anyBucket())) return gate.isOpen ? 'no-bucket' : 'paused';
    return 'on';
  }

  /** With no bucket connected nothing is received: a mistyped prefix must not drain a queue. */
  async function anyBucket(): Promise<boolean> {
    if (autoConnects) return true;
    if (buckets !== undefined && clock.monotonicMs() - buckets.atMs < BUCKETS_AGE_MAX_MS) return buckets.any;
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    return asking;
  }

  async function ask(): Promise<boolean> {
    try {
      const any = (await store.list('bucket', { limit: 1 })).length > 0;
      buckets = { any, atMs: clock.monotonicMs() };
      return any;
    } catch (error) {
      gate.trip('index', faultOf(error), probeIndex);
      return false;
    }
  }

  function tell(next: ReceivingState): void {
    if (next !== state) telemetry.receiving(next);
    state = next;
  }

  return {
    async admit(signal) {
      for (;;) {
        signal.throwIfAborted();
        tell(await decide());
        if (state === 'on') return;
        await clock.sleep(LOOK_AGAIN_MS, signal);
      }
    },
    get state() {
      return state ?? 'on';
    },
  };
}
