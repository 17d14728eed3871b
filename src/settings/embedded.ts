/** The settings of the embedded mode. */
import { join } from 'node:path';
import { z } from 'zod';
import { address, flag } from './fields.ts';

export const embeddedSettings = {
  TALLY_EMBEDDED: flag(false).describe(
    'Whether SQS, SNS and S3 run inside this process, as with the option --embedded. The default is false, because the embedded mode is meant for trying Tally on one machine.',
  ),
  TALLY_EMBEDDED_ADDRESS: address('127.0.0.1:4566').describe(
    'The address (HOST:PORT) on which the embedded SQS, SNS and S3 listen. The default is reachable only from the same machine, and 4566 is the port that LocalStack uses too.',
  ),
  TALLY_EMBEDDED_DATA: z
    .string()
    .trim()
    .min(1)
    .default('./data')
    .describe('The folder in which the embedded mode keeps its data, including the index. The default is in the working directory.'),
};

/** The file of the index in the embedded mode. */
export function embeddedIndexPath({ TALLY_EMBEDDED_DATA: folder }: { readonly TALLY_EMBEDDED_DATA: string }): string {
  return join(folder, 'index.sqlite');
}
