/** `npm run demo:identity`, as its printed text says to use it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { ROOT } from '../docs/pages.ts';
import { findProgram, runProgram } from '../docs/programs.ts';
import { get, type BrowserAnswer } from '../support/identity/browser.ts';
import { jsonOf } from '../support/identity/http-world.ts';
import { until } from '../support/servers/aws.ts';
import { unusedPort } from '../support/servers/unused-port.ts';

const DEMO = fileURLToPath(new URL('../support/identity/demo.ts', import.meta.url));

let demo: ChildProcess | undefined;
afterEach(() => void demo?.kill('SIGTERM'));

/** Follows redirects as a browser, to the first page. */
async function visit(address: string, cookies: Map<string, Map<string, string>>): Promise<BrowserAnswer & { readonly url: string }> {
  let url = address;
  // two servers, each with a few redirects
  for (let step = 0; step < 15; step += 1) {
    const { origin } = new URL(url);
    const own = cookies.get(origin) ?? new Map<string, string>();
    cookies.set(origin, own);
    const answer = await get(url, { cookies: own });
    if (answer.location === undefined) return { ...answer, url };
    url = new URL(answer.location, url).href;
  }
  throw new Error(`${url}: no end of redirects`);
}

it('the demo of identity: people choose who they are at each login, and Ctrl-C ends it and deletes its data', async () => {
  const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env;
  const own = {
    TALLY_HTTP_ADDRESS: `127.0.0.1:${await unusedPort()}`,
    TALLY_EMBEDDED_ADDRESS: '127.0.0.1:0',
    TALLY_HEALTH_ADDRESS: '127.0.0.1:0',
  };
  demo = spawn(process.execPath, [DEMO], { env: { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, ...own }, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => demo?.once('exit', (code) => resolve(code)));
  let text = '';
  for (const stream of [demo.stdout, demo.stderr]) stream?.setEncoding('utf8').on('data', (part: string) => (text += part));
  await until('the demo says what to do', () => text.includes('Stop it with Ctrl-C'));
  const registry = /^ +(http:\S+)\/panel\/$/m.exec(text)?.[1] ?? '';
  const address = `${registry}/login/authorize?return_to=/v1/session`;
  const folder = /XDG_CONFIG_HOME=(\S+)\/config$/m.exec(text)?.[1] ?? '';
  expect(existsSync(folder)).toBe(true);

  const cookies = new Map<string, Map<string, string>>();
  for (const [who, role] of [
    ['user', 'user'],
    ['admin', 'admin'],
    ['user', 'user'],
  ] as const) {
    const choice = await visit(address, cookies);
    expect(choice.text).toContain('Who are you?');
    const session = await visit(`${choice.url}?as=${who}`, cookies);
    expect(jsonOf(session)).toMatchObject({ role, user: { email: `${who}@example.com` } });
  }

  // a key of another registry: what is printed is what Python takes
  const typed = /^ +(PYTHONPATH=.*)$/m.exec(text)?.[1] ?? '';
  if (findProgram({ name: 'python3', variable: 'TALLY_TEST_PYTHON' }) !== undefined) {
    const python = await runProgram('sh', ['-c', typed.replace('qk_…', 'qk_bogus')], { cwd: ROOT, env: { PATH, HOME } });
    expect(python.stderr.trimEnd().split('\n').at(-1)).toBe(
      'tally_sdk.errors.AuthenticationError: Authentication failed. Check your credentials or API key.',
    );
  }

  // from the terminal and from npm
  demo.kill('SIGINT');
  demo.kill('SIGINT');
  expect(await ended, text).toBe(0);
  expect(existsSync(folder)).toBe(false);
});
