import { describe, expect, it } from 'vitest';
import { newOwner, ruleNameOf } from '../../src/connect/names.rules.ts';
import { attributeTexts, differencesOf, missingTags, sharedParts, type SharedPart } from '../../src/connect/shared.rules.ts';
import { INSTALLATION, LETTERS_ARN, QUEUE_ARN, REGION, REGISTRY, spec } from '../support/fakes/aws-parts.ts';

const owner = { installation: INSTALLATION, registry: REGISTRY };
const home = { partition: 'aws', region: REGION, account: spec.account };
const partsIn = (region: string): readonly SharedPart[] =>
  sharedParts(owner, { queues: { bucket: QUEUE_ARN, letters: LETTERS_ARN }, home, region });
const [letters, bucket, , subscription] = partsIn(REGION) as readonly [SharedPart, SharedPart, SharedPart, SharedPart];

const foundAs = (part: SharedPart, attributes: Readonly<Record<string, string>> = {}) => ({
  attributes: { ...attributeTexts(part), ...attributes },
  tags: part.tags,
});
const changed = (attributes: Readonly<Record<string, string>>, part = bucket) => differencesOf(part, foundAs(part, attributes));

it('the parts that all buckets share have one owner, which follows from the queue: two runs, and the Terraform module, give the same one', () => {
  expect(newOwner(QUEUE_ARN)).toEqual(newOwner(QUEUE_ARN));
  expect(newOwner(QUEUE_ARN, INSTALLATION)).toEqual({ installation: INSTALLATION, registry: newOwner(QUEUE_ARN).registry });
  expect(newOwner(LETTERS_ARN).registry).not.toBe(newOwner(QUEUE_ARN).registry);
  expect(missingTags(bucket, { attributes: {}, tags: {} })).toEqual(bucket.tags);
  expect(missingTags(bucket, foundAs(bucket))).toEqual({});
});

describe('a part that exists', () => {
  it('is as planned in whatever form AWS answers', () => {
    for (const part of partsIn(REGION)) expect(differencesOf(part, foundAs(part))).toEqual([]);
    const RedrivePolicy = JSON.stringify({ maxReceiveCount: '100', deadLetterTargetArn: LETTERS_ARN });
    expect(changed({ RedrivePolicy, ApproximateNumberOfMessages: '7' })).toEqual([]);
    // a key of the user's own encrypts as well
    expect(changed({ SqsManagedSseEnabled: 'false', KmsMasterKeyId: 'alias/tally' })).toEqual([]);
    // SNS names no attribute that was never set
    const { RawMessageDelivery: _, FilterPolicy: __, ...rest } = attributeTexts(subscription);
    expect(differencesOf(subscription, { attributes: rest })).toEqual([]);
  });

  it('keeps the names of SNS of other regions, which another setup has added', () => {
    const far = partsIn('af-south-1')[1]!;
    expect(attributeTexts(far)['Policy']).toContain('sns.af-south-1.amazonaws.com');
    expect(changed({ Policy: attributeTexts(far)['Policy']! })).toEqual([]);
    expect(differencesOf(far, foundAs(bucket))).toMatchObject([{ attribute: 'Policy' }]);
  });

  const settings = [letters, bucket].flatMap((part) => Object.keys(attributeTexts(part)).map((name) => [part.arn, name, part] as const));

  it.each(settings)('%s differs by %s alone', (_, attribute, part) => {
    const { [attribute]: wanted, ...without } = attributeTexts(part);
    expect(differencesOf(part, { attributes: without })).toEqual([{ attribute, wanted }]);
    const other = attribute === 'Policy' ? '{"Statement":[{"Sid":"theirs"}]}' : '1';
    expect(changed({ [attribute]: other }, part)).toMatchObject([{ attribute, found: other }]);
  });
});

it('the name of a rule fits, and differs by bucket, source and installation', () => {
  const long = ['a'.repeat(63), `${'a'.repeat(62)}b`, 'OLD_Name', 'photos'];
  const names = long.flatMap((each) => (['eventbridge', 'routed'] as const).map((source) => ruleNameOf(INSTALLATION, each, source)));
  expect(new Set([...names, ruleNameOf('ffffffff', 'photos', 'routed')]).size).toBe(9);
  for (const name of names) expect(name).toMatch(/^[.\w-]{1,64}$/);
});
