/** The rules that a history is played by: the product's own, of which a mutant replaces one. */
import { ANSWER_LIFE_MS } from '../../../src/ordering/constants.ts';
import { hintOf, type ObserveHint, type ResolveHint } from '../../../src/ordering/hint.ts';
import { planObservedWrite, type ObservedWrite } from '../../../src/ordering/observation.ts';

export interface Rules {
  readonly hintOf: typeof hintOf;
  readonly plan: (hints: readonly (ResolveHint | ObserveHint)[], observedAtMs: number) => ObservedWrite;
  /** Rule 9: the longest time between an answer and its write. */
  readonly answerLifeMs: number;
  /** Rule 2, second half: a refused provisional write is still to be settled. */
  readonly refusedProvisionalStays: boolean;
  /** Rule 8: late exact events at or below the floor resolve. */
  readonly floor: boolean;
  /** Rule 11: a hint never joins an observation whose HEAD was sent already. */
  readonly joinsBeforeHead: boolean;
  /** Rule 12. */
  readonly ties: boolean;
  /** Rule 1: a purge deletes a tombstone only if it is still stored with its clock. */
  readonly purgesByClock: boolean;
  /** What waits for an outage to end holds no answer and no decision. */
  readonly waitsWithoutAnswer: boolean;
  /** The moment up to which a worker writes a gap ahead when it acknowledges a record under it. */
  readonly handedOverUpToMs: (nowMs: number, momentMs: number) => number;
  /** Whether a record of this moment may be acknowledged by a worker that has stored the gap up to `storedMs`. */
  readonly mayHandOver: (storedMs: number, momentMs: number) => boolean;
}

/** How far ahead of the record a gap is written, so that one write serves the records of the next seconds too. */
const HANDOVER_AHEAD_MS = 10_000;
/** By how much the stored gap must reach beyond a record: times of queues and events are cut to milliseconds or seconds. */
const HANDOVER_MARGIN_MS = 1_000;

export const productRules: Rules = {
  hintOf,
  plan: planObservedWrite,
  answerLifeMs: ANSWER_LIFE_MS,
  refusedProvisionalStays: true,
  floor: true,
  joinsBeforeHead: true,
  ties: true,
  purgesByClock: true,
  waitsWithoutAnswer: true,
  handedOverUpToMs: (nowMs, momentMs) => Math.max(nowMs, momentMs) + HANDOVER_AHEAD_MS,
  mayHandOver: (storedMs, momentMs) => storedMs >= momentMs + HANDOVER_MARGIN_MS,
};
