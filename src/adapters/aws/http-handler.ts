/**
 * Sends the AWS SDK's requests: the part of its client that it lets callers replace (`requestHandler`). Its own spends a
 * quarter of a receive on timers, on listeners and on carrying the body through a stream, and holds 100 MiB more for it;
 * queue answers are small and wanted whole, so here they are handed over whole.
 */
import { Agent as HttpAgent, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

interface HandlerOptions {
  /** Until a new connection stands, its TLS included. */
  readonly connectTimeoutMs: number;
  /** Of one attempt, from its beginning until its answer is complete. */
  readonly requestTimeoutMs: number;
  /** Requests at once. */
  readonly connectionsMax: number;
}

/** What the SDK hands over: signed, its body a text (or nothing). */
interface SdkRequest {
  readonly method: string;
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
  readonly query: Readonly<Record<string, string | string[] | null>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

interface SdkAnswer {
  readonly response: {
    readonly statusCode: number;
    readonly reason: string;
    readonly headers: Record<string, string>;
    readonly body: Uint8Array;
  };
}

/** As the SDK's interface HttpHandler. */
interface HttpHandler {
  readonly metadata: { readonly handlerProtocol: string };
  handle(request: SdkRequest, options?: { readonly abortSignal?: unknown }): Promise<SdkAnswer>;
  destroy(): void;
  updateHttpClientConfig(): void;
  httpHandlerConfigs(): object;
}

/** Creates a handler with connections of its own. It rejects as the SDK's does: with AbortError, TimeoutError, or the connection's error. */
export function createHttpHandler({ connectTimeoutMs, requestTimeoutMs, connectionsMax }: HandlerOptions): HttpHandler {
  const agentOptions = { keepAlive: true, maxSockets: connectionsMax };
  const http = new HttpAgent(agentOptions);
  const https = new HttpsAgent(agentOptions);

  function send(request: SdkRequest, answered: (answer: IncomingMessage) => void): ClientRequest {
    const options = {
      host: request.hostname.replaceAll(/^\[|\]$/g, ''),
      port: request.port,
      method: request.method,
      path: pathOf(request),
      headers: request.headers,
    };
    return request.protocol === 'https:'
      ? httpsRequest({ ...options, agent: https }, answered)
      : httpRequest({ ...options, agent: http }, answered);
  }

  return {
    metadata: { handlerProtocol: 'http/1.1' },
    handle(request, options) {
      // the SDK's type also allows its own, older kind of signal, which nobody here has
      const signal = options?.abortSignal instanceof AbortSignal ? options.abortSignal : undefined;
      return new Promise((resolve, reject) => {
        if (signal?.aborted === true) {
          reject(abortError(signal));
          return;
        }
        const sent = send(request, (answer) => collect(answer, settle));
        const onAbort = (): void => settle(abortError(signal));
        const timer = setTimeout(() => settle(timeoutError(`no answer within ${requestTimeoutMs} ms`)), requestTimeoutMs);
        sent.on('error', settle);
        failUnlessConnected(sent, connectTimeoutMs);
        signal?.addEventListener('abort', onAbort);
        sent.end(request.body);

        function settle(result: SdkAnswer | Error): void {
          clearTimeout(timer);
          signal?.removeEventListener('abort', onAbort);
          if (!(result instanceof Error)) {
            resolve(result);
            return;
          }
          reject(result);
          sent.destroy();
        }
      });
    },
    destroy() {
      http.destroy();
      https.destroy();
    },
    updateHttpClientConfig() {},
    httpHandlerConfigs: () => ({}),
  };
}

function pathOf({ path, query }: SdkRequest): string {
  const parts = Object.entries(query).flatMap(([name, value]) => {
    if (value === null) return [encodeURIComponent(name)];
    return [value].flat().map((each) => `${encodeURIComponent(name)}=${encodeURIComponent(each)}`);
  });
  return parts.length === 0 ? path : `${path}?${parts.join('&')}`;
}

/** Hands over the whole answer, or the error that ended it early. */
function collect(answer: IncomingMessage, done: (result: SdkAnswer | Error) => void): void {
  const chunks: Buffer[] = [];
  answer.on('data', (chunk: Buffer) => chunks.push(chunk));
  answer.on('error', done);
  answer.on('end', () => {
    const [first = Buffer.alloc(0), ...others] = chunks;
    const body = others.length === 0 ? first : Buffer.concat(chunks);
    const { statusCode = 0, statusMessage = '', headers } = answer;
    done({ response: { statusCode, reason: statusMessage, headers: headersOf(headers), body } });
  });
}

function headersOf(headers: IncomingMessage['headers']): Record<string, string> {
  const all: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) all[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return all;
}

/** A connection that is kept alive stands already. */
function failUnlessConnected(sent: ClientRequest, timeoutMs: number): void {
  sent.once('socket', (socket) => {
    if (!socket.connecting) return;
    const timer = setTimeout(() => sent.destroy(timeoutError(`no connection within ${timeoutMs} ms`)), timeoutMs);
    const stop = (): void => clearTimeout(timer);
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', stop);
    socket.once('close', stop);
  });
}

function abortError(signal: AbortSignal | undefined): Error {
  return Object.assign(new Error('the request was aborted', { cause: signal?.reason }), { name: 'AbortError' });
}

/** By this name the SDK knows what may be tried again. */
function timeoutError(message: string): Error {
  return Object.assign(new Error(message), { name: 'TimeoutError' });
}
