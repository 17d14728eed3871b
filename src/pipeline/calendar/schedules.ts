/**
 * Calendar work over any number of workers. Each worker often checks whether work is due, and claims it on the schedule record,
 * which is the lease of its run: it is renewed while the work lasts. If a worker stands still for longer than a lease lives,
 * two runs may overlap for a moment, which the work must tolerate.
 */
import { randomUUID } from 'node:crypto';
import { claimAction, endedRecord, releasedRecord, type ScheduleRecord } from '../../domain/calendar/schedule.ts';
import { faultOf } from '../../domain/fault.ts';
import { repeat } from '../serving/repeat.ts';
import { createWatch, holdClaim, LEASE_MS } from '../records/lease.ts';
import { parseEntry, refs, updateRecord } from '../records/stored.ts';
import type { WithPorts } from '../ports/ports.ts';

export interface Schedule {
  /** The schedule's id and its name in logs. */
  readonly name: string;
  /** From the beginning of one run to the beginning of the next. */
  readonly intervalMs: number;
  /** How long one run may take. Then its signal is aborted. */
  readonly runMaxMs: number;
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

/** A schedule that this process runs now. */
interface Claimed {
  readonly holder: string;
  readonly lease: ReturnType<typeof holdClaim>;
}

/** How often a worker checks whether it knows the work to be due later: frequent enough for work that is due every minute. */
const CHECKS_PER_INTERVAL = 4;
const CHECK_MIN_MS = 5_000;
const CHECK_MAX_MS = 60_000;

/** Creates the schedules. Nothing runs before a call. */
export function createSchedules({ state, clock, telemetry }: WithPorts<'state' | 'clock' | 'telemetry'>): Schedules {
  const running = new Set<string>();
  /** Until when (monotonic) each schedule is known not to be due: no worker makes it due sooner than its record says. */
  const quietUntilMs = new Map<string, number>();
  const watch = createWatch(clock);

  /** At most one interval, as a clock may be wrong. While the claim of a worker stands, every check reads the record: that worker may die. */
  function noteDue({ name, intervalMs }: Schedule, record: ScheduleRecord | undefined): void {
    const waitMs = record === undefined || record.claim !== undefined ? 0 : Math.min(intervalMs, record.dueAtMs - clock.nowMs());
    quietUntilMs.set(name, clock.monotonicMs() + waitMs);
  }

  async function claim(schedule: Schedule, signal: AbortSignal): Promise<Claimed | undefined> {
    const { name, intervalMs } = schedule;
    const { id, kind, schema } = refs.schedule(name);
    const atMs = clock.monotonicMs();
    const entry = await state.get(id, signal);
    const current = entry === undefined ? undefined : parseEntry(entry, schema);
    const isUnchanged = entry !== undefined && watch(id, entry.version) >= LEASE_MS;
    const holder = randomUUID();
    const action = claimAction(current, { name, holder, nowMs: clock.nowMs(), intervalMs, isUnchanged });
    if (action.kind === 'wait') noteDue(schedule, current);
    if (action.kind === 'wait') return undefined;
    const stored = await state.put({ id, kind, record: action.record }, entry?.version ?? null, signal);
    if (stored === 'conflict') return undefined;
    const lease = holdClaim({ state, clock }, stored, holder, atMs);
    lease.keep();
    return { holder, lease };
  }

  /** Ends the claim and stores what `change` returns, unless the claim was lost: then a later run decides when the work is due. */
  async function endClaim(
    schedule: Schedule,
    { holder, lease }: Claimed,
    change: (record: ScheduleRecord) => ScheduleRecord,
  ): Promise<void> {
    await lease.release();
    const ref = refs.schedule(schedule.name);
    noteDue(schedule, await updateRecord(state, ref, (current) => (current?.claim?.holder === holder ? change(current) : undefined)));
  }

  /** Runs the work; resolves with why it failed, or undefined. */
  async function errorOf(
    { name, runMaxMs }: Schedule,
    work: (signal: AbortSignal) => Promise<void>,
    { lease, signal }: { readonly lease: Claimed['lease']; readonly signal: AbortSignal },
  ): Promise<string | undefined> {
    const overdue = new AbortController();
    const ended = new AbortController();
    const abort = (): void => {
      overdue.abort(new Error(`${name} took longer than ${runMaxMs} ms`));
      // work that continues all the same must not keep every other process from it
      void lease.release();
    };
    clock.sleep(runMaxMs, ended.signal).then(abort, () => undefined);
    try {
      await work(AbortSignal.any([signal, lease.lost, overdue.signal]));
      return undefined;
    } catch (thrown) {
      const fault = faultOf(thrown);
      if (!signal.aborted) telemetry.requestFailed(name, thrown);
      return `${fault.code}: ${fault.reason}`;
    } finally {
      ended.abort(new Error('the run ended'));
    }
  }

  async function runIfDue(schedule: Schedule, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<boolean> {
    const { name, intervalMs } = schedule;
    if (running.has(name)) return false;
    running.add(name);
    try {
      const claimed = await claim(schedule, signal);
      if (claimed === undefined) return false;
      const error = await errorOf(schedule, work, { lease: claimed.lease, signal });
      // the process stopped during the run: the next worker that checks starts it over
      const isStopped = signal.aborted && error !== undefined;
      await endClaim(schedule, claimed, (record) =>
        isStopped ? releasedRecord(record) : endedRecord(record, { nowMs: clock.nowMs(), intervalMs, error }),
      );
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
