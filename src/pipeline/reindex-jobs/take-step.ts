/** Takes the next step of a claimed job, and stores when the job is due again: after a fault, too. */
import { faultOf, type Fault } from '../../domain/fault.ts';
import { FRUITLESS_MAX } from '../../domain/reindex/claims.ts';
import type { JobRecord } from '../../domain/reindex/job.ts';
import { answerAtStart, FAULT_WAIT_MS, waitMs } from '../../domain/reindex/range-transitions.ts';
import type { createAdvanceJob } from './advance-job.ts';
import type { HeldJob } from './held-job.ts';
import type { EndsDependencies, JobEnds } from './job-ends.ts';

/** Until the next attempt at a step that failed because of the job itself. */
const RETRY_MS = 10_000;

/** Why a job fails whose every step ended with its process. */
export const diedAtStep = {
  code: 'internal.unexpected',
  reason: `${FRUITLESS_MAX} workers in a row ended while they took a step of this job`,
} as const;

interface StepDependencies extends Pick<EndsDependencies, 'clock' | 'telemetry'> {
  readonly advance: ReturnType<typeof createAdvanceJob>;
  readonly ends: JobEnds;
}

/** Creates the function. It resolves with whether something of the job is due now that was not. Never rejects. */
export function createTakeStep({ clock, telemetry, advance, ends }: StepDependencies, aborted: AbortSignal) {
  return async function takeStep(held: HeldJob): Promise<boolean> {
    try {
      const end = await advance(held.job, aborted);
      const againMs = end === 'over' ? FAULT_WAIT_MS : end.againMs;
      await held.release((job) => ({ ...job, fruitless: 0, dueAtMs: clock.nowMs() + againMs }));
      // not where it was put off: it may be due at once for this worker, whose clock may be wrong
      return end !== 'over' && (end.hasMadeDue === true || againMs === 0);
    } catch (error) {
      const { code, reason } = faultOf(error);
      if (!aborted.aborted) telemetry.requestFailed('start a re-index job', code, reason);
      // the store may be what fails
      await afterFault(held, { code, reason }).catch(() => undefined);
      return false;
    }
  };

  async function afterFault(held: HeldJob, fault: Fault): Promise<void> {
    if (aborted.aborted) return held.release((job) => ({ ...job, dueAtMs: clock.nowMs() }));
    const { fruitless = 0 } = held.job;
    switch (answerAtStart(fault.code, held.job)) {
      case 'wait':
        return held.release((job) => waitingToStart(job, fault, clock.nowMs()));
      case 'retry':
        if (fruitless + 1 < FRUITLESS_MAX)
          return held.release((job) => ({ ...job, fruitless: fruitless + 1, dueAtMs: clock.nowMs() + RETRY_MS }));
        break;
      case 'fail':
    }
    await ends.fail(held.job, fault);
    // a job that was paused meanwhile does not fail
    await held.release((job) => ({ ...job, dueAtMs: clock.nowMs() }));
  }
}

/** The job keeps its place, shows why it waits, and is due again when the fault may be over. */
function waitingToStart(job: JobRecord, fault: Fault, nowMs: number): JobRecord {
  const sinceMs = job.waits?.sinceMs ?? nowMs;
  return { ...job, waits: { ...fault, sinceMs }, dueAtMs: nowMs + waitMs(sinceMs, nowMs) };
}
