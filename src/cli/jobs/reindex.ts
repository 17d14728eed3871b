import { type Command, Option } from 'commander';
import { printable } from '../../domain/printable.ts';
import { jobModes, type JobMode } from '../../domain/reindex/job.ts';
import { allowDeletesOption, printing } from '../arguments.ts';
import { CALLER, type Cli, type JsonOption } from '../cli.ts';
import { jobText } from './job-text.ts';
import { adviceText, exitCodeOf, leftText, waitForJob } from './wait.ts';

interface ReindexOptions extends JsonOption {
  readonly prefix?: string;
  readonly mode?: JobMode;
  readonly fill?: true;
  readonly now?: true;
  readonly allowDeletes?: number;
  readonly wait?: true;
}

/** `tally reindex BUCKET`: compares a bucket with its index and writes the differences. */
export function addReindexCommand(program: Command, cli: Cli): void {
  const reindex = program
    .command('reindex')
    .summary('compare a bucket with its index and write the differences')
    .description(
      'Starts a job that compares a bucket with its index and writes the differences. The index serves all the while, and the bucket is never written to.',
    )
    .argument('<bucket>', 'a connected bucket')
    .option('--prefix <prefix>', 'only keys that begin so')
    .option('--fill', 'complete documents that lack a field, the storage class for one')
    .option('--now', 'do not wait for late events; such a job closes no gap')
    .addOption(new Option('--mode <mode>', 'apply: write (default); report: only tell').choices(jobModes))
    .addOption(allowDeletesOption())
    .option('--wait', 'wait until it has ended; exit code 0 if it is done');
  printing(reindex, 'tally reindex photos --prefix 2026/ --wait', 'tally reindex emptied-bucket --allow-deletes 20000').action(
    async (bucket: string, options: ReindexOptions) => {
      const { json: _, wait, ...request } = options;
      await cli.withControl(async (control) => {
        const job = await control.jobs.request({ bucket, ...request }, CALLER);
        if (wait !== true) {
          cli.print(options, job, () => `Job ${printable(job.id)} is queued.`);
          cli.hint(options, `Look at it: tally jobs ${printable(job.id)}`);
          return;
        }
        cli.hint(options, `Job ${printable(job.id)} is queued.`);
        const ended = await waitForJob(cli, { control, job, options });
        if (ended === undefined) {
          cli.leave(options, leftText(job));
          return;
        }
        cli.print(options, ended, () => jobText(ended));
        const advice = adviceText(ended);
        if (advice !== undefined) cli.hint(options, advice);
        cli.endWith(exitCodeOf(ended));
      });
    },
  );
}
