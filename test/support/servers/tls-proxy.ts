/** A reverse proxy that ends TLS, and appends to the X-Forwarded-For of its caller, as nginx usually does in front of a registry. */
import { once } from 'node:events';
import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { certificateFor } from './certificate.ts';

export interface TlsProxy {
  readonly url: string;
  /** The certificate of its authority. */
  readonly ca: string;
  close(): Promise<void>;
}

/** Starts the proxy. `upstream`: the address of the registry, which may be known only later. */
export async function startTlsProxy(upstream: () => string): Promise<TlsProxy> {
  const { key, cert } = await certificateFor(['127.0.0.1']);
  const server = createServer({ key, cert }, (incoming, outgoing) => {
    const forwarded = request(`${upstream()}${incoming.url}`, {
      method: incoming.method ?? 'GET',
      headers: { ...incoming.headers, ...forwardingHeaders(incoming) },
    });
    forwarded.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on('error', () => refuse(outgoing));
    incoming.pipe(forwarded);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}`,
    ca: cert,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function forwardingHeaders({ socket, headers }: IncomingMessage): Readonly<Record<string, string>> {
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  const former = [headers['x-forwarded-for']].flat().join(', ');
  return {
    'x-forwarded-for': former === '' ? address : `${former}, ${address}`,
    'x-forwarded-proto': 'https',
    'x-forwarded-host': headers.host ?? '',
    via: '1.1 proxy-of-the-test',
  };
}

function refuse(outgoing: ServerResponse): void {
  if (outgoing.headersSent) outgoing.destroy();
  else outgoing.writeHead(502).end();
}
