import type { Command } from 'commander';
import { differenceKinds, type DifferenceKind, type Job, type JobCounts } from '../registry/contract/job.ts';
import { costText, jobFields, kindTexts, sizesOf } from '../registry/contract/job-texts.ts';
import { zeroCounts } from '../registry/contract/job-view.ts';
import { printable } from '../base/printable.ts';
import { EXAMPLES_MAX } from '../records/counts.ts';
import { printing } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { fieldsText, tableText } from './output.ts';
import { countText } from '../base/texts.ts';
import { exitCodeOf, leftText, waitForJob } from './jobs.ts';
import { exitCodes } from './errors.ts';

interface DriftOptions extends JsonOption {
  readonly prefix?: string;
}

/** `tally drift BUCKET`: reports the differences and writes nothing; exit code 2 if there are any. */
export function addDriftCommand(program: Command, cli: Cli): void {
  const drift = program
    .command('drift')
    .summary('report how a bucket and its index differ')
    .description(
      'Compares a bucket with its index and reports the differences. Nothing is written. The exit code is 2 if an object is missing, stale or phantom, else 0.',
    )
    .argument('<bucket>', 'a connected bucket')
    .option('--prefix <prefix>', 'only keys that begin with this');
  printing(drift, 'tally drift photos --prefix 2026/', 'tally drift photos --json').action(
    async (bucket: string, options: DriftOptions) => {
      const { json: _, ...request } = options;
      await cli.withControl(async (control) => {
        const job = await control.startReindex({ params: { bucket }, body: { ...request, mode: 'report' } });
        const ended = await waitForJob(cli, { control, job, options });
        if (ended === undefined) {
          cli.leave(options, leftText(job));
          return;
        }
        cli.print(options, ended, () => (ended.state === 'done' ? reportText(ended) : fieldsText(jobFields(ended))));
        cli.endWith(ended.state === 'done' && driftOf(ended) > 0 ? exitCodes.drift : exitCodeOf(ended));
      });
    },
  );
}

/** Counts the keys that differ. */
function driftOf({ counts = zeroCounts }: Job): number {
  return counts.missing + counts.stale + counts.phantom;
}

function reportText(job: Job): string {
  const { counts = zeroCounts, cost_usd: cost } = job;
  const facts = fieldsText({ job: job.id, ...sizesOf(counts), cost: costText(cost) });
  return [headingOf(job), countsText(counts), facts, ...examplesOf(job)].join('\n\n');
}

function headingOf(job: Job): string {
  const { bucket, prefix, counts = zeroCounts } = job;
  const drift = driftOf(job);
  const place = printable(`s3://${bucket}/${prefix}`);
  if (drift > 0) return `${place} and its index differ in ${countText(drift, 'key')}.`;
  if (counts.listed === 0) return `${place} and its index agree: both are empty.`;
  return `${place} and its index agree.`;
}

/** The kinds that have a row in the table. Objects that lack optional fields are counted as equal. */
const keyKinds = ['missing', 'stale', 'phantom', 'in_flight'] as const satisfies readonly DifferenceKind[];

function countsText(counts: JobCounts): string {
  const table = tableText(
    ['KIND', 'KEYS', 'MEANING'],
    [
      ['equal', countText(counts.equal), 'the index agrees with the bucket'],
      ...keyKinds.map((kind) => [kindTexts[kind].name, countText(counts[kind]), kindTexts[kind].meaning]),
    ],
  );
  return [table, ...lackingTexts(counts)].join('\n\n');
}

function lackingTexts({ lacking_optional_fields: optional, lacking_enrichment: enrichment }: JobCounts): readonly string[] {
  const begin = (lacking: number): string => `Of the equal ones, ${countText(lacking)} ${lacking === 1 ? 'lacks' : 'lack'}`;
  return [
    ...(optional === 0
      ? []
      : [
          `${begin(optional)} an optional field, such as the storage class, because events do not\nalways carry it. This is not drift. A re-index with --fill adds it.`,
        ]),
    ...(enrichment === 0
      ? []
      : [
          `${begin(enrichment)} the enrichment that the bucket asks for. This is not drift. A re-index with --fill\nadds it, with a HEAD for each of them.`,
        ]),
  ];
}

/** The most examples that are printed of each kind that is not drift. */
const NO_DRIFT_MAX = 5;
const shownKinds = [...differenceKinds, 'lacking_enrichment'] as const;
const maxima: Readonly<Record<(typeof shownKinds)[number], number>> = {
  missing: EXAMPLES_MAX,
  stale: EXAMPLES_MAX,
  phantom: EXAMPLES_MAX,
  lacking_optional_fields: NO_DRIFT_MAX,
  lacking_enrichment: NO_DRIFT_MAX,
  in_flight: NO_DRIFT_MAX,
};

/** The columns of the table. The key comes last, because it may be long. */
function examplesOf({ counts = zeroCounts, examples = {} }: Job): readonly string[] {
  const shown = shownKinds.flatMap((kind) => (examples[kind] ?? []).slice(0, maxima[kind]).map((example) => ({ kind, ...example })));
  if (shown.length === 0) return [];
  const rows = shown.map(({ kind, fields, key }) => [kindTexts[kind].name, fields?.join(' '), key]);
  const isCut = shownKinds.some((kind) => counts[kind] > Math.min(maxima[kind], examples[kind]?.length ?? 0));
  const cutText = `At most ${EXAMPLES_MAX} examples of each kind of drift are shown, and ${NO_DRIFT_MAX} of the others. --json prints all that were kept.`;
  return [tableText(['EXAMPLE', 'FIELDS', 'KEY'], rows), ...(isCut ? [cutText] : [])];
}
