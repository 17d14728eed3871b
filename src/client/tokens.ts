/** Tokens of an interactive login: from a code, from a refresh token, and their end. */
import { z } from 'zod';
import { FaultError } from '../domain/fault.ts';
import { send, type Incoming } from './send.ts';
import type { StoredSession } from './store.ts';

/** Shorter than a lock may be old, so that its holder ends first. */
const TIMEOUT_MS = 15_000;

const token = z.string().regex(/^[\x21-\x7e]{1,1024}$/);
const tokens = z.object({ access_token: token, refresh_token: token, expires_in: z.number() });
/** What the registry issues. */
export type Tokens = z.infer<typeof tokens>;
const refusal = z.union([z.object({ code: z.literal('login.invalid-grant') }), z.object({ error: z.literal('invalid_grant') })]);

/** What the registry exchanges for tokens. */
export type Grant =
  | { readonly grant_type: 'authorization_code'; readonly code: string; readonly code_verifier: string; readonly redirect_uri?: string }
  | { readonly grant_type: 'refresh_token'; readonly refresh_token: string };

/** To whom tokens belong. */
export type SessionNames = Pick<StoredSession, 'registry_url' | 'catalog_url' | 'login'>;

/** Asks for tokens; undefined if the registry refuses the code or the refresh token. */
export async function requestTokens(
  names: SessionNames,
  grant: Grant,
  nowMs: () => number,
  signal: AbortSignal,
): Promise<StoredSession | undefined> {
  const address = new URL('/login/token', names.registry_url);
  const answer = await send(address, { method: 'POST', body: grant, timeoutMs: TIMEOUT_MS }, signal);
  const parsed = tokens.safeParse(answer.json);
  if (answer.ok && parsed.success) {
    const { access_token, refresh_token, expires_in } = parsed.data;
    const { registry_url, catalog_url, login } = names;
    return { registry_url, catalog_url, login, access_token, refresh_token, expires_at: nowMs() / 1_000 + expires_in };
  }
  if (refusal.safeParse(answer.json).success) return undefined;
  throw new FaultError('registry.unknown-answer', `POST ${address.href} answered ${answer.status} without tokens`);
}

/** Ends the session at the registry. The answer may be an error. */
export async function endSession({ registry_url, access_token }: StoredSession, signal: AbortSignal): Promise<Incoming> {
  return send(new URL('/login/logout', registry_url), { method: 'POST', token: access_token, timeoutMs: TIMEOUT_MS }, signal);
}
