/** The templates of a plan: Terraform is parsed and compared with the plan part by part, and cfn-lint judges CloudFormation. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { cloudFormationOf } from '../../../src/domain/provisioning/emitting/cloudformation.ts';
import { templateOf, type Part, type Template } from '../../../src/domain/provisioning/emitting/parts.ts';
import { terraformOf } from '../../../src/domain/provisioning/emitting/terraform.ts';
import { tagsOf } from '../../../src/domain/provisioning/names.ts';
import type { Observed } from '../../../src/domain/provisioning/observed.ts';
import { planOf, type Change } from '../../../src/domain/provisioning/planning/plan.ts';
import type { Wish } from '../../../src/domain/provisioning/wiring.ts';
import { canRun, findProgram, runProgram } from '../../docs/programs.ts';
import { ACCOUNT, LETTERS_ARN, QUEUE_ARN, ROUTED_ARN, THEIR_TOPIC, wish } from '../../support/fakes/aws-parts.ts';

const HCL = { name: 'hcl2tojson', variable: 'TALLY_TEST_HCL2TOJSON' } as const;
const LINT = { name: 'cfn-lint', variable: 'TALLY_TEST_CFN_LINT' } as const;

/** Texts that begin a template in HCL, and quotes. */
const theirs = { Sid: 'their ${aws:username} %{if} "q" \\', Effect: 'Deny', Principal: '*', Action: 'sqs:*', Resource: QUEUE_ARN };
const observed: Observed = {
  notification: { ok: true, xml: '', configuration: { entries: [], eventBridge: false } },
  queues: [
    { arn: QUEUE_ARN, isFifo: false, policy: JSON.stringify({ Version: '2012-10-17', Statement: [theirs] }) },
    { arn: LETTERS_ARN, isFifo: false },
  ],
  topic: 'absent',
  subscription: 'absent',
  rule: 'absent',
};
/** A queue in another region than the bucket, and a bucket in another account than the queue. */
const far: Partial<Wish> = { region: 'ap-east-1' };
const theirAccount: Partial<Wish> = { bucketAccount: '210987654321' };

const cases: readonly (readonly [name: string, change: Partial<Wish>])[] = [
  ['topic', { source: 'topic', topicArn: THEIR_TOPIC }],
  ['eventbridge', { source: 'eventbridge' }],
  ['routed', { source: 'routed' }],
  ['eventbridge in another region', { source: 'eventbridge', ...far }],
  ['routed in another account', { source: 'routed', ...theirAccount }],
];

function planned(change: Partial<Wish>): { readonly template: Template; readonly changes: readonly Change[] } {
  const plan = planOf({ ...wish, ...change }, observed);
  return { template: templateOf(plan, observed), changes: plan.changes };
}

/** What a plan calls a part of a template. */
function named(part: Part): readonly string[] {
  switch (part.kind) {
    case 'rule':
      return [`rule ${part.rule.arn}`, `target ${part.rule.arn}`];
    case 'subscription':
      return [`subscription ${part.subscription.topicArn} → ${part.subscription.queueArn}`];
    case 'topic':
    case 'topic-policy':
    case 'queue':
    case 'queue-policy':
      return [`${part.kind} ${part.arn}`];
  }
}

