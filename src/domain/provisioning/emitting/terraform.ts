/** The parts of a plan as a configuration of Terraform, for the provider hashicorp/aws 5 or later. */
import { parseArn } from '../names.ts';
import { headOf, RETENTION_MAX_S, type Part, type Template } from './parts.ts';

/** The configuration. The provider is that of the module which it is put into. */
export function terraformOf(template: Template): string {
  const policies = template.parts.flatMap((part) => (part.kind === 'queue-policy' ? [`aws_sqs_queue_policy.${labelOf(part.arn)}`] : []));
  const isMade = (arn: string): boolean =>
    template.parts.some((part) => (part.kind === 'topic' || part.kind === 'queue') && part.arn === arn);
  const head = headOf(template, 'terraform').map((line) => `# ${line}`);
  return [head.join('\n'), ...template.parts.map((part) => blocksOf(part, { policies, isMade }))].join('\n\n');
}

interface Others {
  /** The addresses of the queues' policies. */
  readonly policies: readonly string[];
  /** Whether the configuration makes the topic or queue. */
  readonly isMade: (arn: string) => boolean;
}

/** What other buckets use as well must not be destroyed with one of them. */
const KEPT = ['', ...block('lifecycle', attributes([['prevent_destroy', 'true']]))];

function blocksOf(part: Part, others: Others): string {
  switch (part.kind) {
    case 'topic':
      return resource('aws_sns_topic', part.arn, [
        ...attributes([
          ['name', literal(nameOf(part.arn))],
          ['tags', document(part.tags)],
        ]),
        ...KEPT,
      ]);
    case 'topic-policy':
      return resource('aws_sns_topic_policy', part.arn, [
        ...attributes([
          ['arn', `aws_sns_topic.${labelOf(part.arn)}.arn`],
          ['policy', `jsonencode(${document(part.policy)})`],
        ]),
        ...KEPT,
      ]);
    case 'queue':
      return resource('aws_sqs_queue', part.arn, [
        ...attributes([
          ['name', literal(nameOf(part.arn))],
          ['message_retention_seconds', String(RETENTION_MAX_S)],
        ]),
        ...KEPT,
      ]);
    case 'queue-policy': {
      const label = labelOf(part.arn);
      const found = block(`data "aws_sqs_queue" "${label}"`, attributes([['name', literal(nameOf(part.arn))]])).join('\n');
      const policy = resource('aws_sqs_queue_policy', part.arn, [
        ...attributes([
          ['queue_url', `${others.isMade(part.arn) ? '' : 'data.'}aws_sqs_queue.${label}.url`],
          ['policy', `jsonencode(${document(part.policy)})`],
        ]),
        ...KEPT,
      ]);
      return others.isMade(part.arn) ? policy : `${found}\n\n${policy}`;
    }
    case 'subscription':
      return subscriptionBlock(part, others);
    case 'rule':
      return ruleBlocks(part, others);
  }
}

function subscriptionBlock({ subscription }: Part & { readonly kind: 'subscription' }, { policies, isMade }: Others): string {
  const { topicArn, queueArn, deadLetterArn } = subscription;
  return resource('aws_sns_topic_subscription', topicArn, [
    ...attributes([
      ['topic_arn', isMade(topicArn) ? `aws_sns_topic.${labelOf(topicArn)}.arn` : literal(topicArn)],
      ['protocol', literal('sqs')],
      ['endpoint', literal(queueArn)],
      ['raw_message_delivery', 'false'],
    ]),
    ...(deadLetterArn === undefined
      ? []
      : attributes([['redrive_policy', `jsonencode(${document({ deadLetterTargetArn: deadLetterArn })})`]])),
    ...dependsOn(policies),
    ...KEPT,
  ]);
}

function ruleBlocks({ rule, tags }: Part & { readonly kind: 'rule' }, { policies, isMade }: Others): string {
  const { id, arn, deadLetterArn, transformer } = rule.target;
  const target = resource('aws_cloudwatch_event_target', rule.arn, [
    ...attributes([
      ['rule', `aws_cloudwatch_event_rule.${labelOf(rule.arn)}.name`],
      ['target_id', literal(id)],
      ['arn', isMade(arn) ? `aws_sns_topic.${labelOf(arn)}.arn` : literal(arn)],
    ]),
    ...dependsOn(policies),
    ...(deadLetterArn === undefined ? [] : ['', ...block('dead_letter_config', attributes([['arn', literal(deadLetterArn)]]))]),
    ...(transformer === undefined
      ? []
      : [
          '',
          ...block(
            'input_transformer',
            attributes([
              ['input_paths', document(transformer.paths)],
              ['input_template', literal(transformer.template)],
            ]),
          ),
        ]),
  ]);
  const itself = resource('aws_cloudwatch_event_rule', rule.arn, [
    ...attributes([
      ['name', literal(rule.name)],
      ['state', literal('ENABLED')],
      ['event_pattern', `jsonencode(${document(rule.pattern)})`],
      ['tags', document(tags)],
    ]),
  ]);
  return `${itself}\n\n${target}`;
}

function resource(type: string, arn: string, body: readonly string[]): string {
  return block(`resource "${type}" "${labelOf(arn)}"`, body).join('\n');
}

function block(head: string, body: readonly string[]): readonly string[] {
  return [`${head} {`, ...body.map((line) => (line === '' ? '' : `  ${line}`)), '}'];
}

function dependsOn(addresses: readonly string[]): readonly string[] {
  return addresses.length === 0 ? [] : ['', `depends_on = [${addresses.join(', ')}]`];
}

/** Attributes as `terraform fmt` leaves them: neighbours of one line have their values in one column. */
function attributes(pairs: readonly (readonly [name: string, value: string])[]): readonly string[] {
  const width = Math.max(0, ...pairs.filter(([, value]) => !value.includes('\n')).map(([name]) => name.length));
  return pairs.flatMap(([name, value]) => `${value.includes('\n') ? name : name.padEnd(width)} = ${value}`.split('\n'));
}

/**
 * The label of a resource: the name of what it makes, which no other bucket's rule and no other topic has. A label may hold the
 * characters of a queue's name, but no dot. https://developer.hashicorp.com/terraform/language/syntax/configuration#identifiers
 */
function labelOf(arn: string): string {
  return nameOf(arn)
    .replace(/^rule\//, '')
    .replaceAll(/[^\w-]/g, '_')
    .replace(/^(?=\d)/, '_');
}

function nameOf(arn: string): string {
  return parseArn(arn)?.resource ?? arn;
}

/** JSON is an expression of HCL, but `${` and `%{` begin templates in its texts. */
function literal(value: string): string {
  return escaped(JSON.stringify(value));
}

/** A document over several lines, each name apart from its colon as `terraform fmt` leaves it. */
function document(value: unknown): string {
  return escaped(JSON.stringify(value, undefined, 2).replaceAll(/^( *"(?:[^"\\]|\\.)*"): /gm, '$1 : '));
}

function escaped(json: string): string {
  return json.replaceAll(/[$%](?=\{)/g, '$&$&');
}
