/** What a failed apply says of a bucket that was connected right before it. */
import { FaultError } from '../fault.ts';
import { RequestError } from '../request-error.ts';

/** The error with what holds all the same, and what to do: the bucket is connected, and its parts in AWS are not all made. */
export function connectedNotApplied(bucket: string, error: unknown): unknown {
  if (error instanceof RequestError) {
    if (error.extra['connected'] !== undefined) return error;
    return new RequestError(error.code, withState(bucket, error.message, error.code), { ...error.extra, connected: bucket });
  }
  return error instanceof FaultError ? new FaultError(error.code, withState(bucket, error.reason)) : error;
}

function withState(bucket: string, what: string, code?: string): string {
  // what is missing is the token, which the message has already: without it the command would be refused again
  const repeat = code === 'connect.plan-needed' ? '' : `repeat \`tally bucket add ${bucket}\` once the cause is gone, or `;
  return `${what}. ${bucket} is connected all the same, but its parts in AWS are not all made, so its events may not arrive: ${repeat}take it back with \`tally bucket remove ${bucket}\``;
}
