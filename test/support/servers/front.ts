/** A reverse proxy on 127.0.0.1, which passes everything on, states where requests came from, and keeps what its access log would have. */
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Front {
  readonly url: string;
  /** The method and the URL of each request. */
  readonly asked: readonly string[];
  /** Where requests go from now on. */
  leadsTo(url: string): void;
  close(): Promise<void>;
}

/** Starts the proxy; it answers 502 until it leads somewhere. */
export async function startFront(): Promise<Front> {
  const asked: string[] = [];
  let target = '';
  const server = createServer((incoming, outgoing) => {
    const { method = '', url = '', headers, socket } = incoming;
    asked.push(`${method} ${url}`);
    if (target === '') return void outgoing.writeHead(502).end();
    const forwarded = { ...headers, 'x-forwarded-for': socket.remoteAddress ?? '', 'x-forwarded-proto': 'http' };
    const passed = send(new URL(url, target), { method, headers: forwarded }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on('error', () => outgoing.destroy());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    leadsTo: (url) => {
      target = url;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}
