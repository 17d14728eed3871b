import { type Command, Option } from 'commander';
import { printable } from '../../domain/printable.ts';
import { jobModes, type JobMode } from '../../domain/reindex/job.ts';
import { allowDeletesOption, printing } from '../arguments.ts';
import type { Cli, JsonOption } from '../cli.ts';
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
      'Starts a job that compares a bucket with its index and writes the differences. Searches work throughout, and the bucket is never written to.',
    )
    .argument('<bucket>', 'a connected bucket')
    .option('--prefix <prefix>', 'only keys that begin with this')
    .option('--fill', 'also write documents that lack an optional field, such as the storage class, or the enrichment of the bucket')
    .option('--now', 'do not wait for late events; such a job closes no gap')
    .addOption(new Option('--mode <mode>', 'apply: write the differences (default); report: only count them').choices(jobModes))
    .addOption(allowDeletesOption('let the job delete up to <n> documents in all, even where its deletion limit would stop it earlier'))
    .option('--wait', 'wait until the job has ended; the exit code is 0 if it is done');
  printing(reindex, 'tally reindex photos --prefix 2026/ --wait', 'tally reindex emptied-bucket --allow-deletes 20000').action(
    async (bucket: string, options: ReindexOptions) => {
      const { json: _, wait, allowDeletes, ...rest } = options;
      const body = { ...rest, ...(allowDeletes !== undefined && { allow_deletes: allowDeletes }) };
      await cli.withControl(async (control, context) => {
        const job = await control.startReindex({ params: { bucket }, body }, context);
        if (wait !== true) {
          cli.print(options, job, () => `Job ${printable(job.id)} is queued.`);
          cli.hint(options, `To see its progress: ${cli.typed('jobs', job.id)}`);
          return;
        }
        cli.hint(options, `Job ${printable(job.id)} is queued.`);
        const ended = await waitForJob(cli, { control, context, job, options });
        if (ended === undefined) {
          cli.leave(options, leftText(cli, job));
          return;
        }
        cli.print(options, ended, () => jobText(ended, cli));
        const advice = adviceText(cli, ended);
        if (advice !== undefined) cli.hint(options, advice);
        cli.endWith(exitCodeOf(ended));
      });
    },
  );
}
