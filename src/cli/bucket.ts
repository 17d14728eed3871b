import { shellWord } from '../domain/commands.ts';
import { defined, omit } from '../domain/defined.ts';
import type { Command } from 'commander';
import type { Context, OperationBody, OperationQuery, Operations } from '../api/contract.ts';
import type { AddedBucket, Bucket, UnconnectedBucket, ShownBucket } from '../api/buckets.ts';
import { commandOfAct } from '../domain/bucket-status.ts';
import { printable } from '../domain/printable.ts';
import { EVENTBRIDGE_SWITCH } from '../domain/provisioning/planning/plan.ts';
import { RequestError } from '../domain/request-error.ts';
import { connectedNotApplied } from '../domain/provisioning/not-applied.ts';
import { allBuckets } from './all-buckets.ts';
import { accountOption, enrichOption, flag, parameter, printing, sourceOption, topicOption, withExamples } from './arguments.ts';
import type { Cli, JsonOption, CliDependencies } from './cli.ts';
import { CommandError, linesOf, orUsage, problemOf } from './errors.ts';
import { addConnectionCommands, endUnproven, printApplied, unprovenText, applied, untilFree, exitCodeOf } from './connections.ts';
import { fieldsText, tableText } from './output.ts';
import { ageOfText } from '../domain/texts.ts';
import PQueue from 'p-queue';
import { exitCodes } from './exit-codes.ts';

/** `reindex` is false with --no-reindex. */
interface AddOptions extends JsonOption, Omit<OperationBody<'addBucket'>, 'bucket'> {
  readonly fromFile?: string;
  readonly switchOnEventbridge?: true;
}

/** `tally bucket …`. */
export function addBucketCommands(program: Command, cli: Cli, dependencies: NamesDependencies): void {
  const bucket = program
    .command('bucket')
    .summary('connect, list and disconnect buckets')
    .description('Connects, lists and disconnects buckets.');
  withExamples(bucket, 'tally bucket add photos', 'tally bucket list');
  addAdd(bucket, cli, dependencies);
  addList(bucket, cli);
  addSet(bucket, cli);
  addRemove(bucket, cli);
  addConnectionCommands(bucket, cli);
}

function addAdd(bucket: Command, cli: Cli, dependencies: NamesDependencies): void {
  const add = bucket
    .command('add')
    .summary('connect one or several buckets')
    .description(
      'Connects a bucket: its events are indexed from now on, and a first re-index indexes what it holds already. For a bucket that is connected already, it changes the given options and reads region and versioning again. Several buckets are connected a few at a time, each by itself; one table shows the results, and a second run continues and leaves alone what is done.',
    )
    .argument('[names...]', 'the bucket, or several')
    .option('--from-file <file>', 'also the buckets that a file names, one a line; - is stdin')
    .addOption(sourceOption('how its events reach the bucket queue'))
    .addOption(topicOption('the SNS topic that its events come through; needed with --source topic'))
    .addOption(enrichOption())
    .option('--no-reindex', 'do not index what a new bucket holds already, until a re-index is started')
    .option('--apply', 'also make in AWS what the bucket needs')
    .option(
      '--switch-on-eventbridge',
      'with --source eventbridge: agree that all events of the buckets also go to EventBridge from then on',
    )
    .option('--plan <token>', 'with --apply: the token of the plan that you have agreed to')
    .addOption(accountOption());
  printing(
    add,
    'tally bucket add photos --apply',
    'tally bucket add photos --source eventbridge',
    'tally bucket add --apply photos videos music',
    'tally bucket add --apply --from-file buckets.txt',
  ).action(async (given: readonly string[], options: AddOptions) => {
    const { apply, plan, fromFile } = options;
    if (plan !== undefined && apply !== true) throw new CommandError('usage', '--plan needs --apply');
    const names = [...given, ...(fromFile === undefined ? [] : await namesIn(fromFile, dependencies))];
    const [name] = names;
    if (name === undefined) throw new CommandError('usage', 'name a bucket, or a file of buckets with --from-file');
    if (names.length === 1 && fromFile === undefined) return addBucket(cli, name, options);
    if (plan !== undefined) throw new CommandError('usage', '--plan is about one bucket: name that one alone');
    return addMany(cli, options, names, (control, context, each) => added(cli, control, context, { name: each, options, isAlone: false }));
  });
}

