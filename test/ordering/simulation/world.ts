/**
 * What the workers of a history work with: the one clock by which everything happens, S3, the store's one document, and the
 * bucket's record. Everything that decides is the product's; this file only keeps and answers.
 */
import type { BucketFacts } from '../../../src/ordering/hint.ts';
import { PLAUSIBLE_MS, TOMBSTONE_LIFE_MS } from '../../../src/ordering/constants.ts';
import type { Versioning } from '../../../src/records/bucket.ts';
import type { Content } from './bucket.ts';
import { START_MS, type History, type Part } from './history.ts';
import type { Random } from '../../support/random/seeded.ts';
import type { Rules } from './rules.ts';

export interface Stored {
  readonly clock: number;
  readonly content: Content;
  readonly settled: boolean;
  /** When an absent key was observed, or told, to be absent. */
  readonly stateAtMs: number;
}

/** What a HEAD or a LIST page said. */
export interface Answer {
  readonly content: Content;
  /** D: Date in whole seconds − duration. */
  readonly observedAtMs: number;
  readonly answeredMs: number;
}

export interface SentWrite {
  readonly next: Stored;
  readonly equalClock: 'accept' | 'refuse';
  /** Undefined: a reconcile. */
  readonly worker: number | undefined;
  readonly answered: (answer: 'written' | 'superseded' | 'tie') => void;
  /** Called with the end of the outage. */
  readonly failed: (outEndMs: number) => void;
}

/** What the bucket's record says from a moment on. */
interface RecordVersion {
  readonly atMs: number;
  readonly floor: number;
  readonly versioning: Versioning;
}

interface Task {
  readonly atMs: number;
  readonly run: () => void;
}

/** What happened in a history, so that a mix can be seen to hold what it is named for. */
export interface Counts {
  /** Hints that shared a HEAD with an earlier one. */
  joined: number;
  /** Deletes without a version that were written as they were told. */
  exactDeletes: number;
  /** Records with a sequencer that were not believed, because their form does not fit the bucket's source. */
  misfits: number;
  /** Answers and decisions that were given up in an outage. */
  heldBack: number;
  /** Records that were acknowledged under a gap. */
  handedOver: number;
}

export interface World {
  readonly counts: Counts;
  readonly history: History;
  readonly rules: Rules;
  readonly random: Random;
  readonly nowMs: number;
  readonly stored: Stored | undefined;
  /** Runs this at that moment, or now if that is over. Of one moment's tasks the first that was given runs first. */
  at(atMs: number, run: () => void): void;
  /** Runs all tasks to their end. */
  runAll(): void;
  /** When the outage that keeps this part from answering this worker now ends; undefined if it answers. Reconciles are no worker's. */
  outEndMs(part: Part, worker?: number): number | undefined;
  /** Runs this as soon as all of these parts answer, up to a minute later. */
  whenUp(parts: readonly Part[], run: () => void): void;
  /** One request to S3, sent at that moment: the truth at some moment between request and response. */
  ask(sentMs: number): Answer;
  /**
   * Sends a write to the store now. It is carried out a little later and then answered; in an outage it is not answered, and
   * some are carried out nevertheless.
   */
  send(write: SentWrite): void;
  /** The bucket's record as a worker has it that reads it no later than C ago; undefined where it cannot be read. */
  recordOfAge(ageMaxMs: number, worker: number): BucketFacts | undefined;
  storeFloor(observedAtMs: number): void;
  storeVersioning(versioning: Versioning): void;
}

/** More than any history needs: what repeats for ever is found out. */
const STEPS_MAX = 20_000;
const DURATIONS = [5, 50, 800, 9_000];
/** How long a write may be on its way. Q is longer than C + P by 20 s, so that such a write is carried out before a reconcile scans. */
const LANDINGS = [0, 0, 0, 50, 2_000, 15_000];

