import { ZodError } from 'zod';
import { FaultError } from '../../domain/fault.ts';
import { errorText } from './clients.ts';
import { isCredentialsError } from './credential-errors.ts';

/** The error names of SQS for a queue that does not exist (JSON protocol, query protocol). */
const MISSING = new Set(['QueueDoesNotExist', 'AWS.SimpleQueueService.NonExistentQueue', 'NonExistentQueue']);
const DENIED = new Set(['AccessDenied', 'AccessDeniedException', 'KmsAccessDenied', 'KMS.AccessDeniedException', 'InvalidSecurity']);

/** Whether SQS answered that a permission is missing. */
export function isRefusedPermission(error: unknown): boolean {
  return error instanceof Error && DENIED.has(error.name);
}

/** Whether SQS answered that the queue does not exist. */
export function isMissingQueue(error: unknown): boolean {
  return error instanceof Error && MISSING.has(error.name);
}

/** The fault of a queue with a reason for operators. `error` is the SDK's error. */
export function queueFault(operation: string, queueUrl: string, error: unknown): FaultError {
  return new FaultError(isMissingQueue(error) ? 'queue.missing' : 'queue.unreachable', `${operation} ${queueUrl}: ${reasonOf(error)}`, {
    cause: error,
  });
}

function reasonOf(error: unknown): string {
  if (isMissingQueue(error)) return 'the queue does not exist';
  if (isRefusedPermission(error)) return `permission denied (${errorText(error)})`;
  if (isCredentialsError(error)) return `the AWS credentials are missing or not accepted (${errorText(error)})`;
  // another server answers there: a web page, or JSON of another kind
  if (error instanceof SyntaxError) return 'the answer is not one of SQS: it is not JSON';
  if (error instanceof ZodError) return `the answer is not one of SQS: ${error.issues.map(issueText).join(', ')}`;
  return errorText(error);
}

function issueText({ path, message }: ZodError['issues'][number]): string {
  return [path.join('.'), message].filter((part) => part !== '').join(': ');
}
