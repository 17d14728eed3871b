import { shellWord } from '../base/commands.ts';
import { defined, omit } from '../base/defined.ts';
import type { Command } from 'commander';
import type { OperationBody, Operations } from '../registry/contract/contract.ts';
import { bucketFields } from '../registry/contract/bucket.ts';
import { webhookFields, webhookHints, type AddedBucket } from '../registry/contract/buckets.ts';
import { findingText, type PlanView } from '../registry/contract/connections.ts';
import { RequestError } from '../base/request-error.ts';
import { changesText } from '../connect/plan.rules.ts';
import { parameter, printing } from './arguments.ts';
import type { Cli, JsonOption, CliDependencies } from './cli.ts';
import { CommandError, failureOf, exitCodes } from './errors.ts';
import { addOptions, groupOf, applied } from './from-rows.ts';
import { answerText, fieldsText, joinedText, linesText, tableText } from './output.ts';
import { countsKnown } from './progress.ts';
import PQueue from 'p-queue';

/** `reindex` is false if --no-reindex is given. */
interface AddOptions extends JsonOption, Omit<OperationBody<'addBucket'>, 'bucket'> {
  readonly fromFile?: string;
  /** Whether to show only the plan. */
  readonly isPlan?: true;
}

/** `tally bucket add`. */
export function addAddCommand(program: Command, cli: Cli, dependencies: NamesDependencies): void {
  const add = groupOf(program, ['bucket'], 'tally bucket add photos')
    .command('add')
    .summary('connect one or several buckets')
    .description(
      "Connects a bucket: shows what Tally will create in AWS, creates it, and starts a first re-index of the existing objects. If this would touch anyone else's resources, it stops unless you pass the plan's token. For a connected bucket, it applies the given options and recreates what is missing in AWS. Tally connects several buckets a few at a time, each on its own, and shows the results in one table; a second run skips what is done.",
    )
    .argument('[names...]', 'one or more buckets')
    .option('--from-file <file>', 'also the buckets listed in a file, one per line')
    .option('--no-reindex', "do not index a new bucket's existing objects until you start a re-index")
    .addOption(parameter('--plan', 'only show what would change in AWS, and what blocks it', 'isPlan'));
  addOptions(add, cli, 'addBucket', { without: ['bucket', 'reindex'], options: { topic_arn: 'topic', plan: 'agree' } });
  printing(
    add,
    'tally bucket add photos',
    'tally bucket add photos --source eventbridge --plan',
    'tally bucket add photos videos music',
    'tally bucket add --from-file buckets.txt',
  ).action(async (given: readonly string[], options: AddOptions) => {
    const { isPlan, plan, fromFile } = options;
    const names = [...given, ...(fromFile === undefined ? [] : namesIn(fromFile, dependencies))];
    const [name] = names;
    if (name === undefined) throw new CommandError('usage', 'name a bucket, or pass a file of buckets with --from-file');
    const isAlone = names.length === 1 && fromFile === undefined;
    if (!isAlone && (plan !== undefined || isPlan === true))
      throw new CommandError('usage', `${isPlan === true ? '--plan' : '--agree'} works with a single bucket: name only that one`);
    if (isPlan === true) return showPlan(cli, name, options);
    if (isAlone) return addBucket(cli, name, options);
    return addMany(cli, options, names, (control, each) => added(cli, control, { name: each, options, isAlone: false }));
  });
}

async function addBucket(cli: Cli, name: string, options: AddOptions): Promise<void> {
  const record = await cli.withControl(async (control) => {
    await sayPlan(cli, options, () => planOf(control, name, options));
    return added(cli, control, { name, options, isAlone: true });
  });
  cli.print(options, record, () => answerText({ columns: bucketFields, also: { webhook: webhookFields } }, record, cli.nowMs()));
  const { webhook } = record;
  for (const hint of [...(webhook ? webhookHints() : []), ...eventsText(record), ...firstText(record, options)]) cli.hint(options, hint);
}

