/**
 * A notification on LocalStack. It enforces no policies, accepts overlapping configurations and ignores ExpectedBucketOwner, so AWS's
 * refusals are tested with a fake (test/connect) and by their texts. It says that a subscription to a topic of another account does not
 * exist, where AWS shows it to its owner, so buckets of other accounts are shown by the fake alone (elsewhere.test.ts). Setups, and
 * each source that is connected and probed: iam-policy.test.ts, and with all that follows flow/connections-story.test.ts.
 */
import { expect, it, onTestFinished } from 'vitest';
import { createProvisioner } from '../../../src/connect/aws/provisioner.ts';
import { parseNotification, type NotificationConfiguration } from '../../../src/connect/notification.rules.ts';
import { systemClock as clock } from '../../../src/process/clock.ts';
import { createTestAws } from '../../support/servers/aws.ts';
import { awsEndpoint } from '../../support/servers/found.ts';

it.skipIf(!awsEndpoint())('a connection is an entry beside a function of others, which stays byte for byte', async () => {
  const aws = createTestAws(awsEndpoint()!);
  onTestFinished(() => aws.dispose());
  const bucket = await aws.createBucket();
  const provisioner = createProvisioner({ aws: aws.clients(), queueUrl: undefined, clock });
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
