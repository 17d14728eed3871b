/** Proxies of the environment never see a credential for this machine. */
import { expect, it } from 'vitest';
import { runProgram } from '../../docs/programs.ts';
import { startScripted } from '../../support/servers/scripted.ts';

const SENDER = new URL('../../../src/cli/client/send.ts', import.meta.url).href;

it('a credential for this machine is sent without a proxy, also where Node uses those of the environment', async () => {
  const registry = await startScripted(() => ({ body: { kind: 'api_key' } }));
  const proxy = await startScripted(() => ({ body: {} }));
  const script = `
    const { send } = await import(${JSON.stringify(SENDER)});
    const answer = await send(new URL('${registry.url}/v1/session'), { method: 'GET', token: 'qk_valid' }, new AbortController().signal);
    process.stdout.write(JSON.stringify(answer));
    process.exit();`;
  const proxied = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy.url, http_proxy: proxy.url, NO_PROXY: '', no_proxy: '' };
  const { stdout } = await runProgram(process.execPath, ['--input-type=module', '-e', script], { env: { ...process.env, ...proxied } });
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, json: { kind: 'api_key' } });
  expect(registry.asked.map(({ headers }) => headers.authorization)).toEqual(['Bearer qk_valid']);
  expect(proxy.asked).toEqual([]);
});
