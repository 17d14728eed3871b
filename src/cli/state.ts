import type { Command } from 'commander';
import { exportEnd, exportHeader, parseExport, type ExportedRecord } from '../domain/state-export.ts';
import type { Settings } from '../settings/settings.ts';
import { printing, withExamples } from './arguments.ts';
import type { Cli, CliDependencies, JsonOption } from './cli.ts';
import { CommandError, orUsage } from './errors.ts';

export type StateDependencies = Pick<CliDependencies, 'version' | 'createFile' | 'readText'>;

/** The page of an export: the largest that the API has, so that it needs the fewest requests. */
const EXPORT_LIMIT = 1_000;
/** A hundred thousand API keys are 60 MB. It is read as a whole, and V8 has strings of 512 MiB at most. */
const FILE_BYTES_MAX = 256 * 1_024 * 1_024;

/** `tally state export|import`. */
export function addStateCommands(program: Command, cli: Cli, dependencies: StateDependencies): void {
  const state = program
    .command('state')
    .summary('back up what cannot be rebuilt, and restore it')
    .description(
      'Writes buckets, what was made in AWS for them, users, grants and API keys to a file, and reads them into an empty store.',
    );
  withExamples(state, 'tally state export tally-state.jsonl', 'tally state import tally-state.jsonl');
  addExport(state, cli, dependencies);
  addImport(state, cli, dependencies);
}

function addExport(state: Command, cli: Cli, { version, createFile }: StateDependencies): void {
  const command = state
    .command('export')
    .summary('write buckets, what was made in AWS for them, users, grants and API keys to a file')
    .description(
      'Writes buckets, what was made in AWS for them, users, grants and API keys to a new file, as lines of JSON. Only you can read it: it has the hashes of the secrets of the keys, and who may do what. Run it where the store can be reached, or with the session of an administrator.',
    )
    .argument('<file>', 'the new file');
  printing(command, 'tally state export tally-state.jsonl').action(async (path: string, options: JsonOption) => {
    const file = orUsage(path, () => createFile(path));
    try {
      file.write(`${exportHeader(version, cli.nowMs())}\n`);
      const records = await exportAll(cli, (lines) => file.write(lines));
      file.write(`${exportEnd(records)}\n`);
      file.keep();
      cli.print(options, { file: path, records }, () => `${records} records were written to ${path}.`);
    } catch (error) {
      // a part of an export is of no use
      file.drop();
      throw error;
    }
  });
}

/** Writes page after page, so that the export may be longer than the memory. */
async function exportAll(cli: Cli, write: (lines: string) => void): Promise<number> {
  return cli.withControl(async (control, context) => {
    let records = 0;
    let cursor: string | undefined;
    do {
      const body = { limit: EXPORT_LIMIT, ...(cursor !== undefined && { cursor }) };
      const page = await control.exportState({ body }, context);
      write(page.items.map((record) => `${JSON.stringify(record)}\n`).join(''));
      records += page.items.length;
      cursor = page.next;
    } while (cursor !== undefined);
    return records;
  });
}

function addImport(state: Command, cli: Cli, { readText }: StateDependencies): void {
  const command = state
    .command('import')
    .summary('read an export into an empty store')
    .description(
      'Reads a file of `tally state export` into an empty store. The workers then re-index every bucket. Run it where the store can be reached, before the first process serves it. An import that was interrupted can be repeated.',
    )
    .argument('<file>', 'the file');
  printing(command, 'tally state import tally-state.jsonl').action(async (path: string, options: JsonOption) => {
    requireStore(cli.settings());
    const records = recordsIn(
      path,
      orUsage(path, () => readText(path, FILE_BYTES_MAX)),
    );
    const written = await cli.withImport((importState, context) => importState(records, context));
    cli.print(options, { file: path, records: records.length, written }, () => `${records.length} records are in the store.`);
  });
}

function recordsIn(path: string, text: string | undefined): readonly ExportedRecord[] {
  if (text === undefined) throw new CommandError('usage', `${path} is larger than 256 MiB, so it is not an export`);
  const parsed = parseExport(text);
  if (!parsed.ok) throw new CommandError('usage', `${path}: ${parsed.mistake}`);
  return parsed.records;
}

/** An import writes API keys of any user, so it is for those who may write to the store anyway. */
function requireStore({ TALLY_REGISTRY_URL: registry, TALLY_INDEX_URL: index, TALLY_EMBEDDED: embedded }: Settings): void {
  if (registry === undefined && (index !== undefined || embedded)) return;
  throw new CommandError('usage', 'an import needs the store itself: set TALLY_INDEX_URL, and leave out --registry and TALLY_REGISTRY_URL');
}
