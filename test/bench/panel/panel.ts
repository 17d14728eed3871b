/** The bench `panel`: how long the panel takes in a browser whose CPU is slowed down, from the request to a page that answers a click. */
import type { Browser, Page } from 'playwright-core';
import { openWindow, startChromium } from '../../support/identity/chromium.ts';
import { until } from '../../support/servers/aws.ts';
import { startEmbeddedRegistry, type EmbeddedRegistry } from '../../support/servers/embedded-registry.ts';
import { openPanel } from '../../support/worlds/panel.ts';
import { commandOf, countOption } from '../bench-command.ts';
import { medianOf, quantileOf } from '../report.ts';
import { scrollLists } from './scrolling.ts';

interface PanelOptions {
  readonly rounds: number;
  readonly throttle: number;
}

/** Milliseconds since the request for the page. */
interface Load {
  /** The browser has drawn anything. */
  readonly firstPaintMs: number;
  /** The page has its heading, and everything that it reads from the registry. */
  readonly shownMs: number;
  /** The same, and the last task of 50 ms or longer has ended. */
  readonly interactiveMs: number;
  /** From a click on the menu of the person to the frame that has it. */
  readonly clickMs: number;
  /** Of the page, its script and its style sheet, as they were sent. */
  readonly fileBytes: number;
  readonly answerBytes: number;
}

/** The bench's command. */
export const panelBench = commandOf<PanelOptions>({
  name: 'panel',
  description:
    'From the request of a page of the panel to its answer to a click, in Chromium with a slowed CPU, and the bytes of it; the overview once more with 1,000 buckets; and the frames of long lists that are scrolled.',
  options: [
    countOption('--rounds <count>', 'loads of each page', [1, 1_000], 10),
    countOption('--throttle <factor>', 'by which the CPU is slower', [1, 20], 4),
  ],
  run,
});

/** What a person sees as a jerk: https://web.dev/articles/rail */
const SLOW_FRAME_MS = 50;

const BUCKET = 'demo';
/** More than a page of results. */
const OBJECTS = 150;
const MANY_BUCKETS = 1_000;

const pages: readonly (readonly [name: string, query: string])[] = [
  ['overview', ''],
  ['search', `?page=search&bucket=${BUCKET}`],
];

async function run({ rounds, throttle }: PanelOptions, tell: (text: string) => void) {
  // before the registry, which would be left running where there is no browser
  const browser = await startChromium();
  const registry = await startEmbeddedRegistry();
  try {
    await fill(registry);
    const loads: object[] = [];
    async function measure(page: string, query: string, slower: number): Promise<void> {
      tell(`${page}: ${rounds} loads`);
      const pairs: (readonly [Load, Load])[] = [];
      for (let round = 0; round < rounds; round++) pairs.push(await loadTwice(browser, `${registry.controlUrl}/panel/${query}`, slower));
      for (const [at, cache] of ['empty', 'filled'].entries())
        loads.push({ page, cpu: `${slower} ×`, cache, ...middleOf(pairs.map((pair) => pair[at]!)) });
    }
    for (const [name, query] of pages) await measure(name, query, throttle);
    tell(`${MANY_BUCKETS} buckets are connected`);
    await connectMany(registry);
    for (const slower of new Set([1, throttle])) await measure(`overview, ${MANY_BUCKETS} buckets`, '', slower);
    tell('long lists are scrolled');
    const scrolled = (await scrollLists(browser, [...new Set([1, throttle])])).map(({ frames, ...row }) => ({
      ...row,
      frames: frames.length,
      p50Ms: quantileOf(frames, 0.5),
      p95Ms: quantileOf(frames, 0.95),
      maxMs: Math.max(...frames),
      slowFrames: frames.filter((ms) => ms > SLOW_FRAME_MS).length,
    }));
    return { loads, scrolled };
  } finally {
    await browser.close();
    await registry.close();
  }
}

