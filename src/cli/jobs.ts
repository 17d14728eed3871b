import { type Command, Option } from 'commander';
import { printable } from '../domain/printable.ts';
import { jobModes, type JobMode, type JobRecord } from '../domain/reindex-job.ts';
import { cursorOption, limitOption, pageOf, type PageOptions } from './arguments.ts';
import { CALLER, type Cli, type JsonOption } from './cli.ts';
import { fieldsText, tableText, timeText } from './output.ts';

interface ReindexOptions extends JsonOption {
  readonly prefix?: string;
  readonly mode?: JobMode;
}

interface JobsOptions extends JsonOption, PageOptions {
  readonly cancel?: boolean;
}

/** `tally reindex BUCKET` and `tally jobs [ID]`. */
export function addJobCommands(program: Command, cli: Cli): void {
  program
    .command('reindex')
    .description('queue a re-index of a bucket: its listing is compared with the index and the differences are written')
    .argument('<bucket>', 'a connected bucket')
    .option('--prefix <prefix>', 'only keys that begin so')
    .addOption(new Option('--mode <mode>', 'apply: write the differences; report: only tell them').choices(jobModes))
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  tally reindex photos --prefix 2026/')
    .action((bucket: string, options: ReindexOptions) =>
      cli.withControl(async (control) => {
        const { prefix, mode } = options;
        const request = { bucket, ...(prefix !== undefined && { prefix }), ...(mode !== undefined && { mode }) };
        const job = await control.jobs.request(request, CALLER);
        cli.print(options, job, () => `Job ${printable(job.id)} is ${job.state}. Follow it: tally jobs ${printable(job.id)}`);
      }),
    );
  program
    .command('jobs')
    .description('list re-index jobs, or show one')
    .argument('[id]', 'a job')
    .option('--cancel', 'cancel the job')
    .addOption(limitOption())
    .addOption(cursorOption())
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExamples:\n  tally jobs\n  tally jobs ID --cancel')
    .action(async (id: string | undefined, options: JobsOptions, command: Command) => {
      if (id === undefined && options.cancel === true) command.error('error: --cancel needs the ID of a job');
      await (id === undefined ? listJobs(cli, options) : showJob(cli, id, options));
    });
}

function listJobs(cli: Cli, options: JobsOptions): Promise<void> {
  return cli.withControl(async (control) => {
    const page = await control.jobs.list(pageOf(options));
    cli.print(options, page, () => (page.items.length === 0 ? 'No jobs.' : jobsText(page.items)));
    if (page.next !== undefined && options.json !== true) cli.hint(`There are more: repeat it with --cursor ${page.next}`);
  });
}

function showJob(cli: Cli, id: string, options: JobsOptions): Promise<void> {
  return cli.withControl(async (control) => {
    const job = await (options.cancel === true ? control.jobs.cancel(id) : control.jobs.get(id));
    cli.print(options, job, () =>
      fieldsText({
        id: job.id,
        bucket: job.bucket,
        prefix: job.prefix,
        mode: job.mode,
        state: job.state,
        'requested by': job.requestedBy,
        created: timeText(job.createdAtMs),
        started: timeText(job.startedAtMs),
        finished: timeText(job.finishedAtMs),
      }),
    );
  });
}

function jobsText(jobs: readonly JobRecord[]): string {
  return tableText(
    ['ID', 'BUCKET', 'MODE', 'STATE', 'CREATED', 'PREFIX'],
    jobs.map(({ id, bucket, mode, state, createdAtMs, prefix }) => [id, bucket, mode, state, timeText(createdAtMs), prefix]),
  );
}
