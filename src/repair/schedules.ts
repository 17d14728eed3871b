/**
 * Scheduled work for any number of workers. Each worker often checks whether work is due, and claims it on the schedule's record, which
 * is the lease of its run, and is renewed while the work lasts. If a worker is suspended for longer than a lease lives, two runs may
 * overlap for a moment, which the work must tolerate.
 */
import { randomUUID } from 'node:crypto';
import { claimedBy, endedRecord, isScheduleDue, scheduleSchema, type ScheduleRecord } from '../records/schedule.ts';
import { repeat } from '../process/repeat.ts';
import { createWatch, holdRecord, LEASE_MS } from '../store/lease.ts';
import { parseEntry, refs } from '../store/stored.ts';
import type { WithPorts, StateEntry } from '../store/store.ts';

export interface Schedule {
  /** The schedule's id and its name in logs. */
  readonly name: string;
  /** From the beginning of one run to the beginning of the next. */
  readonly intervalMs: number;
  /** How long one run may take before its signal is aborted. */
  readonly runMaxMs: number;
}

export interface Schedules {
  /**
   * Runs the work if it is due and this worker gets the claim. Resolves with whether it ran. If the work fails, that is reported, and it
   * is tried again after a minute. Throws the store's fault.
   */
  runIfDue(schedule: Schedule, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<boolean>;
  /** Calls runIfDue repeatedly until the signal is aborted. */
  every(schedule: Schedule, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): void;
}

/** A schedule that this process runs now. */
type Held = ReturnType<typeof holdRecord<ScheduleRecord>>;

/** How often a worker checks whether work is due. */
const CHECKS_PER_INTERVAL = 4;
const CHECK_MIN_MS = 5_000;
const CHECK_MAX_MS = 60_000;

/** Creates the schedules. Nothing runs before a call. */
export function createSchedules({ state, clock, telemetry }: WithPorts<'state' | 'clock' | 'telemetry'>): Schedules {
  const running = new Set<string>();
  /** Until when (monotonic) each schedule is known not to be due, because no worker makes it due sooner than its record says. */
  const quietUntilMs = new Map<string, number>();
  const watch = createWatch(clock);

  /** Notes until when the schedule is not due: at most one interval, because a clock may be wrong. While a worker's claim stands, every check reads the record, because that worker may die. */
  function noteDue({ name, intervalMs }: Schedule, record: ScheduleRecord | undefined): void {
    const waitMs = record === undefined || record.claim !== undefined ? 0 : Math.min(intervalMs, record.dueAtMs - clock.nowMs());
    quietUntilMs.set(name, clock.monotonicMs() + waitMs);
  }

  async function claim(schedule: Schedule, signal: AbortSignal): Promise<Held | undefined> {
    const { name, intervalMs } = schedule;
    const { id, kind, schema } = refs.schedule(name);
    const atMs = clock.monotonicMs();
    const entry = await state.get(id, signal);
    const current = entry === undefined ? undefined : parseEntry(entry, schema);
    const nowMs = clock.nowMs();
    const watchedMs = entry === undefined ? 0 : watch(id, entry.version);
    if (!isScheduleDue(current, { nowMs, intervalMs }) || (current?.claim !== undefined && watchedMs < LEASE_MS)) {
      noteDue(schedule, current);
      return undefined;
    }
    const holder = randomUUID();
    const record = claimedBy(holder, name, current, nowMs);
    const stored = await state.put({ id, kind, record }, entry?.version ?? null, signal);
    return stored === 'conflict' ? undefined : hold(stored, holder, atMs);
  }

  function hold(entry: StateEntry, holder: string, atMs: number): Held {
    const held = holdRecord<ScheduleRecord>({ state, clock }, entry, atMs, {
      read: (found) => parseEntry(found, scheduleSchema),
      isOurs: ({ claim: ours }) => ours?.holder === holder,
      renewed: (found) => (found.claim === undefined ? found : { ...found, claim: { holder, renewals: found.claim.renewals + 1 } }),
      written: (found) => found,
    });
    held.keep();
    return held;
  }

  /** Runs the work, and says how it ended. */
  async function endOf(
    { name, runMaxMs }: Schedule,
    work: (signal: AbortSignal) => Promise<void>,
    { held, signal }: { readonly held: Held; readonly signal: AbortSignal },
  ): Promise<'done' | 'failed' | 'stopped'> {
    const overdue = new AbortController();
    const ended = new AbortController();
    const abort = (): void => {
      overdue.abort(new Error(`${name} took longer than ${runMaxMs} ms`));
      // work that ignores its signal must not keep all other processes from it
      void held.release();
    };
    clock.sleep(runMaxMs, ended.signal).then(abort, () => undefined);
    try {
      await work(AbortSignal.any([signal, held.lost, overdue.signal]));
      return 'done';
    } catch (thrown) {
      // the next worker that checks starts over what the process's stop cut short
      if (signal.aborted) return 'stopped';
      telemetry.requestFailed(name, thrown);
      return 'failed';
    } finally {
      ended.abort(new Error('the run ended'));
    }
  }

  async function runIfDue(schedule: Schedule, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<boolean> {
    const { name, intervalMs } = schedule;
    if (running.has(name)) return false;
    running.add(name);
    try {
      const held = await claim(schedule, signal);
      if (held === undefined) return false;
      const end = await endOf(schedule, work, { held, signal });
      await held.release();
      // if the claim was lost, nothing is stored, and a later run decides when the work is due
      await held.change((record) => endedRecord(record, { end, nowMs: clock.nowMs(), intervalMs }), 'now');
      noteDue(schedule, held.record());
      return true;
    } finally {
      running.delete(name);
    }
  }

  return {
    runIfDue,
    every(schedule, work, signal) {
      const intervalMs = Math.min(CHECK_MAX_MS, Math.max(CHECK_MIN_MS, schedule.intervalMs / CHECKS_PER_INTERVAL));
      repeat({ clock, telemetry }, { name: schedule.name, intervalMs, signal }, async (each) => {
        if (clock.monotonicMs() >= (quietUntilMs.get(schedule.name) ?? 0)) await runIfDue(schedule, work, each);
      });
    },
  };
}
