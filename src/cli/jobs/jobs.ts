import type { Command } from 'commander';
import type { Context, Operations } from '../../api/contract.ts';
import type { Job } from '../../api/jobs.ts';
import { allowDeletesOption, cursorOption, limitOption, moreText, printing, type PageOptions } from '../arguments.ts';
import type { Cli, JsonOption } from '../cli.ts';
import { jobsText, jobText } from './job-text.ts';
import { adviceText } from './wait.ts';

interface JobsOptions extends JsonOption, PageOptions {}

interface ResumeOptions extends JsonOption {
  readonly allowDeletes?: number;
}

const ID = 'job-0mk3x1a2b-0123456789ab';

/** `tally jobs [ID]` and `tally jobs cancel|pause|resume ID`. */
export function addJobsCommand(program: Command, cli: Cli): void {
  const jobs = addJobs(program, cli);
  addVerb(jobs, cli, {
    name: 'cancel',
    summary: 'cancel a job',
    description: 'Cancels a job that has not ended. What it has written stays.',
    verb: (control, request, context) => control.cancelJob(request, context),
  });
  addVerb(jobs, cli, {
    name: 'pause',
    summary: 'pause a job',
    description:
      'Pauses a job that is queued or running. It stops after the page that it is comparing, and continues from there when it is resumed.',
    verb: (control, request, context) => control.pauseJob(request, context),
  });
  const resume = addVerb(jobs, cli, {
    name: 'resume',
    summary: 'resume a paused job',
    description: 'Resumes a paused job. A job that its deletion limit holds needs --allow-deletes.',
    verb: (control, { params, allowDeletes }, context) =>
      control.resumeJob({ params, body: allowDeletes === undefined ? {} : { allow_deletes: allowDeletes } }, context),
  });
  resume.addOption(allowDeletesOption('let the job delete up to <n> documents in all, those included that it has deleted already'));
}

function addJobs(program: Command, cli: Cli): Command {
  const jobs = program
    .command('jobs')
    .summary('list, show, cancel, pause and resume re-index jobs')
    .description('Lists re-index jobs, the oldest first, or shows one job.')
    .argument('[id]', 'show only this job')
    .addOption(limitOption())
    .addOption(cursorOption());
  return printing(jobs, 'tally jobs', `tally jobs ${ID}`, `tally jobs cancel ${ID}`).action(
    async (id: string | undefined, options: JobsOptions) => {
      await (id === undefined ? list(cli, options) : show(cli, id, options));
    },
  );
}

interface JobRequest {
  readonly params: { readonly id: string };
  readonly allowDeletes: number | undefined;
}

interface JobVerb {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly verb: (control: Operations, request: JobRequest, context: Context) => Promise<Job>;
}

function addVerb(jobs: Command, cli: Cli, { name, summary, description, verb }: JobVerb): Command {
  const command = jobs.command(name).summary(summary).description(description).argument('<id>', 'the job');
  return printing(command, `tally jobs ${name} ${ID}`).action(async (id: string, _: JsonOption, self: Command) => {
    // `tally jobs` has --json too, and commander assigns it to that command wherever it stands
    const options: ResumeOptions = self.optsWithGlobals();
    const request = { params: { id }, allowDeletes: options.allowDeletes };
    const job = await cli.withControl((control, context) => verb(control, request, context));
    cli.print(options, job, () => jobText(job, cli));
  });
}

async function list(cli: Cli, options: JobsOptions): Promise<void> {
  const { json, ...query } = options;
  const page = await cli.withControl((control, context) => control.listJobs({ query }, context));
  if (page.items.length === 0) cli.hint(options, 'There are no jobs.');
  if (page.items.length > 0 || json === true) cli.print(options, page, () => jobsText(page.items, cli.nowMs()));
  if (page.next !== undefined) cli.hint(options, moreText(page.next));
}

async function show(cli: Cli, id: string, options: JsonOption): Promise<void> {
  const job = await cli.withControl((control, context) => control.getJob({ params: { id } }, context));
  cli.print(options, job, () => jobText(job, cli));
  const advice = adviceText(cli, job);
  if (advice !== undefined) cli.hint(options, advice);
}
