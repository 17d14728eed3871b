/** The token of an interactive login: from a code, and its end. */
import { z } from 'zod';
import { FaultError } from '../domain/fault.ts';
import { send, type Incoming } from './send.ts';
import type { Config, StoredSession } from './store.ts';

const TIMEOUT_MS = 15_000;

const answered = z.object({ access_token: z.string().regex(/^[\x21-\x7e]{1,1024}$/), expires_in: z.number() });
/** What the registry issues. */
export type TokenAnswer = z.infer<typeof answered>;
const refusal = z.union([z.object({ code: z.literal('login.invalid-grant') }), z.object({ error: z.literal('invalid_grant') })]);

/** What the registry exchanges for a token. */
export interface Grant {
  readonly grant_type: 'authorization_code';
  readonly code: string;
  readonly code_verifier: string;
  readonly redirect_uri?: string;
}

/** Asks for the token of a session; undefined if the registry refuses the code. */
export async function requestToken(
  { registry_url, catalog_url }: Config,
  grant: Grant,
  nowMs: () => number,
  signal: AbortSignal,
): Promise<StoredSession | undefined> {
  const address = new URL('/login/token', registry_url);
  const answer = await send(address, { method: 'POST', body: grant, timeoutMs: TIMEOUT_MS }, signal);
  const parsed = answered.safeParse(answer.json);
  if (answer.ok && parsed.success) {
    const { access_token: token, expires_in } = parsed.data;
    return { registry_url, catalog_url, token, expires_at: nowMs() / 1_000 + expires_in };
  }
  if (refusal.safeParse(answer.json).success) return undefined;
  throw new FaultError('registry.unknown-answer', `POST ${address.href} answered ${answer.status} without a token`);
}

/** Ends the session at the registry. The answer may be an error. */
export async function endSession({ registry_url, token }: StoredSession, signal: AbortSignal): Promise<Incoming> {
  return send(new URL('/login/logout', registry_url), { method: 'POST', token, timeoutMs: TIMEOUT_MS }, signal);
}
