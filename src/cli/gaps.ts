import { type Command, Option } from 'commander';
import type { Gap } from '../api/gaps.ts';
import { gapStates } from '../domain/gaps/gap.ts';
import { cursorOption, limitOption, moreText, printing, type PageOptions } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { ageOfText, durationText } from './human.ts';
import { tableText } from './output.ts';

interface GapOptions extends JsonOption, PageOptions {
  readonly bucket?: string;
  readonly state?: Gap['state'];
}

/** `tally gaps`: changes that a source did not report. */
export function addGapsCommand(program: Command, cli: Cli): void {
  const gaps = program
    .command('gaps')
    .summary('list changes that a source did not report')
    .description(
      'Lists gaps: changes that a source did not report, and deletions that wait for a person. The index may differ from the bucket until a re-index closes them.',
    )
    .option('--bucket <name>', 'only gaps of this bucket')
    .addOption(new Option('--state <state>', 'only gaps in this state').choices(gapStates))
    .addOption(limitOption())
    .addOption(cursorOption());
  printing(gaps, 'tally gaps --state open').action(async (options: GapOptions) => {
    const { json, ...query } = options;
    const page = await cli.withControl((control, context) => control.listGaps({ query }, context));
    if (page.items.length === 0) cli.hint(options, 'There are no gaps.');
    if (page.items.length > 0 || json === true) cli.print(options, page, () => gapsText(page.items, cli.nowMs()));
    if (page.next !== undefined) cli.hint(options, moreText(page.next));
  });
}

/** The table has columns for jobs and for reasons to wait only if a gap has them. */
function gapsText(gaps: readonly Gap[], nowMs: number): string {
  const withJobs = gaps.some((gap) => gap.job_id !== undefined);
  const withWaits = gaps.some(({ waits }) => waits !== undefined);
  return tableText(
    [
      'BUCKET',
      'KIND',
      'STATE',
      ...(withJobs ? ['JOB'] : []),
      'COUNT',
      'FIRST',
      'LAST',
      'PREFIX',
      'REASON',
      ...(withWaits ? ['WAITS'] : []),
    ],
    gaps.map((gap) => [
      gap.bucket,
      gap.kind,
      gap.state,
      ...(withJobs ? [gap.job_id] : []),
      gap.count,
      ageOfText(gap.first_seen_at, nowMs),
      ageOfText(gap.last_seen_at, nowMs),
      gap.prefix,
      gap.reason,
      ...(withWaits ? [waitsText(gap, nowMs)] : []),
    ]),
  );
}

function waitsText({ waits }: Gap, nowMs: number): string | undefined {
  if (waits?.until === undefined) return waits?.reason;
  return `${durationText(Date.parse(waits.until) - nowMs)}: ${waits.reason}`;
}
