/**
 * Calendar work over any number of workers: each looks often whether something is due, and claims it on its schedule
 * record by compare-and-swap. A worker that dies leaves a claim that ends; one that outlives its claim is aborted. Where
 * clocks jump or a worker stands still for longer than its claim, two may overlap for a moment: the work must bear that.
 */
import { claimStep, endedRecord, releasedRecord, type ScheduleRecord } from '../../domain/calendar/schedule.ts';
import { faultOf } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore, StateVersion } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { repeat } from '../serving/repeat.ts';
import { parseEntry, refs } from '../records/stored.ts';

export interface Schedule {
  /** Its id, and its name in logs. */
  readonly name: string;
  /** From the beginning of one run to the beginning of the next. */
  readonly intervalMs: number;
  /** How long one run may take: then its signal is aborted, and another worker may begin. */
  readonly claimMs: number;
}

export interface Schedules {
  /**
   * Looks now, and runs the work if it is due and this worker gets the claim. Resolves with whether it ran; a failure of
   * the work is told and stored, and the work tried again within a minute or so. Throws the store's fault.
   */
  runIfDue(schedule: Schedule, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<boolean>;
  /** Looks again and again until the signal is aborted. */
  every(schedule: Schedule, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): void;
}

interface SchedulesDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** A name of this process that no other has, nor had. */
  readonly worker: string;
}

/** A look is one read by id: seldom enough to be no load, often enough for work that is due every minute. */
const LOOKS_PER_INTERVAL = 4;
const LOOK_MIN_MS = 5_000;
const LOOK_MAX_MS = 60_000;

/** Creates the schedules. Nothing runs before it is asked. */
export function createSchedules({ state, clock, telemetry, worker }: SchedulesDependencies): Schedules {
  const running = new Set<string>();
  /** As which version a record was seen last, and since when (monotonic). */
  const watched = new Map<string, { readonly version: StateVersion; readonly sinceMs: number }>();

  function watchedMs(name: string, version: StateVersion): number {
    const before = watched.get(name);
    const nowMs = clock.monotonicMs();
    if (before?.version === version) return nowMs - before.sinceMs;
    watched.set(name, { version, sinceMs: nowMs });
    return 0;
  }

  async function claim({ name, intervalMs, claimMs }: Schedule, signal: AbortSignal): Promise<boolean> {
    const ref = refs.schedule(name);
    const entry = await state.get(ref.id, signal);
    const current = entry === undefined ? undefined : parseEntry(entry, ref.schema);
    const seenForMs = entry === undefined ? 0 : watchedMs(name, entry.version);
    const step = claimStep(current, { name, worker, nowMs: clock.nowMs(), intervalMs, claimMs, watchedMs: seenForMs });
    if (step.kind === 'wait') return false;
    const stored = await state.put({ id: ref.id, kind: ref.kind, record: step.record }, entry?.version ?? null, signal);
    return stored !== 'conflict';
  }

  /** Stores what `change` makes of the record, unless the claim was lost meanwhile: then the run that followed says when it is due. */
  async function giveUp(schedule: Schedule, change: (record: ScheduleRecord) => ScheduleRecord): Promise<void> {
    const ref = refs.schedule(schedule.name);
    const entry = await state.get(ref.id);
    const current = entry === undefined ? undefined : parseEntry(entry, ref.schema);
    if (entry === undefined || current?.claim?.worker !== worker) return;
    await state.put({ id: ref.id, kind: ref.kind, record: change(current) }, entry.version);
  }

  /** Why the work failed, or undefined. */
  async function errorOf(
    schedule: Schedule,
    work: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const overdue = new AbortController();
    const ended = new AbortController();
    const endClaim = (): void => overdue.abort(new Error(`${schedule.name} took longer than ${schedule.claimMs} ms`));
    clock.sleep(schedule.claimMs, ended.signal).then(endClaim, () => undefined);
    try {
      await work(AbortSignal.any([signal, overdue.signal]));
      return undefined;
    } catch (thrown) {
      const fault = faultOf(thrown);
      if (!signal.aborted) telemetry.requestFailed(schedule.name, fault.code, fault.reason);
      return `${fault.code}: ${fault.reason}`;
    } finally {
      ended.abort(new Error('the run ended'));
    }
  }

  async function runIfDue(schedule: Schedule, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<boolean> {
    if (running.has(schedule.name)) return false;
    running.add(schedule.name);
    try {
      if (!(await claim(schedule, signal))) return false;
      const error = await errorOf(schedule, work, signal);
      // a stop in the middle of it: whoever looks next begins anew
      const isStopped = signal.aborted && error !== undefined;
      await giveUp(schedule, (record) =>
        isStopped ? releasedRecord(record) : endedRecord(record, { nowMs: clock.nowMs(), intervalMs: schedule.intervalMs, error }),
      );
      return true;
    } finally {
      running.delete(schedule.name);
    }
  }

  return {
    runIfDue,
    every(schedule, work, signal) {
      const intervalMs = Math.min(LOOK_MAX_MS, Math.max(LOOK_MIN_MS, schedule.intervalMs / LOOKS_PER_INTERVAL));
      repeat({ clock, telemetry }, { name: schedule.name, intervalMs, signal }, async (each) => {
        await runIfDue(schedule, work, each);
      });
    },
  };
}
