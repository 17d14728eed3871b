/** Ways through the panel in Chromium: history, keys, the clipboard, events, dialogs and errors. panel-pages.test.ts has every page. */
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Job } from '../../src/registry/contract/job.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { createFakeControl, objectDocument, runningJob } from '../support/fakes/control.ts';
import { canBrowse, createWindows, startChromium, type Window } from '../support/identity/chromium.ts';
import { startFront } from '../support/servers/front.ts';
import { follow, openPanel, startPanelWorld, type PanelWorld } from '../support/worlds/panel.ts';

const HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>';

describe.skipIf(!canBrowse('the panel in Chromium'))('the panel in Chromium', () => {
  let world: PanelWorld;
  let browser: Browser;
  const windows = createWindows();
  let job: Job = { ...runningJob, requested_by: HOSTILE, prefix: HOSTILE };

  beforeAll(async () => {
    [world, browser] = await Promise.all([startPanelWorld({ operations: { getJob: async () => job } }), startChromium()]);
  });
  afterEach(async () => {
    await windows.empty(`${world.url}/livez`);
    job = { ...runningJob, requested_by: HOSTILE, prefix: HOSTILE };
  });
  afterAll(async () => {
    await browser?.close();
    await world?.close();
  });

  const open = (options?: BrowserContextOptions): Promise<Window> => windows.open(browser, options);

  it('follows a job through a lost connection, behind the prefix of a proxy', async () => {
    const proxy = await startFront({ prefix: '/x/y', saysSo: false });
    proxy.leadsTo(world.url);
    const { page } = await open();
    await openPanel(page, proxy.url, '?page=job&id=job-1');
    await page.getByText('running, 25 %').waitFor();
    job = { ...job, progress: 0.5 };
    await page.getByText('running, 50 %').waitFor();
    proxy.cut();
    job = { ...job, progress: 0.75 };
    await page.getByText('running, 75 %').waitFor();
    job = { ...job, state: 'done' };
    await page.locator('.state', { hasText: 'done' }).waitFor();
    await proxy.close();
  });

  it('asks before a job is cancelled, says what stays, and shows only what deletes in red', async () => {
    job = { ...runningJob, state: 'paused' };
    const { page } = await open();
    await openPanel(page, world.url, '?page=job&id=job-1');
    await page.getByRole('button', { name: 'Cancel the job…' }).waitFor();
    expect(await page.locator('main button.danger').count()).toBe(0);
    const cancels = () => world.fake.asked.filter(([name]) => name === 'changeJob').length;
    const before = cancels();
    await page.getByRole('button', { name: 'Cancel the job…' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.locator('button.danger').count()).toBe(0);
    await dialog.getByRole('button', { name: 'Keep the job' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(cancels()).toBe(before);
    await page.getByRole('button', { name: 'Cancel the job…' }).click();
    await dialog.getByRole('button', { name: 'Cancel the job' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(cancels()).toBe(before + 1);
  });

  it('discards no more letters than were seen, and only when their number is typed', async () => {
    const { page } = await open();
    await openPanel(page, world.url, '?page=letters');
    await page.getByRole('button', { name: 'Discard…' }).click();
    const discard = page.getByRole('dialog').getByRole('button', { name: 'Discard 1' });
    expect(await discard.isDisabled()).toBe(true);
    await page.getByLabel('Type the number of letters').fill('1');
    await discard.click();
    await page.getByText('Deleted: 1 letter.').waitFor();
    expect(world.fake.asked.findLast(([name]) => name === 'discardDeadLetters')?.[1]).toEqual({ body: { ids: ['letter-1'] } });
  });

  it('says when the registry cannot be reached, and continues when it answers', async () => {
    const { page, context } = await open({});
    await openPanel(page, world.url);
    expect(await page.title()).toBe('Overview · Tally');
    await context.setOffline(true);
    await follow(page, 'activity');
    await page.locator('.banner', { hasText: 'The registry cannot be reached.' }).waitFor();
    await context.setOffline(false);
    await page.getByRole('region', { name: 'Jobs' }).waitFor();
    await page.locator('.banner', { hasText: 'The registry cannot be reached.' }).waitFor({ state: 'detached' });
  });

  it('shows an error as an error, without the rows of the search before', async () => {
    let isBroken = true;
    const broken = await startPanelWorld({
      operations: {
        searchObjects: async ({ query }) => {
          if (query.query === 'dog' && isBroken) throw new RequestError('request.overloaded', 'too many searches');
          return { items: [objectDocument] };
        },
      },
    });
    const { page } = await open();
    await openPanel(page, broken.url, '?page=search&query=cat');
    await page.getByLabel('Search for').fill('dog');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('region', { name: 'Objects found' }).count()).toBe(0);
    expect(await page.getByRole('alert').innerText()).toContain('too many searches');
    isBroken = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('region', { name: 'Objects found' }).waitFor();
    await broken.close();
  });

  it('asks for the facets when the results are there, and shows the results while the facets take long', async () => {
    let answerFacets: () => void = () => undefined;
    const asked: string[] = [];
    const fake = createFakeControl().checked;
    const slow = await startPanelWorld({
      operations: {
        searchObjects: async () => {
          asked.push('results');
          return { items: [objectDocument] };
        },
        getUsage: async (...request) => {
          asked.push('facets');
          await new Promise<void>((resolve) => (answerFacets = resolve));
          return fake.getUsage(...request);
        },
      },
    });
    const { page } = await open();
    await openPanel(page, slow.url, '?page=search&query=part');
    await page.getByRole('region', { name: 'Objects found' }).waitFor();
    await expect.poll(() => asked).toEqual(['results', 'facets']);
    expect(await page.locator('.facets').count()).toBe(0);
    answerFacets();
    await page.locator('.facets').waitFor({ state: 'attached' });
    await slow.close();
  });

  it('Bug: of a key the beginning of the folder is cut, never the name nor what differs, however wide the screen is', async () => {
    const folder = 'warehouse/'.repeat(12);
    const names = ['short.txt', `part-00017-${'4f0c9b1e-'.repeat(9)}c000.snappy.parquet`, '2026 דוח שנתי.pdf'];
    const items = ['', 'photos/', `${folder}day=1/`, `${folder}day=2/`].flatMap((each) =>
      names.map((name) => ({ ...objectDocument, key: each + name })),
    );
    const long = await startPanelWorld({ operations: { searchObjects: async () => ({ items }) } });
    const { page } = await open({});
    for (const width of [390, 768, 1_440]) {
      await page.setViewportSize({ width, height: 800 });
      await openPanel(page, long.url, '?page=search&query=part');
      const rows = page.getByRole('region', { name: 'Objects found' }).getByRole('rowheader');
      // whether the name is whole, and whether the end of the folder is seen
      const seen = await rows.evaluateAll((cells) =>
        cells.map((cell) => {
          const { left, right } = cell.getBoundingClientRect();
          const name = cell.querySelector('.key > .text')?.getBoundingClientRect();
          const box = cell.querySelector('.folder')?.getBoundingClientRect();
          const whole = cell.querySelector('.folder .text')?.getBoundingClientRect();
          const isNameWhole = name !== undefined && name.left >= left - 1 && name.right <= right + 1;
          return [isNameWhole, box === undefined || whole === undefined || (box.width > 15 && whole.right <= box.right + 1)];
        }),
      );
      expect(seen, `${width} pixels`).toEqual(items.map(() => [true, true]));
    }
    await long.close();
  });
});
