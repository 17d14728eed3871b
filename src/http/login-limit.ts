/** Bounds the logins that one network begins, because each of them stores a record for ten minutes. */
import { addressGroupOf } from '../domain/identity/address-group.ts';
import { RequestError } from '../domain/request-error.ts';

const WINDOW_MS = 10 * 60_000;
/** An office behind one address, in which everyone logs in at nine o'clock. */
const LOGINS_MAX = 300;
/** The networks that are remembered; the oldest is forgotten first. */
const NETWORKS_MAX = 10_000;

/** Counts a login. Throws `request.too-many-logins`. */
export type CountLogin = (address: string | undefined) => void;

/** Creates the counter of one process. */
export function createLoginLimit(clock: { monotonicMs(): number }): CountLogin {
  const begun = new Map<string, { readonly sinceMs: number; count: number }>();
  return function countLogin(address = 'unknown') {
    const network = addressGroupOf(address);
    const nowMs = clock.monotonicMs();
    const known = begun.get(network);
    if (known === undefined || nowMs >= known.sinceMs + WINDOW_MS) {
      begun.delete(network);
      begun.set(network, { sinceMs: nowMs, count: 1 });
      const [oldest] = begun.keys();
      if (begun.size > NETWORKS_MAX && oldest !== undefined) begun.delete(oldest);
      return;
    }
    known.count += 1;
    if (known.count <= LOGINS_MAX) return;
    const waitS = Math.ceil((known.sinceMs + WINDOW_MS - nowMs) / 1_000);
    throw new RequestError(
      'request.too-many-logins',
      `${LOGINS_MAX} logins were begun from ${network} in ten minutes: try again in ${waitS} s`,
      {
        retry_after_s: waitS,
      },
    );
  };
}
