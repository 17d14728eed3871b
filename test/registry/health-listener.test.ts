import { afterEach, beforeEach, expect, it } from 'vitest';
import { createHealthListener } from '../../src/registry/health-listener.ts';
import type { Listener } from '../../src/registry/server.ts';
import { createFakeTelemetry } from '../support/fakes/ports.ts';
import { get } from '../support/identity/browser.ts';

let listener: Listener;
let port: number;

beforeEach(() => listenOn('127.0.0.1'));

async function listenOn(host: string): Promise<void> {
  listener = createHealthListener({
    address: { host, port: 0 },
    readiness: { read: () => ({ ready: false, roles: { ingest: { ready: false } }, checks: { queue: { status: 'failed' } } }) },
    metrics: { metricsText: async () => 'tally_up 1\n', contentType: 'text/plain' },
    telemetry: createFakeTelemetry(),
  });
  ({ port } = await listener.listen());
}

afterEach(() => listener.close());

const statusOf = async (path: string, host: string) => (await get(`http://127.0.0.1:${port}${path}`, { headers: { host } })).status;

it('answers health and metrics under whatever name it is reached, where others may reach it', async () => {
  await listener.close();
  await listenOn('0.0.0.0');
  for (const host of ['tally.example:8081', '10.0.0.7:8081', 'localhost']) {
    expect(await statusOf('/livez', host)).toBe(200);
    expect(await statusOf('/readyz', host)).toBe(503);
    expect(await statusOf('/metrics', host)).toBe(200);
  }
});

it('Fix: answers on loopback under the names of this machine only, so that no web page can read it by DNS rebinding', async () => {
  for (const host of ['127.0.0.1:8081', 'localhost', '[::1]:1']) expect(await statusOf('/livez', host)).toBe(200);
  for (const path of ['/livez', '/readyz', '/metrics', '/nothing']) expect(await statusOf(path, 'rebound.example')).toBe(403);
});

it('answers nothing else', async () => {
  for (const path of ['/', '/v1/objects', '/config.json', '/openapi.json', '/v1/buckets']) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    expect([path, answer.status]).toEqual([path, 404]);
  }
});
