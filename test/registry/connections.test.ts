import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHealthListener } from '../../src/registry/health-listener.ts';
import type { Listener } from '../../src/registry/server.ts';
import { until } from '../support/servers/aws.ts';
import { createFakeTelemetry } from '../support/fakes/ports.ts';

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

async function start(limits: { readonly requestTimeoutMs?: number } = {}): Promise<void> {
  listener = createHealthListener({
    address: { host: '127.0.0.1', port: 0 },
    readiness: { read: () => ({ ready: true, roles: {}, checks: {} }) },
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
