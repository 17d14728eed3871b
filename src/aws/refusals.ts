/** What an error of the SDK says. Services name the same refusal differently, and some of them by protocol. */

/** The names for a missing permission. */
const DENIED: ReadonlySet<string> = new Set([
  'AccessDenied',
  'AccessDeniedException',
  'AuthorizationError',
  'AuthorizationErrorException',
  'KMSAccessDeniedException',
  'KMS.AccessDeniedException',
  'KmsAccessDenied',
]);
/** The names for something that does not exist. */
const MISSING: ReadonlySet<string> = new Set([
  'NotFound',
  'NotFoundException',
  'ResourceNotFoundException',
  'QueueDoesNotExist',
  'AWS.SimpleQueueService.NonExistentQueue',
  'NonExistentQueue',
]);
const CREDENTIALS: ReadonlySet<string> = new Set([
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

/** Whether a permission is missing. */
export function isDenied(error: unknown): boolean {
  return error instanceof Error && DENIED.has(error.name);
}

/** Whether what the request is about does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && MISSING.has(error.name);
}

/** Whether the credentials themselves are wrong instead of what they permit, so that another policy would not help. */
export function isCredentialsError(error: unknown): error is Error {
  return error instanceof Error && CREDENTIALS.has(error.name);
}

/** An error's name, the system's error code and the message, without a stack. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error && typeof error.code === 'string' && error.code !== error.name ? ` ${error.code}` : '';
  // an answer to HEAD has no body, so the SDK has no message
  const message = error.message === '' || error.message === 'UnknownError' ? '' : `: ${error.message}`;
  return `${error.name}${code}${message}`;
}
