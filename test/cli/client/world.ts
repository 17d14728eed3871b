/** A registry with an issuer, an empty folder for credentials, and a person at a browser or a terminal. */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createClient } from '../../../src/cli/client/client.ts';
import type { LoginPorts } from '../../../src/cli/client/login.ts';
import { createStore, type StoredSession } from '../../../src/cli/client/store.ts';
import { removeRecord } from '../../../src/store/stored.ts';
import { get } from '../../support/identity/browser.ts';
import { backFromIssuer, jsonOf, startHttpWorld, toConsent, type HttpWorld } from '../../support/identity/http-world.ts';
import { listenScripted, type ScriptedAnswer, type ScriptedRequest } from '../../support/servers/scripted.ts';

export const never = new AbortController().signal;

/** What a command is given that names no registry, where none answers. */
export const unnamed = { local: { sockets: [], url: 'http://127.0.0.1:1' } } as const;

const placeOf = ({ method, path }: Pick<ScriptedRequest, 'method' | 'path'>) => `${method} ${path.split('?')[0]}`;

type Headers = Readonly<Record<string, string>>;

/** The registry, behind a server that notes what the client sends, and of which tests replace answers. Browsers go to it directly. */
async function startRegistry() {
  let world: HttpWorld;
  const canned = new Map<string, ScriptedAnswer>();
  const front = await listenScripted(async (request) => {
    const fixed = canned.get(placeOf(request));
    if (fixed !== undefined) return fixed;
    const { path, method, body } = request;
    const { status, headers, text } = await get(`${world.url}${path}`, { method, headers: request.headers as Headers, body });
    return { status, headers: headers as Headers, body: text };
  });
  world = await startHttpWorld({ publicUrl: front.url });
  const { state } = world.store;
  return {
    url: front.url,
    issuer: world.issuer,
    asked: front.asked,
    /** Answers that replace those of a place (`GET /config.json`). */
    canned,
    /** `change` replaces fields of /config.json. */
    configure: (change: object) =>
      canned.set('GET /config.json', { body: { registryUrl: front.url, catalogUrl: front.url, version: '1.67.0', ...change } }),
    /** A valid API key. */
    newKey: () => world.keyOf('user', ['read']),
    sessions: () => state.count('session'),
    async endSessions(): Promise<void> {
      for (const { id } of await state.list('session', { limit: 100 })) await removeRecord(state, id);
    },
    places: (): readonly string[] => front.asked.map(placeOf),
    credentialsSent: (): readonly string[] => front.asked.flatMap(({ headers }) => headers.authorization ?? []),
    /** Allows the login that begins at this address; resolves with the code to copy, or with the address to which the browser returns. */
    async allow(address: string): Promise<string> {
      const { pathname, search } = new URL(address);
      const back = await backFromIssuer(world, `${pathname}${search}`);
      if (back.answered.location?.startsWith('http') === true) return back.answered.location;
      const { decide } = await toConsent(world, back);
      const { code, redirect } = jsonOf(await decide(true));
      return String(code ?? redirect);
    },
    close: async (): Promise<void> => void (await Promise.all([front.close(), world.close()])),
  };
}

/** Ends with the test. */
export async function openClientWorld() {
  const registry = await startRegistry();
  const home = mkdtempSync(join(tmpdir(), 'tally-client-'));
  const folder = join(home, 'tally');
  onTestFinished(async () => {
    await registry.close();
    rmSync(home, { recursive: true, force: true });
  });
  const store = createStore(folder);
  const client = createClient({ folder });
  const shown: string[] = [];
  /** What the browser shows at the end of each login. */
  const pages: Promise<string>[] = [];
  /** What is changed of the address to which the browser returns. */
  const changed: Record<string, string> = {};

  async function endOf(startAddress: string): Promise<string> {
    const { location = '' } = await get(startAddress);
    const back = new URL(await registry.allow(location));
    for (const [name, value] of Object.entries(changed)) back.searchParams.set(name, value);
    return (await get(back.href)).text;
  }

  /** A person who opens each address and allows the login. */
  const browser: LoginPorts = {
    say: (text) => void shown.push(text),
    machine: 'laptop (of Ada)',
    nowMs: () => Date.now(),
    openBrowser: async (address) => {
      pages.push(endOf(address));
      return true;
    },
  };
  /** A person who opens the address elsewhere, and pastes the code. */
  const terminal: LoginPorts = {
    ...browser,
    openBrowser: undefined,
    ask: async () => ` ${await registry.allow(/https?:\S+/.exec(shown.at(-1) ?? '')?.[0] ?? '')}\r\n`,
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
    changed,
    logIn: () => client.login(registry.url, browser, never),
    session(): StoredSession {
      const { session } = store.readCredentials();
      if (session === undefined) throw new Error('there is no stored login');
      return session;
    },
    modeOf: (path: string): number => statSync(path).mode & 0o777,
    textOf: (path: string): string => readFileSync(path, 'utf8'),
  };
}

export type ClientWorld = Awaited<ReturnType<typeof openClientWorld>>;
