import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createHealthListener } from '../../src/http/health-listener.ts';
import type { Listener } from '../../src/http/server.ts';
import { createFakeTelemetry } from '../support/fakes/ports.ts';

let listener: Listener;
let port: number;

beforeEach(async () => {
  listener = createHealthListener({
    address: { host: '127.0.0.1', port: 0 },
    readiness: { read: () => ({ ready: false, roles: { ingest: { ready: false } }, checks: { queue: { status: 'failed' } } }) },
    metrics: { metricsText: async () => 'tally_up 1\n', contentType: 'text/plain' },
    telemetry: createFakeTelemetry(),
  });
  ({ port } = await listener.listen());
});

afterEach(() => listener.close());

it('answers health and metrics under whatever name it is reached', async () => {
  const statusOf = (path: string) =>
    new Promise((resolve, reject) => {
      const headers = { host: 'tally.example:8081' };
      httpRequest({ host: '127.0.0.1', port, path, headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
  expect(await statusOf('/livez')).toBe(200);
  expect(await statusOf('/readyz')).toBe(503);
  expect(await statusOf('/metrics')).toBe(200);
});

it('answers nothing else', async () => {
  for (const path of ['/', '/v1/objects', '/config.json', '/openapi.json', '/v1/buckets']) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    expect([path, answer.status]).toEqual([path, 404]);
  }
});

it('takes GET and HEAD only', async () => {
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'QUERY']) {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`, { method });
    expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, 'GET, HEAD']);
  }
  expect((await fetch(`http://127.0.0.1:${port}/livez`, { method: 'HEAD' })).status).toBe(200);
});
