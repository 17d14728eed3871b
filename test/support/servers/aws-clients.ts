/** The product's clients of AWS with settings of a test, with which they end. */
import { onTestFinished } from 'vitest';
import { createAwsClients, type AwsClients } from '../../../src/aws/clients.ts';

type Settings = Parameters<typeof createAwsClients>[0];

export function openClients({ s3, ...settings }: Omit<Settings, 's3' | 'sqs'> & { readonly s3?: Partial<Settings['s3']> }): AwsClients {
  const clients = createAwsClients({
    ...settings,
    s3: { forcePathStyle: true, timeoutMs: 30_000, connectionsMax: 4, ...s3 },
    sqs: { receivesMax: 2, waitS: 1 },
  });
  onTestFinished(() => clients.close());
  return clients;
}
