import type { Command } from 'commander';
import type { StoredObject } from '../api/search.ts';
import { cursorOption, limitOption, moreText, printing, type PageOptions } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { ageOfText, sizeText } from './human.ts';
import { tableText } from './output.ts';

interface SearchOptions extends JsonOption, PageOptions {
  readonly bucket?: string;
  readonly key?: string;
  readonly prefix?: string;
  readonly extension?: string;
}

/** `tally search [QUERY…]`: live objects by words, key, prefix or extension. */
export function addSearchCommand(program: Command, cli: Cli): void {
  const search = program
    .command('search')
    .summary('find objects in the index')
    .description(
      'Finds objects in the index. Every word must be in the key; the last one may be the beginning of a word. The results are sorted by bucket and key.',
    )
    .argument('[query...]', 'words of the key')
    .option('--bucket <name>', 'only objects of this bucket')
    .option('--key <key>', 'only the object with this key')
    .option('--prefix <prefix>', 'only keys that begin with this')
    .option('--extension <extension>', 'only keys with this extension')
    .addOption(limitOption())
    .addOption(cursorOption());
  printing(search, 'tally search annual report --extension pdf', 'tally search --bucket photos --prefix 2026/ --json').action(
    async (words: readonly string[], options: SearchOptions) => {
      const { json, ...filters } = options;
      const query = { ...filters, ...(words.length > 0 && { q: words.join(' ') }) };
      const page = await cli.withControl((control, context) => control.searchObjects({ query }, context));
      if (page.items.length === 0) cli.hint(options, 'No object in the index matches.');
      if (page.items.length > 0 || json === true) cli.print(options, page, () => documentsText(page.items, cli.nowMs()));
      if (page.next !== undefined) cli.hint(options, moreText(page.next));
    },
  );
}

/** The columns of the table. The key comes last, because it may be long. */
function documentsText(documents: readonly StoredObject[], nowMs: number): string {
  return tableText(
    ['BUCKET', 'SIZE', 'AGE', 'KEY'],
    documents.map(({ bucket, key, size, last_modified: modified }) => [bucket, sizeText(size), ageOfText(modified, nowMs), key]),
  );
}
