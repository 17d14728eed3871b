/** Errors on the wire: problem documents (RFC 9457) with a code, and the HTTP status of each code. */
import { z } from 'zod';
import type { FaultCode } from '../../base/fault.ts';
import { isRequestErrorCode, requestErrors, type RequestErrorCode } from '../../base/request-error.ts';

export const PROBLEM_MEDIA = 'application/problem+json';

export const problemSchema = z
  .looseObject({
    type: z.string().describe('The page that explains the code.'),
    title: z.string().describe("The status's name."),
    status: z.int().min(400).max(599),
    detail: z.string().describe('What happened, and to what.'),
    code: z.string().describe('The kind of error. Its meaning never changes.'),
    advice: z.string().optional().describe('What to do about it; only for faults.'),
  })
  .meta({ id: 'Problem', description: 'An error. Some codes add fields, such as `job_id` of `job.conflict`.' });
export type Problem = Readonly<z.infer<typeof problemSchema>>;

/** Returns the HTTP status of an error. */
export function statusOf(code: RequestErrorCode | FaultCode): number {
  if (isRequestErrorCode(code)) return requestErrors[code];
  if (code === 'internal.unexpected') return 500;
  return code === 'bucket.missing' ? 404 : 503;
}

/** The errors that every operation can return. */
export const generalErrors = [
  'request.invalid',
  'request.forbidden-origin',
  'request.forwarded',
  'request.timeout',
  'request.interrupted',
  'index.unreachable',
  'index.overloaded',
  'internal.unexpected',
] as const satisfies readonly (RequestErrorCode | FaultCode)[];

/** Additional errors of operations that not every caller may call. */
export const authorisationErrors = [
  'authentication.failed',
  'request.rate-limited',
  'authorization.denied',
  'session.required',
] as const satisfies readonly RequestErrorCode[];

/** Additional errors of operations with a body. */
export const bodyErrors = ['request.too-large', 'request.unsupported-media-type'] as const satisfies readonly RequestErrorCode[];
