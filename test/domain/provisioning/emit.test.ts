import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

const JQ = findProgram({ name: 'jq', variable: 'TALLY_TEST_JQ' }) ?? 'jq';

/** Runs a script with these cases of the second word as its AWS CLI. `written`: what they print to 3, a line of JSON or a name for each write. */
function runWith(cases: string, script: string) {
  const turns = mkdtempSync(join(tmpdir(), 'tally-emit-'));
  const input = `jq() { '${JQ}' "$@"; }\nTURNS='${turns}'\naws() { case "$2" in\n${cases}\nesac; }\n${script}`;
  const { status, output } = spawnSync('bash', ['-s'], { input, stdio: ['pipe', 'pipe', 'pipe', 'pipe'], encoding: 'utf8' });
  rmSync(turns, { recursive: true });
  return { status, written: (output[3] ?? '').split('\n').filter((line) => line !== '') };
}

/** The case of a command that is answered with the next of these each time, and with the last from then on. Each call is in a subshell, so the count is in a file. */
function answering(command: string, answers: readonly object[]): string {
  const texts = answers.map((answer, at) => `${at === answers.length - 1 ? '*' : at}) printf '%s' '${JSON.stringify(answer)}' ;;`);
  return `${command}) TURN=$(cat "$TURNS/turn" 2> /dev/null || echo 0); echo $((TURN + 1)) > "$TURNS/turn"; case "$TURN" in\n${texts.join('\n')}\nesac ;;`;
}

