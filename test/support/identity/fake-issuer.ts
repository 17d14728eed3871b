/** An issuer in memory: it states what the test says, if the answer is the one to its own request. */
import type { Claims } from '../../../src/identity/claims.rules.ts';
import { RequestError } from '../../../src/base/request-error.ts';
import type { Issuer } from '../../../src/identity/issuer.ts';

export const ISSUER = 'https://id.example.com';

export function createFakeIssuer() {
  let person: Claims = { sub: 's-alice', email: 'alice@example.com', email_verified: true };
  let failure: Error | undefined;
  const issuer: Issuer = {
    async authorizationUrl({ redirectUri, state, nonce }) {
      return `${ISSUER}/authorize?${new URLSearchParams({ redirect_uri: redirectUri, state, nonce }).toString()}`;
    },
    async redeem({ nonce }, callbackUrl) {
      const failed = failure;
      failure = undefined;
      if (failed !== undefined) throw failed;
      if (callbackUrl.searchParams.get('code') !== `issued-${nonce}`)
        throw new RequestError('login.refused', 'the issuer did not send this code');
      return { issuer: ISSUER, claims: person };
    },
  };
  return {
    ...issuer,
    /** The next logins are of this person. */
    personIs: (claims: Claims): void => {
      person = claims;
    },
    /** The next answer is refused, or fails, with this error. */
    failWith: (error: Error): void => {
      failure = error;
    },
    /** Where the browser comes back: the path and query of the callback. */
    answerTo(location: string): string {
      const { searchParams } = new URL(location);
      const back = new URL(searchParams.get('redirect_uri') ?? '');
      back.searchParams.set('code', `issued-${searchParams.get('nonce') ?? ''}`);
      back.searchParams.set('state', searchParams.get('state') ?? '');
      return `${back.pathname}${back.search}`;
    },
  };
}
