/** How long API keys have left. */
import type { ApiKey } from '../../api/api-keys.ts';
import { durationText } from './words.ts';

/** From this time on the panel warns that a key of the user ends, as the registry does in its answers. */
const SOON_MS = 14 * 86_400_000;

/** Whether an active key ends within two weeks. */
export function endsSoon({ status, expires_at: at }: Pick<ApiKey, 'expires_at' | 'status'>): boolean {
  return status === 'ACTIVE' && new Date(at).getTime() - Date.now() < SOON_MS;
}

/** How long a key has left, which needs a look once it has ended or ends soon. */
export function Left({ of }: { readonly of: Pick<ApiKey, 'expires_at' | 'status'> }) {
  const isGood = of.status === 'ACTIVE' && !endsSoon(of);
  return <span class={`state ${isGood ? 'good' : 'notable'}`}>{daysLeft(of, Date.now())}</span>;
}

/** How many days a key has left. */
export function daysLeft({ expires_at: at, status }: Pick<ApiKey, 'expires_at' | 'status'>, nowMs: number): string {
  return status === 'EXPIRED' ? 'expired' : durationText((new Date(at).getTime() - nowMs) / 1_000);
}
