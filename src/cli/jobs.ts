import { type Command, Option } from 'commander';
import { printable } from '../domain/printable.ts';
import { jobModes, type JobMode } from '../domain/reindex/job.ts';
import type { JobView } from '../domain/reindex/job-view.ts';
import { cursorOption, limitOption, moreText, printing, type PageOptions } from './arguments.ts';
import { CALLER, type Cli, type JsonOption } from './cli.ts';
import { ageText } from './human.ts';
import { fieldsText, tableText, timeText } from './output.ts';

interface ReindexOptions extends JsonOption {
  readonly prefix?: string;
  readonly mode?: JobMode;
}

interface JobsOptions extends JsonOption, PageOptions {}

/** `tally reindex BUCKET`, `tally jobs [ID]` and `tally jobs cancel ID`. */
export function addJobCommands(program: Command, cli: Cli): void {
  addReindex(program, cli);
  addCancel(addJobs(program, cli), cli);
}

function addReindex(program: Command, cli: Cli): void {
  const reindex = program
    .command('reindex')
    .summary('queue a re-index of a bucket')
    .description('Queues a job that compares a bucket with its index. The job is stored as queued: this version does not run it yet.')
    .argument('<bucket>', 'a connected bucket')
    .option('--prefix <prefix>', 'only keys that begin so')
    .addOption(new Option('--mode <mode>', 'apply: write the differences (default); report: only tell them').choices(jobModes));
  printing(reindex, 'tally reindex photos --prefix 2026/').action(async (bucket: string, options: ReindexOptions) => {
    const { json: _, ...request } = options;
    const job = await cli.withControl((control) => control.jobs.request({ bucket, ...request }, CALLER));
    cli.print(options, job, () => `Job ${printable(job.id)} is queued.`);
    cli.hint(options, `This version stores the job but does not run it yet. Look at it: tally jobs ${printable(job.id)}`);
  });
}

function addJobs(program: Command, cli: Cli): Command {
  const jobs = program
    .command('jobs')
    .summary('list, show and cancel re-index jobs')
    .description('Lists re-index jobs, the oldest first, or shows one.')
    .argument('[id]', 'only this job')
    .addOption(limitOption())
    .addOption(cursorOption());
  return printing(jobs, 'tally jobs', 'tally jobs cancel job-0mk3x1a2b-0123456789ab').action(
    async (id: string | undefined, options: JobsOptions) => {
      await (id === undefined ? list(cli, options) : show(cli, id, options));
    },
  );
}

function addCancel(jobs: Command, cli: Cli): void {
  const cancel = jobs
    .command('cancel')
    .summary('cancel a job')
    .description('Cancels a job that has not ended.')
    .argument('<id>', 'the job');
  printing(cancel, 'tally jobs cancel job-0mk3x1a2b-0123456789ab').action(async (id: string, _: JsonOption, command: Command) => {
    // `tally jobs` has --json as well, and takes it wherever it stands
    const options: JsonOption = command.optsWithGlobals();
    const job = await cli.withControl((control) => control.jobs.cancel(id));
    cli.print(options, job, () => jobText(job));
  });
}

async function list(cli: Cli, options: JobsOptions): Promise<void> {
  const { json, ...request } = options;
  const page = await cli.withControl((control) => control.jobs.list(request));
  if (page.items.length === 0) cli.hint(options, 'There are no jobs.');
  if (page.items.length > 0 || json === true) cli.print(options, page, () => jobsText(page.items, cli.nowMs()));
  if (page.next !== undefined) cli.hint(options, moreText(page.next));
}

async function show(cli: Cli, id: string, options: JsonOption): Promise<void> {
  const job = await cli.withControl((control) => control.jobs.get(id));
  cli.print(options, job, () => jobText(job));
}

function jobText(job: JobView): string {
  const { id, bucket, prefix, mode, state, requestedBy } = job;
  return fieldsText({
    id,
    bucket,
    prefix: prefix === '' ? undefined : prefix,
    mode,
    state,
    'requested by': requestedBy,
    created: timeText(job.createdAtMs),
    started: timeText(job.startedAtMs),
    finished: timeText(job.finishedAtMs),
  });
}

function jobsText(jobs: readonly JobView[], nowMs: number): string {
  return tableText(
    ['ID', 'STATE', 'MODE', 'AGE', 'BUCKET', 'PREFIX'],
    jobs.map(({ id, state, mode, createdAtMs, bucket, prefix }) => [
      id,
      state,
      mode,
      ageText(createdAtMs, nowMs),
      bucket,
      prefix === '' ? undefined : prefix,
    ]),
  );
}
