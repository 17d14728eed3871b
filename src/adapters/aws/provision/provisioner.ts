/** What Tally reads and makes in AWS for a connection. */
import type { Clock } from '../../../pipeline/ports/clock.ts';
import type { Provisioner } from '../../../pipeline/ports/provision.ts';
import type { AwsClients } from '../clients.ts';
import { createKeyProvision } from './keys.ts';
import { createS3Notification } from './notification.ts';
import { createSqsProvision } from './queues.ts';
import { createEventsProvision } from './rules.ts';
import { createTrailProvision } from './trails.ts';
import { createSnsProvision } from './topics.ts';

interface Dependencies {
  readonly aws: Pick<AwsClients, 's3For' | 'snsFor' | 'sqsFor' | 'eventsFor' | 'trailsFor' | 'keysFor' | 'once'>;
  /** The bucket queue; absent if the settings name none. */
  readonly queueUrl: string | undefined;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** Creates it. */
export function createProvisioner({ aws, queueUrl, clock }: Dependencies): Provisioner {
  const { once } = aws;
  return {
    ...createS3Notification({ clientFor: aws.s3For, writerFor: once.s3For, clock }),
    ...createSnsProvision({ clientFor: aws.snsFor, writerFor: once.snsFor }),
    ...createSqsProvision({ clientFor: aws.sqsFor, writerFor: once.sqsFor, queueUrl }),
    ...createEventsProvision({ clientFor: aws.eventsFor, writerFor: once.eventsFor }),
    ...createTrailProvision({ clientFor: aws.trailsFor, writerFor: once.trailsFor }),
    ...createKeyProvision({ clientFor: aws.keysFor }),
  };
}
