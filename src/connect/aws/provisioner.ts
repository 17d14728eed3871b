/**
 * What Tally reads and makes in AWS so that a bucket's events reach the bucket queue. Every function throws `connect.denied` (a
 * RequestError with the missing action) and the faults `connect.unavailable` and `connect.credentials`; functions about buckets also
 * throw S3's faults, such as `bucket.missing`. Each write is sent once. Before repeating one, the caller must read again: someone else
 * may have written in between, or the first attempt may have had its effect.
 */
import type { Clock } from '../../process/clock.ts';
import type { AwsClients } from '../../aws/clients.ts';
import { createS3Notification } from './notification.ts';
import { createSqsProvision } from './queues.ts';
import { createEventsProvision } from './rules.ts';
import { createTrailProvision } from './trails.ts';
import { createSnsProvision } from './topics.ts';

interface Dependencies {
  readonly aws: AwsClients;
  /** The bucket queue; undefined if the settings name none. */
  readonly queueUrl: string | undefined;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

export type Provisioner = ReturnType<typeof createProvisioner>;

export function createProvisioner({ aws, queueUrl, clock }: Dependencies) {
  return {
    ...createS3Notification(aws, clock),
    ...createSnsProvision(aws),
    ...createSqsProvision(aws, queueUrl),
    ...createEventsProvision(aws),
    ...createTrailProvision(aws),
  };
}