/** The middle of each figure, and the longest time until the page answers. */
function middleOf(loads: readonly Load[]) {
  const fields = ['fileBytes', 'answerBytes', 'firstPaintMs', 'shownMs', 'interactiveMs', 'clickMs'] as const;
  const middles = fields.map((field) => [field, medianOf(loads.map((each) => each[field]))]);
  return { ...Object.fromEntries(middles), interactiveMaxMs: Math.max(...loads.map(({ interactiveMs }) => interactiveMs)) };
}

async function fill(registry: EmbeddedRegistry): Promise<void> {
  await until('the bucket is connected', async () => (await registry.request('GET', `/v1/buckets/${BUCKET}`)).status === 200);
  const keys = Array.from({ length: OBJECTS }, (_, index) => `reports/2026/${String(index).padStart(4, '0')} annual.pdf`);
  await registry.put(BUCKET, keys);
  await until('the objects are indexed', async () => {
    const { body } = await registry.request('GET', `/v1/objects?bucket=${BUCKET}&limit=1000`);
    return (body as { readonly items: readonly object[] }).items.length === OBJECTS;
  });
}

/** Eight at a time, as `bucket add` connects them. */
async function connectMany(registry: EmbeddedRegistry): Promise<void> {
  const names = Array.from({ length: MANY_BUCKETS - 1 }, (_, index) => `many-${String(index).padStart(4, '0')}`);
  const connect = async (): Promise<void> => {
    for (let bucket = names.pop(); bucket !== undefined; bucket = names.pop()) {
      await registry.put(bucket, []);
      const { status } = await registry.request('POST', '/v1/buckets', { bucket, source: 'notification' });
      if (status >= 300) throw new Error(`${bucket} was not connected: ${status}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, connect));
}

/** Notes when everything is shown, and when the last long task ended. */
const WATCH = `window.seen = { shownMs: 0, busyUntilMs: 0 };
new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries()) seen.busyUntilMs = Math.max(seen.busyUntilMs, startTime + duration);
}).observe({ type: 'longtask', buffered: true });
new MutationObserver(() => {
  const isShown = document.querySelector('#content h1') !== null && document.querySelector('[aria-busy="true"]') === null;
  if (!isShown) seen.shownMs = 0;
  else if (seen.shownMs === 0) seen.shownMs = performance.now();
}).observe(document, { subtree: true, childList: true, attributes: true });`;

const MEASURED = `(async () => {
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const entries = performance.getEntries();
  const bytesOf = (isFile) => entries
    .filter(({ entryType, name }) => ['navigation', 'resource'].includes(entryType) && name.includes('/panel/') === isFile)
    .reduce((sum, { transferSize }) => sum + transferSize, 0);
  const firstPaintMs = entries.find(({ name }) => name === 'first-contentful-paint')?.startTime ?? 0;
  const interactiveMs = Math.max(seen.shownMs, seen.busyUntilMs);
  const help = document.querySelector('.person');
  const beganMs = performance.now();
  help.click();
  while (document.querySelector('.menu') === null) await new Promise((resolve) => requestAnimationFrame(resolve));
  await new Promise((resolve) => requestAnimationFrame(resolve));
  const clickMs = performance.now() - beganMs;
  return { firstPaintMs, shownMs: seen.shownMs, interactiveMs, clickMs, fileBytes: bytesOf(true), answerBytes: bytesOf(false) };
})()`;

/** Loads the page in a new browser context, and then once more. */
async function loadTwice(browser: Browser, address: string, throttle: number): Promise<readonly [Load, Load]> {
  const { page, context } = await openWindow(browser);
  try {
    await page.addInitScript({ content: WATCH });
    const devtools = await context.newCDPSession(page);
    await devtools.send('Emulation.setCPUThrottlingRate', { rate: throttle });
    return [await load(page, address), await load(page, address)];
  } finally {
    await context.close();
  }
}

async function load(page: Page, address: string): Promise<Load> {
  const [url = '', query = ''] = address.split('/panel/');
  await openPanel(page, url, query);
  return page.evaluate<Load>(MEASURED);
}
