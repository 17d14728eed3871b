/** Who this program is to the registry, as the registry says. */
import { loginRows, type SessionAnswer } from '../../registry/contract/login.ts';
import { FaultError } from '../../base/fault.ts';
import { RequestError } from '../../base/request-error.ts';
import { ClientError } from './client-error.ts';
import type { Incoming } from './send.ts';

const { answer: caller } = loginRows['GET /v1/session'];
export type Caller = SessionAnswer;

/** The caller in an answer. Throws `authentication.failed` and `registry.unknown-answer`. */
export function callerOf({ ok, status, json }: Incoming, address: URL): Caller {
  if (status === 401) throw new RequestError('authentication.failed', AUTHENTICATION_FAILED);
  const parsed = caller.safeParse(json);
  if (ok && parsed.success) return parsed.data;
  throw new FaultError(
    'registry.unknown-answer',
    `GET ${address.href} answered ${status} without a caller: version 1.67 or higher is needed`,
  );
}

/** What a registry that demands a credential means to a program that has none for it. */
export function loginMissing({ origin }: URL): ClientError {
  return new ClientError('login.missing', `not logged in at ${origin}: run \`tally login ${origin}\`, or set TALLY_API_KEY_FILE`);
}

/** What authenticates requests to a registry: the token of a login, or the secret of an API key. */

/** The message for every wrong, expired or revoked credential. */
const AUTHENTICATION_FAILED = 'Authentication failed. Check your credentials or API key.';

/** What may be in a header; anything else cannot be a key that a registry issued. */
const SENDABLE = /^[\x21-\x7e]{1,512}$/;

/** The secret of an API key as it is sent. Throws `authentication.failed` for a text that cannot be sent. */
export function keyToken(text: string): string {
  const secret = text.trim();
  if (!SENDABLE.test(secret)) throw new RequestError('authentication.failed', AUTHENTICATION_FAILED);
  return secret;
}
