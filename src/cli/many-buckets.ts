/** Several buckets in one command: a few at a time, each for itself, and one table of what became of them. */
import PQueue from 'p-queue';
import type { AddedBucket } from '../api/buckets.ts';
import type { Context, Operations } from '../api/contract.ts';
import { printable } from '../domain/printable.ts';
import type { Cli, CliDependencies, JsonOption } from './cli.ts';
import { exitCodeOf } from './connections.ts';
import { CommandError, linesOf, orUsage, problemOf } from './errors.ts';
import { exitCodes } from './exit-codes.ts';
import { tableText } from './output.ts';

export type NamesDependencies = Pick<CliDependencies, 'readText' | 'streams'>;

/**
 * A bucket costs some five requests a second to EventBridge, which answers 50 a second, and one to CloudTrail, which answers ten:
 * more at once would be refused. https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
 */
const AT_ONCE = 8;
/** Fifteen thousand names of the greatest length. */
const NAMES_BYTES_MAX = 1_048_576;

/** Reads the names of a file, one a line; `-` is stdin. What follows a `#` is a comment. Throws {@link CommandError}. */
export async function namesIn(path: string, { readText, streams }: NamesDependencies): Promise<readonly string[]> {
  const text = path === '-' ? await textOf(streams().stdin) : orUsage(path, () => readText(path, NAMES_BYTES_MAX));
  if (text === undefined) throw new CommandError('usage', `${path} is larger than 1 MiB, so it is no list of buckets`);
  return text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((name) => name !== '');
}

async function textOf(stream: AsyncIterable<unknown>): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    const read = Buffer.from(String(chunk));
    bytes += read.byteLength;
    if (bytes > NAMES_BYTES_MAX) return undefined;
    chunks.push(read);
  }
  return Buffer.concat(chunks).toString('utf8');
}

type Row =
  | { readonly bucket: string; readonly result: 'connected' | 'applied' | 'unchanged'; readonly answer: AddedBucket }
  | { readonly bucket: string; readonly result: 'failed'; readonly error: unknown }
  /** Ctrl-C came first. */
  | { readonly bucket: string; readonly result: 'not begun' };

export type AddOne = (control: Operations, context: Context, name: string) => Promise<AddedBucket>;

/** Adds the buckets, and prints one table. A bucket that fails keeps no other one from being added. */
export async function addMany(cli: Cli, options: JsonOption, names: readonly string[], addOne: AddOne): Promise<void> {
  const buckets = [...new Set(names)];
  const rows = await cli.withControl((control, context) => rowsOf(cli, options, buckets, (name) => addOne(control, context, name)));
  cli.print(options, { buckets: rows.map(rowView), counts: countsOf(rows) }, () => resultText(cli, rows));
  end(cli, options, rows);
}

async function rowsOf(
  cli: Cli,
  options: JsonOption,
  buckets: readonly string[],
  add: (name: string) => Promise<AddedBucket>,
): Promise<readonly Row[]> {
  const counting = cli.counting(options);
  const turns = new PQueue({ concurrency: AT_ONCE });
  const counts = { done: 0, failed: 0, all: buckets.length };
  return cli.interruptible(async (signal) => {
    counting.show(counts);
    const rows = await turns.addAll(
      buckets.map((bucket) => async (): Promise<Row> => {
        if (signal.aborted) return { bucket, result: 'not begun' };
        const row = await rowOf(bucket, add);
        counts.done += 1;
        if (row.result === 'failed') counts.failed += 1;
        counting.show(counts);
        return row;
      }),
    );
    counting.end();
    return rows;
  });
}

async function rowOf(bucket: string, add: (name: string) => Promise<AddedBucket>): Promise<Row> {
  try {
    const answer = await add(bucket);
    const isUnchanged = !answer.changed && answer.connection?.changed !== true;
    const made = answer.connection === undefined ? 'connected' : 'applied';
    return { bucket, result: isUnchanged ? 'unchanged' : made, answer };
  } catch (error) {
    return { bucket, result: 'failed', error };
  }
}

function rowView(row: Row): object {
  return row.result === 'failed' ? { bucket: row.bucket, result: row.result, error: problemOf(row.error) } : row;
}

function countsOf(rows: readonly Row[]): Readonly<Record<Row['result'], number>> {
  const count = (result: Row['result']): number => rows.filter((row) => row.result === result).length;
  return {
    connected: count('connected'),
    applied: count('applied'),
    unchanged: count('unchanged'),
    failed: count('failed'),
    'not begun': count('not begun'),
  };
}

/** The table, and below it why each bucket failed, and what helps. */
function resultText(cli: Cli, rows: readonly Row[]): string {
  const table = tableText(
    ['BUCKET', 'RESULT', 'SOURCE', 'CODE'],
    rows.map((row) => [row.bucket, row.result, 'answer' in row ? row.answer.source : undefined, codeOf(row)]),
  );
  const failures = rows.flatMap((row) => (row.result === 'failed' ? [{ ...row, lines: linesOf(row.error) }] : []));
  const reasons = failures.map(({ bucket, lines: [what = ''] }) => `${bucket}: ${what}`);
  // what helps against a fault is the same for all buckets that have it
  const advice = new Map(failures.flatMap((row) => (row.lines.length > 1 ? [[codeOf(row) ?? '', row.lines.slice(1)] as const] : [])));
  const counts = Object.entries(countsOf(rows)).filter(([, count]) => count > 0);
  const blocks = [
    reasons,
    ...[...advice].map(([code, lines]) => [`${code}: ${lines.join(' ')}`]),
    [`${rows.length} buckets: ${counts.map(([result, count]) => `${count} ${result}`).join(', ')}.`],
  ].filter((block) => block.length > 0);
  return [table, ...blocks.map((block) => block.map((line) => printable(cli.shown(line))).join('\n'))].join('\n\n');
}

/** Why it failed, or what keeps its events from being known to arrive. */
function codeOf(row: Row): string | undefined {
  if (row.result === 'failed') return String(problemOf(row.error)['code']);
  return row.result === 'not begun' ? undefined : row.answer.connection?.unproven?.[0]?.code;
}

function end(cli: Cli, options: JsonOption, rows: readonly Row[]): void {
  if (rows.some(({ result }) => result === 'not begun')) {
    cli.leave(options, 'Interrupted. The same command continues, and leaves alone what is done.');
    return;
  }
  if (rows.some(({ result }) => result === 'failed')) {
    cli.hint(options, 'Once the causes are gone, repeat the command: it changes nothing of what is done.');
    cli.endWith(exitCodes.someFailed);
    return;
  }
  cli.endWith(exitCodeOf(rows.flatMap((row) => ('answer' in row ? (row.answer.connection?.unproven ?? []) : []))));
}
