/**
 * Scheduled work for any number of workers. Each worker often checks whether work is due, and runs it under a lease named after the
 * schedule. If a worker is suspended or cannot renew its lease for as long as a lease lives, another one runs the work too, and for a
 * moment two runs may overlap, which the work must tolerate.
 */
import { isScheduleDue } from '../records/schedule.ts';
import { withDeadline, repeat } from '../process/async.ts';
import { createTakeLease, type Lease } from '../store/lease.ts';
import { readRecord, refs, updateRecord } from '../store/stored.ts';
import type { WithPorts } from '../store/store.ts';

export interface Schedule {
  /** The schedule's id and its name in logs. */
  readonly name: string;
  /** From the beginning of one run to the beginning of the next. */
  readonly intervalMs: number;
  /** How long one run may take before its signal is aborted. */
  readonly runMaxMs: number;
}

type Work = (signal: AbortSignal) => Promise<void>;

export interface Schedules {
  /**
   * Runs the work if it is due and this worker gets the lease. Resolves with whether it ran. If the work fails, that is reported, and it
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
const RETRY_MS = 60_000;

/** Creates the schedules. Nothing runs before a call. */
export function createSchedules({ state, clock, telemetry }: WithPorts<'state' | 'clock' | 'telemetry'>): Schedules {
  const takeLease = createTakeLease({ state, clock });

  async function isDue({ name, intervalMs }: Schedule, signal: AbortSignal): Promise<boolean> {
    return isScheduleDue(await readRecord(state, refs.schedule(name), signal), clock.nowMs(), intervalMs);
  }

  /**
   * Runs the work. It is due again one interval after it began, a minute after a failure, or at once if the process stopped during the
   * run. Stores nothing once the lease is lost: then another worker says when the work is due.
   */
  async function run({ name, intervalMs, runMaxMs }: Schedule, work: Work, lease: Lease, signal: AbortSignal): Promise<void> {
    const late = (): Error => new Error(`${name} took longer than ${runMaxMs} ms`);
    const lastStartedAtMs = clock.nowMs();
    let dueAtMs = lastStartedAtMs + intervalMs;
    try {
      await withDeadline(clock, { maxMs: runMaxMs, late }, work, AbortSignal.any([signal, lease.lost]));
    } catch (thrown) {
      if (signal.aborted || lease.lost.aborted) return;
      telemetry.requestFailed(name, thrown);
      dueAtMs = clock.nowMs() + Math.min(intervalMs, RETRY_MS);
    }
    if (await lease.renew()) await updateRecord(state, refs.schedule(name), (record) => ({ ...record, name, dueAtMs, lastStartedAtMs }));
  }

  async function runIfDue(schedule: Schedule, work: Work, signal: AbortSignal): Promise<boolean> {
    if (!(await isDue(schedule, signal))) return false;
    const lease = await takeLease(`schedule:${schedule.name}`, signal);
    if (lease === undefined) return false;
    lease.keep();
    try {
      // another worker may have run it since
      if (!(await isDue(schedule, signal))) return false;
      await run(schedule, work, lease, signal);
      return true;
    } finally {
      await lease.release();
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
