/** The settings of what Tally makes in AWS. */
import { z } from 'zod';
import { INSTALLATION } from '../domain/provisioning/names.ts';

export const connectionSettings = {
  TALLY_INSTALLATION: z
    .string()
    .trim()
    .regex(INSTALLATION, 'must be 8 hex digits')
    .optional()
    .describe(
      'The name of this installation: 8 hex digits, with which the names of everything begin that Tally makes in AWS. By default it is made once and stored in the index store. Set it only to continue with the parts of an installation whose store was lost.',
    ),
};
