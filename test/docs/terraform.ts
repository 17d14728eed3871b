/** config/terraform/permissions.tf: the policy of the daemon as the module's own expressions, from the table of `tally iam-policy`. */
import { z } from 'zod';
import { iamPolicy } from '../../src/connect/permissions.rules.ts';

const policySchema = z.object({
  Statement: z.array(
    z.strictObject({
      Sid: z.string(),
      Effect: z.literal('Allow'),
      Action: z.array(z.string()),
      Resource: z.union([z.string().transform((one) => [one]), z.array(z.string())]),
      Condition: z.record(z.string(), z.record(z.string(), z.string())).optional(),
    }),
  ),
});
type Statement = z.infer<typeof policySchema>['Statement'][number];

const KEY = '${var.kms_key_arn}';
const BUCKET = '${bucket}';

/** The file. */
export function terraformPermissions(): string {
  const { Statement: statements } = policySchema.parse(
    iamPolicy('daemon', ['notification', 'eventbridge'], {
      partition: '${local.partition}',
      region: '${local.region}',
      account: '${local.account}',
      bucketQueues: ['${local.bucket_events_arn}'],
      letterQueues: ['${local.dead_letters_arn}'],
      bucket: BUCKET,
      installation: '*',
      keyArn: KEY,
    }),
  );
  const isAbout = (part: string) => (statement: Statement) => statement.Resource.some((resource) => resource.includes(part));
  const [ofKey, ofBuckets] = [KEY, BUCKET].map((part) => statements.filter(isAbout(part)));
  const others = statements.filter((statement) => !isAbout(KEY)(statement) && !isAbout(BUCKET)(statement));
  const listed = (all: readonly Statement[] = []): string => all.map(statementText).join('');
  return `# Written by \`npm run docs\` from the permissions that \`tally iam-policy\` prints for the sources notification and eventbridge.
locals {
  permissions = concat(
    [
${listed(others)}    ],
    # a statement without a resource would be refused
    [for statement in [
${listed(ofBuckets)}    ] : statement if length(local.buckets) > 0],
    [for statement in [
${listed(ofKey)}    ] : statement if var.kms_key_arn != null],
  )
}
`;
}

/** As \`terraform fmt\` leaves it. */
function statementText({ Sid, Effect, Action, Resource, Condition }: Statement): string {
  const width = Condition === undefined ? 'Resource'.length : 'Condition'.length;
  const fields = {
    Sid: textOf(Sid),
    Effect: textOf(Effect),
    Action: listOf(Action),
    Resource: Resource.some((resource) => resource.includes(BUCKET))
      ? `[for bucket in local.buckets : ${textOf(Resource.join(''))}]`
      : listOf(Resource),
    ...(Condition && { Condition: objectOf(Condition) }),
  };
  const lines = Object.entries(fields).map(([name, value]) => `        ${name.padEnd(width)} = ${value}\n`);
  return `      {\n${lines.join('')}      },\n`;
}

/** A text that is one reference is written as the reference, which may be null. */
function textOf(value: string): string {
  const [, reference] = /^\$\{([\w.]+)\}$/.exec(value) ?? [];
  return reference ?? JSON.stringify(value.replace(/\.amazonaws\.com$/, '.${data.aws_partition.current.dns_suffix}'));
}

function listOf(values: readonly string[]): string {
  return `[${values.map(textOf).join(', ')}]`;
}

function objectOf(condition: NonNullable<Statement['Condition']>): string {
  const fields = Object.entries(condition).map(([operator, values]) => {
    const inner = Object.entries(values).map(([key, value]) => `${JSON.stringify(key)} = ${textOf(value)}`);
    return `${operator} = { ${inner.join(', ')} }`;
  });
  return `{ ${fields.join(', ')} }`;
}
