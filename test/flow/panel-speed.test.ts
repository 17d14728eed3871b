/** What makes the panel quick, in Chromium: what waits for what. */
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
});