/** On an AWS that has topic and rule already, with this registry's id among their tags, and policies; only what comes before the notification. */
function run(script: string, policy: string, registry: string | undefined = REGISTRY) {
  const tags = JSON.stringify([{ Key: 'team', Value: 'x' }, ...(registry === '' ? [] : [{ Key: 'tally:registry', Value: registry }])]);
  const [parts = ''] = script.split('# the notification configuration');
  return runWith(
    `get-topic-attributes|get-queue-attributes) printf '%s' '${policy}' ;;
list-tags-for-resource) printf '%s' '${tags}' ;;
put-rule|put-targets) echo "$2" >&3 ;;
set-topic-attributes|set-queue-attributes) echo "\${@: -1}" >&3 ;;`,
    parts,
  );
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

describe('the script for a bucket of another account and region', () => {
  const OTHER = '999999999999';
  const elsewhere = { bucketAccount: OTHER, region: 'eu-west-1' } as const;

  /** The commands of the AWS CLI that it sends, each with its profile, on an AWS that has the topic and the rule already. */
  async function commandsOf(script: string, profiles: Readonly<Record<string, string>>, hasUndelivered = false) {
    const folder = await mkdtemp(join(tmpdir(), 'tally-emit-'));
    const tags = JSON.stringify([{ Key: 'tally:registry', Value: REGISTRY }]);
    const aws = `#!/bin/bash
echo "$*" >> '${folder}/calls'
case "$4" in
  get-topic-attributes|get-queue-attributes) printf '%s' '{"Statement":[]}' ;;
  list-tags-for-resource) printf '%s' '${tags}' ;;
  list-subscriptions-by-topic) printf '%s' '{"Subscriptions":[]}' ;;
  create-queue) touch '${folder}/made' ;;
  get-queue-url) case "$*" in *-undelivered*) [ -n '${hasUndelivered ? 'yes' : ''}' ] || [ -e '${folder}/made' ] || { echo '(AWS.SimpleQueueService.NonExistentQueue)' >&2; exit 254; } ;; esac ;;
  get-bucket-notification-configuration) printf '%s' '{}' ;;
esac`;
    await writeFile(join(folder, 'aws'), aws, { mode: 0o755 });
    const input = `jq() { '${JQ}' "$@"; }\n${script}`;
    const env = { PATH: `${folder}:${process.env['PATH'] ?? ''}`, ...profiles };
    const { status, stderr } = spawnSync('bash', ['-s'], { input, env, encoding: 'utf8' });
    const calls = status === 0 ? await readFile(join(folder, 'calls'), 'utf8') : '';
    await rm(folder, { recursive: true });
    const policy = /set-topic-attributes .* --attribute-value (.*)$/m.exec(calls)?.[1];
    return { status, stderr, policy, calls: calls.split('\n').flatMap((line) => /^--profile (\w+ \w+ [\w-]+)/.exec(line)?.[1] ?? []) };
  }

  it.each(['notification', 'eventbridge', 'routed'] as const)('reaches each side with its profile, source %s', async (source) => {
    const { status, stderr, policy, calls } = await commandsOf(scriptOf({ ...elsewhere, source }), {
      BUCKET_PROFILE: 'theirs',
      QUEUE_PROFILE: 'ours',
    });
    expect({ status, stderr }).toMatchObject({ status: 0, stderr: '' });
    const of = (profile: string): ReadonlySet<string> =>
      new Set(calls.flatMap((call) => (call.startsWith(`${profile} `) ? call.slice(profile.length + 1) : [])));
    const queueSide = ['sqs create-queue', 'sqs get-queue-attributes', 'sqs get-queue-url', 'sqs set-queue-attributes', 'sns subscribe'];
    expect([...of('ours')].toSorted()).toEqual(queueSide.toSorted());
    expect([...of('theirs')].filter((call) => call.startsWith('sqs') || call === 'sns subscribe')).toEqual([]);
    expect(of('theirs')).toContain('sns set-topic-attributes');
    const { topic } = wiringOf({ ...wish, ...elsewhere, source });
    const wanted = JSON.parse(
      JSON.stringify(topic?.statements).replaceAll(/("(?:Service|aws:SourceAccount|aws:SourceArn)":)("[^"]*")/g, '$1[$2]'),
    ) as unknown;
    expect(JSON.parse(policy ?? '')).toEqual({ Statement: wanted });
    expect(of('theirs').has('events put-rule')).toBe(source !== 'notification');
  });

  it('leaves the queue for what cannot be delivered as it is where there is one', async () => {
    const { status, calls } = await commandsOf(scriptOf(elsewhere), { BUCKET_PROFILE: 'theirs', QUEUE_PROFILE: 'ours' }, true);
    expect({ status, made: calls.filter((call) => call.endsWith('create-queue')) }).toEqual({ status: 0, made: [] });
  });

  it('ends before it writes if a profile is not named', async () => {
    const { status, stderr, calls } = await commandsOf(scriptOf(elsewhere), { BUCKET_PROFILE: 'theirs' });
    expect({ failed: status !== 0, calls, stderr }).toEqual({
      failed: true,
      calls: [],
      stderr: expect.stringContaining(`QUEUE_PROFILE: a profile of the account ${ACCOUNT}`),
    });
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

  /** What is written to a trail that answers with these selectors, read after read. */
  function written(...answers: readonly object[]): readonly unknown[] {
    const [, part = ''] = emitScript(routed, wiringOf(routed)).split(/^(?=# the selector of the bucket)/m);
    const cases = `${answering('get-event-selectors', answers)}\nput-event-selectors) echo "\${@: -1}" >&3 ;;`;
    return runWith(cases, `set -euo pipefail\n${part}`).written.map((text) => JSON.parse(text) as unknown);
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
    expect(written({ EventSelectors: basic.map((each) => ({ ...each, ExcludeManagementEventSources: [] })) })).toEqual([]);
    expect(written({ AdvancedEventSelectors: [theirs] }, { AdvancedEventSelectors: [theirs, { ...theirs, Name: 'more' }] })).toEqual([]);
  });
});

describe('the script, at the notification configuration', () => {
  const theirs = {
    QueueConfigurations: [{ Id: 'theirs', QueueArn: 'arn:aws:sqs:us-east-1:123456789012:q', Events: ['s3:ObjectTagging:*'] }],
  };
  const [before = ''] = scriptOf({}).split('# the topic, and who');
  const [, own = ''] = scriptOf({}).split('# the notification configuration');

  /** Runs this part alone, on a bucket that has these configurations, read after read; returns what it wrote. */
  function write(...reads: readonly object[]) {
    const put = 'put-bucket-notification-configuration) cat "$FOLDER/after.json" >&3 ;;';
    const { status, written } = runWith(`${answering('get-bucket-notification-configuration', reads)}\n${put}`, `${before}\n# ${own}`);
    return { status, written: written.join('\n') };
  }

  it('adds its own beside those of others', () => {
    const { status, written } = write(theirs, theirs);
    expect(status).toBe(0);
    expect(JSON.parse(written)).toMatchObject({ ...theirs, TopicConfigurations: [{ Id: MARK }] });
  });

  it('writes nothing if others have changed it since it was read, and nothing that is there already', () => {
    expect(write(theirs, {})).toEqual({ status: 1, written: '' });
    const { written } = write(theirs, theirs);
    const present = JSON.parse(written) as object;
    expect(write(present, present)).toEqual({ status: 0, written: '' });
  });
});
