/** A registry in this process with the panel and a control plane that answers with fixed answers. */
import type { Browser, BrowserContextOptions, Page, Response } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import type { CheckedOperations } from '../../../src/registry/contract/contract.ts';
import type { LoadFiles } from '../../../src/registry/panel.ts';
import { buildPanel } from '../../../src/panel/build.ts';
import { createWindows, startChromium, type Window } from '../identity/chromium.ts';
import { createFakeControl } from '../fakes/control.ts';
import { listenControlPlane } from '../servers/control-plane.ts';

interface PanelWorldOptions {
  readonly loadPanel?: LoadFiles;
  readonly operations?: Partial<CheckedOperations>;
}

let built: ReturnType<typeof buildPanel> | undefined;

/** Builds the panel once for all worlds of this process. */
export const loadBuiltPanel: LoadFiles = () => (built ??= buildPanel());

export async function startPanelWorld({ loadPanel = loadBuiltPanel, operations = {} }: PanelWorldOptions = {}) {
  const fake = createFakeControl();
  const { url, close } = await listenControlPlane({
    operations: { ...fake.checked, ...operations },
    readiness: {
      read: () => ({
        ready: false,
        roles: { http: { ready: true }, ingest: { ready: false } },
        checks: {
          index: { status: 'failed', code: 'index.unreachable', detail: 'nothing answers at <b>x</b>', advice: 'Start it.' },
          queue: { status: 'ok' },
        },
      }),
    },
    version: '1.67.0',
    loadPanel,
  });
  return { url, fake, close };
}

export type PanelWorld = Awaited<ReturnType<typeof startPanelWorld>>;

/** A registry and the windows of a suite, which has them from its first test to its last. */
export function inChromium<World extends { readonly url: string; close(): Promise<void> }>(start: () => Promise<World>) {
  let world: World;
  let browser: Browser;
  const windows = createWindows();
  beforeAll(async () => {
    [world, browser] = await Promise.all([start(), startChromium()]);
  });
  afterEach(() => windows.empty(`${world.url}/livez`));
  afterAll(async () => {
    await browser?.close();
    await world?.close();
  });
  /** A window, at an address of the panel if one is given. */
  const open = async (query?: string, options?: BrowserContextOptions): Promise<Window> => {
    const window = await windows.open(browser, options);
    if (query !== undefined) await openPanel(window.page, world.url, query);
    return window;
  };
  return { world: () => world, open };
}

/** Opens a page of the panel, and waits until it has what it shows. */
export async function openPanel(page: Page, url: string, query = ''): Promise<void> {
  await page.goto(`${url}/panel/${query}`);
  await settled(page);
}

/** Logs the person whom the issuer has in from the panel. Resolves with the addresses that are answered with 403, which grow. */
export async function logInAtPanel({ page, context }: Window, url: string, query = ''): Promise<readonly string[]> {
  const refused: string[] = [];
  context.on('response', (response: Response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  await openPanel(page, url, query);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.locator('.rail').waitFor();
  await settled(page);
  return refused;
}

/** Waits until nothing is loading. */
export async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
}

/** How far what is shown is wider than the screen, in pixels. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
}

/** The pages that the rail leads to. */
export function railOf(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[...document.querySelectorAll('.rail nav a')].map(({ search }) => new URLSearchParams(search).get('page'))`);
}

/** Follows a link of the rail. */
export async function follow(page: Page, name: string): Promise<void> {
  await page.locator(`.rail a[href="?page=${name}"]`).click();
}
