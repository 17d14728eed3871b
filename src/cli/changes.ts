/** `tally changes`: the feed of a bucket's index, as JSON lines. */
import type { Command } from 'commander';
import { defined } from '../base/defined.ts';
import { printable } from '../base/texts.ts';
import type { Operations } from '../registry/contract/contract.ts';
import { shellWords } from '../base/commands.ts';
import { withExamples } from './arguments.ts';
import type { Cli } from './cli.ts';
import { jsonText } from './output.ts';
import { createReader } from './reading.ts';

type Page = Awaited<ReturnType<Operations['listChanges']>>;

interface ChangesOptions {
  readonly prefix?: string;
  readonly after?: string;
  readonly follow?: true;
}

/** The most that one request answers. */
const PAGE_LIMIT = 1_000;
/** A write is searchable within a second. */
const FOLLOW_INTERVAL_MS = 1_000;

/** Adds the command. A reader that stores each `cursor` line after the lines before it can go on from there after any kill. */
export function addChangesCommand(program: Command, cli: Cli): void {
  const changes = program
    .command('changes')
    .summary("follow a bucket's index as JSON lines")
    .description(
      "Prints a bucket's index as one JSON object per line: puts and deletions, from old to new. After each page, it prints the cursor to continue from.",
    )
    .argument('<bucket>', 'a connected bucket')
    .option('--prefix <prefix>', 'only keys that begin with this')
    .option('--after <cursor>', 'continue after this cursor (default: everything that the index holds)')
    .option('--follow', 'wait for further changes');
  withExamples(changes, 'tally changes photos --follow', 'tally changes photos --after CURSOR').action(
    async (bucket: string, options: ChangesOptions) => {
      await cli.withControl((control) => cli.interruptible((signal) => printChanges(cli, { control, bucket, options }, signal)));
    },
  );
}

interface Asked {
  readonly control: Operations;
  readonly bucket: string;
  readonly options: ChangesOptions;
}

/** Prints page after page, until all is printed and nobody follows, the reader of stdout ends, or the command is interrupted. */
async function printChanges(cli: Cli, asked: Asked, signal: AbortSignal): Promise<void> {
  let { after } = asked.options;
  for await (const page of pagesOf(cli, asked, signal)) {
    const isNews = page.items.length > 0 || page.cursor !== after;
    if (isNews && !(await cli.printLines(linesOf(page)))) return;
    after = page.cursor;
  }
  if (!signal.aborted) return;
  // joined by `=`, because a prefix may begin with a hyphen
  const options = Object.entries(defined({ prefix: asked.options.prefix, after })).map(([name, value]) => `--${name}=${value}`);
  cli.leave({}, `To continue: tally changes ${shellWords(asked.bucket, ...options, '--follow')}`);
}

async function* pagesOf(
  cli: Cli,
  { control, bucket, options: { follow, prefix, after } }: Asked,
  signal: AbortSignal,
): AsyncGenerator<Page> {
  let place = after;
  const look = (): Promise<Page> =>
    control.listChanges({ query: { bucket, limit: PAGE_LIMIT, ...defined({ prefix, after: place }) } }, { signal });
  const read = follow === true ? createReader({ clock: cli.clock, look, say: (text) => cli.hint({}, printable(text)) }) : look;
  while (!signal.aborted) {
    const page = await read(signal);
    if (page !== undefined) yield page;
    place = page?.cursor ?? place;
    if (page?.more === true) continue;
    if (follow !== true) return;
    await cli.clock.sleep(FOLLOW_INTERVAL_MS, signal).catch(() => undefined);
  }
}

function linesOf({ items, cursor, more, reset }: Page): readonly string[] {
  // on a reset, what comes next belongs to an empty copy
  const before = reset === true ? [{ reset }] : [];
  return [...before, ...items, { cursor, more }].map((line) => jsonText(line, 'compact'));
}
