/** Waiting for a job at the command line. Whoever stops waiting leaves it running. */
import { printable } from '../../domain/printable.ts';
import type { JobView } from '../../domain/reindex/job-view.ts';
import type { Control } from '../../pipeline/control/control.ts';
import { watchJob } from '../../pipeline/control/watch-job.ts';
import type { Cli, JsonOption } from '../cli.ts';
import { messageOf } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { stageOf, type Progress } from './progress.ts';

/** A waiting job's countdown is drawn this often. */
const REDRAW_MS = 1_000;
/** A worker takes a task within seconds; a lost one is sent again within minutes. */
const STALL_MS = { queued: 30_000, running: 240_000 } as const;
/** A registry that restarts, or a store that fails over, is back by then. */
const TROUBLE_MS = 120_000;

/**
 * Shows how the job goes until it has ended or its brake waits for a decision; returns it as it was then, or `undefined`
 * if the person at the terminal did not want to wait any longer. Rejects with what has kept it from being looked at for
 * two minutes.
 */
export async function waitForJob(
  cli: Cli,
  { control, job, options }: { readonly control: Control; readonly job: JobView; readonly options: JsonOption },
): Promise<JobView | undefined> {
  const progress = cli.progress(options);
  try {
    return await cli.interruptible((signal) => follow({ cli, control, progress }, job, signal));
  } finally {
    progress.end();
  }
}

interface Follow {
  readonly cli: Cli;
  readonly control: Control;
  readonly progress: Progress;
}

async function follow({ cli, control, progress }: Follow, job: JobView, signal: AbortSignal): Promise<JobView | undefined> {
  const { clock } = cli;
  const stall = createStallWatch(cli, progress);
  let latest = job;
  let trouble: { readonly error: unknown; readonly sinceMs: number } | undefined;
  for await (const news of watchJob({ look: (limit) => control.jobs.get(job.id, limit), clock, silenceMs: REDRAW_MS }, signal)) {
    switch (news.kind) {
      case 'job':
        latest = news.job;
        trouble = undefined;
        break;
      case 'trouble':
        progress.say(printable(`${messageOf(news.error)}; still trying`));
        trouble = { error: news.error, sinceMs: trouble?.sinceMs ?? clock.monotonicMs() };
        break;
      case 'silence':
        break;
    }
    if (trouble !== undefined) {
      if (clock.monotonicMs() - trouble.sinceMs >= TROUBLE_MS) throw trouble.error;
      continue;
    }
    stall.look(latest);
    progress.show(latest);
    if (isHeldByBrake(latest)) return latest;
  }
  return signal.aborted ? undefined : latest;
}

/** Says so once when nothing moves: the usual reason is that nobody works on jobs. */
function createStallWatch({ clock }: Cli, progress: Progress): { look(job: JobView): void } {
  let moved = { text: '', atMs: 0, isTold: false };
  return {
    look(job) {
      const { objectsPerSecond: _, ...rest } = job;
      const text = JSON.stringify(rest);
      if (text !== moved.text) moved = { text, atMs: clock.monotonicMs(), isTold: false };
      const limitMs = job.state === 'queued' ? STALL_MS.queued : STALL_MS.running;
      if (moved.isTold || job.state === 'paused' || clock.monotonicMs() - moved.atMs < limitMs) return;
      moved = { ...moved, isTold: true };
      progress.say(
        `Nothing has moved for ${limitMs / 1_000} s (${stageOf(job)}). Jobs are done by \`tally serve\` with the role reindex and TALLY_WORK_QUEUE_URL: see its /readyz.`,
      );
    },
  };
}

function isHeldByBrake({ state, pausedBecause }: JobView): boolean {
  return state === 'paused' && pausedBecause === 'brake';
}

/** The exit code of a job that was waited for. */
export function exitCodeOf(job: JobView): number {
  switch (job.state) {
    case 'done':
      return exitCodes.ok;
    case 'cancelled':
      return exitCodes.cancelled;
    case 'paused':
      return exitCodes.paused;
    case 'failed':
    case 'queued':
    case 'running':
      return exitCodes.failure;
  }
}

/** What to do about a job that is not waited for any longer. */
export function leftText({ id }: JobView): string {
  return `The job goes on. Look at it: tally jobs ${printable(id)}\nCancel it: tally jobs cancel ${printable(id)}`;
}

/** What to do about a job that did not end well; undefined where there is nothing to decide. */
export function adviceText(job: JobView): string | undefined {
  if (!isHeldByBrake(job)) return undefined;
  const { id, brake } = job;
  const waiting = brake?.waiting ?? 0;
  return [
    `The brake holds: ${waiting} or more documents would be deleted beyond what it allows.`,
    'See whether the bucket is as it should be. Then either',
    `  tally jobs resume ${printable(id)} --allow-deletes ${waiting}`,
    `  tally jobs cancel ${printable(id)}`,
  ].join('\n');
}
