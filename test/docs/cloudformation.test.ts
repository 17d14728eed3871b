/** The templates of config/aws/cloudformation: cfn-lint accepts them, and they say what Tally itself would make. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, type ScalarTag, type CollectionTag } from 'yaml';
import { z } from 'zod';
import { bucketSources } from '../../src/domain/bucket.ts';
import { routedOperations } from '../../src/domain/provisioning/trail.ts';
import { transformer } from '../../src/domain/provisioning/transformer.ts';
import { wiringOf, type Wish } from '../../src/domain/provisioning/wiring.ts';
import { ACCOUNT, INSTALLATION, LETTERS_ARN, QUEUE_ARN, REGION, REGISTRY } from '../support/fakes/aws-parts.ts';
import { canRun, findProgram, runProgram } from './programs.ts';

const ROOT = new URL('../..', import.meta.url).pathname;
const FOLDER = 'config/aws/cloudformation';
const names = readdirSync(join(ROOT, FOLDER));
const LINT = { name: 'cfn-lint', variable: 'TALLY_TEST_CFN_LINT' } as const;

/** The functions of CloudFormation, each as its argument: what is compared below has none of them, or the name of the bucket. */
const tags: (ScalarTag | CollectionTag)[] = [
  ...['!Ref', '!Sub', '!GetAtt'].map((tag): ScalarTag => ({ tag, resolve: (text) => text })),
  ...['!Not', '!Equals', '!If'].map((tag): CollectionTag => ({ tag, collection: 'seq' })),
];

const ruleSchema = z.object({
  EventPattern: z.unknown(),
  Targets: z.tuple([
    z.object({
      Id: z.string(),
      InputTransformer: z.object({ InputPathsMap: z.record(z.string(), z.string()), InputTemplate: z.string() }).optional(),
    }),
  ]),
});
const templateSchema = z.object({
  AWSTemplateFormatVersion: z.literal('2010-09-09'),
  Description: z.string(),
  Resources: z.record(z.string(), z.object({ Type: z.string(), Properties: z.record(z.string(), z.unknown()) })),
});

const template = (name: string) => templateSchema.parse(parse(readFileSync(join(ROOT, FOLDER, name), 'utf8'), { customTags: tags }));
const ruleIn = (name: string) => ruleSchema.parse(template(name).Resources['Rule']?.Properties);

const wish: Wish = {
  bucket: 'Bucket',
  partition: 'aws',
  region: REGION,
  account: ACCOUNT,
  bucketAccount: ACCOUNT,
  installation: INSTALLATION,
  registry: REGISTRY,
  source: 'eventbridge',
  enrich: 'none',
  queueArn: QUEUE_ARN,
  deadLetterArn: LETTERS_ARN,
};

describe('the templates of CloudFormation', () => {
  it('are one for each source, and one for the queues, and the page shows each', () => {
    expect(names.toSorted()).toEqual(['queues', ...bucketSources].map((name) => `${name}.yaml`).toSorted());
    const page = readFileSync(join(ROOT, 'docs/guides/connect.md'), 'utf8');
    for (const name of names) expect(page).toContain(`(../../${FOLDER}/${name})`);
    for (const name of names) expect(Object.keys(template(name).Resources).length).toBeGreaterThan(0);
  });

  it.each(['eventbridge', 'routed'] as const)('match with the rule of Tally for %s', (source) => {
    const { EventPattern, Targets } = ruleIn(`${source}.yaml`);
    const { rule } = wiringOf({ ...wish, source });
    expect(EventPattern).toEqual(rule?.pattern);
    expect(Targets[0].Id).toBe(rule?.target.id);
  });

  it('have the input transformer and the selector of Tally', () => {
    expect(ruleIn('routed.yaml').Targets[0].InputTransformer).toEqual({
      InputPathsMap: transformer.paths,
      InputTemplate: transformer.template,
    });
    const trail = template('routed.yaml').Resources['Trail']?.Properties;
    expect(trail?.['AdvancedEventSelectors']).toMatchObject([
      { FieldSelectors: expect.arrayContaining([{ Field: 'eventName', Equals: [...routedOperations] }]) },
    ]);
  });
});

const runs = canRun('the templates of CloudFormation', [LINT]);

describe.skipIf(!runs)('cfn-lint', () => {
  it('accepts every template', async () => {
    const files = names.map((name) => join(ROOT, FOLDER, name));
    const { code, stdout, stderr } = await runProgram(findProgram(LINT) ?? '', ['--', ...files]);
    expect(code, stdout + stderr).toBe(0);
  });
});
