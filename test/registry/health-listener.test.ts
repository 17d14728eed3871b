import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHealthListener } from '../../src/registry/health-listener.ts';
import type { Listener } from '../../src/registry/server.ts';
import { until } from '../support/servers/aws.ts';
import { createFakeTelemetry } from '../support/fakes/ports.ts';
import { get } from '../support/identity/browser.ts';

const CONNECTIONS_MAX = 256;

let listener: Listener;
let port: number;
let sockets: Socket[];
/** What /metrics waits for, and how often it was asked for. */
let slow: PromiseWithResolvers<void>;
let scrapes: number;

beforeEach(async () => {
  sockets = [];
  slow = Promise.withResolvers();
  scrapes = 0;
  await start();
});

async function start({
  host = '127.0.0.1',
  ...limits
}: { readonly host?: string; readonly requestTimeoutMs?: number } = {}): Promise<void> {
  listener = createHealthListener({
    address: { host, port: 0 },
    readiness: { read: () => ({ ready: false, roles: { ingest: { ready: false } }, checks: { queue: { status: 'failed' } } }) },
    metrics: { metricsText: () => ((scrapes += 1), slow.promise.then(() => 'tally_up 1\n')), contentType: 'text/plain' },
    telemetry: createFakeTelemetry(),
    ...limits,
  });
  ({ port } = await listener.listen());
}

afterEach(async () => {
  slow.resolve();
  for (const socket of sockets) socket.destroy();
  await listener.close();
});

async function open(text = ''): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  sockets.push(socket);
  socket.on('error', () => undefined).resume();
  await once(socket, 'connect');
  if (text !== '') socket.write(text);
  return socket;
}

async function isAlive(): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/livez`, { headers: { connection: 'close' } });
  return answer.ok;
}

const statusOf = async (path: string, host: string) => (await get(`http://127.0.0.1:${port}${path}`, { headers: { host } })).status;

it('a health listener answers health and metrics under whatever name it is reached, where others may reach it', async () => {
  await listener.close();
  await start({ host: '0.0.0.0' });
  slow.resolve();
  for (const host of ['tally.example:8081', '10.0.0.7:8081', 'localhost']) {
    expect(await statusOf('/livez', host)).toBe(200);
    expect(await statusOf('/readyz', host)).toBe(503);
    expect(await statusOf('/metrics', host)).toBe(200);
  }
});

it('Fix: a health listener answers on loopback under the names of this machine only, so that no web page can read it by DNS rebinding', async () => {
  for (const host of ['127.0.0.1:8081', 'localhost', '[::1]:1']) expect(await statusOf('/livez', host)).toBe(200);
  for (const path of ['/livez', '/readyz', '/metrics', '/nothing']) expect(await statusOf(path, 'rebound.example')).toBe(403);
  // and nothing else
  for (const path of ['/', '/v1/objects', '/config.json', '/openapi.json', '/v1/buckets'])
    expect([path, await statusOf(path, 'localhost')]).toEqual([path, 404]);
});

describe('a listener', () => {
  it('closes a connection on which no request arrives in time', async () => {
    await listener.close();
    await start({ requestTimeoutMs: 500 });
    const [silent, halfway] = [await open(), await open('GET /livez HTTP/1.1\r\n')];
    await Promise.all([once(silent, 'close'), once(halfway, 'close')]);
    expect(await isAlive()).toBe(true);
  });

  it('waits longer for a further request than load balancers and reverse proxies keep an idle connection', async () => {
    const socket = await open();
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => (answer += text));
    socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until('it has answered', () => answer.includes('\r\n\r\n'));
    const [, idleS] = /^keep-alive: timeout=(\d+)\r$/im.exec(answer) ?? [];
    expect(Number(idleS)).toBeGreaterThan(60);
  });

  it('keeps a connection whose request is under way, however many others come', async () => {
    const busy = connect({ host: '127.0.0.1', port });
    sockets.push(busy);
    let answer = '';
    busy.setEncoding('utf8').on('data', (text: string) => (answer += text));
    busy.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    expect(await isAlive()).toBe(true);
    for (let each = 0; each < CONNECTIONS_MAX + 50; each += 1) await open();
    slow.resolve();
    await once(busy, 'close');
    expect(answer).toContain('tally_up 1');
  });

  it('closes the newest connection if all the others have a request under way', async () => {
    const request = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';
    for (let each = 0; each < CONNECTIONS_MAX; each += 1) await open(request);
    await until('all have a request under way', () => scrapes === CONNECTIONS_MAX);
    const late = await open(request);
    if (!late.closed) await once(late, 'close');
    slow.resolve();
    await until('there is room again', () => isAlive().catch(() => false));
  });
});