/** Adds one bucket, repeating the request until its parts are made. */
async function added(
  cli: Cli,
  control: Operations,
  { name, options, isAlone }: { readonly name: string; readonly options: AddOptions; readonly isAlone: boolean },
): Promise<AddedBucket> {
  const { reindex, ...wanted } = omit(options, 'json', 'fromFile', 'isPlan');
  const body = { ...wanted, ...(reindex === false && { reindex }) };
  const add = () => control.addBucket({ body: { bucket: name, ...body } });
  const first = await add();
  let last = first;
  if (first.connection?.state !== 'applying') return first;
  // with several buckets, what one waits for isn't worth a line
  await applied(cli, isAlone ? options : { json: true }, async () => {
    last = await add();
    return last.connection ?? { bucket: name, state: 'applied' };
  });
  const { job_id, changed, advice, webhook } = first;
  return { ...last, changed, ...defined({ job_id, advice, webhook: webhook ?? last.webhook }) };
}

/** What its events are waiting for. */
function eventsText({ bucket, status }: AddedBucket): readonly string[] {
  if (status.state === 'waiting') return ['Tally retries within a minute; its events are waiting until then.'];
  if (status.state !== 'events_unproven') return ['Tally is now indexing its events.'];
  return [`${status.sentence}. The connection is proven once its events arrive; until then: tally doctor ${shellWord(bucket)}`];
}

/** What happens to the bucket's existing objects. */
function firstText({ bucket, job_id: jobId, advice, enrich, status }: AddedBucket, { reindex }: AddOptions): readonly string[] {
  if (advice !== undefined) {
    return [`Existing documents lack what enrich ${enrich} asks for. To fill it in: tally reindex ${shellWord(bucket)} --fill`];
  }
  if (jobId !== undefined) return [`To follow the first re-index, which indexes the existing objects: tally jobs ${shellWord(jobId)}`];
  // an already connected bucket has had its first re-index, unless that was left out
  return reindex && status.act?.kind !== 'reindex' ? [] : [`To index the existing objects: tally reindex ${shellWord(bucket)}`];
}

// ── the plan ──

/** Reads the plan of what the options say about the connection. */
function planOf(
  control: Operations,
  bucket: string,
  { source, topic_arn, enrich, bucket_account, wired_by_hand: byHand }: AddOptions,
): Promise<PlanView> {
  // a query has texts
  const flag = byHand === undefined ? undefined : byHand ? ('true' as const) : ('false' as const);
  return control.planBucket({ params: { bucket }, query: defined({ source, topic_arn, enrich, bucket_account, wired_by_hand: flag }) });
}

/** Shows a plan, with the command that applies it. */
async function showPlan(cli: Cli, name: string, options: AddOptions): Promise<void> {
  const plan = await cli.withControl((control) => planOf(control, name, options));
  cli.print(options, plan, () => planText(plan));
  cli.hint(options, nextText(plan));
  if (isBlocked(plan)) cli.endWith(exitCodes.failure);
}

/** Says what is going to be made. The embedded storage has no plan, and what blocks one is the refusal that follows. */
async function sayPlan(cli: Cli, options: JsonOption, read: () => Promise<PlanView>): Promise<void> {
  if (options.json === true) return;
  try {
    const { changes, findings } = await read();
    if (findings.some(({ blocks }) => blocks)) return;
    for (const text of [...changes.map((change) => changesText([change])), ...findings.map((each) => findingText(each))])
      cli.hint(options, text);
  } catch (error) {
    if (!(error instanceof RequestError && error.code === 'connect.embedded')) throw error;
  }
}

function isBlocked({ findings }: PlanView): boolean {
  return findings.some(({ blocks }) => blocks);
}

/** What to do with the plan. */
function nextText(plan: PlanView): string {
  if (isBlocked(plan)) return 'Tally cannot apply this plan.';
  if (plan.changes.length === 0 && plan.connected) return 'Nothing to do: everything in AWS is in place.';
  return `To apply it, repeat the command ${plan.foreign.length === 0 ? 'without --plan' : `with --agree ${plan.token} instead of --plan`}.`;
}

