/** A reverse proxy on 127.0.0.1 before a registry, which states where requests came from as nginx does, and keeps what its access log would have. */
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { closeServer, listen } from './listening.ts';

/** Starts the proxy; it answers 502 until it leads somewhere. With a prefix it serves the registry below that path, and says nothing of itself. */
export async function startFront(prefix = '') {
  const asked: string[] = [];
  let target = '';
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { method = '', url = '', headers } = incoming;
    asked.push(`${method} ${url}`);
    if (!url.startsWith(`${prefix}/`)) return void outgoing.writeHead(404).end('not below the prefix');
    if (target === '') return void outgoing.writeHead(502).end();
    const forwarding = prefix === '' ? forwardingHeaders(incoming) : {};
    const passed = request(`${target}${url.slice(prefix.length)}`, { method, headers: { ...headers, ...forwarding } }, (answered) => {
      outgoing.writeHead(answered.statusCode ?? 502, answered.headers);
      answered.pipe(outgoing);
    });
    passed.once('error', () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()));
    outgoing.once('close', () => passed.destroy());
    incoming.pipe(passed);
  };
  const server = createServer(answer);
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}${prefix}`,
    /** The method and the URL of each request. */
    asked,
    /** Where requests go from now on. */
    leadsTo: (url: string): void => {
      target = url;
    },
    /** Ends all its connections. */
    cut: (): void => server.closeAllConnections(),
    close: (): Promise<void> => closeServer(server),
  };
}

export type Front = Awaited<ReturnType<typeof startFront>>;

function forwardingHeaders({ socket, headers }: IncomingMessage): Readonly<Record<string, string>> {
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  const former = [headers['x-forwarded-for']].flat().join(', ');
  return {
    'x-forwarded-for': former === '' ? address : `${former}, ${address}`,
    'x-forwarded-proto': 'http',
    'x-forwarded-host': headers.host ?? '',
    via: '1.1 proxy-of-the-test',
  };
}
