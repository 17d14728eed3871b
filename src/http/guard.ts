/** Loopback is not a wall: a web page can make a browser send requests there. Until callers are authenticated these checks are what stands between. */
import type { FastifyRequest } from 'fastify';
import { RequestError } from '../domain/request-error.ts';

const LOOPBACK_HOSTS = new Set(['127.0.0.1', 'localhost', '[::1]']);

/** Throws `request.forbidden-origin` unless the request names a loopback Host (no DNS rebinding) and comes from no foreign origin. */
export function requireLocalCaller({ headers }: FastifyRequest): void {
  if (!isLoopback(`http://${headers.host ?? ''}`)) {
    throw new RequestError(
      'request.forbidden-origin',
      'the Host must be 127.0.0.1, localhost or [::1]: the control plane serves this machine only',
    );
  }
  if (headers.origin !== undefined && !isLoopback(headers.origin)) {
    throw new RequestError('request.forbidden-origin', 'requests from pages of other origins are refused');
  }
  if (headers['sec-fetch-site'] === 'cross-site') {
    throw new RequestError('request.forbidden-origin', 'cross-site requests are refused');
  }
}

/** Throws `request.unsupported-media-type` for a body that is not JSON: a form of a foreign page can send anything else without asking. */
export function requireJsonBody({ headers, method }: FastifyRequest): void {
  if (method === 'GET' || method === 'HEAD') return;
  const type = headers['content-type'];
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (type === undefined ? !hasBody : /^application\/json\s*(;|$)/i.test(type)) return;
  throw new RequestError('request.unsupported-media-type', 'a body must be application/json');
}

function isLoopback(url: string): boolean {
  return URL.canParse(url) && LOOPBACK_HOSTS.has(new URL(url).hostname);
}
