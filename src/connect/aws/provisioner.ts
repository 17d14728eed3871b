/**
 * What Tally reads and makes in AWS so that a bucket's events reach the bucket queue. Every function throws `connect.denied` (a
 * RequestError with the missing action) and the faults `connect.unavailable` and `connect.credentials`; functions about buckets also
 * throw S3's faults, such as `bucket.missing`. Each write is sent once. Before repeating one, the caller must read again: someone else
 * may have written in between, or the first attempt may have had its effect.
 */
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { Clock } from '../../process/clock.ts';
import type { AwsClients } from '../../aws/clients.ts';
import { createS3Notification } from './notification.ts';
import { createSqsProvision, type QueuePlace } from './queues.ts';
import type { ClientsFor } from './ask.ts';
import { createEventsProvision } from './rules.ts';
import { createTrailProvision } from './trails.ts';
import { createSnsProvision } from './topics.ts';

type Clients = Pick<AwsClients, 'region' | 's3For' | 'snsFor' | 'sqsFor' | 'sqsIn' | 'eventsFor' | 'trailsFor' | 'once'>;

interface Dependencies {
  readonly aws: Clients;
  /** The bucket queue; undefined if the settings name none. */
  readonly queueUrl: string | undefined;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

export type WholeProvisioner = ReturnType<typeof createProvisioner>;
/** Without what `tally setup` alone does (shared-parts.ts). */
export type Provisioner = Omit<WholeProvisioner, 'createQueue' | 'tagQueue' | 'createTopic' | 'tagTopic' | 'topicTags' | 'setSubscription'>;

export function createProvisioner({ aws, queueUrl, clock }: Dependencies) {
  const sqsAt = ({ sqsFor, sqsIn }: Pick<Clients, 'sqsFor' | 'sqsIn'>, { url, region = aws.region }: QueuePlace): SQSClient =>
    url === undefined ? sqsIn(region) : sqsFor(url, region);
  const clientsOf = <Client>(service: (clients: Clients['once']) => (region: string) => Client): ClientsFor<Client> => ({
    clientFor: ({ region }) => service(aws)(region),
    writerFor: ({ region }) => service(aws.once)(region),
  });
  return {
    ...createS3Notification({ ...clientsOf(({ s3For }) => s3For), clock }),
    ...createSnsProvision(clientsOf(({ snsFor }) => snsFor)),
    ...createSqsProvision({
      clientFor: (queue) => sqsAt(aws, queue),
      writerFor: (queue) => sqsAt(aws.once, queue),
      queueUrl,
      region: aws.region,
    }),
    ...createEventsProvision(clientsOf(({ eventsFor }) => eventsFor)),
    ...createTrailProvision(clientsOf(({ trailsFor }) => trailsFor)),
  };
}