/** Creates the world at the beginning of the history. */
export function createWorld(history: History, random: Random, rules: Rules): World {
  /** The next task is the last one. */
  const tasks: Task[] = [];
  let stored: Stored | undefined;
  let nowMs = START_MS - 600_000;
  let record: readonly RecordVersion[] = [{ atMs: 0, floor: 0, versioning: { status: history.versioning[0]!.value, observedAtMs: 0 } }];

  function at(atMs: number, run: () => void): void {
    const task = { atMs: Math.max(atMs, nowMs), run };
    let place = tasks.length;
    while (place > 0 && tasks[place - 1]!.atMs <= task.atMs) place -= 1;
    tasks.splice(place, 0, task);
  }

  function outEndMs(part: Part, worker?: number): number | undefined {
    let endMs: number | undefined;
    for (const outage of history.outages) {
      const isOut = outage.part === part || (part === 'index' && outage.part === 'cluster');
      const isFor = outage.worker === undefined || outage.worker === worker;
      if (isOut && isFor && outage.fromMs <= nowMs && nowMs < outage.toMs) endMs = Math.max(endMs ?? 0, outage.toMs);
    }
    return endMs;
  }

  function whenUp(parts: readonly Part[], run: () => void): void {
    if (history.outages.length === 0) return run();
    const endMs = Math.max(0, ...parts.map((part) => outEndMs(part) ?? 0));
    if (endMs === 0) return run();
    at(endMs + random.pick([0, 1_000, 60_000]), () => whenUp(parts, run));
  }

  function storeRecord(change: Partial<RecordVersion>): void {
    record = [...record, { ...record.at(-1)!, ...change, atMs: nowMs }];
  }

  function write(next: Stored, equalClock: 'accept' | 'refuse'): 'written' | 'superseded' | 'tie' {
    if (stored !== undefined && stored.clock > next.clock) return 'superseded';
    if (stored !== undefined && stored.clock === next.clock && equalClock === 'refuse')
      return stored.settled && stored.content === next.content ? 'superseded' : 'tie';
    stored = next;
    if (next.content === null && random.chance(0.3)) purgeLater(next);
    return 'written';
  }

  /** A tombstone may be purged a week after its delete, by a sweep that read it a moment before. Some sweeps meet an event. */
  function purgeLater(tombstone: Stored): void {
    const agedMs = tombstone.stateAtMs + TOMBSTONE_LIFE_MS;
    const met = random.chance(0.5)
      ? history.messages.find(({ receivedAtMs: [receivedMs = 0] }) => receivedMs > agedMs)?.receivedAtMs[0]
      : undefined;
    at(met === undefined ? agedMs + random.integer(0, 86_400_000) : met - random.integer(0, 10_000), () => {
      if (stored?.clock !== tombstone.clock || stored.content !== null) return;
      at(nowMs + random.integer(0, 10_000), () => {
        if (!rules.purgesByClock || stored?.clock === tombstone.clock) stored = undefined;
      });
    });
  }

  return {
    counts: { joined: 0, exactDeletes: 0, misfits: 0, heldBack: 0, handedOver: 0 },
    history,
    rules,
    random,
    get nowMs() {
      return nowMs;
    },
    get stored() {
      return stored;
    },
    at,
    runAll() {
      for (let steps = 0; tasks.length > 0; steps += 1) {
        if (steps > STEPS_MAX) throw new Error('the history does not end');
        const task = tasks.pop()!;
        nowMs = task.atMs;
        task.run();
      }
    },
    outEndMs,
    whenUp,
    ask(sentMs) {
      const durationMs = random.pick(DURATIONS);
      const momentMs = sentMs + random.integer(0, durationMs);
      const dateMs = Math.floor((sentMs + random.integer(momentMs - sentMs, durationMs)) / 1_000) * 1_000;
      return { content: valueAt(history.changes, momentMs), observedAtMs: dateMs - durationMs, answeredMs: sentMs + durationMs };
    },
    send({ next, equalClock, worker, answered, failed }) {
      at(nowMs + random.pick(LANDINGS), () => {
        const endMs = outEndMs('index', worker);
        if (endMs === undefined) return answered(write(next, equalClock));
        if (random.chance(0.3)) write(next, equalClock);
        failed(endMs);
      });
    },
    recordOfAge(ageMaxMs, reader) {
      let readMs = nowMs - random.integer(0, ageMaxMs);
      for (const { part, worker, fromMs, toMs } of history.outages) {
        if (part !== 'cluster' || (worker !== undefined && worker !== reader) || readMs < fromMs || readMs >= toMs) continue;
        if (nowMs - fromMs > ageMaxMs) return undefined;
        readMs = fromMs;
      }
      const { floor, versioning } = record.findLast((version) => version.atMs <= readMs)!;
      // as it was measured once: the Date header has whole seconds, and D is before them by the duration of the request
      const s3AheadMs = history.s3AheadMs - 2_000;
      return { source: history.source, enrich: 'none', floor: rules.floor ? floor : 0, versioning, s3AheadMs };
    },
    storeFloor(observedAtMs) {
      const floor = (observedAtMs + PLAUSIBLE_MS + 3_000) * 1_000;
      storeRecord({ floor: Math.max(record.at(-1)!.floor, floor) });
    },
    storeVersioning(versioning) {
      // the later reading stays, as in the product
      if (versioning.observedAtMs >= record.at(-1)!.versioning.observedAtMs) storeRecord({ versioning });
    },
  };
}

/** What a timeline says at this moment. */
export function valueAt<Value>(timeline: readonly { readonly atMs: number; readonly value: Value }[], momentMs: number): Value {
  for (let index = timeline.length - 1; index > 0; index -= 1) if (timeline[index]!.atMs <= momentMs) return timeline[index]!.value;
  return timeline[0]!.value;
}