describe('the parts of a template', () => {
  it.each(cases)('are the writes of the plan for %s, but those that others have a part in, or that belong elsewhere', (name, change) => {
    const { template, changes } = planned(change);
    const made = template.parts.flatMap(named);
    const writes = changes.map(({ part, name: arn }) => `${part} ${arn}`);
    expect(writes.filter((write) => !made.includes(write)).map((write) => write.split(' ')[0])).toEqual(
      {
        topic: [],
        eventbridge: ['notification'],
        routed: [],
        // the policy of the bucket queue
        'eventbridge in another region': ['queue-policy', 'notification'],
        'routed in another account': ['queue-policy', 'queue-policy', 'subscription'],
      }[name],
    );
    expect(made.filter((each) => !writes.includes(each))).toEqual([]);
    // what is missing stands at the top
    const unmade = { topic: 0, eventbridge: 1, routed: 1, 'eventbridge in another region': 2, 'routed in another account': 4 }[name];
    expect(template.left).toHaveLength(unmade ?? -1);
  });

  it('are policies with what others have in them, and a target with its dead-letter queue', () => {
    const { parts } = planned({ source: 'eventbridge' }).template;
    const policy = parts.find((part) => part.kind === 'queue-policy' && part.arn === QUEUE_ARN);
    expect(policy).toMatchObject({ policy: { Statement: [theirs, { Action: 'sqs:SendMessage' }] } });
    expect(parts.find(({ kind }) => kind === 'rule')).toMatchObject({ rule: { target: { arn: QUEUE_ARN, deadLetterArn: LETTERS_ARN } } });
  });

  it('are those of the wish whether they exist or not, so that a template that is made again takes nothing away', () => {
    const rule = { isEnabled: true, targets: [], tags: tagsOf(wish, 'photos') };
    const topic = { isFifo: false, tags: tagsOf(wish), otherSubscriptions: 0 };
    const found: Observed = { ...observed, topic, rule, subscription: { arn: 'a', isPending: false, isRaw: false } };
    const again = templateOf(planOf({ ...wish, source: 'routed' }, found), found);
    expect(again.parts.map(({ kind }) => kind)).toEqual(planned({ source: 'routed' }).template.parts.map(({ kind }) => kind));
    // CloudFormation makes no topic that exists, and keeps the one that an earlier template has made
    expect(cloudFormationOf(again)).not.toContain('"AWS::SNS::Topic"');
    expect(cloudFormationOf(again)).toContain('# The rule tally-');
    expect(terraformOf(again)).toContain('resource "aws_sns_topic" ');
  });
});

const folder = mkdtempSync(join(tmpdir(), 'tally-templates-'));
afterAll(() => rmSync(folder, { recursive: true }));

const resourcesSchema = z.object({
  resource: z.array(z.record(z.string(), z.record(z.string(), z.looseObject({})))),
  data: z.array(z.object({ aws_sqs_queue: z.record(z.string(), z.object({ name: z.string() })) })).default([]),
});

