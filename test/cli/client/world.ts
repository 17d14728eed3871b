/** A registry, an empty folder for credentials, and a person at a browser or a terminal. */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '../../../src/cli/client/client.ts';
import type { LoginPorts } from '../../../src/cli/client/login.ts';
import { createStore, type StoredSession } from '../../../src/cli/client/store.ts';
import { startLoginRegistry } from '../../support/identity/login-registry.ts';

export const never = new AbortController().signal;

/** What a command is given that names no registry, where none answers. */
export const unnamed = { local: { sockets: [], url: 'http://127.0.0.1:1' } } as const;

export async function openClientWorld() {
  const registry = await startLoginRegistry();
  const home = mkdtempSync(join(tmpdir(), 'tally-client-'));
  const folder = join(home, 'tally');
  const store = createStore(folder);
  const client = createClient({ folder });
  const shown: string[] = [];
  /** What the browser shows at the end of each login. */
  const pages: Promise<string>[] = [];

  /** A person who opens each address and allows the login. */
  const browser: LoginPorts = {
    say: (text) => void shown.push(text),
    machine: 'laptop (of Ada)',
    nowMs: () => Date.now(),
    openBrowser: async (address) => {
      pages.push(fetch(address).then(async (page) => page.text()));
      return true;
    },
  };
  /** A person who opens the address elsewhere, and pastes the code. */
  const terminal: LoginPorts = {
    ...browser,
    openBrowser: undefined,
    ask: async () => {
      const [address = ''] = /https?:\S+/.exec(shown.at(-1) ?? '') ?? [];
      const { code } = (await (await fetch(address)).json()) as { readonly code: string };
      return ` ${code}\r\n`;
    },
  };

  return {
    registry,
    home,
    folder,
    file: join(folder, 'credentials.json'),
    store,
    client,
    browser,
    terminal,
    shown,
    pages,
    logIn: () => client.login(registry.url, browser, never),
    session(): StoredSession {
      const { session } = store.readCredentials();
      if (session === undefined) throw new Error('there is no stored login');
      return session;
    },
    modeOf: (path: string): number => statSync(path).mode & 0o777,
    textOf: (path: string): string => readFileSync(path, 'utf8'),
    async close(): Promise<void> {
      await registry.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

export type ClientWorld = Awaited<ReturnType<typeof openClientWorld>>;
