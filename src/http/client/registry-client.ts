/** Requests to a running registry: problem documents become the errors that its verbs threw, answers pass a schema. */
import { z } from 'zod';
import { FaultError, faults, type FaultCode } from '../../domain/fault.ts';
import { RequestError, requestErrors, type RequestErrorCode } from '../../domain/request-error.ts';
import { problemSchema } from '../problem.ts';

/** A verb of the registry ends in 30 s. */
const ANSWER_TIMEOUT_MS = 35_000;

type Query = Readonly<Record<string, string | number | undefined>>;

export interface RegistryRequest<Schema extends z.ZodType> {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** The segments of the path after /v1, as they are. */
  readonly path: readonly string[];
  readonly query?: Query;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly answer: Schema;
}

/**
 * Resolves to the answer. Rejects with the registry's own RequestError or fault; with `registry.unreachable` where nothing
 * answers in time, with `registry.unknown-answer` for what no registry of this version would answer, and with the
 * signal's reason.
 */
export type AskRegistry = <Schema extends z.ZodType>(request: RegistryRequest<Schema>, signal?: AbortSignal) => Promise<z.infer<Schema>>;

/** Creates the client of the registry at `url` (http://127.0.0.1:8080). */
export function createAskRegistry(url: string): AskRegistry {
  return async function askRegistry({ method, path, query, body, answer }, signal) {
    const address = addressOf(url, path, query);
    const response = await send(address, { method, body }, signal);
    const what = `${method} ${address.pathname} at ${address.origin}`;
    if (!response.ok) throw errorOf(response, what);
    const parsed = answer.safeParse(response.json);
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    throw new FaultError(
      'registry.unknown-answer',
      `${what} answered ${response.status}, ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`,
    );
  };
}

function addressOf(url: string, path: readonly string[], query: Query = {}): URL {
  // a dot segment would be resolved away, encoded or not
  const nameless = path.find((segment) => /^\.{0,2}$/.test(segment));
  if (nameless !== undefined) throw new RequestError('request.not-found', `nothing has the name ${JSON.stringify(nameless)}`);
  const address = new URL(['/v1', ...path.map(encodeURIComponent)].join('/'), url);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) address.searchParams.set(name, String(value));
  return address;
}

interface Response {
  readonly ok: boolean;
  readonly status: number;
  /** Absent: the body was no JSON. */
  readonly json?: unknown;
}

async function send(
  address: URL,
  { method, body }: Pick<RegistryRequest<z.ZodType>, 'method' | 'body'>,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const late = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
  try {
    const response = await fetch(address, {
      method,
      // the registry redirects nothing
      redirect: 'error',
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
      ...(body !== undefined && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    return { ok: response.ok, status: response.status, ...jsonOf(await response.text()) };
  } catch (error) {
    signal?.throwIfAborted();
    const reason = late.aborted ? `no answer in ${ANSWER_TIMEOUT_MS / 1_000} s` : reasonOf(error);
    throw new FaultError('registry.unreachable', `no registry at ${address.origin}: ${reason}`, { cause: error });
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

/** Of fetch, whose own message is `fetch failed` whatever happened. */
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

/** What else a problem document says, of the kinds that a RequestError carries. */
const extraSchema = z.record(z.string(), z.unknown()).transform((fields) => {
  const shown: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(fields)) if (typeof value === 'string' || typeof value === 'number') shown[name] = value;
  return shown;
});

function isRequestErrorCode(code: string): code is RequestErrorCode {
  return Object.hasOwn(requestErrors, code);
}

function isFaultCode(code: string): code is FaultCode {
  return Object.hasOwn(faults, code);
}