/** The value that an expression of the parser stands for: `jsonencode(…)` its document, a reference itself. */
function valueOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(valueOf);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value)
        .filter(([name]) => !name.startsWith('__'))
        .map(([name, each]) => [name, valueOf(each)]),
    );
  if (typeof value !== 'string') return value;
  const [, document] = /^\$\{jsonencode\((.*)\)\}$/s.exec(value) ?? [];
  const plain = (text: string): string => text.replaceAll('$${', '${').replaceAll('%%{', '%{');
  return document === undefined ? plain(value) : (JSON.parse(plain(document.replaceAll(/("(?:[^"\\]|\\.)*") = /g, '$1: '))) as unknown);
}

/** The resources of a configuration, by type and label. */
async function terraform(template: Template): Promise<{ readonly text: string; readonly resources: ReadonlyMap<string, unknown> }> {
  const file = join(folder, 'main.tf');
  const text = terraformOf(template);
  writeFileSync(file, text);
  const { code, stdout, stderr } = await runProgram(findProgram(HCL) ?? '', ['--strip-string-quotes', file]);
  expect(code, stderr).toBe(0);
  const { resource } = resourcesSchema.parse(JSON.parse(stdout));
  const all = resource.flatMap((each) =>
    Object.entries(each).flatMap(([type, labels]) =>
      Object.entries(labels).map(([label, body]) => [`${type}.${label}`, valueOf(body)] as const),
    ),
  );
  return { text, resources: new Map(all) };
}

/** What the configuration must say of a part. */
function wanted(part: Part, template: Template): readonly (readonly [type: string, body: object])[] {
  const isMade = (arn: string): boolean =>
    template.parts.some((each) => (each.kind === 'topic' || each.kind === 'queue') && each.arn === arn);
  const label = (arn: string): string => (arn.split(/[:/]/).at(-1) ?? '').replaceAll(/[^\w-]/g, '_');
  const topic = (arn: string): string => (isMade(arn) ? `\${aws_sns_topic.${label(arn)}.arn}` : arn);
  const lifecycle = [{ prevent_destroy: true }];
  switch (part.kind) {
    case 'topic':
      return [['aws_sns_topic', { name: part.arn.split(':').at(-1), tags: part.tags, lifecycle }]];
    case 'topic-policy':
      return [['aws_sns_topic_policy', { arn: topic(part.arn), policy: part.policy, lifecycle }]];
    case 'queue':
      return [['aws_sqs_queue', { name: part.arn.split(':').at(-1), message_retention_seconds: 1_209_600, lifecycle }]];
    case 'queue-policy': {
      const queue = `${isMade(part.arn) ? '' : 'data.'}aws_sqs_queue.${label(part.arn)}`;
      return [['aws_sqs_queue_policy', { queue_url: `\${${queue}.url}`, policy: part.policy, lifecycle }]];
    }
    case 'subscription': {
      const { topicArn, queueArn, deadLetterArn } = part.subscription;
      const redrive_policy = { deadLetterTargetArn: deadLetterArn };
      const body = { topic_arn: topic(topicArn), protocol: 'sqs', endpoint: queueArn, raw_message_delivery: false, redrive_policy };
      return [['aws_sns_topic_subscription', { ...body, lifecycle }]];
    }
    case 'rule': {
      const { name, pattern, target, arn } = part.rule;
      const { transformer } = target;
      const input = transformer && { input_transformer: [{ input_paths: transformer.paths, input_template: transformer.template }] };
      const rule = `\${aws_cloudwatch_event_rule.${label(arn)}.name}`;
      const dead_letter_config = [{ arn: target.deadLetterArn }];
      return [
        ['aws_cloudwatch_event_rule', { name, state: 'ENABLED', event_pattern: pattern, tags: part.tags }],
        ['aws_cloudwatch_event_target', { rule, target_id: target.id, arn: topic(target.arn), dead_letter_config, ...input }],
      ];
    }
  }
}

describe.skipIf(!canRun('the Terraform of a plan', [HCL]))('Terraform', () => {
  it.each(cases)('says what the plan makes, part by part, for %s', async (_, change) => {
    const { template } = planned(change);
    const { text, resources } = await terraform(template);
    expect(text).toMatch(/^# .*\n# It was parsed and compared .* it was not applied\.\n/);
    const all = template.parts.flatMap((part) => wanted(part, template));
    expect(resources.size).toBe(all.length);
    for (const [type, body] of all) {
      const found = [...resources].filter(([address]) => address.startsWith(`${type}.`)).map(([, each]) => each);
      expect(found).toContainEqual(expect.objectContaining(body));
    }
    // the subscription and the target come after the policies that admit them
    const policies = [...resources.keys()].filter((address) => address.startsWith('aws_sqs_queue_policy.'));
    for (const [address, body] of resources)
      if (/subscription|target/.test(address) && policies.length > 0)
        expect(body).toMatchObject({ depends_on: policies.map((each) => `\${${each}}`) });
  });
});

describe.skipIf(!canRun('the templates of a plan', [LINT]))('CloudFormation', () => {
  it('is accepted by cfn-lint for every source', async () => {
    const files = cases.map(([name, change]) => {
      const file = join(folder, `${name}.yaml`);
      writeFileSync(file, cloudFormationOf(planned(change).template));
      return file;
    });
    const { code, stdout, stderr } = await runProgram(findProgram(LINT) ?? '', ['--regions', 'us-east-1', '--', ...files]);
    expect(code, stdout + stderr).toBe(0);
  });

  it('keeps what other buckets use when the stack is deleted, and only the rule goes with it', () => {
    const { Resources } = parse(cloudFormationOf(planned({ source: 'routed' }).template)) as { Resources: Record<string, object> };
    expect(
      Object.entries(Resources)
        .filter(([, resource]) => !('DeletionPolicy' in resource))
        .map(([name]) => name),
    ).toEqual(['Rule']);
    expect(JSON.stringify(Resources)).toContain(ROUTED_ARN);
    expect(JSON.stringify(Resources)).toContain(`https://sqs.us-east-1.\${AWS::URLSuffix}/${ACCOUNT}/tally-bucket-events`);
  });
});
