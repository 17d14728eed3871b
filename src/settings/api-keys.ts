/** The settings of API keys. */
import { optionalInteger } from './fields.ts';

export const keySettings = {
  TALLY_KEYS_OWNER_LOGIN_DAYS: optionalInteger(1, 3_650).describe(
    'API keys end this many days after the last login of their owner, if that is before their own expiry. Not set by default: keys live until they expire, are revoked, or their owner is disabled. Set it where nothing else disables the users of people who have left. A new login makes such keys valid again.',
  ),
};
