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

interface RecordedAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export type RecordingProxy = Awaited<ReturnType<typeof startRecordingProxy>>;

/** Starts the proxy. From then on this process trusts the certificate of these hosts. */
export async function startRecordingProxy(hosts: readonly string[]) {
  const { key, cert } = await certificateFor(hosts);
  setDefaultCACertificates([...getCACertificates('default'), cert]);
  const sockets = new Set<Socket>();
  const noted = {
    asked: [] as ProxiedAsk[],
    /** The hosts and ports to which tunnels were asked for. */
    tunnels: [] as string[],
    /** The Proxy-Authorization headers that came. */
    authorizations: [] as (string | undefined)[],
    /** How requests are answered. */
    answer: (() => ({})) as (ask: ProxiedAsk) => RecordedAnswer,
    /** What a request for a tunnel gets: one, a refusal, or no answer. */
    tunnel: 'open' as 'open' | 'refused' | 'none',
  };

  const recorded =
    (scheme: string): RequestListener =>
    (incoming, outgoing) => {
      void textOf(incoming).then((body) => {
        const ask = askOf(incoming, scheme, body);
        noted.asked.push(ask);
        const { status = 200, headers, body: content = '' } = noted.answer(ask);
        const own = { date: new Date().toUTCString(), 'x-amz-request-id': 'TESTREQUEST00001' };
        outgoing.writeHead(status, { ...own, ...headers }).end(content);
      });
    };
  const secure = createTlsServer({ key, cert }, recorded('https'));
  const plain = createServer((incoming, outgoing) => {
    noted.authorizations.push(incoming.headers['proxy-authorization']);
    recorded('http')(incoming, outgoing);
  });
  const securePort = await listen(secure);
  plain.on('connect', (incoming: IncomingMessage, client: Socket) => {
    noted.tunnels.push(incoming.url ?? '');
    noted.authorizations.push(incoming.headers['proxy-authorization']);
    client.on('error', () => undefined);
    if (noted.tunnel === 'none') return;
    if (noted.tunnel === 'refused') return void client.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n');
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
  return Object.assign(noted, {
    url,
    /** The value for `proxyEnv`, for both kinds of URLs. */
    env: { https_proxy: url, http_proxy: url },
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      secure.closeAllConnections();
      await Promise.all([secure, plain].map(async (server) => void server.close()));
    },
  });
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
