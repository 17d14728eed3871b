/** What can go wrong on the client's side of a login. No message contains a secret. */

type ClientErrorCode =
  /** The address of a catalog or registry cannot be used. */
  | 'address.invalid'
  /** The platform is older than this client needs. */
  | 'platform.too-old'
  /** The stored files are open to others, damaged, or cannot be written. */
  | 'credentials.unusable'
  /** There are no credentials for the registry. */
  | 'login.missing'
  /** A login did not succeed. */
  | 'login.failed';

/** The message says what happened, and what to do. */
export class ClientError extends Error {
  readonly code: ClientErrorCode;

  constructor(code: ClientErrorCode, message: string) {
    super(message);
    this.name = 'ClientError';
    this.code = code;
  }
}
