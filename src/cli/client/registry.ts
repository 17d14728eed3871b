/**
 * A running registry's operations for the command line: one function for all rows of the contract. Problem documents become the errors
 * that the operations threw, and answers are checked by their rows.
 */
import { z } from 'zod';
import { operationsOf, type Operations, type PlacedRow } from '../../registry/contract/contract.ts';
import { problemSchema } from '../../registry/contract/problem.ts';
import type { AnyRequest } from '../../registry/contract/row.ts';
import { loginRows, type SessionAnswer } from '../../registry/contract/login.ts';
import { CommandError } from '../errors.ts';
import { send, type Incoming } from './send.ts';
import { FaultError, isFaultCode } from '../../base/fault.ts';
import { isRequestErrorCode, RequestError } from '../../base/request-error.ts';

/** A registry, and the token that authenticates requests to it; without one they are anonymous. */
export interface Registry {
  readonly url: string;
  readonly token?: string | undefined;
  /** The path of its Unix socket, if requests go through it. */
  readonly socket?: string | undefined;
  /** The addresses that were tried, if nothing names the registry. */
  readonly tried?: readonly string[];
}

type AskedRow = Pick<PlacedRow, 'method' | 'path' | 'scope' | 'answer' | 'status' | 'otherStatuses'>;

/** The message for every wrong, expired or revoked credential. */
const AUTHENTICATION_FAILED = 'Authentication failed. Check your credentials or API key.';
/** The characters of a header; any other text cannot be a key that a registry issued. */
const SENDABLE = /^[\x21-\x7e]{1,512}$/;

/** An API key's secret as it is sent. Throws `authentication.failed` for a text that cannot be sent. */
export function keyToken(text: string): string {
  const secret = text.trim();
  if (!SENDABLE.test(secret)) throw new RequestError('authentication.failed', AUTHENTICATION_FAILED);
  return secret;
}

const SESSION = { ...loginRows['GET /v1/session'], method: 'GET', path: '/v1/session', status: 200 } as const;

/** Who this program is, according to the registry. Rejects as {@link askRegistry} does. */
export async function readCaller(registry: Registry, signal: AbortSignal): Promise<SessionAnswer> {
  return SESSION.answer.parse(await askRegistry(registry, SESSION, {}, signal));
}

/** The control plane's operations. They reject as {@link askRegistry} does. */
export function createRegistryOperations(registry: Registry): Operations {
  return operationsOf((row) => (request, context) => askRegistry(registry, row, request, context?.signal));
}

/**
 * Sends the request of a row. Rejects with the registry's own RequestError or fault; with `login.missing` if the registry demands a
 * credential and there is no token; with `registry.unreachable` if nothing answers in time, with `registry.unknown-answer` for an
 * answer that no registry of this version sends, and with the signal's reason.
 */
export async function askRegistry(
  { url, token, socket, tried }: Registry,
  row: AskedRow,
  request: AnyRequest,
  signal = new AbortController().signal,
): Promise<unknown> {
  const address = addressOf(url, row, request);
  // public operations are called without a credential, because the stored one may no longer be valid
  const credential = row.scope === 'none' ? undefined : token;
  const response = await send(address, { method: row.method, body: request.body, token: credential, socket, tried }, signal);
  const what = `${row.method} ${address.pathname} at ${address.origin}`;
  if (!response.ok) throw token === undefined ? anonymousErrorOf(response, what, address) : errorOf(response, what);
  return answerIn(response, row, what);
}

function answerIn({ status, json }: Incoming, row: AskedRow, what: string): unknown {
  const isOwn = status === row.status;
  if (!isOwn && row.otherStatuses?.[status] === undefined)
    throw new FaultError('registry.unknown-answer', `${what} answered ${status} instead of ${row.status}`);
  // of the other statuses, 202 has no body
  if (row.answer === undefined || (status === 202 && !isOwn)) return undefined;
  const parsed = row.answer.safeParse(json);
  if (parsed.success) return parsed.data;
  const [wrong] = parsed.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
  throw new FaultError('registry.unknown-answer', `${what} answered ${status} with an unexpected body: ${wrong}`);
}

const valueSchema = z.union([z.string(), z.number()]);
const valuesSchema = z.record(z.string(), z.union([valueSchema, z.array(valueSchema).readonly()]).optional());

function addressOf(url: string, { path }: Pick<PlacedRow, 'path'>, { params, query }: AnyRequest): URL {
  const names = valuesSchema.parse(params ?? {});
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => segmentOf(String(names[name] ?? '')));
  const address = new URL(filled, url);
  for (const [name, value] of Object.entries(valuesSchema.parse(query ?? {}))) {
    for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) address.searchParams.append(name, String(each));
  }
  return address;
}

/** Encodes a name for a path. Refuses dot segments, because the URL parser removes them, encoded or not. */
function segmentOf(name: string): string {
  if (/^\.{0,2}$/.test(name)) throw new RequestError('request.not-found', `nothing has the name ${JSON.stringify(name)}`);
  return encodeURIComponent(name);
}

function anonymousErrorOf(response: Incoming, what: string, address: URL): Error {
  if (response.status !== 401) return errorOf(response, what);
  const { origin } = address;
  return new CommandError('login.missing', `not logged in at ${origin}: run \`tally login ${origin}\`, or set TALLY_API_KEY_FILE`);
}

function errorOf({ status, json }: Incoming, what: string): Error {
  const problem = problemSchema.safeParse(json);
  if (!problem.success) return new FaultError('registry.unknown-answer', `${what} answered ${status} without a problem document`);
  const { type: _type, title: _title, status: _status, detail, code, advice: _advice, ...extra } = problem.data;
  if (isRequestErrorCode(code)) return new RequestError(code, detail, extraSchema.parse(extra));
  if (isFaultCode(code)) return new FaultError(code, detail);
  return new FaultError('registry.unknown-answer', `${what} answered ${status}: ${detail} (${code})`);
}

/** A problem document's additional fields that a RequestError carries. */
const extraSchema = z.record(z.string(), z.unknown()).transform((fields) => {
  const shown: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(fields)) if (typeof value === 'string' || typeof value === 'number') shown[name] = value;
  return shown;
});
