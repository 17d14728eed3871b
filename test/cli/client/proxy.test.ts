/** Proxies of the environment never see a credential for this machine. */
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { startScripted } from '../../support/servers/scripted.ts';

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

const SENDER = new URL('../../../src/cli/client/send.ts', import.meta.url).href;

/** The answer that a process receives, as JSON. */
async function sentBy(env: Readonly<Record<string, string>>, address: string, token: string): Promise<string> {
  const script = `
    const { send } = await import(${JSON.stringify(SENDER)});
    const answer = await send(new URL(${JSON.stringify(address)}), { method: 'GET', token: ${JSON.stringify(token)} }, new AbortController().signal);
    process.stdout.write(JSON.stringify(answer));
    process.exit();`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => void child.once('close', resolve));
  const text = (await child.stdout.toArray()).join('');
  await ended;
  return text;
}

it('a credential for this machine is sent without a proxy, also where Node uses those of the environment', async () => {
  const registry = await startScripted(() => ({ body: { kind: 'api_key' } }));
  const seen: string[] = [];
  const proxy = createServer((request, response) => {
    seen.push(JSON.stringify([request.url, request.headers]));
    response.end('{}');
  });
  proxy.on('connect', (request, socket) => {
    seen.push(`CONNECT ${request.url}`);
    socket.destroy();
  });
  await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve));
  stops.push(() => new Promise((resolve) => void proxy.close(resolve)));
  const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const env = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxyUrl, http_proxy: proxyUrl, NO_PROXY: '', no_proxy: '' };
  expect(JSON.parse(await sentBy(env, `${registry.url}/v1/session`, 'qk_valid'))).toMatchObject({ ok: true, json: { kind: 'api_key' } });
  expect(registry.asked.map(({ headers }) => headers.authorization)).toEqual(['Bearer qk_valid']);
  expect(seen).toEqual([]);
});
