/** What authenticates requests to one registry. */
import { RequestError } from '../domain/request-error.ts';
import { send, type Incoming, type Outgoing } from './send.ts';

/** The message for every wrong, expired or revoked credential. */
export const AUTHENTICATION_FAILED = 'Authentication failed. Check your credentials or API key.';

/** What may be in a header; anything else cannot be a key that a registry issued. */
const SENDABLE = /^[\x21-\x7e]{1,512}$/;

export interface Credential {
  /** Returns the token of the next request. */
  token(signal: AbortSignal): Promise<string>;
  /** Returns another token after the registry refused this one; undefined if there is none. */
  tokenAfter(refused: string, signal: AbortSignal): Promise<string | undefined>;
}

/** The credential that an API key is. Throws `authentication.failed` for a key that cannot be sent. */
export function keyCredential(text: string): Credential {
  const secret = text.trim();
  if (!SENDABLE.test(secret)) throw new RequestError('authentication.failed', AUTHENTICATION_FAILED);
  return {
    token: async () => secret,
    tokenAfter: async () => undefined,
  };
}

/** Sends a request with the credential. A request that was refused for its token is sent once more with another one. */
export async function sendAs(credential: Credential, address: URL, outgoing: Outgoing, signal: AbortSignal): Promise<Incoming> {
  const token = await credential.token(signal);
  const answer = await send(address, { ...outgoing, token }, signal);
  if (answer.status !== 401) return answer;
  const other = await credential.tokenAfter(token, signal);
  return other === undefined ? answer : send(address, { ...outgoing, token: other }, signal);
}
