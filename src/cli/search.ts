import type { Command } from 'commander';
import type { ObjectDocument } from '../domain/document.ts';
import type { Page, SearchRequest } from '../pipeline/control.ts';
import { cursorOption, limitOption, pageOf, type PageOptions } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { jsonText, tableText } from './output.ts';

interface SearchOptions extends JsonOption, PageOptions {
  readonly bucket?: string;
  readonly key?: string;
  readonly prefix?: string;
  readonly extension?: string;
  readonly all?: boolean;
}

/** `tally search [QUERY…]`: live objects by words, key, prefix or extension. */
export function addSearchCommand(program: Command, cli: Cli): void {
  program
    .command('search')
    .description('find objects: every word must match, the last one as the beginning of a word')
    .argument('[query...]', 'words of the key')
    .option('--bucket <name>', 'only of this bucket')
    .option('--key <key>', 'only this very key')
    .option('--prefix <prefix>', 'only keys that begin so')
    .option('--extension <extension>', 'only with this extension, without the dot')
    .addOption(limitOption())
    .addOption(cursorOption())
    .option('--all', 'all pages; with --json one document a line')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  tally search annual report --extension pdf\n  tally search --bucket photos --prefix 2026/ --all --json',
    )
    .action((query: readonly string[], options: SearchOptions) =>
      cli.withControl(async (control) => {
        let request = requestOf(query, options);
        for (;;) {
          const page = await control.search(request);
          printPage(cli, options, page);
          if (page.next === undefined) return;
          if (options.all !== true) {
            if (options.json !== true) cli.hint('There are more: repeat it with --all, or with --cursor ' + page.next);
            return;
          }
          request = { ...request, cursor: page.next };
        }
      }),
    );
}

function requestOf(query: readonly string[], options: SearchOptions): SearchRequest {
  const { bucket, key, prefix, extension } = options;
  return {
    ...(query.length > 0 && { q: query.join(' ') }),
    ...(bucket !== undefined && { bucket }),
    ...(key !== undefined && { key }),
    ...(prefix !== undefined && { prefix }),
    ...(extension !== undefined && { extension }),
    ...pageOf(options),
  };
}

function printPage(cli: Cli, options: SearchOptions, page: Page<ObjectDocument>): void {
  if (options.json === true && options.all === true) {
    for (const document of page.items) cli.line(jsonText(document, 'compact'));
    return;
  }
  cli.print(options, page, () => (page.items.length === 0 ? 'Nothing found.' : documentsText(page.items)));
}

function documentsText(documents: readonly ObjectDocument[]): string {
  return tableText(
    ['BUCKET', 'SIZE', 'LAST MODIFIED', 'KEY'],
    documents.map(({ bucket, key, size, last_modified: lastModified }) => [bucket, size, lastModified, key]),
  );
}
