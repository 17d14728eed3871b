/**
 * What the product's clients, with the real SDK, send where AWS refuses a write of a document that others share. A proxy before
 * LocalStack refuses; at that moment another team writes. Each write that reaches AWS has a read of the same document right before it.
 */
import { GetBucketNotificationConfigurationCommand, PutBucketNotificationConfigurationCommand } from '@aws-sdk/client-s3';
import { GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createProvisioner } from '../../../src/connect/aws/provisioner.ts';
import { createAwsClients, type AwsClients } from '../../../src/aws/clients.ts';
import { systemClock } from '../../../src/process/system-clock.ts';
import type { ConnectionRequest } from '../../../src/connect/plan.rules.ts';
import type { Provisioning } from '../../../src/connect/provisioning.ts';
import { createTestAws, type TestAws } from '../../support/servers/aws.ts';
import { startFaultProxy, type FaultProxy, type PassingRequest, type Reply } from '../../support/servers/fault-proxy.ts';
import { awsEndpoint } from '../../support/servers/found.ts';
import { addStatement, connectedBucket } from './connected.ts';

const s3Error = (code: string): string =>
  `<?xml version="1.0"?><Error><Code>${code}</Code><Message>refused here</Message><RequestId>1</RequestId></Error>`;
const jsonError = JSON.stringify({ __type: 'InternalFailure', message: 'refused here' });

const isNotification = ({ path }: PassingRequest): boolean => path.includes('notification');
const isPut = (request: PassingRequest): boolean => request.method === 'PUT' && isNotification(request);
const isPolicy = ({ operation }: PassingRequest): boolean => operation === 'SetQueueAttributes';

