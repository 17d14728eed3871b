/**
 * `npm run panel:pictures`: the pictures of docs/guides/panel.md, made with Chromium from a running registry in embedded mode.
 * `npm run panel:pictures -- FOLDER` writes them there, as PNG.
 */
import { Buffer } from 'node:buffer';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { openWindow, startChromium } from './identity/chromium.ts';
import { answers, startEmbeddedRegistry } from './servers/embedded-registry.ts';
import { openPanel, settled } from './worlds/panel.ts';

const [folder] = process.argv.slice(2);
const PICTURES = folder ?? new URL('../../docs/pictures/', import.meta.url).pathname;
/** As WebP a page takes a third of its PNG. */
const FORMAT = folder === undefined ? 'webp' : 'png';
/** Below this, letters get shadows. */
const QUALITY = 80;

const LARGE: BrowserContextOptions = { viewport: { width: 1_100, height: 640 } };
const SMALL: BrowserContextOptions = { viewport: { width: 360, height: 640 }, isMobile: true, hasTouch: true };

const photos = ['2026/paris/cat.jpg', '2026/paris/Tower at night.jpg', '2026/rome/forum.jpg', 'про/файл.txt', 'raw/IMG_0042.CR3'];
const reports = ['2025/invoice-0001.pdf', '2026/invoice-0002.pdf', '2026/invoice-0003.pdf', 'exports/2026-11/orders.parquet'];

const FOUND = '?page=search&query=2026+ext:jpg,pdf+size>1';

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

/** `job`: the id of a re-index that has ended. */
const picturesOf = (job: string): readonly Picture[] => [
  { name: 'buckets', query: '' },
  { name: 'search', query: FOUND },
  { name: 'search-dark', query: FOUND, options: { ...LARGE, colorScheme: 'dark' } },
  { name: 'folders', query: '?page=search&query=bucket:photos&view=folders' },
  { name: 'object', query: `?${new URLSearchParams({ page: 'object', bucket: 'photos', key: '2026/paris/cat.jpg' }).toString()}` },
  { name: 'reindex', query: '?page=bucket&bucket=reports', act: press('Re-Index and Repair') },
  { name: 'job', query: `?page=job&id=${job}` },
  { name: 'letters', query: '?page=letters' },
  { name: 'small', query: '?page=bucket&bucket=photos', options: SMALL },
  { name: 'small-dark', query: FOUND, options: { ...SMALL, colorScheme: 'dark' } },
];

const registry = await startEmbeddedRegistry();
const browser = await startChromium();
try {
  const job = await fill();
  await mkdir(PICTURES, { recursive: true });
  for (const picture of picturesOf(job)) await take(picture);
} finally {
  await browser.close();
  await registry.close();
}

async function take({ name, query, options = LARGE, act }: Picture): Promise<void> {
  const { page, context } = await openWindow(browser, options);
  await openPanel(page, registry.controlUrl, query);
  await act?.(page);
  const devtools = await context.newCDPSession(page);
  const { data } = await devtools.send('Page.captureScreenshot', { format: FORMAT, ...(FORMAT === 'webp' && { quality: QUALITY }) });
  const bytes = Buffer.from(data, 'base64');
  await writeFile(join(PICTURES, `panel-${name}.${FORMAT}`), bytes);
  console.log(`panel-${name}.${FORMAT}: ${bytes.length} bytes`);
  await context.close();
}

/** Makes what the pictures show: three buckets, a re-index, and a letter that is no event. Resolves with the id of the re-index. */
async function fill(): Promise<string> {
  await answers(
    () => registry.request('GET', '/v1/buckets/demo'),
    () => true,
  );
  await registry.put('demo', ['docs/README.md']);
  await registry.put('photos', photos);
  await registry.put('reports', reports);
  await registry.request('POST', '/v1/buckets', { bucket: 'photos' });
  await registry.request('POST', '/v1/buckets', { bucket: 'reports', reindex: true });
  const queues = new SQSClient({
    endpoint: registry.embeddedUrl,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });
  const QueueUrl = `${registry.embeddedUrl}/000000000000/tally-bucket-events`;
  await queues.send(new SendMessageCommand({ QueueUrl, MessageBody: '{"Records": [{"eventName": "ObjectCreated:Put" …' }));
  await registry.put('photos', photos);
  const wanted = photos.length + reports.length + 1;
  await answers(
    () => registry.request('GET', '/v1/objects') as Promise<{ readonly items: readonly object[] }>,
    ({ items }) => items.length === wanted,
  );
  await answers(
    () => registry.request('GET', '/v1/dead-letters') as Promise<{ readonly items: readonly object[] }>,
    ({ items }) => items.length > 0,
  );
  const isWanted = ({ bucket, state }: JobLine): boolean => bucket === 'reports' && state === 'done';
  const { items } = await answers(
    () => registry.request('GET', '/v1/jobs') as Promise<{ readonly items: readonly JobLine[] }>,
    ({ items: jobs }) => jobs.some(isWanted),
  );
  return items.find(isWanted)?.id ?? '';
}

interface JobLine {
  readonly id: string;
  readonly bucket: string;
  readonly state: string;
}
