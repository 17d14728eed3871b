/** What an error of the SDK says, and the faults of failed S3 requests. Services name the same refusal differently, and some of them by protocol. */
import { type FaultCode, FaultError } from '../base/fault.ts';
import { printable } from '../base/texts.ts';
import type { BucketLocation } from './storage.ts';

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

/** The answer to one attempt of a request, before the SDK processes it. */
export interface S3Answer {
  readonly status: number;
  /** The reason phrase of the status line. It is needed because an answer to HEAD has no body with an error code. */
  readonly reasonPhrase: string;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The time from before the attempt was sent until its headers arrived. */
  readonly durationMs: number;
}

/** A failed request: the error that the SDK threw, and the answer if there was one. */
export interface S3Refusal {
  readonly error: unknown;
  readonly answer: S3Answer | undefined;
}

/** The request, for a fault's reason. */
export interface S3Question extends BucketLocation {
  readonly operation: string;
  readonly key?: string;
}

/** The fault of a failed request. */
export function s3Fault(question: S3Question, refusal: S3Refusal): FaultError {
  const code = codeOf(question, refusal);
  const status = refusal.answer === undefined ? '' : ` ${refusal.answer.status}`;
  const elsewhere = otherRegionOf(question, refusal.answer);
  const reason = elsewhere === undefined ? errorText(refusal.error) : `the bucket is in ${elsewhere}, not in ${question.region}`;
  return new FaultError(code, `${questionText(question)}:${status} ${reason}`, { cause: refusal.error });
}

/** The operation, bucket and key in one line without control characters. */
export function questionText({ operation, bucket, key }: S3Question): string {
  return `${operation} ${bucket}${key === undefined ? '' : ` ${printable(key)}`}`;
}

/** The bucket's region, if the answer contains it and it differs from the region of the request. S3 sends it with 301, 400 and 403. */
export function otherRegionOf({ region }: S3Question, answer: S3Answer | undefined): string | undefined {
  const named = answer?.headers['x-amz-bucket-region'];
  return named !== undefined && named !== region ? named : undefined;
}

function codeOf(question: S3Question, { error, answer }: S3Refusal): FaultCode {
  const name = error instanceof Error ? error.name : '';
  // a proxy that changes the path of one key makes its signature wrong, and no other; wrong credentials fail every object
  if (name === 'SignatureDoesNotMatch' && question.key !== undefined) return 'object.failed';
  if (isCredentialsError(error)) return 's3.credentials';
  // the name of the bucket or region cannot be part of an address
  if (name === 'EndpointError') return 'bucket.missing';
  if (answer === undefined) return 's3.unavailable';
  if (name === 'NoSuchBucket' || isElsewhere(question, answer)) return 'bucket.missing';
  return codeOfStatus(answer, name);
}

/** Whether S3 says that the bucket is elsewhere. A sign-in page's redirect says nothing about it. */
function isElsewhere(question: S3Question, answer: S3Answer): boolean {
  return otherRegionOf(question, answer) !== undefined || (isRedirect(answer.status) && answer.headers['x-amz-request-id'] !== undefined);
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400 && status !== 304;
}

function codeOfStatus({ status, reasonPhrase }: S3Answer, name: string): FaultCode {
  if (status === 429 || name === 'SlowDown' || (status === 503 && /slow\s*down/i.test(reasonPhrase))) return 's3.throttled';
  // RequestTimeout has status 400, and is as temporary as a 5xx
  if (isTrouble(status) || name === 'RequestTimeout') return 's3.unavailable';
  return status === 401 || status === 403 ? 'object.denied' : 'object.failed';
}

/** A problem at S3, or at whatever answers in its place. 501 is excluded because it is about the request. */
function isTrouble(status: number): boolean {
  return status === 408 || isRedirect(status) || (status >= 500 && status !== 501);
}
