import type { Command } from 'commander';
import type { JobView } from '../../domain/reindex/job-view.ts';
import type { Control } from '../../pipeline/control/control.ts';
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
    verb: (verbs, id) => verbs.cancel(id),
  });
  addVerb(jobs, cli, {
    name: 'pause',
    summary: 'pause a job',
    description: 'Pauses a job that is queued or running: it stops at the next page, and goes on there when it is resumed.',
    verb: (verbs, id) => verbs.pause(id),
  });
  const resume = addVerb(jobs, cli, {
    name: 'resume',
    summary: 'resume a paused job',
    description: 'Resumes a paused job. One that its brake holds needs --allow-deletes.',
    verb: (verbs, id, { allowDeletes }) => verbs.resume(id, { ...(allowDeletes !== undefined && { allowDeletes }) }),
  });
  resume.addOption(allowDeletesOption());
}

function addJobs(program: Command, cli: Cli): Command {
  const jobs = program
    .command('jobs')
    .summary('list, show, cancel, pause and resume re-index jobs')
    .description('Lists re-index jobs, the oldest first, or shows one.')
    .argument('[id]', 'only this job')
    .addOption(limitOption())
    .addOption(cursorOption());
  return printing(jobs, 'tally jobs', `tally jobs ${ID}`, `tally jobs cancel ${ID}`).action(
    async (id: string | undefined, options: JobsOptions) => {
      await (id === undefined ? list(cli, options) : show(cli, id, options));
    },
  );
}

interface JobVerb {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly verb: (jobs: Control['jobs'], id: string, options: ResumeOptions) => Promise<JobView>;
}

function addVerb(jobs: Command, cli: Cli, { name, summary, description, verb }: JobVerb): Command {
  const command = jobs.command(name).summary(summary).description(description).argument('<id>', 'the job');
  return printing(command, `tally jobs ${name} ${ID}`).action(async (id: string, _: JsonOption, self: Command) => {
    // `tally jobs` has --json as well, and takes it wherever it stands
    const options: ResumeOptions = self.optsWithGlobals();
    const job = await cli.withControl((control) => verb(control.jobs, id, options));
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
  const advice = adviceText(job);
  if (advice !== undefined) cli.hint(options, advice);
}
