/** What makes the panel quick, in Chromium: what waits for what, and what is not made again. */
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { canBrowse, createWindows, startChromium } from '../support/identity/chromium.ts';
import { troubledOperations } from '../support/panel/trouble.ts';
import { openPanel, startPanelWorld, type PanelWorld } from '../support/worlds/panel.ts';

describe.skipIf(!canBrowse('the speed of the panel in Chromium'))('the panel in Chromium', () => {
  let world: PanelWorld;
  let browser: Browser;
  let answerFacets: () => void = () => undefined;
  const asked: string[] = [];
  const windows = createWindows();

  beforeAll(async () => {
    const operations = troubledOperations();
    world = await startPanelWorld({
      operations: {
        ...operations,
        searchObjects: async (...args) => {
          const found = await operations.searchObjects?.(...args);
          asked.push('results');
          return found ?? { items: [] };
        },
        getUsage: async (...args) => {
          asked.push('facets');
          await new Promise<void>((resolve) => (answerFacets = resolve));
          const found = await operations.getUsage?.(...args);
          if (found === undefined) throw new Error('the registry with trouble has facets');
          return found;
        },
      },
    });
    browser = await startChromium();
  });
  afterEach(async () => {
    answerFacets();
    asked.splice(0);
    await windows.empty(`${world.url}/livez`);
  });
  afterAll(async () => {
    await browser?.close();
    await world?.close();
  });

  it('asks for the facets when the results are there, and shows the results while the facets take long', async () => {
    const { page } = await windows.open(browser);
    await openPanel(page, world.url, '?page=search&query=part');
    await page.getByRole('region', { name: 'Objects found' }).getByRole('rowheader').first().waitFor();
    await expect.poll(() => asked).toEqual(['results', 'facets']);
    expect(await page.getByRole('region', { name: 'Narrow the search' }).count()).toBe(0);
    answerFacets();
    await page.getByRole('region', { name: 'Narrow the search' }).waitFor();
  });

  it('shows other rows in the same elements while a list is scrolled', async () => {
    const { page } = await windows.open(browser);
    await openPanel(page, world.url, '?page=search&query=part');
    const table = page.getByRole('region', { name: 'Objects found' });
    await table.getByRole('rowheader').nth(300).waitFor({ state: 'detached' });
    const names = (): Promise<readonly string[]> => table.getByRole('rowheader').allTextContents();
    const rows = `[...document.querySelectorAll('table.virtual tbody tr[aria-rowindex]')]`;
    const seen = `${rows}.filter((row) => row.getBoundingClientRect().bottom > 0 && row.getBoundingClientRect().top < innerHeight)`;
    // those beyond what is seen are drawn when the jump has ended; before it is noticed, none of the rows is seen
    const drawnBeyond = `${seen}.length > 10 ? ${rows}.length - ${seen}.length : 0`;
    await page.evaluate('scrollBy(0, 100 * 32)');
    await expect.poll(() => page.evaluate(drawnBeyond)).toBeGreaterThan(12);
    const before = await names();
    await page.evaluate(`${rows}.forEach((row) => { row.isKnown = true; })`);
    // what comes late above the list moves it: five rows
    await page.evaluate(`document.querySelector('main').prepend(Object.assign(document.createElement('div'), { style: 'height: 160px' }))`);
    await page.evaluate('scrollBy(0, 200 * 32)');
    await expect.poll(async () => (await names()).some((name) => before.includes(name))).toBe(false);
    await expect.poll(() => page.evaluate(drawnBeyond)).toBeGreaterThan(12);
    expect(await page.evaluate(`${seen}.filter((row) => row.isKnown !== true).length`)).toBe(0);
  });

  it('keeps the focus where it was when its row goes out of sight: another row does not get it', async () => {
    const { page } = await windows.open(browser);
    await openPanel(page, world.url, '?page=search&query=part');
    const link = page.getByRole('region', { name: 'Objects found' }).getByRole('rowheader').getByRole('link').nth(2);
    await link.focus();
    await page.evaluate('scrollBy(0, 200 * 32)');
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('content');
  });
});
