/** Reads and makes rules of EventBridge on the default bus. */
import {
  DeleteRuleCommand,
  DescribeRuleCommand,
  ListRulesCommand,
  ListTagsForResourceCommand,
  ListTargetsByRuleCommand,
  PutRuleCommand,
  PutTargetsCommand,
  RemoveTargetsCommand,
  type PutTargetsResultEntry,
} from '@aws-sdk/client-eventbridge';
import { defined } from '../../base/defined.ts';
import { tagList, tagsIn, type Tags } from '../names.rules.ts';
import type { ObservedRule, Rule } from '../plan.rules.ts';
import { ask, orAbsent, refusalOf, type ClientsOf } from './ask.ts';

/** Pages of 100 rules: more than ten times AWS's quota for a bus. */
const PAGES_MAX = 50;

/** Where a rule is. */
interface At {
  readonly region: string;
}

/** Creates the functions. One page holds all of a rule's targets, because it has at most five. The SDK's client is loaded with the first rule. */
export function createEventsProvision({ eventsFor, once }: ClientsOf<'eventsFor'>) {
  async function ruleOf({ region }: At, name: string, signal?: AbortSignal): Promise<ObservedRule> {
    const client = await eventsFor(region);
    const { Arn, State, EventPattern: pattern } = await ask(client, new DescribeRuleCommand({ Name: name }), name, signal);
    const { Tags } = await ask(client, new ListTagsForResourceCommand({ ResourceARN: Arn }), name, signal);
    const { Targets = [] } = await ask(client, new ListTargetsByRuleCommand({ Rule: name }), name, signal);
    const targets = Targets.map(({ Id = '', Arn: to = '', ...rest }) => ({ ...rest, Id, Arn: to }));
    return { tags: tagsIn(Tags), isEnabled: State !== 'DISABLED', targets, ...defined({ pattern }) };
  }

  return {
    /** The rule on the default bus. */
    ruleOf: (at: At, name: string, signal?: AbortSignal) => orAbsent(ruleOf(at, name, signal)),
    /** How many rules the default bus has. */
    async ruleCount({ region }: At, signal?: AbortSignal): Promise<number> {
      const client = await eventsFor(region);
      let count = 0;
      let NextToken: string | undefined;
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const answer = await ask(client, new ListRulesCommand({ Limit: 100, ...defined({ NextToken }) }), '', signal);
        count += answer.Rules?.length ?? 0;
        ({ NextToken } = answer);
        if (NextToken === undefined) break;
      }
      return count;
    },
    /** Makes or changes the rule, with its pattern as a whole. The tags are those of a new one: EventBridge ignores them if the rule exists. */
    async putRule({ region }: At, { name, pattern }: Rule, tags: Tags, signal?: AbortSignal): Promise<void> {
      const rule = { Name: name, EventPattern: JSON.stringify(pattern), State: 'ENABLED' } as const;
      await ask(await once.eventsFor(region), new PutRuleCommand({ ...rule, Tags: tagList(tags) }), name, signal);
    },
    async putTarget({ region }: At, { name, target }: Rule, signal?: AbortSignal): Promise<void> {
      const answer = await orAbsent(
        ask(await once.eventsFor(region), new PutTargetsCommand({ Rule: name, Targets: [target] }), name, signal),
      );
      // AWS may not show a new rule yet: the next look finds what is missing
      if (answer === 'absent') return;
      const { FailedEntryCount = 0, FailedEntries = [] } = answer;
      if (FailedEntryCount > 0) throw refusalOf('events:PutTargets', name, failedEntry(FailedEntries[0]));
    },
    /** Removes the rule's target and the rule. Either may be gone already. */
    async removeRule({ region }: At, { name, target }: Rule, signal?: AbortSignal): Promise<void> {
      const client = await once.eventsFor(region);
      const untarget = new RemoveTargetsCommand({ Rule: name, Ids: [target.Id] });
      if ((await orAbsent(ask(client, untarget, name, signal))) === 'absent') return;
      await orAbsent(ask(client, new DeleteRuleCommand({ Name: name }), name, signal));
    },
  };
}

/** EventBridge reports a refused entry in an answer with status 200, by its error code. */
function failedEntry({ ErrorCode, ErrorMessage }: PutTargetsResultEntry = {}): Error {
  return Object.assign(new Error(ErrorMessage ?? 'the target was refused'), { name: ErrorCode ?? 'FailedEntry' });
}
