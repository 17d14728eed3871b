/** The parts of a plan as a template of CloudFormation. */
import { stringify } from 'yaml';
import { parseArn } from '../names.ts';
import type { Target } from '../wiring.ts';
import { headOf, type Part, type Template } from './parts.ts';

interface Resource {
  readonly Type: string;
  readonly Properties: object;
  readonly DependsOn?: readonly string[];
  readonly DeletionPolicy?: 'Retain';
  readonly UpdateReplacePolicy?: 'Retain';
}

/** The template. A topic that exists is left out: CloudFormation refuses to make it again. */
export function cloudFormationOf(template: Template): string {
  const parts = template.parts.filter((part) => part.kind !== 'topic' || !part.exists);
  const names = nameParts(parts);
  const policies = parts.flatMap((part, at) => (part.kind === 'queue-policy' || part.kind === 'topic-policy' ? [names[at] ?? ''] : []));
  const document = {
    AWSTemplateFormatVersion: '2010-09-09',
    Description: `Connects the bucket ${template.wish.bucket} to Tally (source ${template.wish.source}).`,
    Resources: Object.fromEntries(
      parts.map((part, at) => [names[at], resourceOf(part, { topic: names[parts.findIndex(isTopic)], policies })]),
    ),
  };
  const head = headOf(template, 'cloudformation').map((line) => `# ${line}\n`);
  return `${head.join('')}${stringify(document, { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN', lineWidth: 0 }).trimEnd()}`;
}

function isTopic({ kind }: Part): boolean {
  return kind === 'topic';
}

/** The logical names. There is one part of each kind, except the policies of the queues. */
function nameParts(parts: readonly Part[]): readonly string[] {
  const [first] = parts.filter(({ kind }) => kind === 'queue-policy');
  return parts.map((part) => {
    switch (part.kind) {
      case 'topic':
        return 'Topic';
      case 'topic-policy':
        return 'TopicPolicy';
      case 'queue-policy':
        return part === first ? 'BucketQueuePolicy' : 'DeadLetterQueuePolicy';
      case 'subscription':
        return 'Subscription';
      case 'rule':
        return 'Rule';
    }
  });
}

interface Others {
  /** The name of the topic, if the template makes it. */
  readonly topic: string | undefined;
  readonly policies: readonly string[];
}

function resourceOf(part: Part, { topic, policies }: Others): Resource {
  const afterTopic = topic === undefined ? {} : { DependsOn: [topic] };
  switch (part.kind) {
    case 'topic':
      return shared('AWS::SNS::Topic', { TopicName: parseArn(part.arn)?.resource, Tags: tagList(part.tags) });
    case 'topic-policy':
      return { ...shared('AWS::SNS::TopicPolicy', { Topics: [part.arn], PolicyDocument: part.policy }), ...afterTopic };
    case 'queue-policy':
      return shared('AWS::SQS::QueuePolicy', { Queues: [urlOf(part.arn)], PolicyDocument: part.policy });
    case 'subscription': {
      const { topicArn, queueArn, deadLetterArn } = part.subscription;
      const redrive = deadLetterArn === undefined ? {} : { RedrivePolicy: { deadLetterTargetArn: deadLetterArn } };
      const properties = { TopicArn: topicArn, Protocol: 'sqs', Endpoint: queueArn, RawMessageDelivery: false, ...redrive };
      return { ...shared('AWS::SNS::Subscription', properties), ...after([...(topic === undefined ? [] : [topic]), ...policies]) };
    }
    case 'rule': {
      const { name, pattern, target } = part.rule;
      const properties = { Name: name, State: 'ENABLED', EventPattern: pattern, Tags: tagList(part.tags), Targets: [targetOf(target)] };
      return { Type: 'AWS::Events::Rule', Properties: properties, ...after(policies) };
    }
  }
}

/** What other buckets use as well stays when the stack is deleted, or when a later template of it leaves the part out. */
function shared(Type: string, Properties: object): Resource {
  return { Type, Properties, DeletionPolicy: 'Retain', UpdateReplacePolicy: 'Retain' };
}

function after(names: readonly string[]): Pick<Resource, 'DependsOn'> {
  return names.length === 0 ? {} : { DependsOn: names };
}

function tagList(tags: Readonly<Record<string, string>>): readonly object[] {
  return Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
}

/** The URL of a queue. Each partition has its domain, which CloudFormation knows. */
function urlOf(arn: string): object {
  const { region, account, resource } = parseArn(arn) ?? { region: '', account: '', resource: '' };
  return { 'Fn::Sub': `https://sqs.${region}.\${AWS::URLSuffix}/${account}/${resource}` };
}

function targetOf({ id, arn, deadLetterArn, transformer }: Target): object {
  return {
    Id: id,
    Arn: arn,
    ...(deadLetterArn !== undefined && { DeadLetterConfig: { Arn: deadLetterArn } }),
    ...(transformer !== undefined && { InputTransformer: { InputPathsMap: transformer.paths, InputTemplate: transformer.template } }),
  };
}
