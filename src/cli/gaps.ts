import { type Command, Option } from 'commander';
import { gapSchema, type GapRecord } from '../domain/gaps/gap.ts';
import { cursorOption, limitOption, moreText, printing, type PageOptions } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { ageText, durationText } from './human.ts';
import { tableText } from './output.ts';

interface GapOptions extends JsonOption, PageOptions {
  readonly bucket?: string;
  readonly state?: GapRecord['state'];
}

/** `tally gaps`: changes that a source did not tell. */
export function addGapsCommand(program: Command, cli: Cli): void {
  const gaps = program
    .command('gaps')
    .summary('list changes that a source did not tell')
    .description('Lists gaps: changes that a source did not tell, so that the index may differ until a re-index closes them.')
    .option('--bucket <name>', 'only of this bucket')
    .addOption(new Option('--state <state>', 'only in this state').choices(gapSchema.shape.state.options))
    .addOption(limitOption())
    .addOption(cursorOption());
  printing(gaps, 'tally gaps --state open').action(async (options: GapOptions) => {
    const { json, ...request } = options;
    const page = await cli.withControl((control) => control.gaps(request));
    if (page.items.length === 0) cli.hint(options, 'There are no gaps.');
    if (page.items.length > 0 || json === true) cli.print(options, page, () => gapsText(page.items, cli.nowMs()));
    if (page.next !== undefined) cli.hint(options, moreText(page.next));
  });
}

/** With the jobs that close them or have closed them, and why they are open still, where that is known of one. */
function gapsText(gaps: readonly GapRecord[], nowMs: number): string {
  const withJobs = gaps.some(({ jobId }) => jobId !== undefined);
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
      ...(withJobs ? [gap.jobId] : []),
      gap.count,
      ageText(gap.firstSeenMs, nowMs),
      ageText(gap.lastSeenMs, nowMs),
      gap.prefix,
      gap.reason,
      ...(withWaits ? [waitsText(gap, nowMs)] : []),
    ]),
  );
}

function waitsText({ waits }: GapRecord, nowMs: number): string | undefined {
  if (waits?.untilMs === undefined) return waits?.reason;
  return `${durationText(waits.untilMs - nowMs)}: ${waits.reason}`;
}
