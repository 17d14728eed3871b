import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { emitScript } from '../../../src/domain/provisioning/emitting/aws-cli.ts';
import { ruleNameOf } from '../../../src/domain/provisioning/names.ts';
import { advancedSelector, withSelector } from '../../../src/domain/provisioning/trail.ts';
import { wiringOf, type Wish } from '../../../src/domain/provisioning/wiring.ts';
import { findProgram } from '../../docs/programs.ts';
import { ACCOUNT, INSTALLATION, MARK, REGISTRY, THEIR_TOPIC, wish } from '../../support/fakes/aws-parts.ts';

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
        'sns set-subscription-attributes',
        's3api put-bucket-notification-configuration',
      ],
    ],
    ['topic', { topicArn: THEIR_TOPIC }, ['sqs set-queue-attributes', 'sns subscribe', 'sns set-subscription-attributes']],
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
        'sns set-subscription-attributes',
        'events put-rule',
        'events put-targets',
      ],
    ],
  ] as const)('for %s is bash, and writes exactly its parts, in their order', (source, change, writes) => {
    const script = scriptOf({ source, ...change });
    // -n reads the script without running it
    execFileSync('bash', ['-n'], { input: script });
    const found = [...script.matchAll(/^ *aws (\w+ (?:create|set|put|subscribe)[\w-]*)/gm)].map(([, name]) => name);
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

/** Stands for the AWS CLI: topic and rule are there with this registry's id among their tags, it has these policies, and prints what is written. */
function run(script: string, policy: string, registry: string | undefined = REGISTRY) {
  const tags = JSON.stringify([{ Key: 'team', Value: 'x' }, ...(registry === '' ? [] : [{ Key: 'tally:registry', Value: registry }])]);
  const aws = `aws() {
    case "$2" in
      get-topic-attributes|get-queue-attributes) printf '%s' '${policy}' ;;
      list-tags-for-resource) printf '%s' '${tags}' ;;
      put-rule|put-targets) printf '=%s\\n' "$2" >&3 ;;
      set-topic-attributes|set-queue-attributes) printf '=%s\\n' "\${@: -1}" >&3 ;;
    esac
  }`;
  // only what comes before the notification
  const [parts = ''] = script.split('# the notification configuration');
  const jq = findProgram({ name: 'jq', variable: 'TALLY_TEST_JQ' });
  const input = `jq() { '${jq ?? 'jq'}' "$@"; }\n${aws}\n${parts}`;
  const { status, output } = spawnSync('bash', ['-s'], { input, stdio: ['pipe', 'pipe', 'pipe', 'pipe'], encoding: 'utf8' });
  return { status, written: [...(output[3] ?? '').matchAll(/^=(.*)$/gm)].map(([, text = '']) => text) };
}

describe('the script, run', () => {
  it('keeps what its statements allow for other buckets already, and what others wrote', () => {
    const ID = MARK;
    const theirs = { Sid: 'Theirs', Effect: 'Deny', NotPrincipal: { AWS: '*' }, Action: 'sqs:*', Resource: '*' };
    const shared = {
      Sid: ID,
      Effect: 'Allow',
      Principal: { Service: 's3.amazonaws.com' },
      Condition: { StringEquals: { 'aws:SourceAccount': '999999999999' }, ArnLike: { 'aws:SourceArn': 'arn:aws:s3:::*' } },
    };
    const senders = {
      Sid: `${ID}-topics`,
      Effect: 'Allow',
      Principal: { Service: ['sns.amazonaws.com', 'sns.af-south-1.amazonaws.com'] },
      Condition: { ArnLike: { 'aws:SourceArn': THEIR_TOPIC } },
    };
    const { status, written } = run(scriptOf({}), JSON.stringify({ Version: '2012-10-17', Statement: [theirs, shared, senders] }));
    expect(status).toBe(0);
    const [topic, ...queues] = written.map((text) => JSON.parse(text) as { Policy?: string; Statement: object[] });
    expect(topic!.Statement).toContainEqual(theirs);
    expect(topic!.Statement).toContainEqual(
      expect.objectContaining({
        Sid: ID,
        Condition: expect.objectContaining({ StringEquals: { 'aws:SourceAccount': [ACCOUNT, '999999999999'].sort() } }),
      }),
    );
    expect(queues).toHaveLength(2);
    for (const { Policy } of queues) {
      const { Statement } = JSON.parse(Policy!) as { Statement: object[] };
      expect(Statement).toContainEqual(theirs);
      expect(Statement).toContainEqual(
        expect.objectContaining({
          Sid: `${ID}-topics`,
          Principal: { Service: ['sns.af-south-1.amazonaws.com', 'sns.amazonaws.com'] },
          Condition: { ArnLike: { 'aws:SourceArn': expect.arrayContaining([THEIR_TOPIC]) } },
        }),
      );
    }
  });

  it('takes a policy with a single statement, and ends before it writes where it cannot read one', () => {
    const theirs = { Effect: 'Allow', Principal: '*', Action: 'sqs:SendMessage', Resource: '*' };
    const { status, written } = run(scriptOf({ source: 'eventbridge' }), JSON.stringify({ Statement: theirs }));
    expect(status).toBe(0);
    expect(written.splice(2)).toEqual(['put-rule', 'put-targets']);
    for (const text of written) expect(text).toContain(String.raw`{\"Effect\":\"Allow\",\"Principal\":\"*\"`);
    for (const policy of ['{"Statement":["?"]}', '{']) {
      for (const source of ['notification', 'eventbridge'] as const) {
        const broken = run(scriptOf({ source }), policy);
        expect(broken.status).not.toBe(0);
        expect(broken.written).toEqual([]);
      }
    }
  });
});

describe('the script, run where a topic or rule with its name is there', () => {
  it.each([
    ["another registry's", 'f'.repeat(32)],
    ['without a tag', ''],
  ])('that is %s, says so and writes nothing to it', (_, registry) => {
    for (const source of ['notification', 'routed'] as const) {
      const { status, written } = run(scriptOf({ source }), '{"Statement":[]}', registry);
      expect({ status, written }).toEqual({ status: 1, written: [] });
    }
    // the policy of the queue comes before the rule, and has statements of its own for each registry
    const { status, written } = run(scriptOf({ source: 'eventbridge' }), '{"Statement":[]}', registry);
    expect({ status, names: written.filter((text) => text.startsWith('put-')) }).toEqual({ status: 1, names: [] });
  });

  it('is sent no write twice', () => {
    expect(scriptOf({})).toContain('export AWS_MAX_ATTEMPTS=1');
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

describe('the script, run with the trail of the settings', () => {
  const trailArn = `arn:aws:cloudtrail:eu-west-1:${ACCOUNT}:trail/audit`;
  const routed = { ...wish, source: 'routed', trailArn } as const;

  /** What is written to a trail that answers with these selectors. */
  function written(...answers: readonly [object, ...object[]]): readonly unknown[] {
    const [, part = ''] = emitScript(routed, wiringOf(routed)).split(/^(?=# the selector of the bucket)/m);
    const jq = findProgram({ name: 'jq', variable: 'TALLY_TEST_JQ' });
    const [first, second = first] = answers.map((answer) => JSON.stringify(answer));
    const aws = `FOLDER=$(mktemp -d)
    aws() {
      case "$2" in
        get-event-selectors) if [ -e "$FOLDER/read" ]; then printf '%s' '${second}'; else touch "$FOLDER/read"; printf '%s' '${first}'; fi ;;
        put-event-selectors) printf '=%s\\n' "\${@: -1}" >&3 ;;
      esac
    }`;
    const input = `set -euo pipefail\njq() { '${jq ?? 'jq'}' "$@"; }\n${aws}\n${part}`;
    const { output } = spawnSync('bash', ['-s'], { input, stdio: ['pipe', 'pipe', 'pipe', 'pipe'], encoding: 'utf8' });
    return [...(output[3] ?? '').matchAll(/^=(.*)$/gm)].map(([, text = '']) => JSON.parse(text) as unknown);
  }

  const theirs = { Name: 'theirs', FieldSelectors: [{ Field: 'eventCategory', Equals: ['Management'] }] };
  const all = { ReadWriteType: 'All', IncludeManagementEvents: true, DataResources: [] };
  const basic = withSelector({ kind: 'basic', list: [all] }, routed).list;

  it('adds the selector in the kind that the trail has, beside those of others, as an apply does', () => {
    const advanced = [theirs, advancedSelector(routed)];
    expect(written({ AdvancedEventSelectors: [theirs] })).toEqual([{ TrailName: trailArn, AdvancedEventSelectors: advanced }]);
    expect(written({ EventSelectors: [all] })).toEqual([{ TrailName: trailArn, EventSelectors: basic }]);
  });

  it('writes nothing where the selector is there, or where others write at the moment', () => {
    expect(written({ AdvancedEventSelectors: [theirs, advancedSelector(routed)] })).toEqual([]);
    expect(written({ EventSelectors: basic })).toEqual([]);
    expect(written({ AdvancedEventSelectors: [theirs] }, { AdvancedEventSelectors: [theirs, { ...theirs, Name: 'more' }] })).toEqual([]);
  });
});
