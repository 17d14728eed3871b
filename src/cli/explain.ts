import type { Command } from 'commander';
import type { ObjectDocument } from '../domain/document.ts';
import { printable } from '../domain/printable.ts';
import type { Explanation } from '../pipeline/control.ts';
import type { Cli, JsonOption } from './cli.ts';
import { fieldsText } from './output.ts';

/** `tally explain BUCKET KEY`: why a search finds the object, or does not. */
export function addExplainCommand(program: Command, cli: Cli): void {
  program
    .command('explain')
    .description('say what the index holds of a key, what S3 says now, and why a search finds the object or does not')
    .argument('<bucket>', 'the bucket')
    .argument('<key>', 'the key')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  tally explain photos 2026/cat.jpg')
    .action((bucket: string, key: string, options: JsonOption) =>
      cli.withControl(async (control) => {
        const explanation = await control.explain(bucket, key);
        cli.print(options, explanation, () => explanationText(explanation));
      }),
    );
}

function explanationText(explanation: Explanation): string {
  const { bucket, key, index, storage, clocks, agrees, sentence } = explanation;
  const fields = fieldsText({
    bucket,
    key,
    index: index === undefined ? 'nothing' : documentText(index),
    storage: storageText(storage),
    'clock of the document': clocks.document,
    'clock of this look': clocks.observation,
    'floor of the bucket': clocks.floor,
    agree: typeof agrees === 'string' ? agrees : agrees ? 'yes' : 'no',
  });
  return `${printable(sentence)}\n\n${fields}`;
}

function documentText(document: ObjectDocument): string {
  const what = document.deleted ? `deleted ${document.deleted_at ?? ''}` : stateText(document);
  return `${what}, ${document.settled ? 'settled' : 'provisional'}, from ${document.source}, written ${document.indexed_at}`;
}

function stateText(object: {
  readonly size?: number;
  readonly etag?: string;
  readonly version_id?: string;
  readonly last_modified?: string;
}): string {
  const { size, etag, version_id: versionId, last_modified: lastModified } = object;
  const parts = [
    size === undefined ? undefined : `${size} bytes`,
    etag === undefined ? undefined : `etag ${etag}`,
    versionId === undefined ? undefined : `version ${versionId}`,
    lastModified === undefined ? undefined : `modified ${lastModified}`,
  ];
  return ['present', ...parts.filter((part) => part !== undefined)].join(', ');
}

function storageText(storage: Explanation['storage']): string {
  if ('fault' in storage) return `unknown: ${storage.fault.reason} (${storage.fault.code}). ${storage.advice}`;
  const { state, observedAt } = storage;
  if (!state.present) return `absent, as of ${observedAt}`;
  const present = stateText({
    ...(state.sizeBytes !== undefined && { size: state.sizeBytes }),
    ...(state.etag !== undefined && { etag: state.etag }),
    ...(state.versionId !== undefined && { version_id: state.versionId }),
    ...(state.lastModifiedMs !== undefined && { last_modified: new Date(state.lastModifiedMs).toISOString() }),
  });
  return `${present}, as of ${observedAt}`;
}
