/** The module of config/terraform: it parses, and says what `tally setup`, `bucket plan` and `iam-policy` make and print. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { markOf, newOwner, tagsOf, topicArnOf } from '../../src/connect/names.rules.ts';
import { attributeTexts, differencesOf, sharedParts } from '../../src/connect/shared.rules.ts';
import { desired } from '../../src/connect/sources/sources.ts';
import { ROOT, textOf } from '../docs/pages.ts';
import { canRun, findProgram, runProgram } from '../docs/programs.ts';
import { ACCOUNT, LETTERS_ARN, QUEUE_ARN, REGION, spec as photos } from '../support/fakes/aws-parts.ts';

const HCL = { name: 'hcl2tojson', variable: 'TALLY_TEST_HCL2TOJSON' } as const;
const FOLDER = 'config/terraform';
const EXAMPLES = ['examples/complete/main.tf', 'examples/other-account/main.tf'];
const FILES = ['main.tf', 'permissions.tf', 'variables.tf', 'outputs.tf', 'versions.tf', ...EXAMPLES];
const home = { partition: 'aws', region: REGION, account: ACCOUNT };
const owner = newOwner(QUEUE_ARN);
const topics = { events: topicArnOf(owner.installation, home, 'events'), routed: topicArnOf(owner.installation, home, 'routed') };
const KEY_ARN = `arn:aws:kms:${REGION}:${ACCOUNT}:key/example`;

/** What the expressions of the module refer to, for a bucket `photos` and the default name. */
const VALUES: Readonly<Record<string, string>> = {
  'var.name': 'tally',
  'var.kms_key_arn': KEY_ARN,
  'local.partition': 'aws',
  'local.account': ACCOUNT,
  'local.region': REGION,
  'local.bucket_events_arn': QUEUE_ARN,
  'local.dead_letters_arn': LETTERS_ARN,
  'data.aws_partition.current.dns_suffix': 'amazonaws.com',
  'aws_sqs_queue.dead_letters.arn': LETTERS_ARN,
  'aws_sqs_queue.bucket_events.arn': QUEUE_ARN,
  'local.installation': owner.installation,
  'local.mark': markOf(owner),
  'local.topic_arns.events': topics.events,
  'local.topic_arns.routed': topics.routed,
  'each.value': photos.bucket,
  'each.key': QUEUE_ARN,
  bucket: photos.bucket,
};

const MADE = { queue: 'sqs_queue', topic: 'sns_topic', subscription: 'sns_topic_subscription' } as const;
const NAMES: Readonly<Record<string, string>> = { [QUEUE_ARN]: 'bucket_events', [LETTERS_ARN]: 'dead_letters' };

const fileSchema = z.object({
  resource: z.array(z.record(z.string(), z.record(z.string(), z.record(z.string(), z.unknown())))).default([]),
  locals: z.array(z.record(z.string(), z.unknown())).default([]),
  variable: z.array(z.record(z.string(), z.looseObject({ description: z.string() }))).default([]),
  output: z.array(z.record(z.string(), z.looseObject({ value: z.unknown() }))).default([]),
});
type File = z.infer<typeof fileSchema>;

async function parsed(name: string): Promise<File> {
  const { code, stdout, stderr } = await runProgram(findProgram(HCL) ?? '', ['--strip-string-quotes', join(ROOT, FOLDER, name)]);
  expect(code, stderr).toBe(0);
  return fileSchema.parse(JSON.parse(stdout));
}

