/** Plans as `tally bucket add` shows them. */
import type { Operations } from '../registry/contract/contract.ts';
import { findingText, type PlanView } from '../registry/contract/connections.ts';
import { changesText, type ConnectionRequest } from '../connect/plan.rules.ts';
import { RequestError } from '../base/request-error.ts';
import type { Cli, JsonOption } from './cli.ts';
import { fieldsText, linesText } from './output.ts';
import { exitCodes } from './errors.ts';

/** Reads the plan of a request. */
export function planOf(control: Operations, { bucket, wired_by_hand: byHand, ...asked }: ConnectionRequest): Promise<PlanView> {
  // a query has texts
  const query = { ...asked, ...(byHand !== undefined && { wired_by_hand: byHand ? ('true' as const) : ('false' as const) }) };
  return control.planBucket({ params: { bucket }, query });
}

/** Shows a plan, with the command that applies it. */
export async function showPlan(cli: Cli, options: JsonOption, asked: ConnectionRequest): Promise<void> {
  const plan = await cli.withControl((control) => planOf(control, asked));
  cli.print(options, plan, () => planText(plan));
  cli.hint(options, nextText(plan));
  if (isBlocked(plan)) cli.endWith(exitCodes.failure);
}

/** Says what is going to be made. The embedded storage has no plan, and what blocks one is the refusal that follows. */
export async function sayPlan(cli: Cli, options: JsonOption, read: () => Promise<PlanView>): Promise<void> {
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
