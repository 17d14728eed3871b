/** The clients at a control plane with identity: the Python SDK and the TypeScript client, by the browser and by a pasted code. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { createRegistryOperations } from '../../src/http/client/registry.ts';
import { ROOT } from '../docs/pages.ts';
import { canRun, findProgram, type ProgramEnd } from '../docs/programs.ts';
import { jsonOf, startHttpWorld, type HttpWorld } from '../support/identity/http-world.ts';

const PYTHON = { name: 'python3', variable: 'TALLY_TEST_PYTHON' };
const never = new AbortController().signal;
const visit = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document', 'sec-fetch-site': 'cross-site' };

let world: HttpWorld;
let home: string;

beforeEach(async () => {
  world = await startHttpWorld();
  home = await mkdtemp(join(tmpdir(), 'tally-running-'));
});

afterEach(async () => {
  await world.close();
  await rm(home, { recursive: true, force: true });
});

/** What a person does in a browser: logs in at the issuer, and decides on the consent page. */
async function decide(address: string, allow = true): Promise<Record<string, unknown>> {
  const cookies = new Map<string, string>();
  const { pathname, search } = new URL(address);
  const begun = await world.send('GET', `${pathname}${search}`, { cookies, headers: { accept: 'text/html' } });
  expect(begun.status, begun.text).toBe(302);
  await world.send('GET', world.issuer.answerTo(begun.location ?? ''), { cookies, headers: visit });
  const page = await world.send('GET', '/login/consent', { cookies, headers: visit });
  const login = /data-login="([^"]+)"/.exec(page.text)?.[1] ?? '';
  const own = { 'content-type': 'application/json', 'x-tally-csrf': '1', origin: world.publicUrl(), 'sec-fetch-site': 'same-origin' };
  return jsonOf(await world.send('POST', '/login/consent', { cookies, headers: own, body: JSON.stringify({ login, allow }) }));
}

/** Opens the address that a client opens the browser with. Resolves with the page that the client shows at the end. */
async function browse(start: string, allow = true): Promise<string> {
  const address = (await fetch(start, { redirect: 'manual' })).headers.get('location') ?? '';
  const { redirect } = await decide(address, allow);
  return (await fetch(String(redirect))).text();
}

describe('the TypeScript client', () => {
  const dependencies = () => ({ folder: join(home, 'tally') });
  const whoami = async () => {
    const client = createClient(dependencies());
    const registry = client.registryOf({});
    return registry && client.whoami(registry, never);
  };
  const ports = (allow = true) => ({
    say: () => undefined,
    machine: 'laptop',
    nowMs: () => Date.now(),
    async openBrowser(address: string) {
      void browse(address, allow);
      return true;
    },
  });

  it('logs in by the browser, sends the login with requests of ten processes at once, and logs out', async () => {
    const client = createClient(dependencies());
    await client.login(world.url, ports(), never);
    expect(await whoami()).toMatchObject({ kind: 'session', role: 'user', user: { email: 'alice@example.com' } });
    const registry = client.registryOf({});
    const operations = createRegistryOperations(registry?.url ?? '', registry?.token);
    const context = { actor: { kind: 'local', host: 'here' }, signal: never } as const;
    expect((await operations.searchObjects({}, context)).items).not.toEqual([]);
    await expect(operations.startReindex({ params: { bucket: 'photos' } }, context)).rejects.toMatchObject({
      code: 'authorization.denied',
    });

    const callers = await Promise.all(Array.from({ length: 10 }, whoami));
    expect(callers.map((caller) => caller?.kind)).toEqual(Array.from({ length: 10 }, () => 'session'));
    expect(await world.store.state.count('session')).toBe(1);

    expect(await client.logout(never)).toBeUndefined();
    expect(world.audit.records.map(({ eventname }) => eventname)).toEqual(['Login', 'Logout']);
  });

  it('logs in by a pasted code, and reports a refusal', async () => {
    const client = createClient(dependencies());
    let address = '';
    const terminal = {
      ...ports(),
      openBrowser: undefined,
      say: (text: string) => {
        [address = ''] = /https?:\S+/.exec(text) ?? [];
      },
      ask: async () => String((await decide(address))['code']),
    };
    await client.login(world.url, terminal, never);
    expect((await whoami())?.kind).toBe('session');
    await expect(client.login(world.url, ports(false), never)).rejects.toThrow('the login was refused');
  });
});

