/**
 * What `tally bucket emit` writes is applied to LocalStack, beside a bucket that an apply connects, and both end in one state.
 * LocalStack 4 makes everything but the tags of an AWS::Events::Rule, which moto 5.2 makes.
 */
import { EventBridgeClient, TagResourceCommand } from '@aws-sdk/client-eventbridge';
import { PutBucketNotificationConfigurationCommand, type NotificationConfiguration } from '@aws-sdk/client-s3';
import { ListSubscriptionsByTopicCommand, SetSubscriptionAttributesCommand } from '@aws-sdk/client-sns';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BucketSource } from '../../../src/domain/bucket.ts';
import { canonicalJson } from '../../../src/domain/provisioning/canonical.ts';
import { shortRegistry, tagsOf } from '../../../src/domain/provisioning/names.ts';
import { wiringOf } from '../../../src/domain/provisioning/wiring.ts';
import { parsePolicy, type Policy } from '../../../src/domain/provisioning/policy.ts';
import { createObserve } from '../../../src/pipeline/provision/observe.ts';
import { JQ } from '../../docs/page-shell.ts';
import { canRun, findProgram, runProgram } from '../../docs/programs.ts';
import { AWS_CLI, openAwsCli, type AwsCli } from '../../support/servers/aws-cli.ts';
import { createTestAws, type TestAws } from '../../support/servers/aws.ts';
import { awsEndpoint } from '../../support/servers/found.ts';
import { addStatement, connectedBucket } from './connected.ts';
import { MOTO, startMoto } from '../../support/servers/moto.ts';

/** Waits for AWS's patience, which an emulator does not need. */
const TEST_TIMEOUT_MS = 300_000;

/** Whether the emulator makes stacks: a LocalStack may have been started without CloudFormation, but not in CI. */
async function hasStacks(endpoint: string): Promise<boolean> {
  const { services } = (await (await fetch(`${endpoint}/_localstack/health`)).json()) as { services: Record<string, string> };
  const has = services['cloudformation'] !== 'disabled';
  if (!has && process.env['CI'] === 'true') throw new Error('CI=true, but this LocalStack has no CloudFormation');
  if (!has) console.warn('\n NOT RUN: the stacks of CloudFormation, which this LocalStack has not\n');
  return has;
}

