/** Errors as problem documents (RFC 9457): what happened, to which thing, what to do, and the code. */
import { STATUS_CODES } from 'node:http';
import { FaultError, faults } from '../domain/fault.ts';
import { RequestError, requestErrors } from '../domain/request-error.ts';

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly [extra: string]: string | number;
}

/** Fastify's own errors, by their codes. */
const frameworkCodes: Readonly<Record<string, keyof typeof requestErrors>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'request.too-large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'request.unsupported-media-type',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'request.invalid',
  FST_ERR_CTP_INVALID_JSON_BODY: 'request.invalid',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'request.invalid',
};

/** The problem document of whatever was thrown. Of the unforeseen it says nothing but that it happened. */
export function problemOf(error: unknown): Problem {
  if (error instanceof RequestError) return { ...problem(requestErrors[error.code], error.code, error.message), ...error.extra };
  if (error instanceof FaultError) return problem(statusOfFault(error), error.code, `${error.reason}. ${faults[error.code].advice}`);
  if (error instanceof Error) return problemOfFramework(error) ?? unexpected();
  return unexpected();
}

function statusOfFault({ code }: FaultError): number {
  return code === 'bucket.missing' ? 404 : 503;
}

function problemOfFramework(error: Error): Problem | undefined {
  if (error.name === 'TimeoutError')
    return problem(503, 'request.timeout', 'The request took longer than it may: try again, or ask for less.');
  const code = 'code' in error && typeof error.code === 'string' ? frameworkCodes[error.code] : undefined;
  if (code !== undefined) return problem(requestErrors[code], code, error.message);
  // a body that is no JSON, or one that tries to poison a prototype
  return 'statusCode' in error && error.statusCode === 400 ? problem(400, 'request.invalid', error.message) : undefined;
}

/** Whether nobody foresaw this error, so that it must be logged. */
export function isUnexpected({ code }: Problem): boolean {
  return code === UNEXPECTED;
}

const UNEXPECTED = 'internal.unexpected';

function unexpected(): Problem {
  return problem(500, UNEXPECTED, 'Something nobody foresaw went wrong; it was logged.');
}

function problem(status: number, code: string, detail: string): Problem {
  return { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail, code };
}
