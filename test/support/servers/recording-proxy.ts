/**
 * AWS as far as its addresses, without a network: an HTTP proxy that lets every host be reached, at a server of this
 * process that records what it was asked. TLS is real: the certificate covers the hosts of the test and no others.
 */
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { certificateFor } from './certificate.ts';
import { listen } from './listening.ts';

export interface ProxiedAsk {
  /** The URL without its query, as the client meant it. */
  readonly url: string;
  readonly method: string;
  /** The path as it arrived, with its query. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** Region and service of the signature: `eu-west-1/sqs`. */
  readonly scope: string | undefined;
}

export interface RecordedAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface RecordingProxy {
  readonly url: string;
  /** The value for `proxyEnv`, for both kinds of URLs. */
  readonly env: Readonly<Record<string, string>>;
  readonly asked: ProxiedAsk[];
  /** The hosts and ports to which tunnels were asked for. */
  readonly tunnels: string[];
  /** How requests are answered; 200 with an empty body at first. */
  answer: (ask: ProxiedAsk) => RecordedAnswer;
  /** The Proxy-Authorization headers that came. */
  readonly authorizations: (string | undefined)[];
  /** What a request for a tunnel gets: one, a refusal, or no answer. */
  tunnel: 'open' | 'refused' | 'none';
  close(): Promise<void>;
}

/** Starts the proxy. From then on this process trusts the certificate of these hosts. */
export async function startRecordingProxy(hosts: readonly string[]): Promise<RecordingProxy> {
  const { key, cert } = await certificateFor(hosts);
  setDefaultCACertificates([...getCACertificates('default'), cert]);
  const sockets = new Set<Socket>();
  const asked: ProxiedAsk[] = [];
  const tunnels: string[] = [];
  const authorizations: (string | undefined)[] = [];

  const recorded =
    (scheme: string): RequestListener =>
    (incoming, outgoing) => {
      void textOf(incoming).then((body) => {
        const ask = askOf(incoming, scheme, body);
        asked.push(ask);
        const { status = 200, headers, body: content = '' } = proxy.answer(ask);
        const own = { date: new Date().toUTCString(), 'x-amz-request-id': 'TESTREQUEST00001' };
        outgoing.writeHead(status, { ...own, ...headers }).end(content);
      });
    };
  const secure = createTlsServer({ key, cert }, recorded('https'));
  const plain = createServer((incoming, outgoing) => {
    authorizations.push(incoming.headers['proxy-authorization']);
    recorded('http')(incoming, outgoing);
  });
  const securePort = await listen(secure);
  plain.on('connect', (incoming: IncomingMessage, client: Socket) => {
    tunnels.push(incoming.url ?? '');
    authorizations.push(incoming.headers['proxy-authorization']);
    client.on('error', () => undefined);
    if (proxy.tunnel === 'none') return;
    if (proxy.tunnel === 'refused') return void client.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n');
    const upstream = connect(securePort, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      upstream.pipe(client).pipe(upstream);
    });
    upstream.on('error', () => client.destroy());
  });
  plain.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const url = `http://127.0.0.1:${await listen(plain)}`;

  const proxy: RecordingProxy = {
    url,
    env: { https_proxy: url, http_proxy: url },
    asked,
    tunnels,
    authorizations,
    answer: () => ({}),
    tunnel: 'open',
    async close() {
      for (const socket of sockets) socket.destroy();
      secure.closeAllConnections();
      await Promise.all([secure, plain].map(async (server) => void server.close()));
    },
  };
  return proxy;
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of incoming.setEncoding('utf8')) body += String(chunk);
  return body;
}

function askOf({ url = '', method = '', headers }: IncomingMessage, scheme: string, body: string): ProxiedAsk {
  // a request for an http URL names the whole URL to the proxy
  const { origin, pathname, search } = new URL(url, `${scheme}://${headers.host}`);
  const [, region, service] = /Credential=[^/]+\/\d+\/([^/]+)\/([^/]+)\//.exec(headers.authorization ?? '') ?? [];
  const scope = region === undefined ? undefined : `${region}/${service}`;
  return { url: `${origin}${pathname}`, method, path: `${pathname}${search}`, headers, body, scope };
}
