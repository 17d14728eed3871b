/** The settings of commands that send their requests to a registry. */
import { z } from 'zod';
import { optionalPath } from './fields.ts';

export const clientSettings = {
  TALLY_API_KEY: z
    .string()
    .trim()
    .startsWith('qk_', "API key must start with 'qk_' prefix")
    .optional()
    .describe(
      'The API key that commands send to the registry that TALLY_REGISTRY_URL or --registry names, else to the one at TALLY_HTTP_ADDRESS, and to no other. It precedes a login. The value is a secret.',
    ),
  TALLY_API_KEY_FILE: optionalPath.describe(
    'The path of a file that contains the value of TALLY_API_KEY, for example a mounted secret. Only one of the two settings may be set.',
  ),
};

/** The settings of this group whose values are never shown. */
export const clientSecrets: ReadonlySet<string> = new Set(['TALLY_API_KEY']);
