import { defined } from '../domain/defined.ts';
import { Option, type Command } from 'commander';
import { usageBy, type Usage } from '../api/usage.ts';
import { cursorOption, limitOption, moreText, printing, type PageOptions } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { addFilterOptions, filterParameters, type FilterOptions } from './filters.ts';
import { ageOfText, countText, sizeText } from './human.ts';
import { tableText } from './output.ts';

interface UsageOptions extends JsonOption, PageOptions, FilterOptions {
  readonly by?: (typeof usageBy)[number];
  readonly times?: true;
}

/** `tally du BUCKET [PREFIX]`: objects and bytes. */
export function addUsageCommand(program: Command, cli: Cli): void {
  const usage = program
    .command('du')
    .summary('sum objects and bytes of a bucket')
    .description('Sums objects and bytes of a bucket by the next folder, or by class, extension or age.')
    .argument('<bucket>', 'the bucket')
    .argument('[prefix]', 'a folder, which ends in a slash')
    .addOption(new Option('--by <group>', 'what to group by (default: folder)').choices(usageBy))
    .option('--times', 'also show the ages of the oldest and the newest object');
  addFilterOptions(usage).addOption(limitOption()).addOption(cursorOption());
  printing(usage, 'tally du photos 2026/', 'tally du photos --by age --extension jpg').action(
    async (bucket: string, prefix: string | undefined, options: UsageOptions) => {
      const { by, times, limit, cursor } = options;
      const query = {
        ...filterParameters(options),
        bucket,
        ...defined({ prefix, by }),
        ...(times && { times: 'true' as const }),
        ...defined({ limit, cursor }),
      };
      const page = await cli.withControl((control, context) => control.getUsage({ query }, context));
      if (page.items.length === 0) cli.hint(options, 'No object in the index matches.');
      if (page.items.length > 0 || options.json === true) {
        cli.print(options, page, () => usageText(page.items, { times: times === true, nowMs: cli.nowMs() }));
      }
      if (page.next !== undefined) cli.hint(options, moreText(page.next));
    },
  );
}

function usageText(items: readonly Usage[], { times, nowMs }: { readonly times: boolean; readonly nowMs: number }): string {
  return tableText(
    ['OBJECTS', 'SIZE', ...(times ? ['OLDEST', 'NEWEST'] : []), 'NAME'],
    items.map(({ name = '.', objects, bytes, oldest, newest }) => [
      countText(objects),
      sizeText(bytes),
      ...(times ? [ageOfText(oldest, nowMs), ageOfText(newest, nowMs)] : []),
      name,
    ]),
  );
}
