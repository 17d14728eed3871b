import { Argument, type Command } from 'commander';
import type { OperationBody, OperationQuery } from '../api/contract.ts';
import type { ConnectionView, PlanView, Diagnosis } from '../api/connections.ts';
import { NOT_SHOWN_YET, untilApplied } from '../api/until-applied.ts';
import { shellWord } from '../domain/commands.ts';
import { statusOf } from '../domain/provisioning/checks/finding.ts';
import { applyCommand } from '../domain/provisioning/planning/apply-command.ts';
import { changeText } from '../domain/provisioning/planning/parts.ts';
import { sideText } from '../domain/provisioning/wiring.ts';
import { printable } from '../domain/printable.ts';
import { RequestError } from '../domain/request-error.ts';
import { accountOption, enrichOption, flag, parameter, printing, sourceOption, topicOption } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { CommandError } from './errors.ts';
import { exitCodes } from './exit-codes.ts';
import { fieldsText, linesText } from './output.ts';
import { allBuckets } from './all-buckets.ts';

type WishOptions = OperationQuery<'planBucket'>;

/** Adds what the commands about a wish share. */
function withWish(command: Command): Command {
  return command
    .argument('<name>', 'the bucket')
    .addOption(sourceOption('how its events are to reach the bucket queue'))
    .addOption(topicOption('the SNS topic that its events come through, with --source topic; with --source routed your own'))
    .addOption(enrichOption())
    .addOption(flag('--minimal', 'with --source routed: the smallest input transformer'))
    .addOption(flag('--adopt', 'take over the notification of another registry of Tally on this bucket, perhaps of an earlier one'))
    .addOption(accountOption());
}

/** `tally bucket plan|apply|notification|clean`. */
export function addConnectionCommands(bucket: Command, cli: Cli): void {
  addPlan(bucket, cli);
  addApply(bucket, cli);
  addNotification(bucket, cli);
  addClean(bucket, cli);
}

function addPlan(bucket: Command, cli: Cli): void {
  const plan = withWish(bucket.command('plan'))
    .summary('show what an apply would write in AWS')
    .description('Shows what exists in AWS, what an apply would change, and what stands in its way. It only reads.');
  printing(plan, 'tally bucket plan photos', 'tally bucket plan photos --source eventbridge').action(
    async (name: string, { json, ...query }: JsonOption & WishOptions) => {
      const answer = await cli.withControl((control, context) => control.planBucket({ params: { bucket: name }, query }, context));
      cli.print({ json }, answer, () => planText(answer));
      cli.hint({ json }, nextText({ bucket: name, ...query }, answer));
      if (isBlocked(answer)) cli.endWith(exitCodes.failure);
    },
  );
}

function isBlocked({ findings }: PlanView): boolean {
  return findings.some(({ blocks }) => blocks);
}

/** What to do with the plan. */
function nextText(wish: WishOptions & { readonly bucket: string }, plan: PlanView): string {
  const { changes, connected } = plan;
  if (isBlocked(plan)) return 'Nothing can be applied as it is.';
  if (changes.length === 0 && connected) return 'Nothing to do: AWS is as it must be.';
  const asked = { ...wish, minimal: wish.minimal === 'true', adopt: wish.adopt === 'true' };
  return `To apply it: ${printable(applyCommand(asked, plan, connected))}`;
}

function addApply(bucket: Command, cli: Cli): void {
  const apply = withWish(bucket.command('apply'))
    .summary('make in AWS what a bucket needs')
    .description(
      'Makes in AWS what the bucket needs, and verifies it. It may be repeated after any failure, and writes nothing that is there already. What touches things of others needs the token of a plan.',
    )
    .option('--plan <token>', 'the token of the plan that you have agreed to')
    .addOption(parameter('--skip-destination-validation', 'do not let S3 check the other destinations, of which one is broken'));
  printing(apply, 'tally bucket apply photos', 'tally bucket apply photos --plan 0f1e2d3c4b5a6978').action(
    async (name: string, { json, ...body }: JsonOption & OperationBody<'applyBucket'>) => {
      const options = { json };
      const done = await cli.withControl((control, context) =>
        applied(cli, options, () => control.applyBucket({ params: { bucket: name }, body }, context)),
      );
      printApplied(cli, options, done);
      cli.hint(options, 'S3 needs about five minutes until it sends every event. A re-index follows then.');
    },
  );
}

/** Says that a bucket is applied, and what keeps its events from being known to arrive. */
export function printApplied(cli: Cli, options: JsonOption, done: ConnectionView): void {
  const { bucket, source = 'its source', unproven = [] } = done;
  const name = printable(bucket);
  cli.print(options, done, () =>
    unproven.length === 0
      ? `${name} is applied: its events come by ${source}.`
      : `${name} is applied for ${source}, and its events are not known to arrive.\n${unprovenText(done)}`,
  );
  endUnproven(cli, done);
}

/** What keeps the events of an applied bucket from being known to arrive. */
export function unprovenText({ unproven = [] }: ConnectionView): string {
  return linesText(unproven.map((finding) => findingText(finding)).join('\n'));
}

/** The command did all that it can, and the exit code is that of the doctor. */
export function endUnproven(cli: Cli, { unproven = [] }: ConnectionView): void {
  if (unproven.length > 0) cli.endWith(exitCodeOf(unproven));
}

/** What could not be read counts as broken: it is not known to work. */
export function exitCodeOf(findings: readonly Pick<FindingView, 'severity'>[]): number {
  switch (statusOf(findings)) {
    case 'ok':
      return exitCodes.ok;
    case 'degraded':
      return exitCodes.degraded;
    case 'broken':
    case 'unknown':
      return exitCodes.broken;
  }
}

