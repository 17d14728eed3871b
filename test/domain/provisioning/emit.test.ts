import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { emitScript } from '../../../src/domain/provisioning/emit.ts';
import { ruleNameOf } from '../../../src/domain/provisioning/names.ts';
import { wiringOf, type Wish } from '../../../src/domain/provisioning/wiring.ts';
import { ACCOUNT, INSTALLATION, LETTERS_ARN, QUEUE_ARN, REGION, THEIR_TOPIC } from '../../support/fakes/aws-parts.ts';

const wish: Wish = {
  bucket: 'photos',
  partition: 'aws',
  region: REGION,
  account: ACCOUNT,
  bucketAccount: ACCOUNT,
  installation: INSTALLATION,
  source: 'notification',
  enrich: 'tags',
  queueArn: QUEUE_ARN,
  deadLetterArn: LETTERS_ARN,
};

const scriptOf = (change: Partial<Wish>): string => emitScript({ ...wish, ...change }, wiringOf({ ...wish, ...change }));

describe('the script of a plan', () => {
  it('takes over the notification of an earlier installation only on request', () => {
    expect(scriptOf({})).not.toContain('test("^tally-');
    expect(scriptOf({ adopt: true })).toContain('test("^tally-');
  });

  it.each([
    [
      'notification',
      {},
      [
        'sns create-topic',
        'sns set-topic-attributes',
        'sqs set-queue-attributes',
        'sns subscribe',
        's3api put-bucket-notification-configuration',
      ],
    ],
    ['topic', { topicArn: THEIR_TOPIC }, ['sqs set-queue-attributes', 'sns subscribe']],
    [
      'eventbridge',
      {},
      ['sqs set-queue-attributes', 'events put-rule', 'events put-targets', 's3api put-bucket-notification-configuration'],
    ],
    [
      'routed',
      {},
      [
        'sns create-topic',
        'sns set-topic-attributes',
        'sqs set-queue-attributes',
        'sns subscribe',
        'events put-rule',
        'events put-targets',
      ],
    ],
  ] as const)('for %s is bash, and writes exactly its parts, in their order', (source, change, writes) => {
    const script = scriptOf({ source, ...change });
    // -n reads the script without running it
    execFileSync('bash', ['-n'], { input: script });
    const found = [...script.matchAll(/^aws (\w+ (?:create|set|put|subscribe)[\w-]*)/gm)].map(([, name]) => name);
    expect(found.filter((name, index) => name !== found[index - 1])).toEqual(writes);
    // both queues
    expect(script.match(/^aws sqs set-queue-attributes/gm)).toHaveLength(2);
  });

  it('takes names with quotes as they are', () => {
    const script = scriptOf({ bucket: "it's" });
    execFileSync('bash', ['-n'], { input: script });
    expect(execFileSync('bash', ['-c', `${/^BUCKET=.*$/m.exec(script)?.[0] ?? ''}; printf %s "$BUCKET"`]).toString()).toBe("it's");
  });
});

describe('the name of a rule', () => {
  it('fits, and differs by bucket, source and installation', () => {
    const long = ['a'.repeat(63), `${'a'.repeat(62)}b`, 'OLD_Name', 'photos'];
    const names = long.flatMap((bucket) => (['eventbridge', 'routed'] as const).map((source) => ruleNameOf(INSTALLATION, bucket, source)));
    expect(new Set([...names, ruleNameOf('ffffffff', 'photos', 'routed')]).size).toBe(9);
    for (const name of names) expect(name).toMatch(/^[.\w-]{1,64}$/);
  });
});
