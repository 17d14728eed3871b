/**
 * `npm run panel:pictures`: the pictures of docs/guides/panel.md, made with Chromium from a registry with ten buckets and trouble.
 * `npm run panel:pictures -- FOLDER` writes them there, as PNG.
 */
import { Buffer } from 'node:buffer';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { openWindow, startChromium } from './identity/chromium.ts';
import { troubledOperations } from './panel/trouble.ts';
import { openPanel, settled, startPanelWorld } from './worlds/panel.ts';

const [folder] = process.argv.slice(2);
const PICTURES = folder ?? new URL('../../docs/pictures/', import.meta.url).pathname;
/** As WebP a page takes a third of its PNG. */
const FORMAT = folder === undefined ? 'webp' : 'png';
/** Below this, letters get shadows. */
const QUALITY = 80;

const LARGE: BrowserContextOptions = { viewport: { width: 1_440, height: 900 } };
const SMALL: BrowserContextOptions = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const dark = (options: BrowserContextOptions): BrowserContextOptions => ({ ...options, colorScheme: 'dark' });

const FOUND = '?page=search&query=part';
const BUCKET = '?page=bucket&bucket=acme-scratch';
const JOB = '?page=job&id=job-7f3k2m9q4x';

interface Picture {
  readonly name: string;
  readonly query: string;
  readonly options?: BrowserContextOptions;
  /** What is done on the page before. */
  readonly act?: (page: Page) => Promise<void>;
}

const press =
  (name: string) =>
  async (page: Page): Promise<void> => {
    await page.getByRole('button', { name }).first().click();
    await page.getByRole('dialog').waitFor();
    await settled(page);
  };

async function openRow(page: Page): Promise<void> {
  await page.getByRole('region', { name: 'Objects found' }).getByRole('rowheader').getByRole('link').nth(3).click();
  await page.getByText('Index and S3 agree', { exact: true }).waitFor();
}

async function drawn(page: Page): Promise<void> {
  await page.locator('.chart svg').last().waitFor();
}

async function narrowed(page: Page): Promise<void> {
  await page.locator('.facets').waitFor();
}

const pictures: readonly Picture[] = [
  { name: 'overview', query: '', act: drawn },
  { name: 'overview-dark', query: '', options: dark(LARGE), act: drawn },
  { name: 'buckets', query: '?page=buckets' },
  { name: 'search', query: FOUND, act: narrowed },
  { name: 'search-dark', query: FOUND, options: dark(LARGE), act: narrowed },
  { name: 'object', query: FOUND, act: openRow },
  { name: 'bucket', query: BUCKET },
  { name: 'reindex', query: '?page=bucket&bucket=acme-data-lake', act: press('Re-Index and Repair') },
  { name: 'job', query: JOB },
  { name: 'letters', query: '?page=letters' },
  { name: 'small', query: '', options: SMALL, act: drawn },
  { name: 'small-dark', query: FOUND, options: dark(SMALL), act: narrowed },
];

const world = await startPanelWorld({ operations: troubledOperations() });
const browser = await startChromium();
try {
  await mkdir(PICTURES, { recursive: true });
  for (const picture of pictures) await take(picture);
} finally {
  await browser.close();
  await world.close();
}

async function take({ name, query, options = LARGE, act }: Picture): Promise<void> {
  const { page, context } = await openWindow(browser, { ...options, reducedMotion: 'reduce' });
  await openPanel(page, world.url, query);
  await act?.(page);
  const devtools = await context.newCDPSession(page);
  const { data } = await devtools.send('Page.captureScreenshot', { format: FORMAT, ...(FORMAT === 'webp' && { quality: QUALITY }) });
  const bytes = Buffer.from(data, 'base64');
  await writeFile(join(PICTURES, `panel-${name}.${FORMAT}`), bytes);
  console.log(`panel-${name}.${FORMAT}: ${bytes.length} bytes`);
  await context.close();
}