describe.skipIf(!awsEndpoint())('a write that AWS refuses', () => {
  let aws: TestAws;
  let proxy: FaultProxy;
  let clients: AwsClients;
  beforeAll(async () => {
    aws = createTestAws(awsEndpoint()!);
    proxy = await startFaultProxy(awsEndpoint()!);
  });
  afterAll(async () => {
    await proxy.close();
    await aws.dispose();
  });
  beforeEach(() => {
    const { url: endpoint } = proxy;
    clients = createAwsClients({
      region: aws.region,
      endpoints: { sqs: endpoint, sns: endpoint, s3: endpoint, events: endpoint, trails: endpoint },
      credentials: aws.credentials,
      s3: { forcePathStyle: true, timeoutMs: 30_000, connectionsMax: 10 },
      sqs: { receivesMax: 1, waitS: 1 },
    });
  });
  afterEach(() => clients.close());

  async function startWorld() {
    const theirs = await aws.createQueue();
    return { ...(await connectedBucket(aws, { clients })), theirs };
  }

  /** Watches requests without touching them, in their order. */
  function watch(matches: (request: PassingRequest) => boolean): { readonly seen: string[]; remove(): void } {
    const seen: string[] = [];
    const rule = proxy.interfere({ kind: 'hang' }, (request) => {
      if (matches(request)) seen.push(request.operation === '' ? request.method : request.operation);
      return false;
    });
    return { seen, remove: () => rule.remove() };
  }

  /** Refuses the first that matches, after others have written. */
  function refuseFirst(
    matches: (request: PassingRequest) => boolean,
    write: () => Promise<unknown>,
    answer: Reply | 'lost',
  ): { remove(): void } {
    let isFirst = true;
    return proxy.interfere(
      {
        kind: 'reply',
        async reply(body, ask) {
          if (answer === 'lost') await ask(body);
          await write();
          if (answer === 'lost') throw new Error('the answer is lost');
          return answer;
        },
      },
      (request) => {
        const isThis = isFirst && matches(request);
        if (isThis) isFirst = false;
        return isThis;
      },
    );
  }

  async function applied(provisioning: Provisioning, bucket: string, way: Omit<ConnectionRequest, 'bucket'> = {}): Promise<void> {
    const asked = { ...way, bucket };
    for (;;) {
      const { plan } = await provisioning.plan(asked);
      const { applied: answer } = await provisioning.apply(asked, { token: plan.token }).catch((error: unknown) => {
        // others have changed what the plan showed, and the next one shows it
        expect(error).toMatchObject({ code: 'connect.plan-outdated' });
        return { applied: { state: 'applying' } };
      });
      if (answer.state === 'applied') return;
    }
  }

  it.each([
    ['409', { status: 409, body: s3Error('OperationAborted') }],
    ['503', { status: 503, body: s3Error('SlowDown') }],
    ['a lost answer', 'lost'],
  ] as const)('with %s on the configuration is read again before the next PUT, and the entry of others stays', async (_, answer) => {
    const { bucket, theirs, provisioning } = await startWorld();
    const entry = { Id: 'theirs', QueueArn: theirs.arn, Events: ['s3:ObjectTagging:*' as const] };
    const writing = async (): Promise<void> => {
      const { $metadata: _metadata, ...now } = await aws.s3.send(new GetBucketNotificationConfigurationCommand({ Bucket: bucket }));
      const NotificationConfiguration = { ...now, QueueConfigurations: [...(now.QueueConfigurations ?? []), entry] };
      await aws.s3.send(new PutBucketNotificationConfigurationCommand({ Bucket: bucket, NotificationConfiguration }));
    };
    const refusing = refuseFirst(isPut, writing, answer);
    const watched = watch(isNotification);
    await applied(provisioning, bucket);
    refusing.remove();
    watched.remove();
    const { seen } = watched;
    // a lost answer had its effect, so nothing is left to write
    expect(seen.filter((method) => method === 'PUT')).toHaveLength(answer === 'lost' ? 1 : 2);
    for (const [index, method] of seen.entries()) if (method === 'PUT') expect(seen[index - 1]).toBe('GET');
    const { QueueConfigurations, TopicConfigurations } = await aws.s3.send(
      new GetBucketNotificationConfigurationCommand({ Bucket: bucket }),
    );
    expect(QueueConfigurations).toMatchObject([entry]);
    expect(TopicConfigurations).toHaveLength(1);
  });

  it('with 503 on the policy of the queue is read again before the next write, and the statement of others stays', async () => {
    const { bucket, queue, provisioning } = await startWorld();
    const writing = () => addStatement(aws, queue);
    const isOfQueue = (request: PassingRequest): boolean => request.body.includes(queue.url);
    const refusing = refuseFirst((request) => isPolicy(request) && isOfQueue(request), writing, { status: 503, body: jsonError });
    const watched = watch((request) => /QueueAttributes/.test(request.operation) && isOfQueue(request));
    // only a topic that is named needs a statement of its own
    await applied(provisioning, bucket, { source: 'topic', topic_arn: await aws.createTopic() });
    refusing.remove();
    watched.remove();
    const { seen } = watched;
    expect(seen.filter((operation) => operation === 'SetQueueAttributes')).toHaveLength(2);
    for (const [index, operation] of seen.entries())
      if (operation === 'SetQueueAttributes') expect(seen[index - 1]).toBe('GetQueueAttributes');
    const { Attributes } = await aws.sqs.send(new GetQueueAttributesCommand({ QueueUrl: queue.url, AttributeNames: ['Policy'] }));
    const { Statement } = JSON.parse(Attributes!['Policy']!) as { Statement: { Sid: string }[] };
    expect(Statement.map(({ Sid }) => Sid).slice(-2)).toEqual(['Theirs', expect.stringMatching(/-named$/)]);
  });

  it('is sent once by each client that writes', async () => {
    const all = proxy.interfere({ kind: 'answer', status: 503, body: jsonError }, () => true);
    const provisioner = createProvisioner({ aws: clients, queueUrl: `${proxy.url}/000000000000/tally-nothing`, clock: systemClock });
    const arn = `arn:aws:sns:${aws.region}:000000000000:tally-nothing`;
    const rule = { name: 'tally-nothing', arn, pattern: {}, target: { id: 'bucket-queue', arn } } as const;
    const bucket = { bucket: 'tally-nothing', region: aws.region, account: '000000000000' };
    const at = { account: '000000000000', region: aws.region };
    const none = { entries: [], eventBridge: false };
    const writes = [
      () => provisioner.putNotification(bucket, none, { skipValidation: true }),
      () => provisioner.setTopicPolicy(arn, '{}'),
      () => provisioner.subscribe({ topicArn: arn, queueArn: arn }),
      () => provisioner.unsubscribe(`${arn}:x`),
      () => provisioner.putRule(at, rule, {}),
      () => provisioner.putTarget(at, rule),
      () => provisioner.removeRule(at, rule),
      () => provisioner.setQueuePolicy(arn.replace(':sns:', ':sqs:'), ''),
      () => provisioner.putSelectors(arn.replace(':sns:', ':cloudtrail:'), { kind: 'advanced', list: [] }),
    ];
    for (const [index, write] of writes.entries()) {
      await expect(write()).rejects.toThrow(/.+/);
      expect(all.hits).toBe(index + 1);
    }
    all.remove();
  });
});