async function addBucket(cli: Cli, name: string, options: AddOptions): Promise<void> {
  const record = await cli.withControl((control, context) => added(cli, control, context, { name, options, isAlone: true }));
  cli.print(options, record, () => bucketText(record));
  for (const hint of [...eventsText(record), ...firstText(record, options)]) cli.hint(options, hint);
  if (record.connection !== undefined) endUnproven(cli, record.connection);
}

/** Adds one bucket, and repeats its apply until it is done. */
async function added(
  cli: Cli,
  control: Operations,
  context: Context,
  { name, options, isAlone }: { readonly name: string; readonly options: AddOptions; readonly isAlone: boolean },
): Promise<AddedBucket> {
  const { reindex, ...wanted } = omit(options, 'json', 'fromFile', 'switchOnEventbridge', 'plan');
  const body = { ...wanted, ...(reindex === false && { reindex }) };
  const record = await agreeing(options, (plan) => control.addBucket({ body: { bucket: name, ...body, ...plan } }, context));
  if (body.apply !== true || record.connection?.state === 'applied') return record;
  const wish = defined({ bucket_account: body.bucket_account });
  const request = () => agreeing(options, (plan) => control.applyBucket({ params: { bucket: name }, body: { ...wish, ...plan } }, context));
  // what one of several waits for is not worth a line
  const connection = await applied(cli, isAlone ? options : { json: true }, request).catch((error: unknown) =>
    Promise.reject(connectedNotApplied(name, error)),
  );
  if (!isAlone) return { ...record, connection };
  // the status of the first answer was that of before
  const { status } = await control.getBucket({ params: { bucket: name } }, context);
  return { ...record, status, connection };
}

/** Sends the request with the token that was given, and again with that of its plan, if the option agrees to it. */
async function agreeing<Answer>(
  { switchOnEventbridge, plan }: AddOptions,
  request: (plan: { readonly plan?: string }) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await request(defined({ plan }));
  } catch (error) {
    const token = switchOnEventbridge === true ? tokenOfSwitch(error) : undefined;
    if (token === undefined) throw error;
    return request({ plan: token });
  }
}

/** The token of a plan that touches nothing of others but that the bucket sends its events to EventBridge. */
function tokenOfSwitch(error: unknown): string | undefined {
  if (!(error instanceof RequestError) || error.code !== 'connect.plan-needed') return undefined;
  const { token, foreign } = error.extra;
  return typeof token === 'string' && foreign === EVENTBRIDGE_SWITCH ? token : undefined;
}

interface SetOptions extends JsonOption, Omit<OperationBody<'changeBucket'>, 'topic_arn'> {
  /** False with --no-topic. */
  readonly topic_arn?: string | false;
  readonly apply?: true;
}

function addSet(bucket: Command, cli: Cli): void {
  const set = bucket
    .command('set')
    .summary('change how a bucket is connected')
    .description(
      'Changes the source, the topic or the enrichment of a connected bucket, and reads region and versioning again. A change of source opens a gap, which a re-index closes. With --apply it makes the new parts in AWS first; the earlier ones deliver until then.',
    )
    .argument('<name>', 'the bucket')
    .addOption(sourceOption('how its events reach the bucket queue'))
    .addOption(topicOption('the SNS topic that its events come through'))
    .addOption(parameter('--no-topic', 'forget the topic', 'topic_arn'))
    .addOption(enrichOption())
    .option('--apply', 'also make in AWS what the bucket needs then');
  printing(set, 'tally bucket set photos --enrich tags', 'tally bucket set photos --source notification --apply').action(
    async (name: string, { json, apply, topic_arn: topic, ...rest }: SetOptions) => {
      const options = { json };
      const params = { bucket: name };
      if (apply === true) {
        if (topic === false) throw new CommandError('usage', '--no-topic cannot be applied: say --source');
        const wish = { ...rest, ...defined({ topic_arn: topic }) };
        const done = await cli.withControl((control, context) =>
          applied(cli, options, () => control.applyBucket({ params, body: wish }, context)),
        );
        printApplied(cli, options, done);
        return;
      }
      const change = { ...rest, ...(topic !== undefined && { topic_arn: topic === false ? null : topic }) };
      const changed = await cli.withControl((control, context) => control.changeBucket({ params, body: change }, context));
      cli.print(options, changed, () => bucketText(changed));
      if (changed.advice !== undefined) cli.hint(options, `Next: ${changed.advice}`);
    },
  );
}

