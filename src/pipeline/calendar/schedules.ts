/**
 * Calendar work over any number of workers. Each worker often checks whether work is due, and claims it on the schedule record
 * by compare-and-swap. The claim of a worker that dies ends, and a run that outlasts its claim is aborted. If a clock jumps or
 * a worker stands still for longer than its claim, two runs may overlap for a moment, which the work must tolerate.
 */
import { claimAction, endedRecord, releasedRecord, type ScheduleRecord } from '../../domain/calendar/schedule.ts';
import { faultOf } from '../../domain/fault.ts';
import type { Clock } from '../ports/clock.ts';
import type { StateStore, StateVersion } from '../ports/state.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { repeat } from '../serving/repeat.ts';
import { parseEntry, refs } from '../records/stored.ts';

export interface Schedule {
  /** The schedule's id and its name in logs. */
  readonly name: string;
  /** From the beginning of one run to the beginning of the next. */
  readonly intervalMs: number;
  /** How long one run may take. Then its signal is aborted, and another worker may start the next run. */
  readonly claimMs: number;
}

export interface Schedules {
  /**
   * Runs the work if it is due and this worker gets the claim. Resolves with whether it ran. A failure of the work is reported
   * and stored, and the work is tried again after a minute, later at longer intervals. Throws the store's fault.
   */
  runIfDue(schedule: Schedule, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<boolean>;
  /** Calls runIfDue repeatedly until the signal is aborted. */
  every(schedule: Schedule, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): void;
}

interface SchedulesDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** A name that no other process has or had. */
  readonly worker: string;
}

/** A check is one read by id: rare enough to be no load, frequent enough for work that is due every minute. */
const CHECKS_PER_INTERVAL = 4;
const CHECK_MIN_MS = 5_000;
const CHECK_MAX_MS = 60_000;

/** Creates the schedules. Nothing runs before a call. */
export function createSchedules({ state, clock, telemetry, worker }: SchedulesDependencies): Schedules {
  const running = new Set<string>();
  /** The version of each record as last read, and since when it has been that version (monotonic). */
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
    const action = claimAction(current, { name, worker, nowMs: clock.nowMs(), intervalMs, claimMs, watchedMs: seenForMs });
    if (action.kind === 'wait') return false;
    const stored = await state.put({ id: ref.id, kind: ref.kind, record: action.record }, entry?.version ?? null, signal);
    return stored !== 'conflict';
  }

  /** Ends the claim and stores what `change` returns, unless the claim was lost: then a later run decides when the work is due. */
  async function endClaim(schedule: Schedule, change: (record: ScheduleRecord) => ScheduleRecord): Promise<void> {
    const ref = refs.schedule(schedule.name);
    const entry = await state.get(ref.id);
    const current = entry === undefined ? undefined : parseEntry(entry, ref.schema);
    if (entry === undefined || current?.claim?.worker !== worker) return;
    await state.put({ id: ref.id, kind: ref.kind, record: change(current) }, entry.version);
  }

  /** Runs the work; resolves with why it failed, or undefined. */
  async function errorOf(
    schedule: Schedule,
    work: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const overdue = new AbortController();
    const ended = new AbortController();
    const abort = (): void => overdue.abort(new Error(`${schedule.name} took longer than ${schedule.claimMs} ms`));
    clock.sleep(schedule.claimMs, ended.signal).then(abort, () => undefined);
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
      // the process stopped during the run: the next worker that checks starts it over
      const isStopped = signal.aborted && error !== undefined;
      await endClaim(schedule, (record) =>
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
      const intervalMs = Math.min(CHECK_MAX_MS, Math.max(CHECK_MIN_MS, schedule.intervalMs / CHECKS_PER_INTERVAL));
      repeat({ clock, telemetry }, { name: schedule.name, intervalMs, signal }, async (each) => {
        await runIfDue(schedule, work, each);
      });
    },
  };
}
