/** How long the frames of the longest list take while a wheel scrolls it and while its scroll bar is dragged from end to end. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { openWindow } from '../../support/identity/chromium.ts';
import { troubledOperations } from '../../support/panel/trouble.ts';
import { openPanel, settled, startPanelWorld } from '../../support/worlds/panel.ts';

/** As many results as are kept to scroll through. */
const RESULTS = 20_000;
const ROW_PX = 32;
/** A drag from end to end in so many frames, which is two and a half seconds on a screen that keeps up. */
const DRAG_FRAMES = 150;
const WHEEL_PX = 12_000;
const WHEEL_PX_PER_S = 4_000;

interface ScrollRow {
  readonly list: string;
  readonly throttle: number;
  readonly how: 'wheel' | 'drag';
  /** Milliseconds from each frame to the next. */
  readonly frames: readonly number[];
}

/** Collects the times of frames until its step says that it was the last. */
const WATCH = `window.framesOf = async (step) => {
  const times = [];
  for (let count = 0, more = true; more; count += 1) {
    times.push(await new Promise((resolve) => requestAnimationFrame(resolve)));
    more = step(count) !== false;
  }
  return times.slice(1).map((time, index) => time - times[index]);
};`;

const LISTS: readonly (readonly [list: string, query: string, load: (page: Page) => Promise<void>])[] = [
  [`${RESULTS} results`, '?page=search', loadResults],
];

/** Scrolls it, once for each of the factors by which the CPU is slower. */
export async function scrollLists(browser: Browser, throttles: readonly number[]): Promise<readonly ScrollRow[]> {
  const world = await startPanelWorld({ operations: troubledOperations() });
  try {
    const rows: ScrollRow[] = [];
    for (const [list, query, load] of LISTS) {
      const { page, context } = await openWindow(browser, { viewport: { width: 1_440, height: 900 } });
      await page.addInitScript({ content: WATCH });
      await openPanel(page, world.url, query);
      await load(page);
      const devtools = await context.newCDPSession(page);
      for (const throttle of throttles) {
        await devtools.send('Emulation.setCPUThrottlingRate', { rate: throttle });
        await page.evaluate('scrollTo(0, 0)');
        await delay(1_000);
        const wheel = page.evaluate<number[]>('(window.isScrolled = false, framesOf(() => !isScrolled))');
        await devtools.send('Input.synthesizeScrollGesture', {
          x: 800,
          y: 600,
          yDistance: -WHEEL_PX,
          speed: WHEEL_PX_PER_S,
          gestureSourceType: 'mouse',
        });
        await page.evaluate('void (isScrolled = true)');
        rows.push({ list, throttle, how: 'wheel', frames: await wheel }, { list, throttle, how: 'drag', frames: await drag(page) });
      }
      await context.close();
    }
    return rows;
  } finally {
    await world.close();
  }
}

function drag(page: Page): Promise<readonly number[]> {
  return page.evaluate<number[]>(`(() => {
    const total = document.documentElement.scrollHeight - innerHeight;
    return framesOf((count) => { scrollTo(0, (total * count) / ${DRAG_FRAMES}); return count < ${DRAG_FRAMES}; });
  })()`);
}

/** Each page of results is asked for where the list ends. */
async function loadResults(page: Page): Promise<void> {
  const isWhole = (heightPx: number): boolean => heightPx > (RESULTS - 100) * ROW_PX;
  while (!isWhole(await page.evaluate<number>('(scrollTo(0, 1e9), document.documentElement.scrollHeight)'))) await delay(60);
  await settled(page);
}
