/**
 * Connections on LocalStack. It enforces no policies, accepts overlapping configurations and ignores ExpectedBucketOwner, so AWS's
 * refusals are tested with a fake (test/connect) and by their texts. It says that a subscription to a topic of another account does not
 * exist, where AWS shows it to its owner, so buckets of other accounts are shown by the fake alone (elsewhere.test.ts). Each source is
 * connected in iam-policy.test.ts, and with all that follows in flow/connections-story.test.ts.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readRecord, refs } from '../../../src/store/stored.ts';
import { parseNotification, type NotificationConfiguration } from '../../../src/connect/notification.rules.ts';
import { unwrap } from '../../../src/events/envelope.ts';
import { createTestAws, until, type TestAws } from '../../support/servers/aws.ts';
import { awsEndpoint } from '../../support/servers/found.ts';
import { addStatement, connectedBucket } from './connected.ts';

describe.skipIf(!awsEndpoint())('a connection on LocalStack', () => {
  let aws: TestAws;
  beforeAll(() => {
    aws = createTestAws(awsEndpoint()!);
  });
  afterAll(() => aws.dispose());

  /** A connected bucket, and a bucket queue with somebody's statement. */
  async function startWorld() {
    const { bucket, queue, connections, store } = await connectedBucket(aws);
    await addStatement(aws, queue);
    return { bucket, queue, connections, store };
  }

  it('is an entry beside a function of others, which stays byte for byte', async () => {
    const { bucket, provisioner } = await connectedBucket(aws);
    const at = { bucket, region: aws.region, account: '000000000000' };
    // LocalStack has no Lambda here, so nothing can validate the function
    const put = (configuration: NotificationConfiguration) => provisioner.putNotification(at, configuration, { skipValidation: true });
    const read = async () => (await fetch(`${aws.endpoint}/${bucket}?notification`)).text();
    const arn = `arn:aws:lambda:${aws.region}:000000000000:function:scan`;
    await put({ entries: [{ kind: 'function', id: 'scan', arn, events: ['s3:ObjectRestore:Completed'], filter: [] }], eventBridge: true });
    const before = await read();
    const found = parseNotification(await provisioner.notificationOf(at));
    if (!found.ok) throw new Error(found.reason);
    const { entries, eventBridge } = found.configuration;
    const ours = { kind: 'topic', id: 'ours', arn: await aws.createTopic(), events: ['s3:ObjectCreated:*'], filter: [] } as const;
    await put({ entries: [...entries, ours], eventBridge });
    await put({ entries, eventBridge });
    expect(await read()).toBe(before);
  });

  it('is probed through its topic, and the probe arrives', async () => {
    const { bucket, connections, queue, store } = await startWorld();
    const { plan } = await connections.plan({ bucket });
    await connections.apply({ bucket }, { token: plan.token });
    const { connection } = (await readRecord(store.state, refs.bucket(bucket)))!;
    await connections.probe(connection!, false);
    const found: unknown[] = [];
    await until('the probe has come', async () => {
      found.push(...(await aws.takeBodies(queue.url, 1)).map((body) => unwrap(body)));
      return found.some((each) => JSON.stringify(each).includes('"probe"'));
    });
    expect(found).toContainEqual({ kind: 'probe', topicArn: expect.stringMatching(/-events$/), sentAtMs: expect.any(Number) });
  });
});
