/** Waits for a job at the command line. The job continues when the command stops waiting. */
import type { Context, Operations } from '../../api/contract.ts';
import type { Job } from '../../api/jobs.ts';
import { printable } from '../../domain/printable.ts';
import { watchJob } from '../../pipeline/control/watch-job.ts';
import type { Cli, JsonOption } from '../cli.ts';
import { messageOf } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { countText } from '../human.ts';
import { stageOf, type Progress } from '../progress.ts';

/** The countdown of a waiting job is redrawn this often. */
const REDRAW_MS = 1_000;
/** A worker takes a job within seconds; after its worker died another one takes it within two minutes. */
const STALL_MS = { queued: 15_000, running: 240_000 } as const;
/** How long the job may be unreadable. A registry that restarts, or a store that fails over, is back within this time. */
const TROUBLE_MS = 120_000;

interface Wait {
  readonly control: Operations;
  readonly context: Context;
  readonly job: Job;
  readonly options: JsonOption;
}

/**
 * Shows the progress of the job until it has ended or its deletion limit waits for a decision. Returns the job as it is then, or
 * `undefined` after Ctrl-C. Rejects with the error that has kept the job from being read for two minutes.
 */
export async function waitForJob(cli: Cli, { control, context, job, options }: Wait): Promise<Job | undefined> {
  const progress = cli.progress(options);
  const look = (signal: AbortSignal) => control.getJob({ params: { id: job.id } }, { ...context, signal });
  try {
    return await cli.interruptible((signal) => follow({ cli, look, progress }, job, signal));
  } finally {
    progress.end();
  }
}

interface Follow {
  readonly cli: Cli;
  readonly look: (signal: AbortSignal) => Promise<Job>;
  readonly progress: Progress;
}

async function follow({ cli, look, progress }: Follow, job: Job, signal: AbortSignal): Promise<Job | undefined> {
  const { clock } = cli;
  const stall = createStallWatch(cli, progress);
  let latest = job;
  let trouble: { readonly error: unknown; readonly sinceMs: number } | undefined;
  for await (const news of watchJob({ look, clock, silenceMs: REDRAW_MS }, signal)) {
    switch (news.kind) {
      case 'job':
        latest = news.job;
        trouble = undefined;
        break;
      case 'trouble':
        progress.say(printable(`${messageOf(news.error)}; the command keeps trying`));
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
    if (isHeldByLimit(latest)) return latest;
  }
  return signal.aborted ? undefined : latest;
}

/** Reports once that nothing changes. The usual reason is that no worker runs jobs. */
function createStallWatch({ clock }: Cli, progress: Progress): { look(job: Job): void } {
  let moved = { text: '', atMs: 0, isReported: false };
  return {
    look(job) {
      const { objects_per_s: _, ...rest } = job;
      const text = JSON.stringify(rest);
      if (text !== moved.text) moved = { text, atMs: clock.monotonicMs(), isReported: false };
      const limitMs = job.state === 'queued' ? STALL_MS.queued : STALL_MS.running;
      if (moved.isReported || job.state === 'paused' || clock.monotonicMs() - moved.atMs < limitMs) return;
      moved = { ...moved, isReported: true };
      progress.say(`${stallText(job, limitMs / 1_000)} ${WORKERS}`);
    },
  };
}

const WORKERS = 'Workers are `tally serve` processes with the role reindex: check that one runs, and its /readyz.';

function stallText(job: Job, seconds: number): string {
  if (job.state === 'queued') return `No worker has taken the job for ${seconds} s; it stays queued until one does.`;
  return `The job has made no progress for ${seconds} s (${stageOf(job)}).`;
}

function isHeldByLimit({ state, paused_because: reason }: Job): boolean {
  return state === 'paused' && reason === 'deletion-limit';
}

/** Returns the exit code for a job that the command waited for. */
export function exitCodeOf(job: Job): number {
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

/** Returns what the user can do about a job for which the command stopped waiting. */
export function leftText(cli: Cli, { id }: Job): string {
  return `The job continues. To see its progress: ${cli.typed('jobs', id)}\nTo cancel it: ${cli.typed('jobs cancel', id)}`;
}

/** Returns what the user can do about a job that its deletion limit holds; undefined for other jobs. */
export function adviceText(cli: Cli, job: Job): string | undefined {
  if (!isHeldByLimit(job)) return undefined;
  const { reserved = 0, waiting = 0 } = job.deletions ?? {};
  const isEmptied = job.counts?.listed === 0;
  return [
    `The deletion limit holds the job: ${countText(waiting)} documents wait to be deleted, and ${countText(reserved)} were. Everything else is done.`,
    `${isEmptied ? 'The bucket is empty, and all its documents would be deleted. Check that this is intended' : 'Check that the bucket is as intended'}. Then either allow as many in all:`,
    `  ${cli.typed('jobs resume', job.id, '--allow-deletes', String(reserved + waiting))}`,
    'or keep the documents:',
    `  ${cli.typed('jobs cancel', job.id)}`,
  ].join('\n');
}
