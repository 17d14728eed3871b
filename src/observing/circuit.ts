/**
 * One circuit: what does not answer now, and who may try it.
 *
 *             opening rule                    time over, or a new key          succeeded                 64 permits, or nothing waits
 *   closed ───────────────► open (no permit) ────────────────────────► trial ───────────► 2, 4, 8 … permits ────────────► closed
 *                             ▲                        failed: twice the time │                 │ half or more failed
 *                             └───────────────────────────────────────────────┴─────────────────┘
 *
 * A trial is a record's own attempt. Where nothing waits and nothing arrives, nothing is tried.
 */
import type { Fault } from '../base/fault.ts';
import type { Clock } from '../process/clock.ts';

/** Soon enough that a short outage costs little. */
const TRIAL_MIN_MS = 5_000;
/** A recovery is seen within a minute, and one request a minute is no load on what recovers. */
const TRIAL_MAX_MS = 60_000;
/** A prefix may be denied or slow while the rest of its bucket is served: one new key a second finds that out, and is no load. */
const NEW_KEY_MS = 1_000;
/** Opening again within this time is the same outage. */
const SAME_OUTAGE_MS = 60_000;
/** More permits than one process has for requests: nothing is held back any more. */
const PERMITS_MAX = 64;

/** What a circuit stands for: the index store, one index in it, S3 in one region, one bucket there, or the requests that enrich its documents. */
export type CircuitLevel = 'cluster' | 'index' | 'endpoint' | 'bucket' | 'enrichment';

export interface Circuit {
  /** The latest fault while the circuit is open; undefined while it is closed. */
  readonly fault: Fault | undefined;
  /** When it opened, by this machine's clock. */
  readonly sinceMs: number;
  /** When the next trial is due, by the monotonic clock. */
  readonly trialAtMs: number;
  /** When the next new key may try, by the monotonic clock. */
  readonly newKeyAtMs: number;
  /** Until when it was tried, or is going to be, or was seen to fail, by the monotonic clock. */
  readonly freshAtMs: number;
  /** Opens the circuit. Returns whether it was closed. */
  open(fault: Fault): boolean;
  /** Whether an attempt may begin. If so, it has a permit until it gives it back. `isNewKey`: no attempt for this key failed since the circuit opened. */
  take(isNewKey: boolean): boolean;
  giveBack(): void;
  /**
   * The same for an attempt that waits for an open inner circuit as well, which explains its failure. One may run at a time, as long
   * as it likes: it neither takes nor puts off a trial.
   */
  takeExplained(): boolean;
  giveBackExplained(): void;
  /** Failures that inner circuits explain still show that it fails. */
  stillFails(): void;
  /** Returns whether this closed the circuit. */
  succeeded(): boolean;
  /** A request failed that was sent at this moment of the monotonic clock. */
  failed(fault: Fault, sentAtMs: number): void;
  /** Closes the circuit if attempts succeed and none runs. Returns whether it did. */
  closeIfIdle(): boolean;
}

/** Creates a closed circuit. */
export function createCircuit(clock: Pick<Clock, 'monotonicMs' | 'nowMs'>): Circuit {
  let fault: Fault | undefined;
  let sinceMs = 0;
  let openedAtMs = 0;
  let closedAtMs = -Infinity;
  let intervalMs = TRIAL_MIN_MS;
  let trialAtMs = 0;
  /** When a new key may try without waiting for the trial, by the monotonic clock. */
  let newKeyAtMs = 0;
  /** Whether the running trial is such a key's. Its failure says little: the bucket may serve other keys. */
  let isEarlyTrial = false;
  /** When the latest trial began, by the monotonic clock; Infinity before the first, and once its failure was counted. */
  let trialBeganAtMs = Infinity;
  /** 0: no attempt has succeeded yet. */
  let permits = 0;
  let running = 0;
  let explainedRunning = 0;
  let seenFailingAtMs = -Infinity;
  let succeededCount = 0;
  let failedCount = 0;

  function reopen(next: Fault): void {
    fault = next;
    openedAtMs = clock.monotonicMs();
    trialAtMs = openedAtMs + intervalMs;
    newKeyAtMs = openedAtMs;
    trialBeganAtMs = Infinity;
    permits = 0;
    succeededCount = 0;
    failedCount = 0;
  }

  /**
   * One failure of each trial counts: its items may fail one by one, and so may what began before the circuit opened and was
   * sent later. Each of them would double the time to the next trial.
   */
  function trialFailed(next: Fault, sentAtMs: number): void {
    fault = next;
    if (sentAtMs < trialBeganAtMs) return;
    trialBeganAtMs = Infinity;
    failedCount += 1;
    if (isEarlyTrial) return;
    intervalMs = Math.min(TRIAL_MAX_MS, intervalMs * 2);
    trialAtMs = clock.monotonicMs() + intervalMs;
  }

  function close(): true {
    fault = undefined;
    closedAtMs = clock.monotonicMs();
    return true;
  }

  return {
    get fault() {
      return fault;
    },
    get sinceMs() {
      return sinceMs;
    },
    get trialAtMs() {
      return trialAtMs;
    },
    get newKeyAtMs() {
      return newKeyAtMs;
    },
    get freshAtMs() {
      return Math.max(trialAtMs, seenFailingAtMs);
    },
    open(next) {
      if (fault !== undefined) return false;
      const isSameOutage = clock.monotonicMs() - closedAtMs < SAME_OUTAGE_MS;
      if (!isSameOutage) sinceMs = clock.nowMs();
      if (!isSameOutage || succeededCount > failedCount) intervalMs = TRIAL_MIN_MS;
      reopen(next);
      return true;
    },
    take(isNewKey) {
      const nowMs = clock.monotonicMs();
      const isTrialDue = nowMs >= trialAtMs || (isNewKey && nowMs >= newKeyAtMs);
      const isFree = permits > 0 ? running < permits : running === 0 && isTrialDue;
      if (!isFree) return false;
      if (isNewKey) newKeyAtMs = nowMs + NEW_KEY_MS;
      if (permits === 0) {
        trialBeganAtMs = nowMs;
        isEarlyTrial = nowMs < trialAtMs;
      }
      running += 1;
      return true;
    },
    giveBack() {
      running -= 1;
    },
    takeExplained() {
      if (explainedRunning > 0) return false;
      explainedRunning += 1;
      return true;
    },
    giveBackExplained() {
      explainedRunning -= 1;
    },
    stillFails() {
      seenFailingAtMs = clock.monotonicMs();
    },
    succeeded() {
      succeededCount += 1;
      if (fault === undefined) return false;
      // the trials of a long outage say nothing about the recovery: one failure among its first attempts must not end it
      if (permits === 0) failedCount = 0;
      permits = Math.max(2, permits * 2);
      return permits >= PERMITS_MAX && close();
    },
    failed(next, sentAtMs) {
      // what was sent before the circuit opened is the same failure once more
      if (fault !== undefined && sentAtMs <= openedAtMs) return;
      if (fault !== undefined && permits === 0) return trialFailed(next, sentAtMs);
      failedCount += 1;
      if (fault !== undefined && failedCount >= succeededCount) reopen(next);
    },
    closeIfIdle: () => fault !== undefined && permits > 0 && running === 0 && close(),
  };
}