function addList(bucket: Command, cli: Cli): void {
  const list = bucket
    .command('list')
    .summary('list buckets')
    .description('Lists the connected buckets, and those whose events arrive although they are not connected.');
  printing(list, 'tally bucket list').action(async (options: JsonOption) => {
    const answer = await cli.withControl(allBuckets);
    const { items, unconnected, activity } = answer;
    if (items.length === 0) cli.hint(options, `No bucket is connected. Connect one: tally bucket add NAME`);
    const tables = () => [connectedText(items, cli.nowMs()), unconnectedText(unconnected, cli.nowMs())].filter((text) => text !== '');
    if (items.length + unconnected.length > 0 || options.json === true) cli.print(options, answer, () => tables().join('\n\n'));
    for (const hint of [...actHints(items), ...letterHints(activity?.dead_letters)]) cli.hint(options, hint);
  });
}

function addRemove(bucket: Command, cli: Cli): void {
  const remove = bucket
    .command('remove')
    .summary('disconnect a bucket')
    .description(
      'Disconnects a bucket, takes away what Tally made for it in AWS, and deletes its documents from the index. Objects are never touched.',
    )
    .argument('<name>', 'the bucket')
    .addOption(flag('--keep-aws', 'leave in AWS what Tally made there'))
    .addOption(flag('--keep-documents', 'leave the documents in the index'))
    .option('--yes', 'do not ask for confirmation');
  printing(remove, 'tally bucket remove photos --yes').action(
    async (name: string, { yes, json, ...query }: JsonOption & OperationQuery<'removeBucket'> & { readonly yes?: true }) => {
      const options = { json };
      const keepsDocuments = query.keep_documents === 'true';
      const aws = query.keep_aws === 'true' ? '' : ', and takes away what Tally made for it in AWS';
      if (!keepsDocuments) await cli.requireYes(defined({ yes }), `This deletes all documents of ${printable(name)} from the index${aws}`);
      const removed = await cli.withControl((control, context) =>
        untilFree(cli, options, () => control.removeBucket({ params: { bucket: name }, query }, context)),
      );
      const documents = keepsDocuments ? 'its documents stay in the index' : 'its documents are deleted from the index';
      cli.print(options, removed, () => `${printable(name)} is disconnected, and ${documents}.`);
      for (const { name: part, reason } of removed.kept) cli.hint(options, `Left in AWS: ${part}: ${reason}`);
    },
  );
}

/** Whether its events arrive from now on, and if not, what is missing and the one command that follows. */
function eventsText({ bucket, status, connection }: AddedBucket): readonly string[] {
  if (connection?.state === 'applied') {
    if (connection.unproven !== undefined)
      return ['Its parts in AWS are made, and its events are not known to arrive.', unprovenText(connection)];
    return ['Its parts in AWS are made. S3 needs about five minutes until it sends every event, and a re-index follows then.'];
  }
  if (status.state === 'waiting') return ['What its events wait for is tried again within a minute.'];
  if (status.state !== 'events_unproven') return ['Its events are indexed from now on.'];
  const act = status.act?.kind === 'plan' ? 'plan' : 'doctor';
  const command = commandOfAct(act, bucket);
  const what = act === 'plan' ? 'what an apply would make, and the command for it' : 'what is checked';
  return [`Nothing was made in AWS, and its events are not known to arrive. ${status.sentence}.`, `To see ${what}: ${printable(command)}`];
}

