/** The errors by which the services and the SDK say that the credentials of a request are missing, expired or not accepted. */

/** The names of S3, of the services with a JSON protocol, of those with the query protocol (STS, SNS), and of the SDK itself. */
const NAMES: ReadonlySet<string> = new Set([
  'CredentialsProviderError',
  'TokenProviderError',
  'ExpiredToken',
  'ExpiredTokenException',
  'RequestExpired',
  'RequestExpiredException',
  'TokenRefreshRequired',
  'InvalidToken',
  'InvalidAccessKeyId',
  'InvalidClientTokenId',
  'UnrecognizedClient',
  'UnrecognizedClientException',
  'MissingAuthenticationToken',
  'MissingAuthenticationTokenException',
  'IncompleteSignature',
  'IncompleteSignatureException',
  'InvalidSignatureException',
  'SignatureDoesNotMatch',
  'RequestTimeTooSkewed',
  'InvalidSecurity',
  'NotSignedUp',
  'OptInRequired',
]);

/** Whether an error is about the credentials, and not about what they permit: another policy would not help. */
export function isCredentialsError(error: unknown): error is Error {
  return error instanceof Error && NAMES.has(error.name);
}