/** A bucket, its queues with somebody's statement, and what connects it. */
async function startWorld(aws: TestAws, source: BucketSource) {
  const { bucket, queue, letters, installation, provisioner, provisioning } = await connectedBucket(aws);
  await addStatement(aws, queue);
  const topicArn = source === 'topic' ? await aws.createTopic() : undefined;
  const NotificationConfiguration: NotificationConfiguration = {
    QueueConfigurations: [{ Id: 'theirs', QueueArn: letters.arn, Events: ['s3:ObjectTagging:*'] }],
    ...(topicArn !== undefined && {
      TopicConfigurations: [{ Id: 'their topic', TopicArn: topicArn, Events: ['s3:ObjectCreated:*', 's3:ObjectRemoved:*'] }],
    }),
  };
  await aws.s3.send(new PutBucketNotificationConfigurationCommand({ Bucket: bucket, NotificationConfiguration }));
  const observe = createObserve(provisioner, async () => []);
  const request = { bucket, source, ...(topicArn !== undefined && { topic_arn: topicArn }) };
  const { wish, wiring } = (await provisioning.plan(request)).plan;
  const { rule } = wiringOf(wish);

  /** The text with names that mean the same in every world. */
  function named(text: string): string {
    const names: readonly (readonly [string | undefined, string])[] = [
      // an apply names the bucket in a shared rule, and code makes its own
      [wiring.rule?.name, 'RULE'],
      [rule?.name, 'RULE'],
      [topicArn, 'TOPIC'],
      [bucket, 'BUCKET'],
      [installation, 'INSTALLATION'],
      [wish.registry, 'REGISTRY'],
      [shortRegistry(wish), 'MARK'],
      [queue.arn.split(':').at(-1), 'QUEUE'],
      [letters.arn.split(':').at(-1), 'LETTERS'],
    ];
    return names.reduce((shown, [from, to]) => (from === undefined ? shown : shown.replaceAll(from, to)), text);
  }

  return {
    request,
    provisioning,
    wish,
    rule,
    /** All that was read about the wish. */
    async state(): Promise<Readonly<Record<string, unknown>>> {
      const { topic, queues, notification, sharedRule: _, ...rest } = await observe(wish);
      const { xml: __, ...configuration } = notification;
      const policyOf = (text: string | undefined): Policy['Statement'] | undefined => parsePolicy(text)?.Statement;
      const state = {
        ...rest,
        configuration,
        queues: queues.map(({ policy, ...queueRest }) => ({ ...queueRest, policy: policyOf(policy) })),
        // SNS's first statement lets the owner of the topic do what its IAM policies allow already
        ...(topic !== undefined &&
          topic !== 'absent' && {
            topic: { ...topic, policy: policyOf(topic.policy)?.filter(({ Sid }) => Sid !== '__default_statement_ID') },
          }),
      };
      const isSubscription = (value: unknown): boolean => typeof value === 'string' && /:[0-9a-f-]{36}$/.test(value);
      const text = JSON.stringify(state, (name, value: unknown) => {
        if (name === 'tally:bucket') return undefined;
        if (isSubscription(value)) return 'SUBSCRIPTION';
        return name === 'pattern' && typeof value === 'string' ? (JSON.parse(value) as unknown) : value;
      });
      // lists have no order, once their names are the same
      return JSON.parse(canonicalJson(JSON.parse(named(text)))) as Record<string, unknown>;
    },
    changes: async () => (await provisioning.plan(request)).plan.changes,
    /** Raw delivery and a filter, which an apply takes away again. */
    async spoilSubscription(): Promise<void> {
      const { topicArn: TopicArn, queueArn } = (await provisioning.plan(request)).plan.wiring.subscription!;
      const { Subscriptions = [] } = await aws.sns.send(new ListSubscriptionsByTopicCommand({ TopicArn }));
      const SubscriptionArn = Subscriptions.find(({ Endpoint }) => Endpoint === queueArn)?.SubscriptionArn;
      for (const [AttributeName, AttributeValue] of [
        ['RawMessageDelivery', 'true'],
        ['FilterPolicy', '{"a":["b"]}'],
      ] as const)
        await aws.sns.send(new SetSubscriptionAttributesCommand({ SubscriptionArn, AttributeName, AttributeValue }));
    },
  };
}
type World = Awaited<ReturnType<typeof startWorld>>;

async function applied(world: World): Promise<World> {
  const { plan } = await world.provisioning.plan(world.request);
  expect((await world.provisioning.apply(world.request, { token: plan.token })).applied).toMatchObject({ state: 'applied' });
  return world;
}

/** What is left when nothing is Tally's: the entries and the statements of others. */
function theirsIn({ configuration, queues }: Readonly<Record<string, unknown>>): unknown {
  const { entries } = configuration as { readonly entries: unknown };
  return { entries, policies: (queues as readonly { readonly policy?: unknown }[]).map(({ policy }) => policy) };
}

/** A shell with the AWS CLI and jq before an emulator. */
async function openShell(endpoint: string, { command }: AwsCli) {
  const folder = await mkdtemp(join(tmpdir(), 'tally-emit-'));
  await writeFile(join(folder, 'aws'), `#!/bin/sh\nexec ${command} --endpoint-url '${endpoint}' "$@"\n`, { mode: 0o755 });
  const PATH = [folder, dirname(findProgram(JQ) ?? ''), process.env['PATH']].join(delimiter);
  const credentials = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test', AWS_DEFAULT_REGION: 'us-east-1' };
  const env = { PATH, HOME: process.env['HOME'], TMPDIR: folder, ...credentials };
  async function run(text: string): Promise<void> {
    const { code, stdout, stderr } = await runProgram('/bin/bash', ['-euo', 'pipefail', '-c', text], { env });
    expect({ code, text: code === 0 ? '' : `${stdout}${stderr}` }).toEqual({ code: 0, text: '' });
  }
  return {
    run,
    async deploy(template: string): Promise<void> {
      const file = join(folder, 'template.yaml');
      await writeFile(file, template);
      const name = `tally-test-${randomBytes(6).toString('hex')}`;
      await run(`aws cloudformation create-stack --stack-name ${name} --template-body file://${file} > /dev/null
aws cloudformation wait stack-create-complete --stack-name ${name}`);
    },
    close: () => rm(folder, { recursive: true }),
  };
}
type Shell = Awaited<ReturnType<typeof openShell>>;

