/** Reads and makes rules of EventBridge on the default bus. */
import {
  DeleteRuleCommand,
  DescribeRuleCommand,
  ListTagsForResourceCommand,
  ListTargetsByRuleCommand,
  PutRuleCommand,
  PutTargetsCommand,
  RemoveTargetsCommand,
  type EventBridgeClient,
  type Target as SdkTarget,
} from '@aws-sdk/client-eventbridge';
import { FaultError } from '../../../domain/fault.ts';
import type { ObservedTarget } from '../../../domain/provisioning/observed.ts';
import type { Target } from '../../../domain/provisioning/wiring.ts';
import type { Provisioner } from '../../../pipeline/ports/provision.ts';
import { asking, isMissing, optionsOf } from './refusals.ts';

/** The SDK's client is loaded only when a rule is needed. */
type ClientFor = (region: string) => Promise<EventBridgeClient>;

/** Creates the functions. A rule has at most five targets, so one page holds them all. The clients of `writerFor` send each request once. */
export function createEventsProvision({
  clientFor,
  writerFor,
}: {
  readonly clientFor: ClientFor;
  readonly writerFor: ClientFor;
}): Pick<Provisioner, 'ruleOf' | 'putRule' | 'putTarget' | 'removeRule'> {
  return {
    async ruleOf(region, name, signal) {
      const client = await clientFor(region);
      const options = optionsOf(signal);
      try {
        const rule = await asking(
          `DescribeRule ${name}`,
          'events:DescribeRule',
          () => client.send(new DescribeRuleCommand({ Name: name }), options),
          signal,
        );
        const list = () => client.send(new ListTargetsByRuleCommand({ Rule: name }), options);
        const { Targets = [] } = await asking(`ListTargetsByRule ${name}`, 'events:ListTargetsByRule', list, signal);
        const listTags = () => client.send(new ListTagsForResourceCommand({ ResourceARN: rule.Arn }), options);
        const { Tags = [] } = await asking(`ListTagsForResource ${name}`, 'events:ListTagsForResource', listTags, signal);
        return {
          tags: Object.fromEntries(Tags.map(({ Key = '', Value = '' }) => [Key, Value])),
          isEnabled: rule.State !== 'DISABLED',
          targets: Targets.map(observedTarget),
          ...(rule.EventPattern !== undefined && { pattern: rule.EventPattern }),
        };
      } catch (error) {
        if (isMissing(error)) return 'absent';
        throw error;
      }
    },
    async putRule(region, { name, pattern }, tags, signal) {
      const client = await writerFor(region);
      const command = new PutRuleCommand({
        Name: name,
        EventPattern: JSON.stringify(pattern),
        State: 'ENABLED',
        // ignored if the rule exists
        Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })),
      });
      await asking(`PutRule ${name}`, 'events:PutRule', () => client.send(command, optionsOf(signal)), signal);
    },
    async putTarget(region, { name, target }, signal) {
      const client = await writerFor(region);
      const command = new PutTargetsCommand({ Rule: name, Targets: [sdkTarget(target)] });
      const what = `PutTargets ${name}`;
      const { FailedEntryCount, FailedEntries = [] } = await asking(
        what,
        'events:PutTargets',
        () => client.send(command, optionsOf(signal)),
        signal,
      );
      if ((FailedEntryCount ?? 0) > 0)
        throw new FaultError('connect.unavailable', `${what}: ${FailedEntries[0]?.ErrorMessage ?? 'the target was refused'}`);
    },
    async removeRule(region, { name, target }, signal) {
      const client = await writerFor(region);
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

function sdkTarget({ id, arn, deadLetterArn, transformer }: Target): SdkTarget {
  return {
    Id: id,
    Arn: arn,
    ...(deadLetterArn !== undefined && { DeadLetterConfig: { Arn: deadLetterArn } }),
    ...(transformer !== undefined && {
      InputTransformer: { InputPathsMap: { ...transformer.paths }, InputTemplate: transformer.template },
    }),
  };
}
