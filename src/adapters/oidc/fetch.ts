/** Requests to the issuer: through the proxy of the environment, without redirects, and with bounded answers. */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { FaultError } from '../../domain/fault.ts';

/** Discovery documents, key sets and tokens have some kilobytes; tokens with many groups some hundred. */
const ANSWER_BYTES_MAX = 1_048_576;

export interface FetchOptions {
  readonly body?: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly method: string;
  readonly signal?: AbortSignal | null | undefined;
}

/** Sends a request. Throws `issuer.unreachable`. */
export type FetchIssuer = (url: string, options: FetchOptions, signal: AbortSignal) => Promise<Response>;

export function createFetchIssuer(proxyEnv: Readonly<Record<string, string>> | undefined): FetchIssuer {
  const options = proxyEnv === undefined ? {} : { proxyEnv };
  const agents = { 'http:': new HttpAgent(options), 'https:': new HttpsAgent(options) };
  return async function fetchIssuer(url, { body, headers, method, signal }, ended) {
    const { protocol } = new URL(url);
    const send = protocol === 'https:' ? httpsRequest : httpRequest;
    const signals = AbortSignal.any([ended, ...(signal === undefined || signal === null ? [] : [signal])]);
    try {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        const sent = send(
          url,
          { method, headers, signal: signals, agent: protocol === 'https:' ? agents['https:'] : agents['http:'] },
          resolve,
        );
        sent.on('error', reject);
        sent.end(textOf(body));
      });
      return await responseOf(answer);
    } catch (error) {
      ended.throwIfAborted();
      if (error instanceof FaultError) throw error;
      throw new FaultError('issuer.unreachable', `${method} ${originOf(url)}: ${reasonOf(error)}`, { cause: error });
    }
  };
}

/** openid-client sends forms only. */
function textOf(body: unknown): string | undefined {
  return body instanceof URLSearchParams || typeof body === 'string' ? String(body) : undefined;
}

async function responseOf(answer: IncomingMessage): Promise<Response> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of answer) {
    if (!(chunk instanceof Uint8Array)) continue;
    sizeBytes += chunk.byteLength;
    if (sizeBytes > ANSWER_BYTES_MAX) {
      answer.destroy();
      throw new FaultError('issuer.unreachable', `the issuer sent more than ${ANSWER_BYTES_MAX} bytes`);
    }
    chunks.push(chunk);
  }
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(answer.headersDistinct)) for (const value of values) headers.append(name, value);
  const status = answer.statusCode ?? 500;
  // such a response cannot have a body
  const body = [204, 205, 304].includes(status) ? null : Buffer.concat(chunks);
  return new Response(body, { status, headers });
}

/** Without the query, which may hold secrets. */
function originOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return 'no answer in time';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}
