/**
 * Scheduled work for any number of workers. Each worker often checks whether work is due, and claims it on the schedule's record. No run
 * lasts longer than its schedule says, so a claim that does belongs to a worker that died. If a worker is suspended for longer than that,
 * two runs may overlap, which the work must tolerate.
 */
import { endedRecord, isScheduleDue, scheduleSchema, startedRecord } from '../records/schedule.ts';
import { withDeadline, repeat } from '../process/async.ts';
import { createWatch } from '../store/lease.ts';
import { parseEntry, refs } from '../store/stored.ts';
import type { WithPorts, StateEntry } from '../store/store.ts';

export interface Schedule {
  /** The schedule's id and its name in logs. */
  readonly name: string;
  /** From the beginning of one run to the beginning of the next. */
  readonly intervalMs: number;
  /** How long one run may take before its signal is aborted, and before other workers take it for over. */
  readonly runMaxMs: number;
}

type Work = (signal: AbortSignal) => Promise<void>;

export interface Schedules {
  /**
   * Runs the work if it is due and this worker gets the claim. Resolves with whether it ran. If the work fails, that is reported, and it
   * is tried again after a minute. Throws the store's fault.
   */
  runIfDue(schedule: Schedule, work: Work, signal: AbortSignal): Promise<boolean>;
  /** Calls runIfDue repeatedly until the signal is aborted. */
  every(schedule: Schedule, work: Work, signal: AbortSignal): void;
}

/** How often a worker checks whether work is due. */
const CHECKS_PER_INTERVAL = 4;
const CHECK_MIN_MS = 5_000;
const CHECK_MAX_MS = 60_000;

/** Creates the schedules. Nothing runs before a call. */
export function createSchedules({ state, clock, telemetry }: WithPorts<'state' | 'clock' | 'telemetry'>): Schedules {
  const running = new Set<string>();
  /** The versions of this worker's claims whose runs have ended, by schedule. One that is still stored could not be given back. */
  const ended = new Map<string, string>();
  const watch = createWatch(clock);

  /** The record with this worker's claim; undefined if the work is not due, or another worker was faster. */
  async function claim({ name, ...schedule }: Schedule, signal: AbortSignal): Promise<StateEntry | undefined> {
    const { id, kind, schema } = refs.schedule(name);
    const entry = await state.get(id, signal);
    const current = entry && parseEntry(entry, schema);
    const nowMs = clock.nowMs();
    const watchedMs = entry === undefined ? 0 : watch(id, entry.version);
    const isOver = entry !== undefined && entry.version === ended.get(name);
    if (!isOver && !isScheduleDue(current, { ...schedule, nowMs, watchedMs })) return undefined;
    const stored = await state.put({ id, kind, record: startedRecord(name, current, nowMs) }, entry?.version ?? null, signal);
    return stored === 'conflict' ? undefined : stored;
  }

  /** Runs the work, and says how it ended. */
  async function endOf({ name, runMaxMs }: Schedule, work: Work, signal: AbortSignal): Promise<'done' | 'failed' | 'stopped'> {
    const late = (): Error => new Error(`${name} took longer than ${runMaxMs} ms`);
    try {
      await withDeadline(clock, { maxMs: runMaxMs, late }, work, signal);
      return 'done';
    } catch (thrown) {
      // the next worker that checks starts over what the process's stop cut short
      if (signal.aborted) return 'stopped';
      telemetry.requestFailed(name, thrown);
      return 'failed';
    }
  }

  async function runIfDue(schedule: Schedule, work: Work, signal: AbortSignal): Promise<boolean> {
    const { name, intervalMs } = schedule;
    if (running.has(name)) return false;
    running.add(name);
    try {
      const claimed = await claim(schedule, signal);
      if (claimed === undefined) return false;
      const end = await endOf(schedule, work, signal);
      const { id, kind, version } = claimed;
      ended.set(name, version);
      const record = endedRecord(parseEntry(claimed, scheduleSchema), { end, nowMs: clock.nowMs(), intervalMs });
      // a conflict: the run has lasted so long that another worker has taken it
      await state.put({ id, kind, record }, version);
      return true;
    } finally {
      running.delete(name);
    }
  }

  return {
    runIfDue,
    every(schedule, work, signal) {
      const intervalMs = Math.min(CHECK_MAX_MS, Math.max(CHECK_MIN_MS, schedule.intervalMs / CHECKS_PER_INTERVAL));
      repeat(
        { clock, telemetry },
        { name: schedule.name, intervalMs, signal },
        async (each) => void (await runIfDue(schedule, work, each)),
      );
    },
  };
}
