/** The credential of commands, as processes. `tally login` and `tally logout`: flow/browser-login.test.ts. */
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { ROOT } from '../../docs/pages.ts';
import { createFakeControl } from '../../support/fakes/control.ts';
import { listenControlPlane } from '../../support/servers/control-plane.ts';
import { runProgram, type ProgramEnd } from '../../docs/programs.ts';
import { openClientWorld, type ClientWorld } from './world.ts';

const FAILED = 'Authentication failed. Check your credentials or API key.';

let world: ClientWorld;

beforeEach(async () => {
  world = await openClientWorld();
});

async function tally(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ProgramEnd> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const given = { PATH, NODE_COMPILE_CACHE, HOME: world.home, XDG_CONFIG_HOME: world.home, ...env };
  return runProgram(process.execPath, [join(ROOT, 'src/tally.js'), ...args], { env: given, cwd: world.home });
}

describe('the command line', () => {
  it('sends an API key to the registry that the command names, and shows it nowhere', async () => {
    const { registry } = world;
    const secret = registry.newKey();
    const env = { TALLY_API_KEY: ` ${secret} ` };
    const whoami = await tally(['whoami', '--registry', registry.url], env);
    expect([whoami.code, whoami.stdout]).toEqual([0, expect.stringMatching(/api_key[^]*nightly export \(qk_abcd…wxyz\)[^]*2026-04-02/)]);
    expect((await tally(['search', 'cat', '--registry', registry.url], env)).code).toBe(0);
    expect(new Set(registry.credentialsSent())).toEqual(new Set([`Bearer ${secret}`]));
    const config = await tally(['config'], env);
    expect(config.stdout).toContain('TALLY_API_KEY=***\n');
    expect(config.stdout).not.toContain(secret);
  });

  it('reports a text that is not a key, and a login without a catalog', async () => {
    const none = await tally(['search', 'cat', '--registry', world.registry.url], { TALLY_API_KEY: 'abc' });
    expect([none.code, none.stderr]).toEqual([78, "tally: TALLY_API_KEY: API key must start with 'qk_' prefix\n"]);
    // the registry that is named is the catalog of a login that names none
    const named = await tally(['login', '--registry', 'http://127.0.0.1:1']);
    expect([named.code, named.stderr]).toEqual([69, expect.stringContaining('http://127.0.0.1:1')]);
    const unnamed = await tally(['login']);
    expect([unnamed.code, unnamed.stderr]).toEqual([64, expect.stringContaining('knows no catalog')]);
    expect(world.registry.asked).toEqual([]);
  });

  it('speaks to the registry that is named, else to that of the login, else to the socket, else to the address of this machine', async () => {
    const operator = createFakeControl();
    const loopback = createFakeControl();
    const plane = await listenControlPlane({ operations: loopback.checked });
    const beside = await listenControlPlane({ operations: operator.checked });
    onTestFinished(async () => void (await Promise.all([plane.close(), beside.close()])));
    const socket = join(world.home, 'tally.sock');
    const here = { TALLY_SOCKET: socket, TALLY_HTTP_ADDRESS: new URL(plane.url).host };
    /** How many requests each has received. */
    const received = () => [world.registry.asked.length, operator.asked.length, loopback.asked.length];
    const list = async (env: Readonly<Record<string, string>> = {}) => {
      const { code, stderr } = await tally(['bucket', 'list', '--json'], { ...here, ...env });
      return [code, stderr, ...received()];
    };
    expect(await list()).toEqual([0, '', 0, 0, 1]);
    await beside.listenAtSocket(socket);
    expect(await list()).toEqual([0, '', 0, 1, 1]);
    expect(operator.contexts.at(-1)?.actor).toMatchObject({ isOperator: true });
    // a key that is wrong is refused: the socket, which needs none, is no way around that
    const refused = `tally: ${FAILED} (authentication.failed)\n`;
    expect(await list({ TALLY_API_KEY: 'qk_bogus' })).toEqual([1, expect.stringContaining('authentication.failed'), 0, 1, 1]);
    expect((await tally(['whoami'], { ...here, TALLY_API_KEY: 'qk_bogus' })).stderr).toBe(refused);
    await world.logIn();
    world.registry.asked.length = 0;
    await list();
    expect(received()).toEqual([1, 1, 1]);
    await list({ TALLY_REGISTRY_URL: 'http://127.0.0.1:1' });
    expect(received()).toEqual([1, 1, 1]);
  });

  it('names the addresses that it tried where no registry answers, and how to start one', async () => {
    const socket = join(world.home, 'tally.sock');
    const ended = await tally(['bucket', 'list'], { TALLY_SOCKET: socket, TALLY_HTTP_ADDRESS: '127.0.0.1:1' });
    expect(ended.code).toBe(69);
    expect(ended.stderr).toContain(`no registry answers at ${socket}, http://127.0.0.1:1: start one with`);
  });
});
