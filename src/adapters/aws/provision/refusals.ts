/** Maps failed requests that read or make parts of a connection to errors. */
import { FaultError } from '../../../domain/fault.ts';
import { printable } from '../../../domain/printable.ts';
import { RequestError } from '../../../domain/request-error.ts';
import { errorText } from '../clients.ts';

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

/** Sends a request; `what` names it and its object, `action` is the permission that it needs. */
export async function asking<Answer>(what: string, action: string, send: () => Promise<Answer>, signal?: AbortSignal): Promise<Answer> {
  try {
    return await send();
  } catch (error) {
    signal?.throwIfAborted();
    throw isMissing(error) ? error : refusalOf(what, action, error);
  }
}

/** The error of a failed request. */
export function refusalOf(what: string, action: string, error: unknown): Error {
  if (error instanceof RequestError || error instanceof FaultError) return error;
  const reason = printable(errorText(error), TEXT_MAX);
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

/** The options of a request of the SDK. */
export function optionsOf(signal: AbortSignal | undefined): { readonly abortSignal?: AbortSignal } {
  return signal === undefined ? {} : { abortSignal: signal };
}