/** Repeats the request while its answer says that it is not applied yet. */
export async function applied(cli: Cli, options: JsonOption, request: () => Promise<ConnectionView>): Promise<ConnectionView> {
  const onWaiting = (waitingFor: string): void => cli.hint(options, `Waiting for ${waitingFor}.`);
  const answer = await untilApplied({ request, onWaiting, sleep: (ms) => cli.clock.sleep(ms) });
  if (answer === undefined) throw new CommandError('declined', `${NOT_SHOWN_YET}: repeat the command later`);
  return answer;
}

/** Two minutes: a change takes half of one, and that of a process that was killed is taken over after one. */
const BUSY_REQUESTS_MAX = 60;
const BUSY_RETRY_MS = 2_000;

/** Repeats the request while another process changes a connection. */
export async function untilFree<Answer>(cli: Cli, options: JsonOption, request: () => Promise<Answer>): Promise<Answer> {
  for (let count = 1; ; count += 1) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof RequestError && error.code === 'connect.busy') || count === BUSY_REQUESTS_MAX) throw error;
    }
    cli.hint(options, 'Waiting for another change of a connection.');
    await cli.clock.sleep(BUSY_RETRY_MS);
  }
}

function addNotification(bucket: Command, cli: Cli): void {
  const notification = bucket
    .command('notification')
    .summary('take away the notification of a bucket for a moment, or make it again')
    .description(
      'Takes away the notification of the bucket, while another one is made that would overlap with it, or makes it again. Nothing else restores it. A re-index follows, because events of the meantime are lost.',
    )
    .argument('<name>', 'the bucket')
    .addArgument(new Argument('<wish>', 'pause: take it away; resume: make it again').choices(['pause', 'resume']));
  printing(notification, 'tally bucket notification photos pause', 'tally bucket notification photos resume').action(
    async (name: string, wish: 'pause' | 'resume', options: JsonOption) => {
      const request = { params: { bucket: name }, body: { paused: wish === 'pause' } };
      const answer = await cli.withControl((control, context) =>
        applied(cli, options, () => untilFree(cli, options, () => control.changeNotification(request, context))),
      );
      if (wish === 'pause') {
        cli.print(options, answer, () => `The notification of ${printable(name)} is taken away, and no events arrive.`);
        return cli.hint(options, `To restore it: tally bucket notification ${shellWord(name)} resume`);
      }
      cli.print(options, answer, () => `The notification of ${printable(name)} is there again.`);
      if (answer.unproven !== undefined) cli.hint(options, unprovenText(answer));
      endUnproven(cli, answer);
    },
  );
}

function addClean(bucket: Command, cli: Cli): void {
  const clean = bucket
    .command('clean')
    .summary('take away what is left of an earlier source')
    .description(
      'Takes away in AWS what is left of the sources that the bucket had before. It is refused until the present source is applied and a re-index has closed the gap of the change.',
    )
    .argument('<name>', 'the bucket');
  printing(clean, 'tally bucket clean photos').action(async (name: string, options: JsonOption) => {
    const cleaned = await cli.withControl((control, context) => control.cleanBucket({ params: { bucket: name } }, context));
    cli.print(options, cleaned, () => `Only what ${printable(name)} needs now is left in AWS.`);
    for (const { name: part, reason } of cleaned.kept) cli.hint(options, `Left in AWS: ${part}: ${reason}`);
  });
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
  const changes = plan.changes.map((change) => `${changeText(change, change.before, change.after)}${sideLine(change.side, '    ')}`);
  const foreign =
    plan.foreign.length === 0 ? [] : [`It touches what is not Tally's:\n${plan.foreign.map((line) => `  ${line}`).join('\n')}`];
  return linesText([facts, ...changes, ...foreign, ...plan.findings.map((finding) => findingText(finding))].join('\n\n'));
}

type FindingView = PlanView['findings'][number];

/** A finding as people read it. */
function findingText({ code, severity, what, why, fix, side }: FindingView): string {
  return `${severity}: ${what} (${code})\n  why  ${why}\n  do   ${fix}${sideLine(side, '  ')}`;
}

/** Where something is and with which credentials, if bucket and bucket queue are in different places. */
function sideLine(side: FindingView['side'], indent: string): string {
  return side === undefined ? '' : `\n${indent}${sideText(side)}`;
}

/** `tally doctor [NAME]`: what keeps events from arriving. */
export function addDoctorCommand(program: Command, cli: Cli): void {
  const doctor = program
    .command('doctor')
    .summary('check the way of the events in AWS')
    .description(
      'Checks everything in AWS that the events of a bucket, or of all connected buckets, pass on their way. It only reads. Each finding has a command or a statement to paste.',
    )
    .argument('[name]', 'the bucket; without it, all connected buckets');
  printing(doctor, 'tally doctor', 'tally doctor photos --json').action(async (name: string | undefined, options: JsonOption) => {
    const items = await cli.withControl(async (control, context) => {
      const names = name === undefined ? (await allBuckets(control, context)).items.map(({ bucket }) => bucket) : [name];
      const found: Diagnosis[] = [];
      for (const bucket of names) found.push(await control.diagnoseBucket({ params: { bucket } }, context));
      return found;
    });
    if (items.length === 0) cli.hint(options, `No bucket is connected. Connect one: tally bucket add NAME --apply`);
    else if (options.json !== true) cli.print(options, undefined, () => items.map((item) => diagnosisText(item)).join('\n\n'));
    if (options.json === true) cli.print(options, { items }, () => '');
    cli.endWith(exitCodeOf(items.flatMap(({ findings }) => findings)));
  });
}

function diagnosisText({ bucket, status, findings }: Diagnosis): string {
  return linesText([`${bucket}: ${status}`, ...findings.map((finding) => findingText(finding))].join('\n'));
}
