/** The settings of the audit. */
import { integer } from './fields.ts';

export const identitySettings = {
  TALLY_AUDIT_RETENTION_DAYS: integer(1, 36_500, 400).describe(
    'How long records of the audit are kept, in days. The default of 400 days covers a year and the time to look at it. OpenSearch deletes whole months, so a record there lives up to 31 days longer.',
  ),
};
