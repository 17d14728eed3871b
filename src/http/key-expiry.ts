/** The warning to callers whose API key ends soon. */
import type { Actor } from '../domain/identity/actor.ts';

/** The headers of every answer to this actor: from 14 days before its key ends, when that is. */
export function expiryHeaders(actor: Actor): Readonly<Record<string, string>> {
  if (actor.kind !== 'api_key' || actor.endsSoonAtMs === undefined) return {};
  return { 'tally-key-expires': new Date(actor.endsSoonAtMs).toISOString() };
}
