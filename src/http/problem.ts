/** Errors as problem documents (RFC 9457): what happened, to which thing, what to do, and the code. */
import { STATUS_CODES } from 'node:http';
import { PROBLEM_MEDIA, statusOf, type Problem } from '../api/problem.ts';
import { FaultError, faults } from '../domain/fault.ts';
import { RequestError, type RequestErrorCode } from '../domain/request-error.ts';

export const PROBLEM_TYPE = `${PROBLEM_MEDIA}; charset=utf-8`;

const UNEXPECTED = 'internal.unexpected';

/** Fastify's own errors, by their codes, in words that repeat nothing of the request. */
const frameworkErrors: ReadonlyMap<unknown, readonly [RequestErrorCode, string]> = new Map([
  ['FST_ERR_BAD_URL', ['request.invalid', 'the path is not percent-encoded UTF-8']],
  ['FST_ERR_MAX_PARAM_LENGTH', ['request.not-found', 'nothing has so long a name']],
  ['FST_ERR_CTP_BODY_TOO_LARGE', ['request.too-large', 'the body is larger than any request needs']],
  ['FST_ERR_CTP_INVALID_MEDIA_TYPE', ['request.unsupported-media-type', 'a body must be application/json']],
  ['FST_ERR_CTP_EMPTY_JSON_BODY', ['request.invalid', 'the body is empty although its content type is application/json']],
  ['FST_ERR_CTP_INVALID_JSON_BODY', ['request.invalid', 'the body is not JSON, or names __proto__']],
  ['FST_ERR_CTP_INVALID_CONTENT_LENGTH', ['request.invalid', 'the body is not as long as its content length says']],
] satisfies [string, [RequestErrorCode, string]][]);

/** The problem document of whatever was thrown. Of the unforeseen it says nothing but that it happened. */
export function problemOf(error: unknown): Problem {
  if (error instanceof RequestError) return { ...error.extra, ...problem(statusOf(error.code), error.code, error.message) };
  if (error instanceof FaultError) return problemOfFault(error);
  const [code, detail] = (error instanceof Error && 'code' in error && frameworkErrors.get(error.code)) || [];
  return code === undefined || detail === undefined ? unexpected() : problem(statusOf(code), code, detail);
}

/** Whether nobody foresaw this error, so that it must be logged. */
export function isUnexpected({ code }: Problem): boolean {
  return code === UNEXPECTED;
}

/** The whole response to what is no HTTP request, or was not received in time; `code` is that of Node's parser. The connection is of no further use. */
export function responseToBroken(code: string | undefined, headers: Readonly<Record<string, string>>): string {
  const broken = brokenRequests.get(code) ?? problem(400, 'request.invalid', 'this is not an HTTP request');
  const body = JSON.stringify(broken);
  const own = { 'content-type': PROBLEM_TYPE, 'content-length': Buffer.byteLength(body), connection: 'close' };
  const lines = Object.entries({ ...headers, ...own }).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${broken.status} ${broken.title}`, ...lines, '', body].join('\r\n');
}

const brokenRequests: ReadonlyMap<string | undefined, Problem> = new Map([
  ['HPE_HEADER_OVERFLOW', problem(431, 'request.too-large', 'the headers are larger than any request needs')],
  ['ERR_HTTP_REQUEST_TIMEOUT', problem(408, 'request.timeout', 'the request was not received in time')],
]);

function problemOfFault({ code, reason }: FaultError): Problem {
  if (code === UNEXPECTED) return unexpected();
  return { ...problem(statusOf(code), code, reason), advice: faults[code].advice };
}

function unexpected(): Problem {
  return problem(500, UNEXPECTED, 'Something nobody foresaw went wrong; it was logged.');
}

function problem(status: number, code: string, detail: string): Problem {
  return { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail, code };
}
