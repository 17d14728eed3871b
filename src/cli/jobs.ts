/** `tally reindex` and `tally drift`: a job at the command line. */
import type { Command } from 'commander';
import { shellWord } from '../base/commands.ts';
import type { Operations } from '../registry/contract/contract.ts';
import { exampleKinds } from '../records/comparison.ts';
import type { Job } from '../registry/contract/job.ts';
import { countColumns, jobAdvice, jobFields, kindNames } from '../registry/contract/job-texts.ts';
import type { ReindexRequest } from '../registry/contract/jobs.ts';
import { printing } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { printable, countText } from '../base/texts.ts';
import { hasEnded, heldBack } from '../registry/contract/job-state.ts';
import { addOptions } from './from-rows.ts';
import { answerText, joinedText, tableText } from './output.ts';
import { exitCodes } from './errors.ts';
import { jobKnown, type Progress } from './progress.ts';
import { createReader } from './reading.ts';

interface ReindexOptions extends JsonOption, Partial<Omit<ReindexRequest, 'bucket' | 'mode'>> {
  readonly wait?: true;
}

/** `tally reindex BUCKET`: compares a bucket with its index and writes the differences. */
export function addReindexCommand(program: Command, cli: Cli): void {
  const reindex = program
    .command('reindex')
    .summary('compare a bucket with its index and write the differences')
    .description(
      'Starts a job that compares a bucket with its index and writes the differences to the index. Searches keep working, and Tally never writes to the bucket.',
    )
    .argument('<bucket>', 'a connected bucket')
    .option('--wait', 'wait until the job has ended; the exit code is 0 if it succeeded');
  addOptions(reindex, cli, 'startReindex', { without: ['bucket', 'mode'] });
  printing(reindex, 'tally reindex photos --prefix 2026/ --wait').action(async (bucket: string, options: ReindexOptions) => {
    const { json: _, wait, ...body } = options;
    await cli.withControl(async (control) => {
      const job = await control.startReindex({ params: { bucket }, body });
      if (wait !== true) {
        cli.print(options, job, () => `Job ${printable(job.id)} is queued.`);
        cli.hint(options, `To see its progress: tally jobs ${shellWord(job.id)}`);
        return;
      }
      cli.hint(options, `Job ${printable(job.id)} is queued.`);
      const ended = await waitForJob(cli, { control, job, options });
      if (ended === undefined) return;
      cli.print(options, ended, () => answerText({ columns: jobFields }, ended, cli.nowMs()));
      for (const line of jobAdvice(ended)) cli.hint(options, line);
      cli.endWith(exitCodeOf(ended));
    });
  });
}

interface DriftOptions extends JsonOption {
  readonly prefix?: string;
}

/** `tally drift BUCKET`: reports the differences and writes nothing; exit code 2 if there are any. */
export function addDriftCommand(program: Command, cli: Cli): void {
  const drift = program
    .command('drift')
    .summary('report how a bucket and its index differ')
    .description(
      'Compares a bucket with its index and reports the differences. Writes nothing. The exit code is 2 if an object is missing, stale or phantom, and 0 if none is.',
    )
    .argument('<bucket>', 'a connected bucket')
    .option('--prefix <prefix>', 'only keys that begin with this');
  printing(drift, 'tally drift photos --prefix 2026/', 'tally drift photos --json').action(
    async (bucket: string, options: DriftOptions) => {
      const { json: _, ...request } = options;
      await cli.withControl(async (control) => {
        const job = await control.startReindex({ params: { bucket }, body: { ...request, mode: 'report' } });
        const ended = await waitForJob(cli, { control, job, options });
        if (ended === undefined) return;
        cli.print(options, ended, () => reportText(ended, cli.nowMs()));
        cli.endWith(ended.state === 'done' && driftOf(ended) > 0 ? exitCodes.drift : exitCodeOf(ended));
      });
    },
  );
}

/** The number of keys that differ. */
function driftOf({ counts }: Job): number {
  return counts === undefined ? 0 : counts.missing + counts.stale + counts.phantom;
}

function reportText(job: Job, nowMs: number): string {
  const { examples = {} } = job;
  // the key comes last, because it may be long
  const rows = exampleKinds.flatMap((kind) => (examples[kind] ?? []).map(({ fields, key }) => [kindNames[kind], fields?.join(' '), key]));
  return joinedText([
    job.state === 'done' ? headingOf(job) : '',
    answerText({ columns: job.state === 'done' ? { job: 'id', ...countColumns } : jobFields }, job, nowMs),
    rows.length === 0 ? '' : tableText(['EXAMPLE', 'FIELDS', 'KEY'], rows),
  ]);
}

function headingOf(job: Job): string {
  const { bucket, prefix, counts } = job;
  const drift = driftOf(job);
  const place = printable(`s3://${bucket}/${prefix}`);
  if (drift > 0) return `${place} and its index differ in ${countText(drift, 'key')}.`;
  return `${place} and its index agree${counts?.listed === 0 ? ': both are empty' : ''}.`;
}

/** Waits for a job. The job continues when the command stops waiting. */

/** How often the job is read: a person sees each step, and each read costs a few requests to the state store. */
const LOOK_INTERVAL_MS = 2_000;

interface Wait {
  readonly control: Operations;
  readonly job: Job;
  readonly options: JsonOption;
}

/**
 * Shows the job's progress until it has ended, and returns it. After Ctrl-C, says what a person can do about the job, and returns
 * undefined. Rejects with the error that has prevented reads of the job for two minutes.
 */
async function waitForJob(cli: Cli, { control, job: { id }, options }: Wait): Promise<Job | undefined> {
  const progress = cli.progress(options);
  const look = (signal: AbortSignal) => control.getJob({ params: { id } }, { signal });
  const ended = await cli.interruptible((signal) => follow({ cli, look, progress }, signal)).finally(() => progress.end());
  const word = shellWord(id);
  if (ended === undefined)
    cli.leave(options, `The job continues. To see its progress: tally jobs ${word}\nTo cancel it: tally jobs cancel ${word}`);
  return ended;
}

interface Follow {
  readonly cli: Cli;
  readonly look: (signal: AbortSignal) => Promise<Job>;
  readonly progress: Progress;
}

async function follow(parts: Follow, signal: AbortSignal): Promise<Job | undefined> {
  const { cli, look, progress } = parts;
  const read = createReader({ clock: cli.clock, look, say: (text) => progress.say(printable(text)) });
  while (!signal.aborted) {
    const job = await read(signal);
    if (signal.aborted) break;
    if (job !== undefined) {
      progress.show(jobKnown(job, cli.nowMs()));
      if (hasEnded(job)) return job;
    }
    await cli.clock.sleep(LOOK_INTERVAL_MS, signal).catch(() => undefined);
  }
  return undefined;
}

/** The exit code for a job that the command waited for. */
function exitCodeOf(job: Job): number {
  switch (job.state) {
    case 'done':
      return heldBack(job) > 0 ? exitCodes.held : exitCodes.ok;
    case 'cancelled':
      return exitCodes.cancelled;
    case 'failed':
    case 'paused':
    case 'queued':
    case 'running':
      return exitCodes.failure;
  }
}
