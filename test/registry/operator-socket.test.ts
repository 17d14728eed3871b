import { chmodSync, chownSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createOperatorSocket, isAnswered } from '../../src/registry/operator-socket.ts';
import { get } from '../support/identity/browser.ts';
import { startHttpWorld } from '../support/identity/http-world.ts';

const OTHER_USER = 4_242;

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tally-socket-'));
  path = join(folder, 'new', 'tally.sock');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const ask = (headers: Readonly<Record<string, string>> = {}) =>
  get('http://localhost/v1/buckets', { headers: { host: 'localhost', ...headers }, socketPath: path });

it('makes whoever may open the socket the operator, and leaves the address to callers with a credential', async () => {
  const world = await startHttpWorld();
  await world.listenAtSocket(path);
  try {
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect((await world.send('GET', '/v1/buckets')).status).toBe(401);
    expect((await ask()).status).toBe(200);
    expect(world.fake.contexts.at(-1)?.actor).toEqual({ kind: 'local', host: hostname(), isOperator: true });
    // a credential is checked whatever way it comes: a wrong key is not forgiven for its way
    expect((await ask({ authorization: 'Bearer qk_bogus' })).text).toContain('authentication.failed');
  } finally {
    await world.close();
  }
  expect(() => statSync(path)).toThrow('ENOENT');
});

it('takes the place of a socket that a killed process left, and not that of one that answers or of a file', async () => {
  const first = createOperatorSocket();
  await first.listen(path, (_request, response) => response.end());
  const second = createOperatorSocket();
  await expect(second.listen(path, () => undefined)).rejects.toThrow('another process is listening there');
  await first.close();
  writeFileSync(path, '');
  await expect(second.listen(path, () => undefined)).rejects.toThrow('it is not a socket');
});

it("finds no registry at another user's socket in a folder that all may write to", async () => {
  const socket = createOperatorSocket();
  await socket.listen(path, (_request, response) => response.end());
  // root's is never another's
  if (process.getuid?.() === 0) chownSync(path, OTHER_USER, OTHER_USER);
  const { uid } = statSync(path);
  expect(await isAnswered(path, uid + 1)).toBe(true);
  // where /tmp is a link, the link's own mode says nothing
  const link = join(folder, 'link');
  symlinkSync(dirname(path), link);
  expect(await isAnswered(join(link, 'tally.sock'), uid + 1)).toBe(true);
  chmodSync(dirname(path), 0o1777);
  expect(await isAnswered(path, uid + 1)).toBe(false);
  expect(await isAnswered(join(link, 'tally.sock'), uid + 1)).toBe(false);
  expect(await isAnswered(path, uid)).toBe(true);
  await socket.close();
});
