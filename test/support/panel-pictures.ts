/**
 * `npm run panel:pictures`: the pictures of docs/panel.md, made with Chromium from a running registry in embedded mode.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { openWindow, startChromium } from './identity/chromium.ts';
import { MAIN } from './servers/program.ts';
import { openPanel } from './worlds/panel.ts';

const PICTURES = new URL('../../docs/pictures/', import.meta.url).pathname;
const KEYS = ['2026/invoices/0001.pdf', '2026/invoices/0002.pdf', '2026/photos/cat.jpg', 'про/файл.txt', 'raw/events.parquet'];

const data = mkdtempSync(join(tmpdir(), 'tally-pictures-'));
const any = '127.0.0.1:0';
const registry = spawn(process.execPath, [MAIN, 'serve', '--embedded'], {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: { ...process.env, TALLY_EMBEDDED_DATA: data, TALLY_HTTP_ADDRESS: any, TALLY_HEALTH_ADDRESS: any, TALLY_EMBEDDED_ADDRESS: any },
});
const listening = await new Promise<{ readonly controlUrl: string; readonly embeddedUrl: string }>((resolve) => {
  createInterface({ input: registry.stdout }).on('line', (line) => {
    if (line.includes('"msg":"listening"')) resolve(JSON.parse(line));
  });
});
const { controlUrl, embeddedUrl } = listening;
const browser = await startChromium();
try {
  await indexed();
  const { page } = await openWindow(browser, { viewport: { width: 1_100, height: 700 } });
  await openPanel(page, controlUrl);
  await page.screenshot({ path: join(PICTURES, 'panel-buckets.png') });
  await openPanel(page, controlUrl, '?page=search&bucket=demo&q=2026');
  await page.screenshot({ path: join(PICTURES, 'panel-search.png') });
  await openPanel(page, controlUrl, '?page=bucket&bucket=demo');
  await page.getByRole('button', { name: 'Re-Index and Repair' }).click();
  await page.screenshot({ path: join(PICTURES, 'panel-reindex.png') });
} finally {
  await browser.close();
  registry.kill('SIGTERM');
  await once(registry, 'exit');
  rmSync(data, { recursive: true, force: true });
}

/** Puts the objects, and waits until a search finds them. */
async function indexed(): Promise<void> {
  for (;;) {
    const answer = await fetch(`${controlUrl}/v1/objects?bucket=demo`).catch(() => undefined);
    const body = (await answer?.json()) as { readonly items?: readonly object[] } | undefined;
    if (body?.items?.length === KEYS.length) return;
    // an object that is put before the bucket is there, or put again, does no harm
    for (const key of KEYS) await fetch(`${embeddedUrl}/demo/${encodeURIComponent(key)}`, { method: 'PUT', body: key });
    await new Promise((resolve) => {
      setTimeout(resolve, 500);
    });
  }
}
