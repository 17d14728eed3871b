/** What takes a moment in the panel in Chromium: acts that are left or closed meanwhile, reads that overlap, and secrets. */
import type { Job } from '../../src/registry/contract/job.ts';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { auditRecord, createFakeControl, runningJob } from '../support/fakes/control.ts';
import { canBrowse, createWindows, startChromium, type Window } from '../support/identity/chromium.ts';
import { follow, openPanel, startPanelWorld, type PanelWorld } from '../support/worlds/panel.ts';

/** Answers that wait until they are let go. */
function createGate() {
  let letGo: () => void = () => undefined;
  let opened = Promise.resolve();
  return {
    close: (): void => {
      opened = new Promise((resolve) => (letGo = resolve));
    },
    open: (): void => letGo(),
    passed: (): Promise<void> => opened,
  };
}

const HIDE = `Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => 'hidden' });
document.dispatchEvent(new Event('visibilitychange'))`;
const SHOW = `delete document.visibilityState; document.dispatchEvent(new Event('visibilitychange'))`;

describe.skipIf(!canBrowse('acts of the panel in Chromium'))('the panel in Chromium, while something takes a moment', () => {
  const gate = createGate();
  let shown: Job = runningJob;
  const fake = createFakeControl();
  let world: PanelWorld;
  let browser: Browser;
  const windows = createWindows();

  beforeAll(async () => {
    const operations = {
      startReindex: async () => {
        await gate.passed();
        return runningJob;
      },
      getJob: async () => shown,
      // the newest first: an act that failed, and one whose process was killed
      listAudit: async () => ({
        items: [
          { ...auditRecord, id: 'audit-3' },
          { ...auditRecord, id: 'audit-2', outcome: 'intended' as const },
          { ...auditRecord, id: 'audit-1', outcome: 'intended' as const, request_id: 'request-0' },
        ],
      }),
      listGaps: async (...asked: Parameters<typeof fake.checked.listGaps>) => {
        await gate.passed();
        return fake.checked.listGaps(...asked);
      },
    };
    [world, browser] = await Promise.all([startPanelWorld({ operations }), startChromium()]);
  });
  afterEach(async () => {
    gate.open();
    await windows.empty(`${world.url}/livez`);
  });
  afterAll(async () => {
    await browser?.close();
    await world?.close();
  });

  const open = (options?: BrowserContextOptions): Promise<Window> => windows.open(browser, options);

  it('keeps a dialog open until its act has its answer, which leads nowhere after the page was left', async () => {
    const { page } = await open();
    await openPanel(page, world.url, '?page=bucket&bucket=photos');
    await page.getByRole('button', { name: 'Re-Index and Repair' }).click();
    let sent = 0;
    page.on('request', (request) => void (request.method() === 'POST' && (sent += 1)));
    gate.close();
    // a person who sees no answer presses again
    await page.getByRole('button', { name: 'Start the re-index' }).dblclick();
    await page.locator('dialog[closedby="none"]').waitFor();
    await page.evaluate(`document.querySelector('dialog form').requestSubmit()`);
    // Chromium closes a dialog at the second Escape without asking
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    expect(await page.getByRole('button', { name: 'Cancel' }).isDisabled()).toBe(true);
    expect(await page.getByRole('dialog').count()).toBe(1);
    await page.evaluate(`document.querySelector('a[href="?page=letters"]').click()`);
    await page.getByRole('heading', { name: 'Dead letters' }).waitFor();
    gate.open();
    await page.getByText('The re-index of photos has begun.').waitFor();
    expect(sent).toBe(1);
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Dead letters');
  });

  it('does not read again before an answer came, nor while it is not seen, and at once when it is seen again', async () => {
    const { page } = await open({});
    await page.clock.install();
    await openPanel(page, world.url, '?page=activity');
    let asked = 0;
    const isOpen = (message: { url(): string }): boolean => /[/]v1[/]gaps[?](?!.*closed)/.test(message.url());
    page.on('request', (request) => void (isOpen(request) && (asked += 1)));
    gate.close();
    await page.clock.fastForward(10_000);
    await page.clock.fastForward(10_000);
    await page.clock.fastForward(10_000);
    await page.evaluate('new Promise((resolve) => fetch("../v1/session").then(() => resolve()))');
    expect(asked).toBe(1);
    const answer = page.waitForResponse(isOpen);
    gate.open();
    await (await answer).finished();
    await page.evaluate(HIDE);
    await page.clock.fastForward(60_000);
    await page.evaluate('new Promise((resolve) => fetch("../v1/session").then(() => resolve()))');
    expect(asked).toBe(1);
    const seen = page.waitForRequest(isOpen);
    await page.evaluate(SHOW);
    await seen;
  });

  it('reads a job every 2 s until it has ended, while it is seen', async () => {
    const { page } = await open();
    await page.clock.install();
    const isJob = (message: { url(): string }): boolean => message.url().endsWith('/v1/jobs/job-1');
    await openPanel(page, world.url, '?page=job&id=job-1');
    await page.getByText('running, 25 %').waitFor();
    await page.evaluate(HIDE);
    let asked = 0;
    page.on('request', (request) => void (isJob(request) && (asked += 1)));
    await page.clock.fastForward(60_000);
    await page.evaluate('new Promise((resolve) => fetch("../v1/session").then(() => resolve()))');
    expect(asked).toBe(0);
    await page.evaluate(SHOW);
    await page.getByText('running, 25 %').waitFor();
    shown = { ...runningJob, state: 'done', progress: 1 };
    const last = page.waitForResponse(async (response) => isJob(response) && (await response.text()).includes('"done"'));
    await page.clock.fastForward(2_000);
    await (await last).finished();
    await page.getByRole('button', { name: 'Pause the job' }).waitFor({ state: 'detached' });
    asked = 0;
    await page.clock.fastForward(60_000);
    await page.evaluate('new Promise((resolve) => fetch("../v1/session").then(() => resolve()))');
    expect(asked).toBe(0);
  });

  it('shows an act of the audit as one row, with the outcome of its second record', async () => {
    const { page } = await open();
    await openPanel(page, world.url, '?page=audit');
    const rows = page.getByRole('region', { name: 'Acts of the audit' }).getByRole('row');
    expect(await rows.count()).toBe(3);
    expect(await rows.nth(1).innerText()).toContain('disconnected a bucket');
    expect(await rows.nth(1).innerText()).toContain('failed');
    expect(await rows.nth(2).innerText()).toContain('no end is recorded');
  });

  it('reads a day of the audit in UTC, and says that a day is none', async () => {
    const { page } = await open();
    const request = page.waitForRequest((each) => each.url().includes('/v1/admin/audit'));
    await openPanel(page, world.url, '?page=audit&day=2026-03-29');
    expect(new URL((await request).url()).searchParams.get('date')).toBe('2026/03/29');
    await openPanel(page, world.url, '?page=audit&day=abc');
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Audit');
    await page.getByRole('alert').waitFor();
    await follow(page, 'letters');
    await page.getByRole('region', { name: 'Dead letters' }).waitFor();
  });
});
