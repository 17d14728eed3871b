/** A bucket that Tally knows and what connects it, on an emulator, where the bucket queue has somebody's statement in its policy. */
import { GetQueueAttributesCommand, SetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { createProvisioner } from '../../../src/connect/aws/provisioner.ts';
import { createS3Storage } from '../../../src/aws/s3-storage.ts';
import { systemClock as clock } from '../../../src/process/clock.ts';
import { parsePolicy } from '../../../src/connect/policy.rules.ts';
import { createConnectBucket } from '../../../src/connect/connect.ts';
import { createGapReports } from '../../../src/observing/gaps.ts';
import { createConnections } from '../../../src/connect/connections.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeTelemetry } from '../../support/fakes/ports.ts';
import type { TestAws } from '../../support/servers/aws.ts';
import { setUp } from '../../support/servers/set-up.ts';

/** Gives a queue the statement of somebody else beside those that it has. */
export async function addStatement(aws: TestAws, { url, arn }: { readonly url: string; readonly arn: string }): Promise<void> {
  const read = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['Policy'] });
  const policy = parsePolicy((await aws.sqs.send(read)).Attributes?.['Policy']);
  const statement = { Sid: 'Theirs', Effect: 'Allow', Principal: { AWS: '*' }, Action: 'sqs:SendMessage', Resource: arn };
  const Policy = JSON.stringify({ ...policy, Statement: [...policy.Statement, statement] });
  await aws.sqs.send(new SetQueueAttributesCommand({ QueueUrl: url, Attributes: { Policy } }));
}

export async function connectedBucket(aws: TestAws) {
  const { queue } = await setUp(aws);
  const clients = aws.clients();
  const bucket = await aws.createBucket();
  const store = createMemoryStore();
  const telemetry = createFakeTelemetry();
  const storage = createS3Storage({ clientFor: clients.s3For, region: aws.region, clock });
  const gaps = createGapReports({ ...store, clock, telemetry });
  await createConnectBucket({ ...store, storage, gaps, clock, telemetry }).connect({ bucket }, 'test');
  const provisioner = createProvisioner({ aws: clients, queueUrl: queue.url, clock });
  const connections = createConnections({
    state: store.state,
    aws: provisioner,
    storage,
    clock,
    queueUrls: [queue.url],
    isEmbedded: false,
  });
  return { bucket, queue, store, provisioner, connections };
}
