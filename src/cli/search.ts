import { defined } from '../base/defined.ts';
import { Option, type Command, InvalidArgumentError } from 'commander';
import { printable, ageOfText, countText, sizeText } from '../base/texts.ts';
import type { OperationQuery } from '../registry/contract/contract.ts';
import type { Explanation } from '../registry/contract/objects.ts';
import type { StoredObject } from '../registry/contract/search.ts';
import { moreText, parameter, printing } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { addOptions, printAll } from './from-rows.ts';
import { CSV_HEADING, csvLine } from './csv.ts';
import { fieldsText, jsonText, tableText, type Cell } from './output.ts';
import { sizeOf } from '../search/values.rules.ts';
import type { Grouping } from '../registry/contract/usage.ts';

type SearchQuery = OperationQuery<'searchObjects'>;

interface SearchOptions extends JsonOption, SearchQuery {
  readonly csv?: true;
  readonly jsonl?: true;
}

/** `tally search [QUERY…]`: objects by words and filters. */
export function addSearchCommand(program: Command, cli: Cli): void {
  const search = program
    .command('search')
    .summary('find objects in the index')
    .description(
      'Finds objects in the index, by words in the key or by clauses such as ext:pdf and size>1G. Results are sorted by bucket and key.',
    )
    .argument('[query...]', 'the query');
  addOptions(search, cli, 'searchObjects', { without: ['q', 'as_of', ...sizes] });
  addSizeOptions(search)
    .addOption(new Option('--csv', 'print all results as CSV').conflicts(['json', 'jsonl', 'limit', 'cursor', 'total']))
    .addOption(new Option('--jsonl', 'print all results, one JSON object per line').conflicts(['json', 'limit', 'cursor', 'total']));
  printing(search, 'tally search annual report --extension pdf', "tally search --query 'ext:parquet size>1G modified<7d' --csv").action(
    async (words: readonly string[], { json, csv, jsonl, ...parameters }: SearchOptions) => {
      const options = { json };
      const text = [...words, parameters.query].join(' ').trim();
      const query = { ...parameters, ...(text !== '' && { query: text }) };
      if (csv === true || jsonl === true) {
        const lineOf = (document: StoredObject): string => (csv === true ? csvLine(document) : jsonText(document, 'compact'));
        const headings = csv === true ? [CSV_HEADING] : [];
        return cli.withControl((control) =>
          printAll(cli, (page) => control.searchObjects({ query: { ...query, ...page } }), lineOf, headings),
        );
      }
      const page = await cli.withControl((control) => control.searchObjects({ query }));
      if (page.items.length === 0) cli.hint(options, 'No object in the index matches.');
      if (page.items.length > 0 || options.json === true) cli.print(options, page, () => documentsText(page.items, cli.nowMs()));
      if (page.total !== undefined) cli.hint(options, totalText(page.total));
      if (page.next !== undefined) cli.hint(options, moreText(page.next));
    },
  );
}

function totalText({ value, exact }: { readonly value: number; readonly exact: boolean }): string {
  return exact ? `${matchText(value)}.` : `More than ${matchText(value)}.`;
}

function matchText(count: number): string {
  return `${countText(count, 'object')} ${count === 1 ? 'matches' : 'match'}`;
}

/** The table's columns. The key comes last, because it may be long. */
function documentsText(documents: readonly StoredObject[], nowMs: number): string {
  return tableText(
    ['BUCKET', 'SIZE', 'AGE', 'KEY'],
    documents.map(({ bucket, key, size, last_modified: modified, deleted_at: deletedAt }) => [
      bucket,
      sizeText(size),
      ageOfText(modified ?? deletedAt, nowMs),
      key,
    ]),
  );
}

/** Values that people write with units. */
const sizes = ['size_min', 'size_max'];

function addSizeOptions(command: Command): Command {
  return command
    .addOption(sizeOption('--size-min <size>', 'only objects of at least this size: 64K, 1.5G'))
    .addOption(sizeOption('--size-max <size>', 'only objects of at most this size'));
}

function sizeOption(flags: string, description: string): Option {
  return parameter(flags, description).argParser((text) => {
    const bytes = sizeOf(text);
    if (bytes === undefined) throw new InvalidArgumentError('It must be a size: bytes, 64K, 1.5G (1,024 each) or 1GB (10^9).');
    return bytes;
  });
}

