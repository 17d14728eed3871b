/** One request to a registry, and its answer. Redirects are not followed, and answers are bounded. */
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Method } from '../../registry/contract/row.ts';
import { FaultError } from '../../base/fault.ts';
import { jsonOf } from '../../base/json.ts';
import { isPlainLoopback } from './addresses.ts';
import { z } from 'zod';
import { loginRows } from '../../registry/contract/login.ts';
import type { Config, StoredSession } from './store.ts';

/** The registry ends each of its operations after 30 s. */
const ANSWER_TIMEOUT_MS = 35_000;
/** A page has at most 1,000 items, and S3 allows an object about 8 kB of key, metadata and tags. */
const ANSWER_BYTES_MAX = 64 * 1_024 * 1_024;

interface Outgoing {
  readonly method: Method;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as `Authorization: Bearer`. It appears in no error. */
  readonly token?: string | undefined;
  /** Default: 35 s. */
  readonly timeoutMs?: number;
  /** The path of the Unix socket through which it is sent. */
  readonly socket?: string | undefined;
  /** Where a registry was looked for, if nothing names one. */
  readonly tried?: readonly string[] | undefined;
}

export interface Incoming {
  readonly ok: boolean;
  readonly status: number;
  /** Undefined if the body was not JSON. */
  readonly json: unknown;
}

/** Sends the request. Rejects with `registry.unreachable` if nothing answers in time, and with the signal's reason. */
export async function send(
  address: URL,
  { method, body, token, socket, tried, timeoutMs = ANSWER_TIMEOUT_MS }: Outgoing,
  signal: AbortSignal,
): Promise<Incoming> {
  const late = AbortSignal.timeout(timeoutMs);
  try {
    const wanted: Wanted = {
      method,
      signal: AbortSignal.any([signal, late]),
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
    const answer = await receive(address, wanted, socket);
    const { statusCode: status = 0 } = answer;
    return { ok: status >= 200 && status < 300, status, json: jsonOf(await textOf(answer)) };
  } catch (error) {
    signal.throwIfAborted();
    const why = late.aborted ? `it did not answer within ${timeoutMs / 1_000} s` : reasonOf(error);
    throw new FaultError('registry.unreachable', whereText({ tried, at: socket ?? address.origin, why }), { cause: error });
  }
}

function whereText({
  tried,
  at,
  why,
}: {
  readonly tried: readonly string[] | undefined;
  readonly at: string;
  readonly why: string;
}): string {
  if (tried === undefined) return `the registry at ${at} cannot be reached: ${why}`;
  return `no registry answers at ${tried.join(', ')}: start one with \`tally serve\`, or name one with --registry`;
}

interface Wanted {
  readonly method: Method;
  readonly signal: AbortSignal;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** It has no proxy, whatever the environment says: a proxy would read the credential, and reach its own loopback with it. */
const direct = new Agent();

async function receive(address: URL, { body, method, signal, headers }: Wanted, socket: string | undefined): Promise<IncomingMessage> {
  const request = address.protocol === 'https:' ? httpsRequest : httpRequest;
  const way = isPlainLoopback(address) ? { agent: direct, ...(socket !== undefined && { socketPath: socket }) } : {};
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request(address, { method, signal, headers, ...way }, resolve)
      .on('error', reject)
      .end(body);
  });
  const { statusCode: status = 0 } = answer;
  if (status < 300 || status >= 400) return answer;
  // no registry redirects its clients, and a credential must not follow
  answer.destroy();
  throw new Error('unexpected redirect');
}

async function textOf(received: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const part of received) {
    sizeBytes += part.byteLength;
    if (sizeBytes > ANSWER_BYTES_MAX) throw new Error(`its answer has more than ${ANSWER_BYTES_MAX} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}

/** The token of an interactive login: from a code, and its end. */

const TIMEOUT_MS = 15_000;

const { answer: issued, body: grantSchema } = loginRows['POST /login/token'];
/** As it can be sent in a header. */
const answered = issued.extend({ access_token: z.string().regex(/^[\x21-\x7e]{1,1024}$/) });
const refusal = z.union([z.object({ code: z.literal('login.invalid-grant') }), z.object({ error: z.literal('invalid_grant') })]);

/** What the registry exchanges for a token. */
export type Grant = z.input<typeof grantSchema>;

/** Asks for the token of a session; undefined if the registry refuses the code. */
export async function requestToken(
  { registry_url, catalog_url }: Config,
  grant: Grant,
  nowMs: () => number,
  signal: AbortSignal,
): Promise<StoredSession | undefined> {
  const address = new URL('/login/token', registry_url);
  const answer = await send(address, { method: 'POST', body: grant, timeoutMs: TIMEOUT_MS }, signal);
  const parsed = answered.safeParse(answer.json);
  if (answer.ok && parsed.success) {
    const { access_token: token, expires_in } = parsed.data;
    return { registry_url, catalog_url, token, expires_at: nowMs() / 1_000 + expires_in };
  }
  if (refusal.safeParse(answer.json).success) return undefined;
  throw new FaultError('registry.unknown-answer', `POST ${address.href} answered ${answer.status} without a token`);
}

/** Ends the session at the registry. The answer may be an error. */
export async function endSession({ registry_url, token }: StoredSession, signal: AbortSignal): Promise<Incoming> {
  return send(new URL('/login/logout', registry_url), { method: 'POST', token, timeoutMs: TIMEOUT_MS }, signal);
}
