/**
 * Plays a history against the decision functions: workers that receive, look, pause, crash and write at their own pace,
 * and reconciles between them. The index of one key is what is left when the last message was settled.
 */
import type { BucketFacts, Hint, ObserveHint, ResolveHint } from '../../../src/domain/ordering/hint.ts';
import { hintOf, hintOfTie } from '../../../src/domain/ordering/hint.ts';
import type { ObservedWrite } from '../../../src/domain/ordering/observation.ts';
import { planObservedWrite } from '../../../src/domain/ordering/observation.ts';
import { ANSWER_LIFE_MS, BUCKET_RECORD_AGE_MAX_MS, PLAUSIBLE_MS, RECONCILE_WAIT_MS } from '../../../src/domain/ordering/constants.ts';
import type { ChangeRecord } from '../../../src/domain/events/record.ts';
import type { PresentState } from '../../../src/domain/documents/document.ts';
import { clockOfListing, decideListed, decideSeen, type StoredDocument } from '../../../src/domain/reindex/decide.ts';
import type { Content, History, Random, SimMessage } from './history.ts';
import { randomOf, START_MS } from './history.ts';

/** The rules under test; a mutant replaces one of them. */
export interface Rules {
  readonly hintOf: typeof hintOf;
  readonly plan: (hints: readonly (ResolveHint | ObserveHint)[], observedAtMs: number) => ObservedWrite;
  /** Rule 9: the longest time between an answer and its write. */
  readonly answerLifeMs: number;
  /** Rule 2, second half: a refused provisional write is still to be settled. */
  readonly refusedProvisionalStays: boolean;
  /** Rule 8: late exact events at or below the floor resolve. */
  readonly floor: boolean;
  /** Rule 12. */
  readonly ties: boolean;
}

export const productRules: Rules = {
  hintOf,
  plan: planObservedWrite,
  answerLifeMs: ANSWER_LIFE_MS,
  refusedProvisionalStays: true,
  floor: true,
  ties: true,
};

interface Stored {
  readonly clock: number;
  readonly content: Content;
  readonly settled: boolean;
}

interface Answer {
  readonly content: Content;
  readonly observedAtMs: number;
  readonly answeredMs: number;
}

/** The sweep of unsettled documents leaves alone what is younger. */
const SWEEP_AGE_MS = 600_000;