/** `tally du [BUCKET] [PREFIX]`: objects and bytes. */
export function addUsageCommand(program: Command, cli: Cli): void {
  const usage = program
    .command('du')
    .summary('count objects and bytes')
    .description(
      'Counts the objects and bytes that a search finds: by the next folder (the default), extension, class, size, age or bucket (the default for all buckets).',
    )
    .argument('[bucket]', 'the bucket (default: all)')
    .argument('[prefix]', 'a folder, ending in a slash');
  addOptions(usage, cli, 'getUsage', { without: ['bucket', 'prefix', 'q', ...sizes] });
  printing(addSizeOptions(usage), 'tally du photos 2026/', 'tally du photos --by age --by class --extension jpg').action(
    async (
      bucket: string | undefined,
      prefix: string | undefined,
      { json, by = [bucket === undefined ? 'bucket' : 'folder'], ...parameters }: JsonOption & OperationQuery<'getUsage'>,
    ) => {
      const query = { ...parameters, by, ...defined({ bucket, prefix }) };
      const found = await cli.withControl((control) => control.getUsage({ query }));
      if (found.objects > 0 || json === true) cli.print({ json }, found, () => usageText(found.by));
      const summary =
        found.objects === 0 ? 'No object in the index matches.' : `${matchText(found.objects)}, ${sizeText(found.bytes)} in all.`;
      cli.hint({ json }, summary);
    },
  );
}

function usageText(groupings: readonly Grouping[]): string {
  const isSeveral = groupings.length > 1;
  const rows = groupings.flatMap(({ by, groups, others }) => {
    const unnamed = by === 'folder' ? '.' : '(none)';
    const all = [...groups, ...(others === undefined ? [] : [{ name: '(others)', ...others }])];
    return all.map(({ name = unnamed, objects, bytes }) => [...(isSeveral ? [by] : []), countText(objects), sizeText(bytes), name]);
  });
  return tableText([...(isSeveral ? ['BY'] : []), 'OBJECTS', 'SIZE', 'NAME'], rows);
}

/** `tally explain BUCKET KEY`: why a search finds the object, or does not. */
export function addExplainCommand(program: Command, cli: Cli): void {
  const explain = program
    .command('explain')
    .summary("explain why a search does or doesn't find an object")
    .description("Shows what the index holds for a key and what S3 reports now, and explains why a search does or doesn't find the object.")
    .argument('<bucket>', 'the bucket')
    .argument('<key>', 'the key');
  printing(explain, 'tally explain photos 2026/cat.jpg', 'tally explain photos -- --a-key-that-begins-with-dashes').action(
    async (bucket: string, key: string, options: JsonOption) => {
      const request = { params: { bucket }, query: { key } };
      const explanation = await cli.withControl((control) => control.explainObject(request));
      cli.print(options, explanation, () => explanationText(explanation));
    },
  );
}

function explanationText(explanation: Explanation): string {
  const { bucket, key, index, storage, agrees, sentence, bucket_status: status } = explanation;
  const comparison = tableText(['', 'INDEX', 'S3'], comparedRows(explanation));
  const facts = fieldsText({
    agree: typeof agrees === 'string' ? agrees : agrees ? 'yes' : 'no',
    'written by': index === undefined ? undefined : causeText(index),
    'written at': index?.indexed_at,
    'seen at': 'fault' in storage ? undefined : storage.observed_at,
    ...('fault' in storage && {
      'S3 answered': `${storage.fault.reason} (${storage.fault.code})`,
      advice: storage.advice,
    }),
    'the bucket': status.state === 'ok' ? undefined : status.sentence,
  });
  return [printable(`s3://${bucket}/${key}`), printable(sentence), '', comparison, '', facts].join('\n');
}

/** Formats the fields of index and S3 side by side. Rows that are empty on both sides are left out. */
function comparedRows({ index, storage }: Explanation): readonly (readonly Cell[])[] {
  const [ours, theirs] = [indexCells(index), storageCells(storage)];
  return ['state', 'size', 'etag', 'version', 'modified', 'class']
    .map((name, row) => [name, ours[row], theirs[row]])
    .filter(([, left, right]) => left !== undefined || right !== undefined);
}

function indexCells(index: StoredObject | undefined): readonly Cell[] {
  if (index === undefined) return ['nothing'];
  const state = `${index.deleted ? 'deleted' : 'present'}${index.settled ? '' : ', provisional'}`;
  return [state, sizeText(index.size), index.etag, index.version_id, index.last_modified, index.storage_class];
}

function storageCells(storage: Explanation['storage']): readonly Cell[] {
  if ('fault' in storage) return ['unknown'];
  const { state } = storage;
  if (!state.present) return ['absent'];
  return ['present', sizeText(state.size_bytes), state.etag, state.version_id, state.last_modified, state.storage_class];
}

function causeText({ source, event_name: eventName, event_time: eventTime }: StoredObject): string {
  return [source, eventName, eventTime === undefined ? undefined : `of ${eventTime}`].filter((part) => part !== undefined).join(' ');
}