function planText(plan: PlanView): string {
  const { bucket, region, source, topic_arn: topic, enrich, account, bucket_account: owner, installation, state, token } = plan;
  const facts = fieldsText({
    bucket,
    region,
    source,
    topic,
    enrich,
    account,
    owner: owner === account ? undefined : owner,
    installation,
    state,
    token,
  });
  const foreign =
    plan.foreign.length === 0
      ? []
      : [`It touches resources that are not Tally's:\n${plan.foreign.map(({ text }) => `  ${text}`).join('\n')}`];
  return linesText(
    [
      facts,
      ...plan.changes.map((change) => changesText([change])),
      ...foreign,
      ...plan.findings.map((finding) => findingText(finding)),
    ].join('\n\n'),
  );
}

// ── several buckets ──

/** Several buckets in one command: a few at a time, independently, with one table of results. */

type NamesDependencies = Pick<CliDependencies, 'readText'>;

/**
 * A bucket costs some five requests a second to EventBridge, which answers 50 a second, and one to CloudTrail, which answers ten:
 * more at once would be refused. https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
 */
const AT_ONCE = 8;
/** Fifteen thousand names of the maximum length. */
const NAMES_BYTES_MAX = 1_048_576;

/** Reads names from a file, one a line; `#` begins a comment. Throws {@link CommandError}. */
function namesIn(path: string, { readText }: NamesDependencies): readonly string[] {
  let text: string | undefined;
  try {
    text = readText(path, NAMES_BYTES_MAX);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    throw new CommandError('usage', `${path} cannot be opened (${code})`);
  }
  if (text === undefined) throw new CommandError('usage', `${path} is larger than 1 MiB, so it cannot be a list of buckets`);
  return text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((name) => name !== '');
}

type Row =
  | { readonly bucket: string; readonly result: 'connected' | 'applied' | 'unchanged'; readonly answer: AddedBucket }
  | { readonly bucket: string; readonly result: 'failed'; readonly error: unknown };

type AddOne = (control: Operations, name: string) => Promise<AddedBucket>;

/** Adds the buckets, and prints one table. A bucket that fails doesn't stop the others. */
async function addMany(cli: Cli, options: JsonOption, names: readonly string[], addOne: AddOne): Promise<void> {
  const buckets = [...new Set(names)];
  const progress = cli.progress(options);
  const counts = { done: 0, failed: 0, all: buckets.length };
  const rows = await cli.withControl((control) =>
    new PQueue({ concurrency: AT_ONCE }).addAll(
      buckets.map((bucket) => async () => {
        const row = await rowOf(bucket, (name) => addOne(control, name));
        counts.done += 1;
        if (row.result === 'failed') counts.failed += 1;
        progress.show(countsKnown(counts));
        return row;
      }),
    ),
  );
  progress.end();
  cli.print(options, { buckets: rows.map(rowView) }, () => resultText(rows));
  if (counts.failed === 0) return;
  cli.hint(options, 'Fix the causes and repeat the command; it skips what is done.');
  cli.endWith(exitCodes.someFailed);
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
  return row.result === 'failed' ? { ...row, error: failureOf(row.error).problem } : row;
}

/** The table, and below it why each bucket failed and what to do. */
function resultText(rows: readonly Row[]): string {
  const table = tableText(
    ['BUCKET', 'RESULT', 'SOURCE'],
    rows.map((row) => [row.bucket, row.result, 'answer' in row ? row.answer.source : undefined]),
  );
  const tokens = rows.flatMap((row) =>
    'answer' in row && row.answer.webhook ? [`${row.answer.webhook.url} ${row.answer.webhook.token}`] : [],
  );
  const failures = rows.flatMap((row) => (row.result === 'failed' ? [`${row.bucket}: ${failureOf(row.error).lines.join('\n  ')}`] : []));
  return joinedText([table, linesText(tokens.join('\n')), ...failures.map(linesText)]);
}
