/**
 * The stored login as a credential. Its tokens are refreshed when they are about to end or were refused. Several processes share
 * one login: a lock makes most of them wait for one refresh, and a process whose refresh token was refused reads the file again
 * before it asks for a login, because another process may have stored a newer one.
 */
import { RequestError } from '../domain/request-error.ts';
import { AUTHENTICATION_FAILED, type Credential } from './credential.ts';
import { ClientError } from './client-error.ts';
import type { ClientClock } from './private-files.ts';
import type { Store, StoredSession } from './store.ts';
import { requestTokens } from './tokens.ts';

/** An access token that ends sooner is not worth a request that may take as long. */
const MARGIN_MS = 30_000;
/** Each refresh that fails was preceded by another process's: more in a row do not happen. */
const ROTATIONS_MAX = 3;

export interface SessionDependencies {
  readonly store: Store;
  readonly clock: ClientClock;
}

export interface SessionCredential extends Credential {
  /** Returns tokens that are newer than the given ones. Throws `authentication.failed`, and `login.missing` after a logout elsewhere. */
  renew(used: StoredSession, signal: AbortSignal): Promise<StoredSession>;
}

/** The credential of a login, beginning with its tokens as they are stored. */
export function createSessionCredential(first: StoredSession, { store, clock }: SessionDependencies): SessionCredential {
  let current = first;
  /** Whether the tokens could not be stored, so that those of this process are the newest. */
  let isUnstored = false;
  let renewing: Promise<StoredSession> | undefined;

  const nowMs = (): number => clock.nowMs();
  const isEnding = ({ expires_at }: StoredSession): boolean => expires_at * 1_000 - nowMs() < MARGIN_MS;
  const isNewer = (session: StoredSession, used: StoredSession): boolean =>
    session.access_token !== used.access_token && !isEnding(session);

  /** The tokens of this login as they are now. */
  function latest(): StoredSession {
    if (isUnstored) return current;
    const { session } = store.readCredentials();
    if (session?.login !== first.login) {
      throw new ClientError(
        'login.missing',
        'the login has ended or was replaced by another process: repeat the command, or run `tally login` first',
      );
    }
    return session;
  }

  function keep(fresh: StoredSession): void {
    current = fresh;
    if (isUnstored) return;
    const stored = store.readCredentials();
    // a logout or another login in the meantime stays as it is
    if (stored.session?.login !== fresh.login) return;
    try {
      store.writeCredentials({ ...stored, session: fresh });
    } catch {
      // the file could be read and cannot be written: this process continues with what it has
      isUnstored = true;
    }
  }

  async function rotate(begun: StoredSession, signal: AbortSignal): Promise<StoredSession> {
    let session = begun;
    for (let rotation = 0; rotation < ROTATIONS_MAX; rotation += 1) {
      const fresh = await requestTokens(session, { grant_type: 'refresh_token', refresh_token: session.refresh_token }, nowMs, signal);
      if (fresh !== undefined) {
        keep(fresh);
        return fresh;
      }
      const again = latest();
      if (again.refresh_token === session.refresh_token) break;
      if (isNewer(again, session)) return again;
      session = again;
    }
    throw new RequestError('authentication.failed', AUTHENTICATION_FAILED);
  }

  async function renew(used: StoredSession, signal: AbortSignal): Promise<StoredSession> {
    renewing ??= store
      .locked(async () => {
        const stored = latest();
        return isNewer(stored, used) ? stored : rotate(stored, signal);
      }, signal)
      .finally(() => {
        renewing = undefined;
      });
    current = await renewing;
    return current;
  }

  return {
    renew,
    async token(signal) {
      return isEnding(current) ? (await renew(current, signal)).access_token : current.access_token;
    },
    async tokenAfter(refused, signal) {
      // another request of this process may have renewed the tokens already
      return current.access_token === refused ? (await renew(current, signal)).access_token : current.access_token;
    },
  };
}
