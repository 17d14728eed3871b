/**
 * `npm run panel:pictures`: the pictures of docs/guides/panel.md, made with Chromium from the registry with ten buckets and trouble.
 */
import { Buffer } from 'node:buffer';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { openWindow, startChromium } from './identity/chromium.ts';
import { troubledOperations } from './panel/trouble.ts';
import { openPanel, settled, startPanelWorld } from './worlds/panel.ts';

const PICTURES = new URL('../../docs/pictures/', import.meta.url).pathname;
/** As WebP a page takes a third of its PNG; below this quality, letters get shadows. */
const FORMAT = { format: 'webp', quality: 80 } as const;

const LARGE: BrowserContextOptions = { viewport: { width: 1_440, height: 900 } };
const SMALL: BrowserContextOptions = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const dark = (options: BrowserContextOptions): BrowserContextOptions => ({ ...options, colorScheme: 'dark' });

const FOUND = '?page=search&query=part';
type Picture = readonly [name: string, query: string, look?: BrowserContextOptions, press?: string];

const pictures: readonly Picture[] = [
  ['overview', ''],
  ['overview-dark', '', dark(LARGE)],
  ['buckets', '?page=buckets'],
  ['search', FOUND],
  ['search-dark', FOUND, dark(LARGE)],
  ['object', '?page=object&bucket=acme-data-lake&key=events/2026/part-000001.csv'],
  ['bucket', '?page=bucket&bucket=acme-scratch'],
  ['reindex', '?page=bucket&bucket=acme-data-lake', LARGE, 'Re-Index and Repair'],
  ['job', '?page=job&id=job-7f3k2m9q4x'],
  ['letters', '?page=letters'],
  ['small', '', SMALL],
  ['small-dark', FOUND, dark(SMALL)],
];

const world = await startPanelWorld({ operations: troubledOperations() });
const browser = await startChromium();
try {
  for (const picture of pictures) await take(picture);
} finally {
  await browser.close();
  await world.close();
}

async function take([name, query, look = LARGE, press]: Picture): Promise<void> {
  const { page, context } = await openWindow(browser, { ...look, reducedMotion: 'reduce' });
  await openPanel(page, world.url, query);
  await drawn(page, press);
  const devtools = await context.newCDPSession(page);
  const { data } = await devtools.send('Page.captureScreenshot', FORMAT);
  await writeFile(join(PICTURES, `panel-${name}.${FORMAT.format}`), Buffer.from(data, 'base64'));
  await context.close();
}

/** Waits for what comes after the page: charts and groups, or the dialog of a button. */
async function drawn(page: Page, press: string | undefined): Promise<void> {
  if (press !== undefined) await page.getByRole('button', { name: press }).click();
  await settled(page);
  await page.waitForLoadState('networkidle');
}
