/** Loopback is not a wall: a web page can make a browser send requests there. Until callers are authenticated these checks are what stands between. */
import type { FastifyRequest } from 'fastify';
import { RequestError } from '../domain/request-error.ts';

/** Any port: a tunnel may lead here from another one. */
const LOOPBACK_HOST = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/i;

/**
 * Throws `request.forbidden-origin` unless the request names a loopback Host (else a foreign name that resolves to this
 * machine would do: DNS rebinding) and comes from no other page than one of that very host and port. Programs send
 * neither Origin nor Sec-Fetch-Site; browsers always do where it matters.
 */
export function requireLocalCaller({ headers }: FastifyRequest): void {
  const host = headers.host ?? '';
  if (!LOOPBACK_HOST.test(host)) {
    throw new RequestError(
      'request.forbidden-origin',
      'the Host must be 127.0.0.1, localhost or [::1]: the control plane serves this machine only',
    );
  }
  if (headers.origin !== undefined && !isOriginOf(headers.origin, host)) {
    throw new RequestError('request.forbidden-origin', 'requests from pages of other origins are refused');
  }
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    throw new RequestError('request.forbidden-origin', 'cross-site requests are refused');
  }
}

/**
 * Throws `request.unsupported-media-type` for a body that is not JSON (a form of a foreign page can send anything else
 * without asking) and `request.invalid` for one where nobody would read it.
 */
export function requireJsonBody({ headers, method }: FastifyRequest): void {
  const type = headers['content-type'];
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (method === 'GET' || method === 'HEAD') {
    if (hasBody) throw new RequestError('request.invalid', `a ${method} takes no body`);
    return;
  }
  if (type === undefined ? !hasBody : /^application\/json\s*(;|$)/i.test(type)) return;
  throw new RequestError('request.unsupported-media-type', 'a body must be application/json');
}

function isOriginOf(origin: string, host: string): boolean {
  return [`http://${host.toLowerCase()}`, `https://${host.toLowerCase()}`].includes(origin.toLowerCase());
}
