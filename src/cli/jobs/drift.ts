import type { Command } from 'commander';
import { printable } from '../../domain/printable.ts';
import { differenceKinds, EXAMPLES_MAX, noCounts, type DifferenceKind, type ReconcileCounts } from '../../domain/reindex/counts.ts';
import type { JobView } from '../../domain/reindex/job-view.ts';
import { printing } from '../arguments.ts';
import { CALLER, type Cli, type JsonOption } from '../cli.ts';
import { exitCodes } from '../exit-codes.ts';
import { countText } from '../human.ts';
import { fieldsText, tableText } from '../output.ts';
import { costText, jobText, kindTexts, sizesOf } from './job-text.ts';
import { exitCodeOf, leftText, waitForJob } from './wait.ts';

interface DriftOptions extends JsonOption {
  readonly prefix?: string;
}

/** `tally drift BUCKET`: tells the differences and writes nothing; exit code 2 if there are any. */
export function addDriftCommand(program: Command, cli: Cli): void {
  const drift = program
    .command('drift')
    .summary('tell how a bucket and its index differ')
    .description(
      'Compares a bucket with its index and tells the differences. Nothing is written. Ends with 2 if there are any (missing, stale or phantom), else with 0.',
    )
    .argument('<bucket>', 'a connected bucket')
    .option('--prefix <prefix>', 'only keys that begin so');
  printing(drift, 'tally drift photos --prefix 2026/', 'tally drift photos --json').action(
    async (bucket: string, options: DriftOptions) => {
      const { json: _, ...request } = options;
      await cli.withControl(async (control) => {
        const job = await control.jobs.request({ bucket, ...request, mode: 'report' }, CALLER);
        const ended = await waitForJob(cli, { control, job, options });
        if (ended === undefined) {
          cli.leave(options, leftText(job));
          return;
        }
        cli.print(options, ended, () => (ended.state === 'done' ? reportText(ended) : jobText(ended)));
        cli.endWith(ended.state === 'done' && driftOf(ended) > 0 ? exitCodes.drift : exitCodeOf(ended));
      });
    },
  );
}

/** How many keys differ. */
function driftOf({ counts = noCounts }: JobView): number {
  return counts.missing + counts.stale + counts.phantom;
}

function reportText(job: JobView): string {
  const { bucket, prefix, counts = noCounts, costUsd } = job;
  const drift = driftOf(job);
  const place = printable(`s3://${bucket}/${prefix}`);
  const heading =
    drift === 0
      ? `${place} and its index agree.`
      : `${place} and its index differ in ${drift === 1 ? '1 key' : `${countText(drift)} keys`}.`;
  const facts = fieldsText({ job: job.id, ...sizesOf(counts), cost: costText(costUsd) });
  return [heading, countsText(counts), facts, ...examplesOf(job)].join('\n\n');
}

function countsText(counts: ReconcileCounts): string {
  return tableText(
    ['KIND', 'KEYS', 'MEANING'],
    [
      ['equal', countText(counts.equal), 'the index says what the bucket says'],
      ...differenceKinds.map((kind) => [kindTexts[kind].name, countText(counts[kind]), kindTexts[kind].meaning]),
    ],
  );
}

/** Of what is no drift: enough to see what is meant. Where events carry no storage class, nearly every document is incomplete. */
const NO_DRIFT_MAX = 5;
const maxima: Readonly<Record<DifferenceKind, number>> = {
  missing: EXAMPLES_MAX,
  stale: EXAMPLES_MAX,
  phantom: EXAMPLES_MAX,
  incomplete: NO_DRIFT_MAX,
  inFlight: NO_DRIFT_MAX,
};

/** The key comes last: it may be long. */
function examplesOf({ counts = noCounts, examples = {} }: JobView): readonly string[] {
  const rows = differenceKinds.flatMap((kind) =>
    (examples[kind] ?? []).slice(0, maxima[kind]).map(({ key, fields }) => [kindTexts[kind].name, fields?.join(' '), key]),
  );
  if (rows.length === 0) return [];
  const isCut = differenceKinds.some((kind) => counts[kind] > Math.min(maxima[kind], examples[kind]?.length ?? 0));
  const cutText = `Shown are at most ${EXAMPLES_MAX} of a kind, and ${NO_DRIFT_MAX} of what is no drift; --json tells all that were kept.`;
  return [tableText(['EXAMPLE', 'FIELDS', 'KEY'], rows), ...(isCut ? [cutText] : [])];
}
