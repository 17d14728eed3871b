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
  type EventBridgeClient,
  type PutTargetsResultEntry,
} from '@aws-sdk/client-eventbridge';
import { defined } from '../../base/defined.ts';
import { tagList, tagsIn, type Tags } from '../names.rules.ts';
import type { ObservedRule, Rule, Target } from '../plan.rules.ts';
import { ask, orAbsent, refusalOf, type At, type ClientsFor } from './refusals.ts';

/** Of 100 rules each: more than ten times as many rules as a bus has by AWS's quota. */
const PAGES_MAX = 50;

/** Creates the functions. A rule has at most five targets, so one page holds them all. The SDK's client is loaded only when a rule is needed. */
export function createEventsProvision({ clientFor, writerFor }: ClientsFor<Promise<EventBridgeClient>>) {
  async function ruleOf(at: At, name: string, signal?: AbortSignal): Promise<ObservedRule> {
    const client = await clientFor(at);
    const describe = new DescribeRuleCommand({ Name: name });
    const {
      Arn,
      State,
      EventPattern: pattern,
    } = await ask('events:DescribeRule', name, (options) => client.send(describe, options), signal);
    const listTags = new ListTagsForResourceCommand({ ResourceARN: Arn });
    const { Tags } = await ask('events:ListTagsForResource', name, (options) => client.send(listTags, options), signal);
    const targets = await targetsOf(client, name, signal);
    return { tags: tagsIn(Tags), isEnabled: State !== 'DISABLED', targets, ...defined({ pattern }) };
  }

  return {
    /** The rule on the default bus. */
    ruleOf: (at: At, name: string, signal?: AbortSignal) => orAbsent(ruleOf(at, name, signal)),
    /** How many rules the default bus has. */
    async ruleCount(at: At, signal?: AbortSignal): Promise<number> {
      const client = await clientFor(at);
      let count = 0;
      let NextToken: string | undefined;
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const command = new ListRulesCommand({ Limit: 100, ...defined({ NextToken }) });
        const answer = await ask('events:ListRules', '', (options) => client.send(command, options), signal);
        count += answer.Rules?.length ?? 0;
        ({ NextToken } = answer);
        if (NextToken === undefined) break;
      }
      return count;
    },
    /** Makes or changes the rule, with its pattern as a whole. The tags are those of a new one. */
    async putRule(at: At, { name, pattern }: Rule, tags: Tags, signal?: AbortSignal): Promise<void> {
      const client = await writerFor(at);
      const command = new PutRuleCommand({
        Name: name,
        EventPattern: JSON.stringify(pattern),
        State: 'ENABLED',
        // ignored if the rule exists
        Tags: tagList(tags),
      });
      await ask('events:PutRule', name, (options) => client.send(command, options), signal);
    },
    async putTarget(at: At, { name, target }: Rule, signal?: AbortSignal): Promise<void> {
      const client = await writerFor(at);
      const command = new PutTargetsCommand({ Rule: name, Targets: [target] });
      const answer = await orAbsent(ask('events:PutTargets', name, (options) => client.send(command, options), signal));
      // a new rule may not be seen yet: the next look finds what is missing
      if (answer === 'absent') return;
      const { FailedEntryCount = 0, FailedEntries = [] } = answer;
      if (FailedEntryCount > 0) throw refusalOf('events:PutTargets', name, failedEntry(FailedEntries[0]));
    },
    /** Removes the rule's target and the rule. Either may be gone already. */
    async removeRule(at: At, { name, target }: Rule, signal?: AbortSignal): Promise<void> {
      const client = await writerFor(at);
      const untarget = new RemoveTargetsCommand({ Rule: name, Ids: [target.Id] });
      if ((await orAbsent(ask('events:RemoveTargets', name, (options) => client.send(untarget, options), signal))) === 'absent') return;
      const remove = new DeleteRuleCommand({ Name: name });
      await orAbsent(ask('events:DeleteRule', name, (options) => client.send(remove, options), signal));
    },
  };
}

async function targetsOf(client: EventBridgeClient, name: string, signal?: AbortSignal): Promise<readonly Target[]> {
  const list = new ListTargetsByRuleCommand({ Rule: name });
  const { Targets = [] } = await ask('events:ListTargetsByRule', name, (options) => client.send(list, options), signal);
  return Targets.map(({ Id = '', Arn = '', ...rest }) => ({ ...rest, Id, Arn }));
}

/** An entry that EventBridge did not take comes in an answer of status 200, with the code of the error that it would have been. */
function failedEntry({ ErrorCode, ErrorMessage }: PutTargetsResultEntry = {}): Error {
  return Object.assign(new Error(ErrorMessage ?? 'the target was refused'), { name: ErrorCode ?? 'FailedEntry' });
}