/** LocalStack forgets the tags of a rule that a stack makes. */
async function tagRule(aws: TestAws, { rule, wish }: World): Promise<void> {
  const events = new EventBridgeClient({ endpoint: aws.endpoint, region: aws.region, credentials: aws.credentials });
  const Tags = Object.entries(tagsOf(wish, wish.bucket)).map(([Key, Value]) => ({ Key, Value }));
  if (rule !== undefined) await events.send(new TagResourceCommand({ ResourceARN: rule.arn, Tags }));
  events.destroy();
}

const runs = canRun('what `tally bucket emit` writes', [AWS_CLI, JQ]);

describe.skipIf(awsEndpoint() === undefined || !runs)('on LocalStack', { timeout: TEST_TIMEOUT_MS }, () => {
  let aws: TestAws;
  let awsCli: AwsCli;
  let shell: Shell;
  let isWithStacks = false;
  beforeAll(async () => {
    aws = createTestAws(awsEndpoint()!);
    awsCli = await openAwsCli();
    shell = await openShell(aws.endpoint, awsCli);
    isWithStacks = await hasStacks(aws.endpoint);
  });
  afterAll(async () => {
    await shell.close();
    await awsCli.dispose();
    await aws.dispose();
  });

  it.each(['notification', 'topic', 'eventbridge', 'routed'] as const)(
    'the script ends in the state of an apply for %s, also when it is run again, and an apply takes over what it made',
    async (source) => {
      const [byApply, byScript] = [await applied(await startWorld(aws, source)), await startWorld(aws, source)];
      const before = theirsIn(await byScript.state());
      const script = await byScript.provisioning.emit(byScript.request, 'aws-cli');
      await shell.run(script);
      expect(await byScript.state()).toEqual(await byApply.state());
      if (source === 'notification' || source === 'routed') await byScript.spoilSubscription();
      await shell.run(script);
      expect(await byScript.changes()).toEqual([]);
      await applied(byScript);
      await byScript.provisioning.remove(byScript.wish.bucket, { keepAws: false });
      expect(theirsIn(await byScript.state())).toEqual(before);
    },
  );

  it.each(['topic', 'eventbridge', 'routed'] as const)(
    'the stack, with the script for what no template can own, ends in the state of an apply for %s',
    async (source) => {
      if (!isWithStacks) return;
      const [byApply, byStack] = [await applied(await startWorld(aws, source)), await startWorld(aws, source)];
      await shell.deploy(await byStack.provisioning.emit(byStack.request, 'cloudformation'));
      await tagRule(aws, byStack);
      const left = (await byStack.changes()).map(({ part }) => part);
      expect(left).toEqual(source === 'eventbridge' ? ['notification'] : []);
      if (left.length > 0) await shell.run(await byStack.provisioning.emit(byStack.request, 'aws-cli'));
      expect(await byStack.state()).toEqual(await byApply.state());
      // a second template of the same bucket finds the topic, and makes no other
      expect(await byStack.provisioning.emit(byStack.request, 'cloudformation')).not.toContain('AWS::SNS::Topic"\n');
    },
  );
});

describe.skipIf(!canRun('what `tally bucket emit` writes, on moto', [AWS_CLI, JQ, MOTO]))('on moto', { timeout: TEST_TIMEOUT_MS }, () => {
  let aws: TestAws;
  let awsCli: AwsCli;
  let shell: Shell;
  let moto: Awaited<ReturnType<typeof startMoto>>;
  beforeAll(async () => {
    moto = await startMoto();
    aws = createTestAws(moto.endpoint);
    awsCli = await openAwsCli();
    shell = await openShell(moto.endpoint, awsCli);
  });
  afterAll(async () => {
    await shell.close();
    await awsCli.dispose();
    await aws.dispose();
    moto.stop();
  });

  it('the stack makes the rule of an apply, with its target and tags', async () => {
    const [byApply, byStack] = [await applied(await startWorld(aws, 'routed')), await startWorld(aws, 'routed')];
    await shell.deploy(await byStack.provisioning.emit(byStack.request, 'cloudformation'));
    const [{ rule }, stacked] = [await byApply.state(), await byStack.state()];
    expect(rule).toBeDefined();
    expect(stacked.rule).toEqual(rule);
  });
});
