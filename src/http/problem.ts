/** Errors as problem documents (RFC 9457): what happened, to which thing, what to do, and the code. */
import { STATUS_CODES } from 'node:http';
import { pageOfCode } from '../domain/doc-pages.ts';
import { PROBLEM_MEDIA, statusOf, type Problem } from '../api/problem.ts';
import { FaultError, faults, type FaultCode } from '../domain/fault.ts';
import { RequestError, type RequestErrorCode } from '../domain/request-error.ts';

export const PROBLEM_TYPE = `${PROBLEM_MEDIA}; charset=utf-8`;

const UNEXPECTED = 'internal.unexpected';

/** Fastify's own errors by their codes, in words that repeat no text of the request. */
const frameworkErrors: ReadonlyMap<unknown, readonly [RequestErrorCode, string]> = new Map([
  ['FST_ERR_BAD_URL', ['request.invalid', 'the path is not percent-encoded UTF-8']],
  ['FST_ERR_MAX_PARAM_LENGTH', ['request.not-found', 'the name in the path is too long for anything that exists']],
  ['FST_ERR_CTP_BODY_TOO_LARGE', ['request.too-large', 'the body is larger than 64 KiB']],
  ['FST_ERR_CTP_INVALID_MEDIA_TYPE', ['request.unsupported-media-type', 'the body must be application/json']],
  ['FST_ERR_CTP_EMPTY_JSON_BODY', ['request.invalid', 'the body is empty although its content type is application/json']],
  ['FST_ERR_CTP_INVALID_JSON_BODY', ['request.invalid', 'the body is not valid JSON, or has a field __proto__']],
  ['FST_ERR_CTP_INVALID_CONTENT_LENGTH', ['request.invalid', 'the body does not have the length that Content-Length says']],
] satisfies [string, [RequestErrorCode, string]][]);

/** Returns the problem document of an error. For an unexpected error it contains no details. */
export function problemOf(error: unknown): Problem {
  if (error instanceof RequestError) return { ...error.extra, ...problem(statusOf(error.code), error.code, error.message) };
  if (error instanceof FaultError) return problemOfFault(error);
  const [code, detail] = (error instanceof Error && 'code' in error && frameworkErrors.get(error.code)) || [];
  return code === undefined || detail === undefined ? unexpected() : problem(statusOf(code), code, detail);
}

/** Whether the error is unexpected, so that it must be logged. */
export function isUnexpected({ code }: Problem): boolean {
  return code === UNEXPECTED;
}

/** The whole response to bytes that are not an HTTP request, or to a request that was not received in time. `code` is that of Node's parser. The connection is closed afterwards. */
export function responseToBroken(code: string | undefined, headers: Readonly<Record<string, string>>): string {
  const broken = brokenRequests.get(code) ?? problem(400, 'request.invalid', 'the bytes received are not an HTTP request');
  const body = JSON.stringify(broken);
  const own = { 'content-type': PROBLEM_TYPE, 'content-length': Buffer.byteLength(body), connection: 'close' };
  const lines = Object.entries({ ...headers, ...own }).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${broken.status} ${broken.title}`, ...lines, '', body].join('\r\n');
}

const brokenRequests: ReadonlyMap<string | undefined, Problem> = new Map([
  ['HPE_HEADER_OVERFLOW', problem(431, 'request.too-large', 'the headers are larger than 16 KiB')],
  ['ERR_HTTP_REQUEST_TIMEOUT', problem(408, 'request.timeout', 'the request was not received in time')],
]);

function problemOfFault({ code, reason }: FaultError): Problem {
  if (code === UNEXPECTED) return unexpected();
  return { ...problem(statusOf(code), code, reason), advice: faults[code].advice };
}

function unexpected(): Problem {
  return problem(500, UNEXPECTED, 'An unexpected error occurred. The log of the daemon has the details.');
}

function problem(status: number, code: RequestErrorCode | FaultCode, detail: string): Problem {
  return { type: pageOfCode(code), title: STATUS_CODES[status] ?? 'Error', status, detail, code };
}