/** The value of an object or a list of the language, as far as this module uses it. */
function valueOf(expression: string): unknown {
  const text = expression
    // [for bucket in local.buckets : "…"], for one bucket
    .replaceAll(/\[for bucket in local\.buckets : ("[^"]*")\]/g, '[$1]')
    .replaceAll(/\$\{([\w.]+)\}/g, (whole, name: string) => VALUES[name] ?? whole)
    .replaceAll(/([{,]\s*)("[^"]+"|\w+) = /g, (_, before: string, key: string) => `${before}${key.startsWith('"') ? key : `"${key}"`}: `)
    .replaceAll(/(?<=[:[,]\s*)(?:var|local|each|aws_\w+)\.[\w.]+/g, (name) => JSON.stringify(VALUES[name] ?? name));
  return JSON.parse(text);
}

/** The argument of `jsonencode`. */
const encoded = (expression: unknown): unknown => valueOf(/^\$\{jsonencode\((.*)\)\}$/s.exec(String(expression))?.[1] ?? '');

const runs = canRun('the Terraform module', [HCL]);

describe.skipIf(!runs)('the Terraform module', () => {
  const { rule } = desired({ ...photos, source: 'eventbridge', enrich: 'tags' });
  let main: File;
  const resource = (type: string, name: string): Readonly<Record<string, unknown>> =>
    main.resource.map((each) => each[type]?.[name]).find((found) => found !== undefined) ?? {};

  beforeAll(async () => {
    main = await parsed('main.tf');
  });

  it('parses, with its examples, and names only what it declares', async () => {
    const present = readdirSync(join(ROOT, FOLDER), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.tf'));
    expect(present.toSorted()).toEqual(FILES.toSorted());
    const own = await Promise.all(FILES.filter((name) => !name.includes('/')).map(parsed));
    const names = (read: (file: File) => readonly object[]): readonly string[] => own.flatMap(read).flatMap(Object.keys);
    const declared = new Set([
      ...names(({ variable }) => variable).map((name) => `var.${name}`),
      ...names(({ locals }) => locals).map((name) => `local.${name}`),
      ...own.flatMap(({ resource: all }) =>
        all.flatMap((each) => Object.entries(each).flatMap(([type, named]) => Object.keys(named).map((name) => `${type}.${name}`))),
      ),
    ]);
    const text = FILES.filter((name) => !name.includes('/'))
      .map((name) => textOf(`${FOLDER}/${name}`))
      .join('\n');
    const used = [...text.replaceAll(/#.*$/gm, '').matchAll(/(?<!data\.)\b(?:var|local|aws_[a-z0-9_]+)\.\w+/g)].map(([name]) => name);
    expect(used.filter((name) => !declared.has(name))).toEqual([]);
    for (const path of EXAMPLES) {
      await parsed(path);
      const module = /module "tally" \{(.*?)^\}/ms.exec(textOf(`${FOLDER}/${path}`))![1]!;
      const given = [...module.matchAll(/^ {2}(\w+) +=/gm)].map(([, name]) => `var.${name}`);
      expect(given.filter((name) => name !== 'var.source' && !declared.has(name))).toEqual([]);
    }
  });

  it('owns the notification configuration of no bucket', () => {
    expect(main.resource.flatMap((each) => Object.keys(each)).filter((type) => type.startsWith('aws_s3'))).toEqual([]);
  });

  it('has the queues and topics that `tally setup` makes, with their subscriptions and tags', () => {
    const policy = JSON.stringify(encoded(resource('aws_sqs_queue_policy', 'this')['policy']));
    expect(resource('aws_sqs_queue_policy', 'this')['for_each']).toEqual({
      '${(local.bucket_events_arn)}': '${aws_sqs_queue.bucket_events.id}',
      '${(local.dead_letters_arn)}': '${aws_sqs_queue.dead_letters.id}',
    });
    const locals: Readonly<Record<string, unknown>> = Object.assign({}, ...main.locals);
    expect(locals).toMatchObject({
      owner: '${sha256("tally ${local.bucket_events_arn}")}',
      installation: '${coalesce(var.installation, substr(local.owner, 0, 8))}',
      registry: '${substr(local.owner, 8, 32)}',
      mark: 'tally-${local.installation}-${substr(local.registry, 0, 8)}',
    });
    expect(Object.keys(tagsOf(owner)).every((name) => String(locals['tags']).includes(`"${name}"`))).toBe(true);
    for (const part of sharedParts(owner, { queues: { bucket: QUEUE_ARN, letters: LETTERS_ARN }, home, region: REGION })) {
      const made = resource(`aws_${MADE[part.kind]}`, part.kind === 'queue' ? NAMES[part.arn]! : 'this');
      const attributes =
        part.kind === 'queue'
          ? {
              MessageRetentionPeriod: String(made['message_retention_seconds']),
              VisibilityTimeout: String(made['visibility_timeout_seconds']),
              ReceiveMessageWaitTimeSeconds: String(made['receive_wait_time_seconds']),
              DelaySeconds: String(made['delay_seconds']),
              SqsManagedSseEnabled: 'true',
              Policy: policy.replaceAll(QUEUE_ARN, part.arn),
              ...('redrive_policy' in made && { RedrivePolicy: JSON.stringify(encoded(made['redrive_policy'])) }),
            }
          : part.kind === 'topic'
            ? { Policy: JSON.stringify(encoded(resource('aws_sns_topic_policy', part.arn.split('-').at(-1)!)['policy'])) }
            : { RedrivePolicy: JSON.stringify(encoded(made['redrive_policy'])) };
      expect([part.arn, differencesOf(part, { attributes })]).toEqual([part.arn, []]);
      if (part.kind !== 'subscription') expect(made['tags']).toBe('${local.tags}');
      // what the module sets is what is wanted, and nothing else of it
      expect(Object.keys(attributeTexts(part))).toEqual(expect.arrayContaining(Object.keys(attributes)));
    }
    expect(resource('aws_sns_topic_subscription', 'this')).toMatchObject({
      for_each: '${aws_sns_topic.this}',
      protocol: 'sqs',
      endpoint: '${aws_sqs_queue.bucket_events.arn}',
    });
  });

  it('has the rule of Tally for each bucket, under a name that the queue admits', () => {
    const pattern = encoded(resource('aws_cloudwatch_event_rule', 'this')['event_pattern']);
    expect(pattern).toEqual(rule?.pattern);
    expect(String(resource('aws_cloudwatch_event_rule', 'this')['name']).match(/"tally-\$\{local\.installation\}-/g)).toHaveLength(2);
    expect(resource('aws_cloudwatch_event_target', 'this')).toMatchObject({
      for_each: '${var.buckets}',
      target_id: rule?.target.Id,
      arn: '${aws_sqs_queue.bucket_events.arn}',
      dead_letter_config: [{ arn: '${aws_sqs_queue.dead_letters.arn}' }],
    });
  });
});
