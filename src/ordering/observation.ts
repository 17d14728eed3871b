/** How one observation of a key (by HEAD or LIST) is written: rules 4, 7 and 11. */
import { clockOfMs } from './document.ts';
import { FUTURE_MS, MARGIN_MS, SETTLE_MS, SETTLE_SLACK_MS } from './constants.ts';
import type { ObserveHint, ResolveHint } from './hint.ts';

export type Verdict =
  /** The hint needs no further observation once the write was attempted, whether the store accepted or refused it. */
  | { readonly final: true }
  /** The key must be observed again after `dueInS` seconds. */
  | { readonly final: false; readonly dueInS: number };

export interface ObservedWrite {
  readonly clock: number;
  /** Whether every verdict is final. Otherwise the document is marked as unsettled, so that a sweep settles it if its message is lost. */
  readonly settled: boolean;
  readonly equalClock: 'accept' | 'refuse';
  /** The index of the hint whose clock is used; the document names that hint's event. */
  readonly leader: number;
  /** One verdict per hint, in the order of the hints. */
  readonly verdicts: readonly Verdict[];
}

/**
 * Plans the single write for all hints of a key that were in hand when the observation began. The write uses the highest of
 * their clocks; each hint keeps its own settle condition. `observedAtMs` is D: the answer's Date header minus the measured
 * duration of the request, never a time by this machine's clock.
 */
export function planObservedWrite(hints: readonly (ResolveHint | ObserveHint)[], observedAtMs: number): ObservedWrite {
  const wanted = hints.map((hint) => wantedWriteOf(hint, observedAtMs));
  const leader = wanted.reduce((best, write, index) => ((wanted[best]?.clock ?? -1) < write.clock ? index : best), 0);
  const { clock, equalClock } = wanted[leader] ?? { clock: 0, equalClock: 'accept' };
  const verdicts = wanted.map((write) => write.verdict);
  return { clock, settled: verdicts.every((verdict) => verdict.final), equalClock, leader, verdicts };
}

function wantedWriteOf(
  said: ResolveHint | ObserveHint,
  observedAtMs: number,
): { readonly clock: number; readonly equalClock: 'accept' | 'refuse'; readonly verdict: Verdict } {
  if (said.kind === 'resolve') return { clock: said.clock, equalClock: 'refuse', verdict: { final: true } };
  const hint = confirmed(said, observedAtMs);
  const isSettled = observedAtMs - MARGIN_MS >= hint.settleFromMs + SETTLE_MS;
  if (isSettled) return { clock: clockOfMs(observedAtMs - MARGIN_MS), equalClock: 'accept', verdict: { final: true } };
  return { clock: hint.clock, equalClock: 'accept', verdict: { final: false, dueInS: dueInS(hint, observedAtMs) } };
}

/**
 * The hint of an event from the future, once S3's own clock confirms its time. That clock is then ahead of SQS's; by T, which is SQS's
 * time, the event would seem long over at D, and would be settled at once.
 */
function confirmed(hint: ObserveHint, observedAtMs: number): ObserveHint {
  const { futureMs, settleFromMs } = hint;
  if (futureMs === undefined || futureMs > observedAtMs + FUTURE_MS) return hint;
  return { kind: 'observe', clock: clockOfMs(futureMs), settleFromMs: Math.max(futureMs, settleFromMs) };
}

/** In how many seconds the key is to be observed again: ceil(T + M + S + E − D), at least E, all by S3's clock (rule 4). */
function dueInS(hint: ObserveHint, observedAtMs: number): number {
  const dueMs = hint.settleFromMs + MARGIN_MS + SETTLE_MS + SETTLE_SLACK_MS - observedAtMs;
  return Math.max(SETTLE_SLACK_MS / 1_000, Math.ceil(dueMs / 1_000));
}
