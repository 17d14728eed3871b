/** What authenticates requests to a registry: the token of a login, or the secret of an API key. */
import { RequestError } from '../domain/request-error.ts';

/** The message for every wrong, expired or revoked credential. */
export const AUTHENTICATION_FAILED = 'Authentication failed. Check your credentials or API key.';

/** What may be in a header; anything else cannot be a key that a registry issued. */
const SENDABLE = /^[\x21-\x7e]{1,512}$/;

/** The secret of an API key as it is sent. Throws `authentication.failed` for a text that cannot be sent. */
export function keyToken(text: string): string {
  const secret = text.trim();
  if (!SENDABLE.test(secret)) throw new RequestError('authentication.failed', AUTHENTICATION_FAILED);
  return secret;
}
