/** The OpenID Connect issuer at which people log in. The conventions of store.ts apply. */
import type { Claims } from './claims.rules.ts';
import type { IssuerSecrets } from './login.rules.ts';

export interface IssuerRequest extends IssuerSecrets {
  /** Where the issuer sends the browser back: the registry's own address. */
  readonly redirectUri: string;
}

/** What the issuer stated about who logged in, after every check. */
export interface Statement {
  /** The issuer of the token. */
  readonly issuer: string;
  /** They have a `sub`. */
  readonly claims: Claims;
}

export interface Issuer {
  /** The address to which the browser is sent. Throws `issuer.unreachable`. */
  authorizationUrl(request: IssuerRequest, signal: AbortSignal): Promise<string>;
  /**
   * Redeems the answer with which the browser came back. Throws `login.refused` for an answer or a token that is not valid or
   * that refuses the login, `issuer.refused` if the issuer does not accept this registry, and `issuer.unreachable`.
   */
  redeem(request: IssuerRequest, callbackUrl: URL, signal: AbortSignal): Promise<Statement>;
}
