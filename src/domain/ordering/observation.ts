/** What one look at a key (HEAD or LIST) is worth: rules 4, 7 and 11. */
import { clockOfMs } from './clock.ts';
import { MARGIN_MS, SETTLE_MS, SETTLE_SLACK_MS } from './constants.ts';
import type { ObserveHint, ResolveHint } from './hint.ts';

export type Verdict =
  /** Final once the write was attempted, accepted or refused. */
  | { readonly final: true }
  /** To be looked at again after `dueInS` seconds. */
  | { readonly final: false; readonly dueInS: number };

export interface ObservedWrite {
  readonly clock: number;
  /** Whether every verdict is final: a document with a settle to come says so, should its message be lost. */
  readonly settled: boolean;
  readonly equalClock: 'accept' | 'refuse';
  /** Which hint the clock is from, for the document's event. */
  readonly leader: number;
  /** One verdict a hint, in order. */
  readonly verdicts: readonly Verdict[];
}

interface Wish {
  readonly clock: number;
  readonly equalClock: 'accept' | 'refuse';
  readonly verdict: Verdict;
}

/**
 * Plans the one write for the hints of a key that were in hand together when the look began: at the highest of the
 * clocks they ask for, each keeping its own settle condition. `observedAtMs` is D: the answer's Date minus the measured
 * duration of the request, so never this machine's clock.
 */
export function planObservedWrite(hints: readonly (ResolveHint | ObserveHint)[], observedAtMs: number): ObservedWrite {
  const wishes = hints.map((hint) => wishOf(hint, observedAtMs));
  const leader = wishes.reduce((best, wish, index) => ((wishes[best]?.clock ?? -1) < wish.clock ? index : best), 0);
  const { clock, equalClock } = wishes[leader] ?? { clock: 0, equalClock: 'accept' };
  const verdicts = wishes.map((wish) => wish.verdict);
  return { clock, settled: verdicts.every((verdict) => verdict.final), equalClock, leader, verdicts };
}

function wishOf(hint: ResolveHint | ObserveHint, observedAtMs: number): Wish {
  if (hint.kind === 'resolve') return { clock: hint.clock, equalClock: 'refuse', verdict: { final: true } };
  const isSettled = observedAtMs - MARGIN_MS >= hint.settleFromMs + SETTLE_MS;
  if (isSettled) return { clock: clockOfMs(observedAtMs - MARGIN_MS), equalClock: 'accept', verdict: { final: true } };
  return { clock: hint.clock, equalClock: 'accept', verdict: { final: false, dueInS: dueInS(hint, observedAtMs) } };
}

/** When a look will be settled: ceil(T + M + S + 3 s − D), at least 3 s, all by S3's clock (rule 4). */
function dueInS(hint: ObserveHint, observedAtMs: number): number {
  const dueMs = hint.settleFromMs + MARGIN_MS + SETTLE_MS + SETTLE_SLACK_MS - observedAtMs;
  return Math.max(SETTLE_SLACK_MS / 1_000, Math.ceil(dueMs / 1_000));
}