interface Task {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

export interface Result {
  readonly index: Content;
  readonly bucket: Content;
  readonly settled: boolean;
}

/** Plays the history to its end and says what index and bucket hold then. */
export function play(history: History, seed: number, rules: Rules = productRules): Result {
  const random = randomOf(seed ^ 0x5bd1e995);
  const tasks: Task[] = [];
  let stored: Stored | undefined;
  let floors: { readonly atMs: number; readonly floor: number }[] = [{ atMs: 0, floor: 0 }];
  let order = 0;
  let nowMs = START_MS;

  const at = (atMs: number, run: () => void): void => {
    tasks.push({ atMs: Math.max(atMs, nowMs), order: (order += 1), run });
  };

  for (const message of history.messages) for (const atMs of message.receivedAtMs) at(atMs, () => receive(message));
  for (const atMs of reconcileTimes(history, random)) at(atMs, () => reconcile());
  for (let steps = 0; tasks.length > 0; steps += 1) {
    if (steps > 5_000) throw new Error('the history does not end');
    tasks.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
    const task = tasks.shift()!;
    nowMs = task.atMs;
    task.run();
  }
  return { index: stored?.content ?? null, bucket: contentAt(history, Infinity), settled: stored?.settled ?? true };

  // ── the worker ──

  function receive(message: SimMessage, tie?: ObserveHint): void {
    // a crash anywhere before the acknowledgement: the message comes back after its visibility timeout
    if (random.chance(0.1)) at(nowMs + random.int(1_000, 60_000), () => receive(message));
    const hint = tie ?? rules.hintOf(message.record, bucketFacts(), { sentAtMs: message.sentAtMs, nowMs });
    act(hint, message.record, message);
  }

  function act(hint: Hint, record: ChangeRecord, message: SimMessage | undefined): void {
    if (hint.kind === 'exact') {
      const content = hint.state.present ? (hint.state.etag ?? null) : null;
      at(nowMs + random.int(0, rules.answerLifeMs), () => {
        if (write({ clock: hint.clock, content, settled: true }, 'refuse') === 'tie') receiveAgain(hintOfTie(hint.clock), record, message);
      });
    } else if (hint.kind === 'resolve' || hint.kind === 'observe') look(hint, record, message);
  }

  function receiveAgain(hint: ObserveHint, record: ChangeRecord, message: SimMessage | undefined): void {
    if (rules.ties) act(hint, record, message);
  }

  /** One HEAD: the truth at some moment between request and response, D = Date in whole seconds − duration. */
  function look(hint: ResolveHint | ObserveHint, record: ChangeRecord, message: SimMessage | undefined): void {
    const sentMs = nowMs + random.int(0, 3_000);
    const { content, observedAtMs, answeredMs } = ask(sentMs);
    const plan = rules.plan([hint], observedAtMs);
    at(answeredMs + random.int(0, rules.answerLifeMs), () => {
      const answer = write({ clock: plan.clock, content, settled: plan.settled }, plan.equalClock);
      if (answer === 'tie') return receiveAgain(hintOfTie(plan.clock), record, message);
      const verdict = plan.verdicts[0]!;
      if (verdict.final || (answer === 'stale' && !rules.refusedProvisionalStays)) return;
      const again = nowMs + verdict.dueInS * 1_000 + random.int(0, 2_000);
      at(again, () => (message === undefined ? look(hint, record, undefined) : receive(message)));
    });
  }

  function ask(sentMs: number): Answer {
    const durationMs = random.pick([5, 50, 800, 9_000]);
    const momentMs = sentMs + random.int(0, durationMs);
    const dateMs = Math.floor((sentMs + random.int(momentMs - sentMs, durationMs)) / 1_000) * 1_000;
    return { content: contentAt(history, momentMs), observedAtMs: dateMs - durationMs, answeredMs: sentMs + durationMs };
  }

  function write(next: Stored, equalClock: 'accept' | 'refuse'): 'written' | 'stale' | 'tie' {
    if (stored !== undefined && stored.clock > next.clock) return 'stale';
    if (stored !== undefined && stored.clock === next.clock && equalClock === 'refuse')
      return stored.settled && stored.content === next.content ? 'stale' : 'tie';
    stored = next;
    return 'written';
  }

  /** A worker's bucket record is at most C old. Deletes are never exact here: versioning was read before every event. */
  function bucketFacts(): BucketFacts {
    const readMs = nowMs - random.int(0, BUCKET_RECORD_AGE_MAX_MS);
    const floor = rules.floor ? floors.findLast((each) => each.atMs <= readMs)!.floor : 0;
    return { floor, enrich: 'none', versioning: { status: history.versioned ? 'enabled' : 'never', observedAtMs: START_MS } };
  }

  // ── the reconcile (rules 6 and 8) ──

  function reconcile(): void {
    const floor = Math.max(floors.at(-1)!.floor, (Math.floor(nowMs / 1_000) * 1_000 + PLAUSIBLE_MS + 3_000) * 1_000);
    floors = [...floors, { atMs: nowMs, floor }];
    at(nowMs + RECONCILE_WAIT_MS + random.int(0, 5_000), () => {
      const scanned = stored;
      const listed = ask(nowMs + random.int(0, 60_000));
      at(listed.answeredMs, () => compare(scanned, listed));
    });
  }

  function compare(scanned: Stored | undefined, listed: Answer): void {
    if ((scanned?.content ?? null) !== listed.content) secondLook(listed);
  }

  /** What the product decides on what is stored now; what is refused is looked at again. */
  function secondLook(listed: Answer): void {
    const looked = stored;
    const clock = clockOfListing(listed.observedAtMs);
    switch (decideListed(presentOf(listed.content), documentOf(looked), clock).kind) {
      case 'gone':
      case 'equal':
      case 'incomplete':
        return;
      case 'missing':
      case 'stale':
        return at(nowMs + random.int(0, rules.answerLifeMs), () => {
          if (write({ clock, content: listed.content, settled: true }, 'accept') === 'stale') secondLook(listed);
        });
      case 'phantom':
      case 'inFlight':
        return confirm(listed, looked);
    }
  }

  function confirm(listed: Answer, looked: Stored | undefined): void {
    const { content, observedAtMs, answeredMs } = ask(nowMs + random.int(0, 3_000));
    const decision = decideSeen(presentOf(content) ?? { present: false }, documentOf(looked), observedAtMs);
    if (decision.kind === 'agrees') return;
    const { clock, settled, equalClock } = decision.plan;
    at(answeredMs + random.int(0, rules.answerLifeMs), () => {
      if (write({ clock, content, settled }, equalClock) === 'stale') secondLook(listed);
      else if (!settled) at(nowMs + random.int(SWEEP_AGE_MS, 2 * SWEEP_AGE_MS), sweep);
    });
  }

  /** The sweep of unsettled documents, which settles what a reconcile wrote provisionally. */
  function sweep(): void {
    if (stored?.settled === false) look(hintOfTie(stored.clock), checkRecord, undefined);
  }
}

/** What the product decides by, of the one thing that differs here. */
function presentOf(content: Content): PresentState | undefined {
  return content === null ? undefined : { present: true, etag: content };
}

function documentOf(held: Stored | undefined): StoredDocument | undefined {
  if (held === undefined) return undefined;
  return { clock: held.clock, deleted: held.content === null, ...(held.content !== null && { etag: held.content }) };
}

const checkRecord: ChangeRecord = {
  dialect: 'native',
  bucket: 'b',
  key: 'k',
  keyUncertain: false,
  eventName: 'reconcile',
  change: { kind: 'ignored', reason: 'no-effect' },
};

/** A lossy history is reconciled once all is over; any history may be reconciled in its midst. */
function reconcileTimes(history: History, random: Random): readonly number[] {
  const midst = random.chance(0.5) ? [START_MS + random.int(0, history.endMs - START_MS + 120_000)] : [];
  return history.lossy ? [...midst, history.endMs + random.int(1, 600_000)] : midst;
}

function contentAt(history: History, momentMs: number): Content {
  return history.changes.findLast((change) => change.atMs <= momentMs)?.content ?? null;
}
