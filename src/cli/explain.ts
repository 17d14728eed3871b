import type { Command } from 'commander';
import type { Explanation } from '../registry/contract/objects.ts';
import type { StoredObject } from '../registry/contract/search.ts';
import { printable } from '../base/printable.ts';
import { printing } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { fieldsText, tableText, type Cell } from './output.ts';
import { sizeText } from '../base/texts.ts';

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
