/** Decides when messages are received: not during back-pressure or an outage, and not while no bucket is connected. */
import { faultOf } from '../base/fault.ts';
import type { Circuits } from '../observing/circuits.ts';
import type { HeldSet } from './held-set.ts';
import type { WithPorts } from '../store/store.ts';
import type { LabelsOf } from '../process/telemetry.ts';
import type { QueueWatch } from '../observing/queue-watch.ts';

/** How soon a condition that holds receiving back is checked again. */
const CHECK_AGAIN_MS = 200;
/** How long Tally relies on having read that some bucket is connected, or none; the store is read at most this often. */
const BUCKETS_AGE_MAX_MS = 5_000;

export type ReceivingState = LabelsOf<'tally_receiving'>['state'];

export interface Admission {
  /** Resolves when a receive may begin; rejects with the signal's reason. */
  admit(signal: AbortSignal): Promise<void>;
  /** Why the last receive was held back, or failed; `on` if neither. */
  readonly state: ReceivingState;
  /** For how long receives have been held back; 0 if they are not. */
  readonly heldBackMs: () => number;
}

interface AdmissionDependencies extends WithPorts<'state' | 'clock' | 'telemetry'> {
  readonly circuits: Pick<Circuits, 'openOf' | 'clusterFailed'>;
  readonly held: HeldSet;
  readonly queueWatch: QueueWatch;
  readonly inFlightMax: number;
  /** Whether the last receive of a queue failed. */
  readonly isFailing: () => boolean;
}

/** Creates the admission. */
export function createAdmission(dependencies: AdmissionDependencies): Admission {
  const { circuits, held, queueWatch, state: store, clock, telemetry, inFlightMax, isFailing } = dependencies;
  /** Undefined until the first receive, so that the first state is always reported. */
  let state: ReceivingState | undefined;
  let buckets: { readonly any: boolean; readonly atMs: number } | undefined;
  let reading: Promise<boolean> | undefined;
  /** The store could not say whether a bucket is connected. */
  let isUnknown = false;
  /** Since when receives are held back, by the monotonic clock. */
  let heldBackSinceMs: number | undefined;

  /** Only the index store as a whole holds receiving back: whatever else fails, other buckets' messages must be received. */
  function isPaused(): boolean {
    return circuits.openOf(['cluster']) !== undefined;
  }

  async function decide(): Promise<ReceivingState> {
    if (isPaused()) return 'paused';
    if (held.isFull) return 'held-full';
    if (queueWatch.inFlight > inFlightMax) return 'in-flight-cap';
    if (!(await anyBucket())) return isPaused() || isUnknown ? 'paused' : 'no-bucket';
    // the store may have failed while this poller waited
    return isPaused() ? 'paused' : 'on';
  }

  /** Whether any bucket is connected. Without one nothing is received, so that a mistyped index prefix can't drain the queue. */
  async function anyBucket(): Promise<boolean> {
    if (buckets !== undefined && clock.monotonicMs() - buckets.atMs < BUCKETS_AGE_MAX_MS) return buckets.any;
    reading ??= readAny().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  async function readAny(): Promise<boolean> {
    try {
      const any = (await store.list('bucket', { limit: 1 })).length > 0;
      buckets = { any, atMs: clock.monotonicMs() };
      isUnknown = false;
      return any;
    } catch (error) {
      circuits.clusterFailed(faultOf(error));
      isUnknown = true;
      return false;
    }
  }

  function report(next: ReceivingState): void {
    if (next === state) return;
    state = next;
    telemetry.setCounts('tally_receiving', [{ state }]);
    telemetry.info('the state of receiving changed', { state });
  }

  return {
    async admit(signal) {
      for (;;) {
        signal.throwIfAborted();
        const decided = await decide();
        report(decided === 'on' && isFailing() ? 'failing' : decided);
        heldBackSinceMs = decided === 'on' ? undefined : (heldBackSinceMs ?? clock.monotonicMs());
        if (decided === 'on') return;
        await clock.sleep(CHECK_AGAIN_MS, signal);
      }
    },
    get state() {
      return state ?? 'on';
    },
    heldBackMs: () => (heldBackSinceMs === undefined ? 0 : clock.monotonicMs() - heldBackSinceMs),
  };
}
