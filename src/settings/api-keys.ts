/** The settings of API keys. */
import { integer, optionalInteger } from './fields.ts';

export const keySettings = {
  TALLY_KEYS_OWNER_LOGIN_DAYS: optionalInteger(1, 3_650).describe(
    'API keys end when their owner has not logged in for this many days, if that is before their own expiry. Not set by default: keys live until they expire or are revoked, or the owner is disabled. Set it where nothing else disables the users of people who have left. A new login makes such keys valid again.',
  ),
  TALLY_KEYS_CLAIMS_DAYS: integer(1, 3_650, 30).describe(
    'For how many days after the last login of the owner an API key has what the identity provider stated at that login: groups, and the role of an administrator. Afterwards the key reads what is granted to user: and everyone, until the owner logs in again. A person who has left cannot log in.',
  ),
};
