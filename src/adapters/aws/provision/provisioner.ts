/** What Tally reads and makes in AWS for a connection. */
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { Clock } from '../../../pipeline/ports/clock.ts';
import type { Provisioner } from '../../../pipeline/ports/provision.ts';
import type { AwsClients } from '../clients.ts';
import { createKeyProvision } from './keys.ts';
import { createS3Notification } from './notification.ts';
import { createSqsProvision, type QueuePlace } from './queues.ts';
import type { ClientsFor } from './refusals.ts';
import { createEventsProvision } from './rules.ts';
import { createTrailProvision } from './trails.ts';
import { createSnsProvision } from './topics.ts';

type Clients = Pick<AwsClients, 'region' | 's3For' | 'snsFor' | 'sqsFor' | 'sqsIn' | 'eventsFor' | 'trailsFor' | 'keysFor' | 'once'>;

interface Dependencies {
  /** The clients of the process itself. */
  readonly aws: Clients;
  /** The clients for what belongs to an account. Default: those of the process. */
  readonly awsOf?: (account: string) => Clients;
  /** The bucket queue; absent if the settings name none. */
  readonly queueUrl: string | undefined;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** Creates it. */
export function createProvisioner({ aws, awsOf = () => aws, queueUrl, clock }: Dependencies): Provisioner {
  const ofQueue = (account: string | undefined): Clients => (account === undefined ? aws : awsOf(account));
  const sqsAt = ({ sqsFor, sqsIn }: Pick<Clients, 'sqsFor' | 'sqsIn'>, { url, region = aws.region }: QueuePlace): SQSClient =>
    url === undefined ? sqsIn(region) : sqsFor(url, region);
  const clientsOf = <Client>(service: (clients: Clients['once']) => (region: string) => Client): ClientsFor<Client> => ({
    clientFor: ({ account, region }) => service(awsOf(account))(region),
    writerFor: ({ account, region }) => service(awsOf(account).once)(region),
  });
  return {
    ...createS3Notification({ ...clientsOf(({ s3For }) => s3For), clock }),
    ...createSnsProvision(clientsOf(({ snsFor }) => snsFor)),
    ...createSqsProvision({
      clientFor: (queue) => sqsAt(ofQueue(queue.account), queue),
      writerFor: (queue) => sqsAt(ofQueue(queue.account).once, queue),
      queueUrl,
      region: aws.region,
    }),
    ...createEventsProvision(clientsOf(({ eventsFor }) => eventsFor)),
    ...createTrailProvision(clientsOf(({ trailsFor }) => trailsFor)),
    ...createKeyProvision({ clientFor: ({ account, region }) => awsOf(account).keysFor(region) }),
  };
}