/** What happens to the objects that the bucket holds already. */
function firstText({ bucket, job_id: jobId, advice, enrich, status }: AddedBucket, { reindex }: AddOptions): readonly string[] {
  if (advice !== undefined) {
    return [
      `Documents that are indexed already lack what enrich ${enrich} asks for. To fill it in: tally reindex ${shellWord(bucket)} --fill`,
    ];
  }
  if (jobId !== undefined) return [`A first re-index indexes what it holds already: tally jobs ${shellWord(jobId)}`];
  // a bucket that was connected before has had its first re-index, unless it was left out
  return reindex && status.act?.kind !== 'reindex' ? [] : [`To index what it holds already: tally reindex ${shellWord(bucket)}`];
}

function bucketText({ bucket, region, source, topic_arn: topic, versioning, enrich, status }: Bucket): string {
  return fieldsText({ bucket, region, source, topic, versioning: versioning.status, enrich, status: statusText(status) });
}

function connectedText(connected: readonly ShownBucket[], nowMs: number): string {
  if (connected.length === 0) return '';
  return tableText(
    ['BUCKET', 'REGION', 'SOURCE', 'VERSIONS', 'ENRICH', 'LAST EVENT', 'COMPARED', 'STATUS'],
    connected.map((record) => [
      record.bucket,
      record.region,
      record.source,
      record.versioning?.status,
      record.enrich,
      ageOfText(record.last_event_at, nowMs),
      ageOfText(record.last_compared_at, nowMs),
      statusText(record.status),
    ]),
  );
}

/** One word where all is well, and one sentence where it is not. */
function statusText({ state, sentence }: Bucket['status']): string {
  return state === 'ok' ? 'ok' : sentence;
}

/** More than these do not help at once: the table has all. */
const ACTS_MAX = 8;

/** What to do about the buckets that are not well. */
function actHints(items: readonly ShownBucket[]): readonly string[] {
  const commands = items.flatMap(({ status }) => (status.act === undefined ? [] : [printable(status.act.command)]));
  const left = commands.length - ACTS_MAX;
  const shown = commands.slice(0, ACTS_MAX).map((command) => `To do: ${command}`);
  return left > 0 ? [...shown, `and ${left} more`] : shown;
}

function letterHints(letters = 0): readonly string[] {
  return letters === 0 ? [] : [`Dead letters: ${letters}. To see them: tally dead-letters list`];
}

function unconnectedText(unconnected: readonly UnconnectedBucket[], nowMs: number): string {
  if (unconnected.length === 0) return '';
  return tableText(
    ['NOT CONNECTED', 'EVENTS', 'FIRST', 'LAST'],
    unconnected.map(({ bucket, count, first_seen_at: first, last_seen_at: last }) => [
      bucket,
      count,
      ageOfText(first, nowMs),
      ageOfText(last, nowMs),
    ]),
  );
}

/** Several buckets in one command: a few at a time, each for itself, and one table of what became of them. */

export type NamesDependencies = Pick<CliDependencies, 'readText' | 'streams'>;

/**
 * A bucket costs some five requests a second to EventBridge, which answers 50 a second, and one to CloudTrail, which answers ten:
 * more at once would be refused. https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
 */
const AT_ONCE = 8;
/** Fifteen thousand names of the greatest length. */
const NAMES_BYTES_MAX = 1_048_576;

/** Reads the names of a file, one a line; `-` is stdin. What follows a `#` is a comment. Throws {@link CommandError}. */
async function namesIn(path: string, { readText, streams }: NamesDependencies): Promise<readonly string[]> {
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

type AddOne = (control: Operations, context: Context, name: string) => Promise<AddedBucket>;

/** Adds the buckets, and prints one table. A bucket that fails keeps no other one from being added. */
async function addMany(cli: Cli, options: JsonOption, names: readonly string[], addOne: AddOne): Promise<void> {
  const buckets = [...new Set(names)];
  const rows = await cli.withControl((control, context) => rowsOf(cli, options, buckets, (name) => addOne(control, context, name)));
  cli.print(options, { buckets: rows.map(rowView), counts: countsOf(rows) }, () => resultText(rows));
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
function resultText(rows: readonly Row[]): string {
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
  return [table, ...blocks.map((block) => block.map((line) => printable(line)).join('\n'))].join('\n\n');
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
