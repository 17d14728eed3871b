/**
 * The operations of a running registry, one function for all rows of the contract: what the command line uses with
 * --registry. Problem documents become the errors that the verbs threw, and answers are checked by their rows.
 */
import { z } from 'zod';
import { operationsOf, type Operations, type PlacedRow } from '../../api/contract.ts';
import { problemSchema } from '../../api/problem.ts';
import type { AnyRequest, Method } from '../../api/row.ts';
import { FaultError, isFaultCode } from '../../domain/fault.ts';
import { isRequestErrorCode, RequestError } from '../../domain/request-error.ts';

/** The registry ends each of its verbs after 30 s. */
const ANSWER_TIMEOUT_MS = 35_000;

/**
 * The operations of the registry at `url` (http://127.0.0.1:8080). They reject with the registry's own RequestError or
 * fault; with `registry.unreachable` if nothing answers in time, with `registry.unknown-answer` for an answer that no
 * registry of this version sends, and with the signal's reason.
 */
export function createRegistryOperations(url: string): Operations {
  return operationsOf((row) => async (request, { signal }) => {
    const address = addressOf(url, row, request);
    const response = await send(address, { method: row.method, body: request.body }, signal);
    const what = `${row.method} ${address.pathname} at ${address.origin}`;
    if (!response.ok) throw errorOf(response, what);
    if (row.answer === undefined) return undefined;
    const parsed = row.answer.safeParse(response.json);
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    throw new FaultError(
      'registry.unknown-answer',
      `${what} answered ${response.status} with an unexpected body: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`,
    );
  });
}

const valuesSchema = z.record(z.string(), z.union([z.string(), z.number()]).optional());

function addressOf(url: string, { path }: PlacedRow, { params, query }: AnyRequest): URL {
  const names = valuesSchema.parse(params ?? {});
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => segmentOf(String(names[name] ?? '')));
  const address = new URL(filled, url);
  for (const [name, value] of Object.entries(valuesSchema.parse(query ?? {}))) {
    if (value !== undefined) address.searchParams.set(name, String(value));
  }
  return address;
}

/** Encodes a name for a path. The URL parser removes dot segments, encoded or not, so they are refused. */
function segmentOf(name: string): string {
  if (/^\.{0,2}$/.test(name)) throw new RequestError('request.not-found', `nothing has the name ${JSON.stringify(name)}`);
  return encodeURIComponent(name);
}

interface Response {
  readonly ok: boolean;
  readonly status: number;
  /** Absent if the body was not JSON. */
  readonly json?: unknown;
}

async function send(
  address: URL,
  { method, body }: { readonly method: Method; readonly body: unknown },
  signal: AbortSignal,
): Promise<Response> {
  const late = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
  try {
    const response = await fetch(address, {
      method,
      // the registry redirects nothing
      redirect: 'error',
      signal: AbortSignal.any([signal, late]),
      ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    return { ok: response.ok, status: response.status, ...jsonOf(await response.text()) };
  } catch (error) {
    signal.throwIfAborted();
    const reason = late.aborted ? `it did not answer within ${ANSWER_TIMEOUT_MS / 1_000} s` : reasonOf(error);
    throw new FaultError('registry.unreachable', `the registry at ${address.origin} cannot be reached: ${reason}`, { cause: error });
  }
}

function jsonOf(text: string): { readonly json?: unknown } {
  if (text === '') return {};
  try {
    const json: unknown = JSON.parse(text);
    return { json };
  } catch {
    return {};
  }
}

/** Returns why fetch failed. The message of its error is always `fetch failed`, so the cause is used. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (!(cause instanceof Error)) return String(cause);
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message;
}

function errorOf({ status, json }: Response, what: string): Error {
  const problem = problemSchema.safeParse(json);
  if (!problem.success) return new FaultError('registry.unknown-answer', `${what} answered ${status} without a problem document`);
  const { type: _type, title: _title, status: _status, detail, code, advice: _advice, ...extra } = problem.data;
  if (isRequestErrorCode(code)) return new RequestError(code, detail, extraSchema.parse(extra));
  if (isFaultCode(code)) return new FaultError(code, detail);
  return new FaultError('registry.unknown-answer', `${what} answered ${status}: ${detail} (${code})`);
}

/** The further fields of a problem document, as far as a RequestError carries them. */
const extraSchema = z.record(z.string(), z.unknown()).transform((fields) => {
  const shown: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(fields)) if (typeof value === 'string' || typeof value === 'number') shown[name] = value;
  return shown;
});
