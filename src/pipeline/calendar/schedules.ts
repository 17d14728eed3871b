/**
 * Calendar work over any number of workers: each looks often whether something is due, and claims it on its schedule
 * record by compare-and-swap. A worker that dies leaves a claim that ends; one that outlives its claim is aborted.
 */
import { claimStep, endedRecord, type ScheduleRecord } from '../../domain/schedule.ts';
import { faultOf } from '../../domain/fault.ts';
import type { Clock, StateStore, Telemetry } from '../ports.ts';
import { repeat } from '../repeat.ts';
import { refs } from '../state-records.ts';

export interface Schedule {
  /** Its id, and its name in logs. */
  readonly name: string;
  /** From the beginning of one run to the beginning of the next. */
  readonly intervalMs: number;
  /** How long one run may take: then its signal is aborted and another worker may begin. */
  readonly claimMs: number;
}

export interface Schedules {
  /** Looks now, and runs the work if it is due and this worker gets the claim. Resolves with whether it ran. Throws the store's fault. */
  runIfDue(schedule: Schedule, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<boolean>;
  /** Looks again and again until the signal is aborted. */
  every(schedule: Schedule, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): void;
}

interface SchedulesDependencies {
  readonly state: StateStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** A name of this process that no other has. */
  readonly worker: string;
}

/** A look is one read by id: seldom enough to be no load, often enough for work that is due every minute. */
const LOOKS_PER_INTERVAL = 4;
const LOOK_MIN_MS = 5_000;
const LOOK_MAX_MS = 60_000;

/** Creates the schedules. Nothing runs before it is asked. */
export function createSchedules({ state, clock, telemetry, worker }: SchedulesDependencies): Schedules {
  async function claim({ name, claimMs }: Schedule, signal: AbortSignal): Promise<ScheduleRecord | undefined> {
    const ref = refs.schedule(name);
    const entry = await state.get(ref.id, signal);
    const current = entry === undefined ? undefined : ref.schema.parse(entry.record);
    const step = claimStep(current, { name, worker, nowMs: clock.nowMs(), claimMs });
    if (step.kind === 'wait') return undefined;
    const stored = await state.put({ id: ref.id, kind: ref.kind, record: step.record }, entry?.version ?? null, signal);
    return stored === 'conflict' ? undefined : step.record;
  }

  /** Not if the claim was lost meanwhile: then the run that followed says when it is due. */
  async function end(schedule: Schedule, claimed: ScheduleRecord, error: string | undefined): Promise<void> {
    const ref = refs.schedule(schedule.name);
    const entry = await state.get(ref.id);
    const current = entry === undefined ? undefined : ref.schema.parse(entry.record);
    if (current?.claim?.worker !== worker || current.lastStartedAtMs !== claimed.lastStartedAtMs) return;
    const record = endedRecord(current, { nowMs: clock.nowMs(), intervalMs: schedule.intervalMs, error });
    await state.put({ id: ref.id, kind: ref.kind, record }, entry?.version ?? null);
  }

  async function runIfDue(schedule: Schedule, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<boolean> {
    const claimed = await claim(schedule, signal);
    if (claimed === undefined) return false;
    let error: string | undefined;
    try {
      await work(AbortSignal.any([signal, AbortSignal.timeout(schedule.claimMs)]));
    } catch (thrown) {
      const fault = faultOf(thrown);
      error = `${fault.code}: ${fault.reason}`;
      if (!signal.aborted) telemetry.requestFailed(schedule.name, fault.code, fault.reason);
    }
    // a stop leaves the claim to end by itself: the work is not done
    if (!signal.aborted) await end(schedule, claimed, error);
    return true;
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
