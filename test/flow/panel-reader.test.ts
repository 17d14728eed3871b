/** The panel of a person who reads a part of a bucket: what is not granted is nowhere in it. */
import type { Browser, Response } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { canBrowse, openWindow, startChromium } from '../support/identity/chromium.ts';
import { runTally } from '../support/servers/daemon.ts';
import { startBrowserWorld, type BrowserWorld } from '../support/worlds/browser.ts';
import { openPanel, settled } from '../support/worlds/panel.ts';

const ALICE = { sub: 's-alice', email: 'alice@example.com', email_verified: true, groups: ['tally-users'] };

describe.skipIf(!canBrowse('a reader in Chromium'))('the panel of a person who reads a part of a bucket', () => {
  let world: BrowserWorld;
  let browser: Browser;
  beforeAll(async () => {
    [world, browser] = await Promise.all([startBrowserWorld({ TALLY_READERS: 'granted' }), startChromium()]);
  });
  afterAll(async () => {
    await browser?.close();
    await world?.close();
  });

  it('shows that part, says so, and shows nothing when the grant is removed', async () => {
    for (const key of ['docs/plan.txt', 'secret/plan.txt'])
      expect((await fetch(`${world.daemon.embeddedUrl}/demo/${key}`, { method: 'PUT', body: 'x' })).status).toBe(200);
    const grant = async (act: 'add' | 'remove') =>
      expect(await runTally(['admin', 'grants', act, 'user:alice@example.com', 'demo/docs/'], world.storeEnv)).toMatchObject({ code: 0 });
    await grant('add');
    world.provider.personIs(ALICE);
    const { page, context, complaints } = await openWindow(browser);
    const refused: string[] = [];
    context.on('response', (response: Response) => {
      if (response.status() === 403) refused.push(response.url());
    });
    await openPanel(page, world.url, '?page=buckets');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('You may read demo/docs/').waitFor();
    await page.goto(`${world.url}/panel/?page=search&query=plan`);
    await expect
      .poll(async () => {
        await page.reload();
        await settled(page);
        return page.locator('main').innerText();
      })
      .toContain('docs/plan.txt');
    expect(await page.locator('main').innerText()).not.toContain('secret');
    await grant('remove');
    await page.reload();
    await page.getByText('Nothing is granted to you').waitFor();
    await settled(page);
    expect(await page.locator('main').innerText()).not.toContain('docs/plan.txt');
    expect(refused).toEqual([]);
    expect(complaints.filter((text) => !text.includes('status of 401'))).toEqual([]);
    await context.close();
  });
});
