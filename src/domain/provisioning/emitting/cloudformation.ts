/** The parts of a plan as a template of CloudFormation. */
import { stringify } from 'yaml';
import { parseArn, tagList } from '../names.ts';
import { sdkTarget } from '../wiring.ts';
import { headOf, RETENTION_MAX_S, type Part, type Template } from './parts.ts';

interface Resource {
  readonly Type: string;
  readonly Properties: object;
  readonly DependsOn?: readonly string[];
  readonly DeletionPolicy?: 'Retain';
  readonly UpdateReplacePolicy?: 'Retain';
}

/** The template. A topic or queue that exists is left out: CloudFormation refuses to make it again. */
export function cloudFormationOf(template: Template): string {
  const parts = template.parts.filter((part) => (part.kind !== 'topic' && part.kind !== 'queue') || !part.exists);
  const nameOf = (part: Part): string => logicalName(part, template);
  const namesOf = (...kinds: readonly Part['kind'][]): readonly string[] => parts.filter(({ kind }) => kinds.includes(kind)).map(nameOf);
  const others = { topics: namesOf('topic'), queues: namesOf('queue'), policies: namesOf('topic-policy', 'queue-policy') };
  const document = {
    AWSTemplateFormatVersion: '2010-09-09',
    Description: `Connects the bucket ${template.wish.bucket} to Tally (source ${template.wish.source}).`,
    Resources: Object.fromEntries(parts.map((part) => [nameOf(part), resourceOf(part, others)])),
  };
  const head = headOf(template, 'cloudformation').map((line) => `# ${line}\n`);
  return `${head.join('')}${stringify(document, { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN', lineWidth: 0 }).trimEnd()}`;
}

/** There is one part of each kind, except the policies of the queues. */
function logicalName(part: Part, { wish }: Template): string {
  switch (part.kind) {
    case 'topic':
      return 'Topic';
    case 'topic-policy':
      return 'TopicPolicy';
    case 'queue':
      return 'UndeliveredQueue';
    case 'queue-policy':
      return (
        { [wish.queueArn]: 'BucketQueuePolicy', [wish.deadLetterArn ?? '']: 'DeadLetterQueuePolicy' }[part.arn] ?? 'UndeliveredQueuePolicy'
      );
    case 'subscription':
      return 'Subscription';
    case 'rule':
      return 'Rule';
  }
}

/** The names of what the template makes. */
interface Others {
  readonly topics: readonly string[];
  readonly queues: readonly string[];
  readonly policies: readonly string[];
}

function resourceOf(part: Part, { topics, queues, policies }: Others): Resource {
  switch (part.kind) {
    case 'topic':
      return shared('AWS::SNS::Topic', { TopicName: parseArn(part.arn)?.resource, Tags: tagList(part.tags) });
    case 'topic-policy':
      return { ...shared('AWS::SNS::TopicPolicy', { Topics: [part.arn], PolicyDocument: part.policy }), ...after(topics) };
    case 'queue-policy':
      return { ...shared('AWS::SQS::QueuePolicy', { Queues: [urlOf(part.arn)], PolicyDocument: part.policy }), ...after(queues) };
    case 'queue':
      return shared('AWS::SQS::Queue', { QueueName: parseArn(part.arn)?.resource, MessageRetentionPeriod: RETENTION_MAX_S });
    case 'subscription': {
      const { topicArn, queueArn, deadLetterArn } = part.subscription;
      const redrive = deadLetterArn === undefined ? {} : { RedrivePolicy: { deadLetterTargetArn: deadLetterArn } };
      const properties = { TopicArn: topicArn, Protocol: 'sqs', Endpoint: queueArn, RawMessageDelivery: false, ...redrive };
      return { ...shared('AWS::SNS::Subscription', properties), ...after([...topics, ...policies]) };
    }
    case 'rule': {
      const { name, pattern, target } = part.rule;
      const properties = { Name: name, State: 'ENABLED', EventPattern: pattern, Tags: tagList(part.tags), Targets: [sdkTarget(target)] };
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

/** The URL of a queue. Each partition has its domain, which CloudFormation knows. */
function urlOf(arn: string): object {
  const { region, account, resource } = parseArn(arn) ?? { region: '', account: '', resource: '' };
  return { 'Fn::Sub': `https://sqs.${region}.\${AWS::URLSuffix}/${account}/${resource}` };
}