describe.skipIf(!canRun('the Python SDK at a running registry', [PYTHON]))('the Python SDK', () => {
  /** Runs a program that may log in by the browser or by a pasted code. */
  async function python(code: string, env: Readonly<Record<string, string>> = {}): Promise<ProgramEnd> {
    const driver = createServer((request, response) => {
      void request.toArray().then(async (parts) => response.end(await browse(parts.join(''))));
    });
    await new Promise<void>((resolve) => void driver.listen(0, '127.0.0.1', resolve));
    const { port } = driver.address() as AddressInfo;
    const { PATH } = process.env;
    const paths = { PATH, HOME: home, XDG_CONFIG_HOME: home, PYTHONPATH: `${ROOT}clients/python`, PYTHONDONTWRITEBYTECODE: '1' };
    const given = { ...paths, BROWSER_DRIVER: `http://127.0.0.1:${port}`, ...env };
    const child = spawn(findProgram(PYTHON) ?? '', ['-c', `import tally_sdk as sdk\n${code}`], { env: given });
    const ended = { stdout: '', stderr: '' };
    let isAnswered = false;
    child.stdout.setEncoding('utf8').on('data', (text: string) => (ended.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      ended.stderr += text;
      const [address] = /https?:\S+no_browser=true(?=\n)/.exec(ended.stderr) ?? [];
      if (address === undefined || isAnswered) return;
      isAnswered = true;
      void decide(address).then(({ code: shown }) => child.stdin.end(`${String(shown)}\n`));
    });
    const exit = await new Promise<number | null>((resolve) => void child.once('close', resolve));
    driver.closeAllConnections();
    await new Promise((resolve) => void driver.close(resolve));
    return { code: exit, ...ended };
  }

  const browser = { BROWSER: `${process.execPath} ${fileURLToPath(new URL('../support/identity/driven-browser.ts', import.meta.url))} %s` };
  const configure = () => `sdk.configure('${world.url}')\n`;

  it('logs in by the browser, acts as the user, and logs out', async () => {
    const ended = await python(
      `${configure()}sdk.login()
print(sdk.logged_in(), sdk.whoami().user.email, len(sdk.search('cat', limit=1)), [each.bucket for each in sdk.buckets()])
try:
    sdk.reindex('photos')
except sdk.PermissionDeniedError as error:
    print(error.code)
sdk.logout()
print(sdk.logged_in())`,
      browser,
    );
    expect(ended.stderr).toContain('You are logged in as alice@example.com.');
    expect(ended.stdout).toBe(`${world.url} alice@example.com 1 ['photos']\nauthorization.denied\nNone\n`);
    expect(world.audit.records.map(({ eventname }) => eventname)).toEqual(expect.arrayContaining(['Login', 'Logout']));
  });

  it('logs in by a pasted code', async () => {
    const ended = await python(`${configure()}sdk.login()\nprint(sdk.whoami().kind)`);
    expect(ended, ended.stderr).toMatchObject({ code: 0, stdout: 'Code: session\n' });
  });

  it('uses an API key, and reports a wrong one', async () => {
    const secret = world.keyOf('user', ['read']);
    const right = await python(
      `sdk.login_with_api_key(' ${secret} ', registry_url='${world.url}')\nprint(sdk.whoami().kind, sdk.logged_in())`,
    );
    expect(right, right.stderr).toMatchObject({ code: 0, stdout: `api_key ${world.url}\n` });
    const wrong = await python(`sdk.login_with_api_key('qk_wrong', registry_url='${world.url}')`);
    expect(wrong.stderr).toContain('AuthenticationError: Authentication failed. Check your credentials or API key.\n');
  });
});
