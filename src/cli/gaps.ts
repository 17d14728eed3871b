import { type Command, Option } from 'commander';
import { gapSchema, type GapRecord } from '../domain/gap.ts';
import { cursorOption, limitOption, pageOf, type PageOptions } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { tableText, timeText } from './output.ts';

interface GapOptions extends JsonOption, PageOptions {
  readonly bucket?: string;
  readonly state?: GapRecord['state'];
}

/** `tally gaps`: changes that a source did not tell. */
export function addGapsCommand(program: Command, cli: Cli): void {
  program
    .command('gaps')
    .description('list gaps: changes that a source did not tell, until a re-index closes them')
    .option('--bucket <name>', 'only of this bucket')
    .addOption(new Option('--state <state>', 'only in this state').choices(gapSchema.shape.state.options))
    .addOption(limitOption())
    .addOption(cursorOption())
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  tally gaps --state open')
    .action((options: GapOptions) =>
      cli.withControl(async (control) => {
        const { bucket, state } = options;
        const page = await control.gaps({
          ...(bucket !== undefined && { bucket }),
          ...(state !== undefined && { state }),
          ...pageOf(options),
        });
        cli.print(options, page, () => (page.items.length === 0 ? 'No gaps.' : gapsText(page.items)));
        if (page.next !== undefined && options.json !== true) cli.hint(`There are more: repeat it with --cursor ${page.next}`);
      }),
    );
}

function gapsText(gaps: readonly GapRecord[]): string {
  return tableText(
    ['BUCKET', 'KIND', 'STATE', 'COUNT', 'FIRST', 'LAST', 'PREFIX', 'REASON'],
    gaps.map(({ bucket, kind, state, count, firstSeenMs, lastSeenMs, prefix, reason }) => [
      ...[bucket, kind, state, count, timeText(firstSeenMs), timeText(lastSeenMs)],
      ...[prefix, reason],
    ]),
  );
}
