import { type Command, Option } from 'commander';
import type { Gap } from '../api/gaps.ts';
import { shellWord } from '../domain/commands.ts';
import { gapStates } from '../domain/gaps/gap.ts';
import { type PageOptions, listing, printPage } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { ageOfText, clockText, tableText, momentOfText } from './output.ts';

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
    .addOption(new Option('--state <state>', 'only gaps in this state').choices(gapStates));
  listing(gaps, 'tally gaps --state open').action(async (options: GapOptions) => {
    const { json, ...query } = options;
    const page = await cli.withControl((control, context) => control.listGaps({ query }, context));
    printPage(cli, { json }, page, { none: 'There are no gaps.', text: (items) => gapsText(items, cli) });
  });
}

/** The table has a column for jobs only if a gap has one. */
function gapsText(gaps: readonly Gap[], cli: Pick<Cli, 'nowMs'>): string {
  const withJobs = gaps.some((gap) => gap.job_id !== undefined);
  const nowMs = cli.nowMs();
  return tableText(
    ['BUCKET', 'KIND', 'STATE', ...(withJobs ? ['JOB'] : []), 'COUNT', 'FIRST', 'LAST', 'PREFIX', 'LATEST REASON', 'NEXT'],
    gaps.map((gap) => [
      gap.bucket,
      gap.kind,
      gap.state,
      ...(withJobs ? [gap.job_id] : []),
      gap.count,
      momentOfText(gap.first_seen_at, nowMs),
      // changes may be missing until a change in AWS has taken effect: until now, as far as it is known
      ageOfText(Date.parse(gap.last_seen_at) > nowMs ? new Date(nowMs).toISOString() : gap.last_seen_at, nowMs),
      gap.prefix,
      gap.reason,
      nextText(gap, cli),
    ]),
  );
}

/** What happens to the gap next, and when by the present plan. */
function nextText(gap: Gap, { nowMs }: Pick<Cli, 'nowMs'>): string | undefined {
  const { state, waits, held, job_id: job } = gap;
  switch (state) {
    case 'closed':
      return undefined;
    case 'closing':
      return `${job ?? 'a job'} closes it`;
    case 'open':
      if (held === true) return `waits for you: ${waits?.reason ?? 'start a re-index'}: tally reindex ${shellWord(gap.bucket)}`;
      return waits === undefined
        ? dueText(gap, nowMs())
        : `waits: ${waits.reason}${gap.kind === 'held-deletes' ? '' : untilText(waits.until ?? gap.not_before, nowMs())}`;
  }
}

function dueText({ due_at: due }: Gap, nowMs: number): string {
  return due === undefined || Date.parse(due) <= nowMs ? 're-index due' : `re-index at ${clockText(due, nowMs)}`;
}

function untilText(until: string | undefined, nowMs: number): string {
  return until === undefined || Date.parse(until) <= nowMs ? '' : `, until ${clockText(until, nowMs)}`;
}
