/** The commands about what a bucket needs in AWS that are more than a row: a plan, which names the command that follows, and the doctor of all buckets. */
import type { Command } from 'commander';
import type { Context, OperationQuery, Operations } from '../api/contract.ts';
import { findingText, type Diagnosis, type PlanView } from '../api/connections.ts';
import { applyCommand } from '../domain/provisioning/planning/apply-command.ts';
import { changeText } from '../domain/provisioning/planning/parts.ts';
import { printable } from '../domain/printable.ts';
import { accountOption, enrichOption, flag, printing, sourceOption, topicOption } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { exitCodeOfFindings, exitCodes } from './exit-codes.ts';
import { groupOf } from './from-rows.ts';
import { fieldsText, linesText } from './output.ts';

type WishOptions = OperationQuery<'planBucket'>;

/** `tally bucket plan`. */
export function addPlanCommand(program: Command, cli: Cli): void {
  const plan = groupOf(program, ['bucket'], 'tally bucket plan photos')
    .command('plan')
    .summary('show what an apply would write in AWS')
    .description('Shows what exists in AWS, what an apply would change, and what stands in its way. It only reads.')
    .argument('<name>', 'the bucket')
    .addOption(sourceOption('how its events are to reach the bucket queue'))
    .addOption(topicOption('the SNS topic that its events come through, with --source topic; with --source routed your own'))
    .addOption(enrichOption())
    .addOption(accountOption())
    .addOption(flag('--wired-by-hand', 'you have wired it yourself, or are going to'));
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
  const { wired_by_hand: byHand, ...asked } = wish;
  return `To apply it: ${printable(applyCommand({ ...asked, wired_by_hand: byHand === 'true' }, plan, connected))}`;
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
  const changes = plan.changes.map((change) => changeText(change, change.before, change.after));
  const foreign =
    plan.foreign.length === 0 ? [] : [`It touches what is not Tally's:\n${plan.foreign.map((line) => `  ${line}`).join('\n')}`];
  return linesText([facts, ...changes, ...foreign, ...plan.findings.map((finding) => findingText(finding))].join('\n\n'));
}

/** The largest page of the API. */
const PAGE = 1_000;

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
      const found: Diagnosis[] = [];
      for (const bucket of name === undefined ? await namesOf(control, context) : [name])
        found.push(await control.diagnoseBucket({ params: { bucket } }, context));
      return found;
    });
    if (items.length === 0) cli.hint(options, 'No bucket is connected. Connect one: tally bucket add NAME --apply');
    if (items.length > 0 || options.json === true) cli.print(options, { items }, () => items.map(diagnosisText).join('\n\n'));
    cli.endWith(exitCodeOfFindings(items.flatMap(({ findings }) => findings)));
  });
}

/** The connected buckets: the list to its end. */
async function namesOf(control: Operations, context: Context): Promise<readonly string[]> {
  const names: string[] = [];
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await control.listBuckets({ query: { limit: PAGE, ...(cursor !== undefined && { cursor }) } }, context);
    names.push(...page.items.map(({ bucket }) => bucket));
    cursor = page.next;
  }
  return names;
}

function diagnosisText({ bucket, status, findings }: Diagnosis): string {
  return linesText([`${bucket}: ${status}`, ...findings.map((finding) => findingText(finding))].join('\n'));
}
