/** The bench `panel`: how long the panel takes in a browser whose CPU is slowed down, from the request to a page that answers a click. */
import type { Command } from 'commander';
import { Option } from 'commander';
import type { Browser, Page } from 'playwright-core';
import { openWindow, startChromium } from '../../support/identity/chromium.ts';
import { answers, startEmbeddedRegistry, type EmbeddedRegistry } from '../../support/servers/embedded-registry.ts';
import { openPanel } from '../../support/worlds/panel.ts';
import { commandOf, whole } from '../bench-command.ts';
import { medianOf, quantileOf, tableText } from '../statistics.ts';
import { scrollLists, type ScrollRow } from './scrolling.ts';

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

interface PanelRow {
  readonly page: string;
  readonly cache: 'empty' | 'filled';
  readonly loads: readonly Load[];
}

interface PanelReport {
  readonly bench: 'panel';
  readonly date: string;
  readonly node: string;
  readonly chromium: string;
  readonly throttle: number;
  readonly rows: readonly PanelRow[];
  readonly scrolling: readonly ScrollRow[];
}

/** The bench's command. */
export const panelBench = commandOf<PanelOptions, PanelReport>({ name: 'panel', describe, run, text: reportText });

function describe(command: Command): Command {
  return command
    .description(
      'From the request of a page of the panel to its answer to a click, in Chromium with a slowed CPU, and the bytes of it; the overview once more with 1,000 buckets; and the frames of long lists that are scrolled.',
    )
    .addOption(new Option('--rounds <count>', 'loads of each page').argParser(whole(1, 1_000)).default(10))
    .addOption(new Option('--throttle <factor>', 'by which the CPU is slower').argParser(whole(1, 20)).default(4));
}

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

async function run({ rounds, throttle }: PanelOptions, tell: (text: string) => void): Promise<PanelReport> {
  const [registry, browser] = await Promise.all([startEmbeddedRegistry(), startChromium()]);
  try {
    await fill(registry);
    const rows: PanelRow[] = [];
    async function measure(name: string, query: string, slower: number): Promise<void> {
      tell(`${name}: ${rounds} loads`);
      const empty: Load[] = [];
      const filled: Load[] = [];
      for (let round = 0; round < rounds; round++) {
        const [first, second] = await loadTwice(browser, `${registry.controlUrl}/panel/${query}`, slower);
        empty.push(first);
        filled.push(second);
      }
      rows.push({ page: name, cache: 'empty', loads: empty }, { page: name, cache: 'filled', loads: filled });
    }
    for (const [name, query] of pages) await measure(name, query, throttle);
    tell(`${MANY_BUCKETS} buckets are connected`);
    await connectMany(registry);
    for (const slower of new Set([1, throttle])) await measure(`overview, ${MANY_BUCKETS} buckets, ${slower} ×`, '', slower);
    tell('long lists are scrolled');
    const scrolling = await scrollLists(browser, [...new Set([1, throttle])]);
    return {
      bench: 'panel',
      date: new Date().toISOString(),
      node: process.version,
      chromium: browser.version(),
      throttle,
      rows,
      scrolling,
    };
  } finally {
    await browser.close();
    await registry.close();
  }
}

async function fill(registry: EmbeddedRegistry): Promise<void> {
  await answers(
    () => registry.request('GET', `/v1/buckets/${BUCKET}`),
    () => true,
  );
  const keys = Array.from({ length: OBJECTS }, (_, index) => `reports/2026/${String(index).padStart(4, '0')} annual.pdf`);
  await registry.put(BUCKET, keys);
  await answers(
    () => registry.request('GET', `/v1/objects?bucket=${BUCKET}&limit=1000`) as Promise<{ readonly items: readonly object[] }>,
    ({ items }) => items.length === OBJECTS,
  );
}

/** Eight at a time, as `bucket add` connects them. */
async function connectMany(registry: EmbeddedRegistry): Promise<void> {
  const names = Array.from({ length: MANY_BUCKETS - 1 }, (_, index) => `many-${String(index).padStart(4, '0')}`);
  const connect = async (): Promise<void> => {
    for (let bucket = names.pop(); bucket !== undefined; bucket = names.pop()) {
      await registry.put(bucket, []);
      await registry.request('POST', '/v1/buckets', { bucket, source: 'notification' });
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

function reportText({ rows, scrolling, node, chromium, throttle, date }: PanelReport): string {
  const head = ['page', 'cache', 'files kB', 'answers kB', 'first paint ms', 'shown ms', 'interactive ms', 'most', 'click ms'];
  const lines = rows.map(({ page, cache, loads }) => {
    const middle = (field: keyof Load): number => medianOf(loads.map((each) => each[field]));
    const times = (['firstPaintMs', 'shownMs', 'interactiveMs'] as const).map((field) => middle(field).toFixed(0));
    const most = Math.max(...loads.map(({ interactiveMs }) => interactiveMs)).toFixed(0);
    const sizes = (['fileBytes', 'answerBytes'] as const).map((field) => (middle(field) / 1_000).toFixed(1));
    return [page, cache, ...sizes, ...times, most, middle('clickMs').toFixed(0)];
  });
  const title = `panel, CPU slowed down ${throttle} ×, Chromium ${chromium}, Node ${node}, ${date}; the middle of each page's loads`;
  const scrolled = scrolling.map(({ list, throttle: slower, how, frames }) => {
    const slow = frames.filter((ms) => ms > SLOW_FRAME_MS).length;
    const times = [quantileOf(frames, 0.5), quantileOf(frames, 0.95), Math.max(...frames)].map((ms) => ms.toFixed(0));
    return [list, `${slower} ×`, how, String(frames.length), ...times, String(slow)];
  });
  const scrollHead = ['list', 'CPU', 'how', 'frames', 'middle ms', 'p95 ms', 'most ms', `above ${SLOW_FRAME_MS} ms`];
  return `${title}\n\n${tableText([head, ...lines])}\n\n${tableText([scrollHead, ...scrolled])}`;
}
