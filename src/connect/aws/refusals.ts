/** Sends requests that read or make parts of a connection, and maps those that fail to errors. */
import { FaultError } from '../../base/fault.ts';
import { printable } from '../../base/printable.ts';
import { RequestError } from '../../base/request-error.ts';
import { errorText } from '../../aws/clients.ts';
import { isCredentialsError } from '../../aws/credentials.ts';

/** The names by which the services say that a permission is missing: S3 and SQS, EventBridge, SNS. */
const DENIED = new Set([
  'AccessDenied',
  'AccessDeniedException',
  'AuthorizationError',
  'AuthorizationErrorException',
  'KMSAccessDeniedException',
  'KmsAccessDenied',
]);
/** The names by which they say that something does not exist. */
const MISSING = new Set([
  'NotFound',
  'NotFoundException',
  'ResourceNotFoundException',
  'QueueDoesNotExist',
  'AWS.SimpleQueueService.NonExistentQueue',
]);
/** A text of AWS in a reason. */
const TEXT_MAX = 500;

/** Whether AWS answered that the thing does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && MISSING.has(error.name);
}

/** Where something is: a request about it goes to this region. */
export interface At {
  readonly region: string;
}

/** The clients of one service. */
export interface ClientsFor<Client, Place = At> {
  readonly clientFor: (at: Place) => Client;
  /** Sends each request once. */
  readonly writerFor: (at: Place) => Client;
}

interface RequestOptions {
  readonly abortSignal?: AbortSignal;
}

/** The permission that a request needs, which has its name: `sns:CreateTopic`. */
export type Action = `${'cloudtrail' | 'events' | 'sns' | 'sqs' | 'sts'}:${string}`;

/** Sends a request about something. */
export async function ask<Answer>(
  action: Action,
  about: string,
  send: (options: RequestOptions) => Promise<Answer>,
  signal?: AbortSignal,
): Promise<Answer> {
  try {
    return await send(signal === undefined ? {} : { abortSignal: signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw isMissing(error) ? error : refusalOf(action, about, error);
  }
}

/** What a request answers; `absent` if AWS answered that what it is about does not exist. */
export async function orAbsent<Answer>(answer: Promise<Answer>): Promise<Answer | 'absent'> {
  try {
    return await answer;
  } catch (error) {
    if (isMissing(error)) return 'absent';
    throw error;
  }
}

/** The error of a failed request. */
export function refusalOf(action: Action, about: string, error: unknown): Error {
  if (error instanceof RequestError || error instanceof FaultError) return error;
  const what = `${action.slice(action.indexOf(':') + 1)} ${about}`.trimEnd();
  const reason = printable(errorText(error), TEXT_MAX);
  // before the status: AWS answers 403 for credentials that have expired, too
  if (isCredentialsError(error)) return new FaultError('connect.credentials', `${what}: ${reason}`, { cause: error });
  if (error instanceof Error && (DENIED.has(error.name) || statusOf(error) === 403)) {
    return new RequestError('connect.denied', `${what} is denied: the permission ${action} is missing (${reason})`, { action });
  }
  return new FaultError('connect.unavailable', `${what}: ${reason}`, { cause: error });
}

function statusOf(error: Error): number | undefined {
  if (!('$metadata' in error) || typeof error.$metadata !== 'object' || error.$metadata === null) return undefined;
  return 'httpStatusCode' in error.$metadata && typeof error.$metadata.httpStatusCode === 'number'
    ? error.$metadata.httpStatusCode
    : undefined;
}
