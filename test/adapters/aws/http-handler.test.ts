import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createHttpHandler } from '../../../src/adapters/aws/http-handler.ts';

/** Nothing is ever given this port. */
const NOBODYS_PORT = 1;

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  closing.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** A handler, and how it asks a server of its own that answers by `listener`. */
async function handlerTo(listener: RequestListener, requestTimeoutMs = 60_000) {
  const server = createServer(listener);
  const port = await listening(server);
  closing.push(() => server.closeAllConnections());
  return handlerAt(port, requestTimeoutMs);
}

function handlerAt(port: number, requestTimeoutMs = 60_000) {
  const handler = createHttpHandler({ connectTimeoutMs: 60_000, requestTimeoutMs, connectionsMax: 2 });
  closing.push(() => handler.destroy());
  const request = { method: 'POST', protocol: 'http:', hostname: '127.0.0.1', port, path: '/', query: {}, headers: {}, body: 'ünï' };
  return { handler, request, ask: (signal?: AbortSignal) => handler.handle(request, signal && { abortSignal: signal }) };
}

const never: RequestListener = () => {};

describe('the handler of the SDK’s requests', () => {
  it('sends method, path, query, headers and body, and hands over the whole answer', async () => {
    const { handler, request } = await handlerTo((incoming, outgoing) => {
      let body = '';
      incoming.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      incoming.on('end', () => {
        outgoing.writeHead(418, 'teapot', { 'x-one': '1', 'set-cookie': ['a', 'b'] });
        // several pieces
        outgoing.write(`${incoming.method} ${incoming.url} `);
        setImmediate(() => outgoing.end(`${String(incoming.headers['x-asked'])} ${incoming.headers['content-length']} ${body}`));
      });
    });
    const { response } = await handler.handle({
      ...request,
      method: 'PUT',
      path: '/a%20b',
      query: { list: ['1', '2 3'], flag: null, key: 'ü&=' },
      headers: { 'x-asked': 'yes' },
    });
    expect({ ...response, body: Buffer.from(response.body).toString() }).toMatchObject({
      statusCode: 418,
      reason: 'teapot',
      headers: { 'x-one': '1', 'set-cookie': 'a, b' },
      body: 'PUT /a%20b?list=1&list=2%203&flag&key=%C3%BC%26%3D yes 5 ünï',
    });
  });

  it('hands over an answer without a body', async () => {
    const { ask } = await handlerTo((_, outgoing) => outgoing.writeHead(204).end());
    const { response } = await ask();
    expect(response.statusCode).toBe(204);
    expect(response.body).toHaveLength(0);
  });

  it('uses a connection again, one for each request that runs', async () => {
    const ports = new Set<number | undefined>();
    const { ask } = await handlerTo((incoming, outgoing) => {
      ports.add(incoming.socket.remotePort);
      outgoing.end();
    });
    for (let round = 0; round < 3; round += 1) await ask();
    expect(ports.size).toBe(1);
    await Promise.all([ask(), ask(), ask(), ask()]);
    expect(ports.size).toBe(2);
  });

  it('rejects with AbortError when it is aborted, before or while it waits, and ends the request', async () => {
    const closed = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const { ask } = await handlerTo((incoming) => {
      incoming.socket.once('close', () => closed.resolve());
      arrived.resolve();
    });
    const reason = new Error('enough');
    await expect(ask(AbortSignal.abort(reason))).rejects.toMatchObject({ name: 'AbortError', cause: reason });
    const abort = new AbortController();
    const asking = ask(abort.signal);
    await arrived.promise;
    abort.abort(reason);
    await expect(asking).rejects.toMatchObject({ name: 'AbortError', cause: reason });
    await closed.promise;
  });

  it('rejects with TimeoutError when no answer comes, or one that does not end', async () => {
    const silent = await handlerTo(never, 50);
    await expect(silent.ask()).rejects.toMatchObject({ name: 'TimeoutError' });
    const stalling = await handlerTo((_, outgoing) => {
      outgoing.writeHead(200, { 'content-length': 10 });
      outgoing.write('half');
    }, 50);
    await expect(stalling.ask()).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  it('rejects with the connection’s error when the answer breaks off, or nobody listens', async () => {
    const breaking = await handlerTo((incoming, outgoing) => {
      outgoing.writeHead(200, { 'content-length': 10 });
      outgoing.write('half', () => incoming.socket.destroy());
    });
    await expect(breaking.ask()).rejects.toMatchObject({ code: 'ECONNRESET' });
    await expect(handlerAt(NOBODYS_PORT).ask()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('leaves no listener at a signal that outlives its requests', async () => {
    const { ask } = await handlerTo((_, outgoing) => outgoing.end());
    const abort = new AbortController();
    const added: string[] = [];
    const { signal } = abort;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      added.push(args[0]);
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      added.pop();
      remove(...args);
    };
    for (let round = 0; round < 3; round += 1) await ask(signal);
    expect(added).toEqual([]);
  });
});
