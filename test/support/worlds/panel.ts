/** A registry in this process with the panel and a control plane that answers with fixed answers, and a proxy with a prefix. */
import { createServer, request as send } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Page } from 'playwright-core';
import type { CheckedOperations } from '../../../src/api/contract.ts';
import type { LoadFiles } from '../../../src/http/panel.ts';
import { buildPanel } from '../../../src/panel/build.ts';
import { systemClock } from '../../../src/adapters/system-clock.ts';
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
    clock: systemClock,
    version: '1.67.0',
    loadPanel,
  });
  return { url, fake, close };
}

export type PanelWorld = Awaited<ReturnType<typeof startPanelWorld>>;

/** A proxy that serves the registry below a path, and whose connections can be cut. */
export async function startPrefixProxy(registry: string | (() => string), prefix: string) {
  const registryUrl = typeof registry === 'string' ? () => registry : registry;
  const sockets = new Set<Socket>();
  const server = createServer((incoming, outgoing) => {
    if (incoming.url?.startsWith(`${prefix}/`) !== true) {
      outgoing.writeHead(404).end('not below the prefix');
      return;
    }
    const forwarded = send(
      `${registryUrl()}${incoming.url.slice(prefix.length)}`,
      { method: incoming.method ?? 'GET', headers: incoming.headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    forwarded.once('error', () => outgoing.destroy());
    outgoing.once('close', () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`,
    cut: (): void => sockets.forEach((socket) => socket.destroy()),
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}

/** Opens a page of the panel, and waits until it has what it shows. */
export async function openPanel(page: Page, url: string, query = ''): Promise<void> {
  await page.goto(`${url}/panel/${query}`);
  await settled(page);
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

/** The pages that the rail leads to, with those of the administration. */
export function railOf(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[...document.querySelectorAll('.rail nav a')].map(({ search }) => new URLSearchParams(search).get('page'))`);
}

/** Follows a link of the rail. */
export async function follow(page: Page, name: string): Promise<void> {
  const link = page.locator(`.rail a[href="?page=${name}"]`);
  if (!(await link.isVisible())) await page.getByText('Administration', { exact: true }).click();
  await link.click();
}

/** Opens the menu of the person. */
export async function openMenu(page: Page): Promise<void> {
  await page.locator('.rail .person').click();
}
