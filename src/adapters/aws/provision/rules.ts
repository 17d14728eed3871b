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
  type Target as SdkTarget,
} from '@aws-sdk/client-eventbridge';
import { FaultError } from '../../../domain/fault.ts';
import { tagList, tagsIn } from '../../../domain/provisioning/names.ts';
import type { NamedRule, ObservedTarget } from '../../../domain/provisioning/observed.ts';
import type { ListedRule } from '../../../domain/provisioning/shared-rule.ts';
import { sdkTarget } from '../../../domain/provisioning/wiring.ts';
import type { At, Provisioner } from '../../../pipeline/ports/provision.ts';
import { asking, isMissing, optionsOf, refusalOf } from './refusals.ts';

/** The SDK's client is loaded only when a rule is needed. */
type ClientFor = (at: At) => Promise<EventBridgeClient>;

/** Of 100 rules each: more than ten times as many rules as a bus has by AWS's quota. */
const PAGES_MAX = 50;
/** Few rules are about one bucket. Enough to find one that leads here. */
const FOUND_MAX = 20;

/** Creates the functions. A rule has at most five targets, so one page holds them all. The clients of `writerFor` send each request once. */
export function createEventsProvision({
  clientFor,
  writerFor,
}: {
  readonly clientFor: ClientFor;
  readonly writerFor: ClientFor;
}): Pick<Provisioner, 'ruleOf' | 'rulesNamed' | 'rulesAbout' | 'putRule' | 'putTarget' | 'removeRule'> {
  return {
    async ruleOf(at, name, signal) {
      const client = await clientFor(at);
      const options = optionsOf(signal);
      try {
        const rule = await asking(
          `DescribeRule ${name}`,
          'events:DescribeRule',
          () => client.send(new DescribeRuleCommand({ Name: name }), options),
          signal,
        );
        const listTags = () => client.send(new ListTagsForResourceCommand({ ResourceARN: rule.Arn }), options);
        const { Tags } = await asking(`ListTagsForResource ${name}`, 'events:ListTagsForResource', listTags, signal);
        return {
          tags: tagsIn(Tags),
          isEnabled: rule.State !== 'DISABLED',
          targets: await targetsOf(client, name, signal),
          ...(rule.EventPattern !== undefined && { pattern: rule.EventPattern }),
        };
      } catch (error) {
        if (isMissing(error)) return 'absent';
        throw error;
      }
    },
    async rulesNamed(at, prefix, signal) {
      const client = await clientFor(at);
      const found: ListedRule[] = [];
      let NextToken: string | undefined;
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const command = new ListRulesCommand({ NamePrefix: prefix, Limit: 100, ...(NextToken !== undefined && { NextToken }) });
        const answer = await asking('ListRules', 'events:ListRules', () => client.send(command, optionsOf(signal)), signal);
        for (const { Name: name = '', EventPattern: pattern } of answer.Rules ?? [])
          found.push({ name, ...(pattern !== undefined && { pattern }) });
        ({ NextToken } = answer);
        if (NextToken === undefined) break;
      }
      return found;
    },
    async rulesAbout(at, bucket, signal) {
      const client = await clientFor(at);
      const options = optionsOf(signal);
      const found: NamedRule[] = [];
      let NextToken: string | undefined;
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const command = new ListRulesCommand({ Limit: 100, ...(NextToken !== undefined && { NextToken }) });
        const answer = await asking('ListRules', 'events:ListRules', () => client.send(command, options), signal);
        for (const { Name: name = '', EventPattern: pattern, State } of answer.Rules ?? []) {
          if (pattern?.includes(JSON.stringify(bucket)) !== true) continue;
          const targets = await targetsOf(client, name, signal);
          found.push({ name, pattern, isEnabled: State !== 'DISABLED', targets });
        }
        ({ NextToken } = answer);
        if (NextToken === undefined || found.length >= FOUND_MAX) return found;
      }
      throw new FaultError('connect.unavailable', `ListRules ${at.region}: the default bus has more than ${PAGES_MAX * 100} rules`);
    },
    async putRule(at, { name, pattern, isDisabled }, tags, signal) {
      const client = await writerFor(at);
      const command = new PutRuleCommand({
        Name: name,
        EventPattern: JSON.stringify(pattern),
        State: isDisabled === true ? 'DISABLED' : 'ENABLED',
        // ignored if the rule exists
        Tags: tagList(tags),
      });
      await asking(`PutRule ${name}`, 'events:PutRule', () => client.send(command, optionsOf(signal)), signal);
    },
    async putTarget(at, { name, target }, signal) {
      const client = await writerFor(at);
      const command = new PutTargetsCommand({ Rule: name, Targets: [sdkTarget(target)] });
      const what = `PutTargets ${name}`;
      const { FailedEntryCount, FailedEntries = [] } = await asking(
        what,
        'events:PutTargets',
        () => client.send(command, optionsOf(signal)),
        signal,
      );
      if ((FailedEntryCount ?? 0) > 0) throw refusalOf(what, 'events:PutTargets', failedEntry(FailedEntries[0]));
    },
    async removeRule(at, { name, target }, signal) {
      const client = await writerFor(at);
      const options = optionsOf(signal);
      try {
        const untarget = () => client.send(new RemoveTargetsCommand({ Rule: name, Ids: [target.id] }), options);
        await asking(`RemoveTargets ${name}`, 'events:RemoveTargets', untarget, signal);
        await asking(`DeleteRule ${name}`, 'events:DeleteRule', () => client.send(new DeleteRuleCommand({ Name: name }), options), signal);
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    },
  };
}

async function targetsOf(client: EventBridgeClient, name: string, signal?: AbortSignal): Promise<readonly ObservedTarget[]> {
  const list = () => client.send(new ListTargetsByRuleCommand({ Rule: name }), optionsOf(signal));
  const { Targets = [] } = await asking(`ListTargetsByRule ${name}`, 'events:ListTargetsByRule', list, signal);
  return Targets.map(observedTarget);
}

/** An entry that EventBridge did not take comes in an answer of status 200, with the code of the error that it would have been. */
function failedEntry({ ErrorCode, ErrorMessage }: PutTargetsResultEntry = {}): Error {
  return Object.assign(new Error(ErrorMessage ?? 'the target was refused'), { name: ErrorCode ?? 'FailedEntry' });
}

function observedTarget({ Id = '', Arn = '', RoleArn, DeadLetterConfig, ...input }: SdkTarget): ObservedTarget {
  return {
    id: Id,
    arn: Arn,
    ...(RoleArn !== undefined && { roleArn: RoleArn }),
    ...(DeadLetterConfig?.Arn !== undefined && { deadLetterArn: DeadLetterConfig.Arn }),
    ...inputOf(input),
  };
}

function inputOf({
  Input,
  InputPath,
  InputTransformer,
}: Pick<SdkTarget, 'Input' | 'InputPath' | 'InputTransformer'>): Pick<ObservedTarget, 'transformer' | 'hasOtherInput'> {
  return {
    ...((Input ?? InputPath) !== undefined && { hasOtherInput: true }),
    ...(InputTransformer !== undefined && {
      transformer: { paths: InputTransformer.InputPathsMap ?? {}, template: InputTransformer.InputTemplate ?? '' },
    }),
  };
}
