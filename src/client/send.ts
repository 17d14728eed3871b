/** One request to a registry, and its answer. Redirects are not followed, and answers are bounded. */
import type { Method } from '../api/row.ts';
import { FaultError } from '../domain/fault.ts';

/** The registry ends each of its verbs after 30 s. */
const ANSWER_TIMEOUT_MS = 35_000;
/** A page has at most 1,000 items, and S3 allows an object about 8 kB of key, metadata and tags. */
const ANSWER_BYTES_MAX = 64 * 1_024 * 1_024;

export interface Outgoing {
  readonly method: Method;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as `Authorization: Bearer`. It appears in no error. */
  readonly token?: string;
  /** Default: 35 s. */
  readonly timeoutMs?: number;
}

export interface Incoming {
  readonly ok: boolean;
  readonly status: number;
  /** Absent if the body was not JSON. */
  readonly json?: unknown;
}

/** Sends the request. Rejects with `registry.unreachable` if nothing answers in time, and with the signal's reason. */
export async function send(
  address: URL,
  { method, body, token, timeoutMs = ANSWER_TIMEOUT_MS }: Outgoing,
  signal: AbortSignal,
): Promise<Incoming> {
  const late = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(address, {
      method,
      // no registry redirects its clients, and a credential must not follow
      redirect: 'error',
      signal: AbortSignal.any([signal, late]),
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { ok: response.ok, status: response.status, ...jsonOf(await textOf(response)) };
  } catch (error) {
    signal.throwIfAborted();
    const reason = late.aborted ? `it did not answer within ${timeoutMs / 1_000} s` : reasonOf(error);
    throw new FaultError('registry.unreachable', `the registry at ${address.origin} cannot be reached: ${reason}`, { cause: error });
  }
}

async function textOf(response: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const part of response.body ?? []) {
    sizeBytes += part.byteLength;
    if (sizeBytes > ANSWER_BYTES_MAX) throw new Error(`its answer has more than ${ANSWER_BYTES_MAX} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
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
