/**
 * Ways through the panel in Chromium: what takes a moment, what fails or is left meanwhile, and what is read again. panel-pages.test.ts has every page,
 * panel-trouble.test.ts what a person does about trouble.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Job } from '../../src/registry/contract/job.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { auditRecord, createFakeControl, objectDocument, runningJob } from '../support/fakes/control.ts';
import { canBrowse } from '../support/identity/chromium.ts';
import { startFront } from '../support/servers/front.ts';
import { follow, openPanel, inChromium, startPanelWorld } from '../support/worlds/panel.ts';

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
/** Whatever was asked before has its answer after it. */
const ASK_ONCE = 'new Promise((resolve) => fetch("../v1/session").then(() => resolve()))';

describe.skipIf(!canBrowse('the panel in Chromium'))('the panel in Chromium', () => {
  const gate = createGate();
  const fake = createFakeControl();
  let job: Job;
  let isBroken = false;
  /** In the order in which they are asked for. */
  const asked: string[] = [];

  const { world, open } = inChromium(() =>
    startPanelWorld({
      operations: {
        startReindex: async () => {
          await gate.passed();
          return runningJob;
        },
        getJob: async () => job,
        // the newest first: an act that failed, and one whose process was killed
        listAudit: async () => ({
          items: [
            { ...auditRecord, id: 'audit-3' },
            { ...auditRecord, id: 'audit-2', outcome: 'intended' as const },
            { ...auditRecord, id: 'audit-1', outcome: 'intended' as const, request_id: 'request-0' },
          ],
        }),
        listGaps: async (...request: Parameters<typeof fake.checked.listGaps>) => {
          await gate.passed();
          return fake.checked.listGaps(...request);
        },
        searchObjects: async ({ query }: Parameters<typeof fake.checked.searchObjects>[0]) => {
          if (query.query === 'dog' && isBroken) throw new RequestError('request.overloaded', 'too many searches');
          asked.push('results');
          return { items: [objectDocument] };
        },
        getUsage: async (...request: Parameters<typeof fake.checked.getUsage>) => {
          asked.push('facets');
          await gate.passed();
          return fake.checked.getUsage(...request);
        },
      },
    }),
  );
  beforeEach(() => {
    job = runningJob;
    isBroken = false;
    asked.length = 0;
  });
  afterEach(() => gate.open());

  it('follows a job through a lost connection, behind the prefix of a proxy, until it has ended', async () => {
    const proxy = await startFront({ prefix: '/x/y', saysSo: false });
    proxy.leadsTo(world().url);
    const { page } = await open(undefined, {});
    await page.clock.install();
    await openPanel(page, proxy.url, '?page=job&id=job-1');
    await page.getByText('running, 25 %').waitFor();
    proxy.cut();
    job = { ...runningJob, progress: 0.75 };
    await page.clock.fastForward(2_000);
    await page.getByText('running, 75 %').waitFor();
    job = { ...runningJob, state: 'done' };
    await page.clock.fastForward(2_000);
    await page.locator('.state', { hasText: 'done' }).waitFor();
    let reads = 0;
    page.on('request', (request) => void (request.url().endsWith('/v1/jobs/job-1') && (reads += 1)));
    await page.clock.fastForward(60_000);
    await page.evaluate(ASK_ONCE);
    expect(reads).toBe(0);
    await proxy.close();
  });

  it('discards no more letters than were seen, and only when their number is typed', async () => {
    const { page } = await open('?page=letters');
    await page.getByRole('button', { name: 'Discard…' }).click();
    const discard = page.getByRole('dialog').getByRole('button', { name: 'Discard 1' });
    expect(await discard.isDisabled()).toBe(true);
    await page.getByLabel('Type the number of letters').fill('1');
    await discard.click();
    await page.getByText('Deleted: 1 letter.').waitFor();
    expect(world().fake.asked.findLast(([name]) => name === 'discardDeadLetters')?.[1]).toEqual({ body: { ids: ['letter-1'] } });
  });

  it('says when the registry cannot be reached, and continues when it answers', async () => {
    const { page, context } = await open(undefined, {});
    await openPanel(page, world().url);
    expect(await page.title()).toBe('Overview · Tally');
    await context.setOffline(true);
    await follow(page, 'activity');
    await page.locator('.banner', { hasText: 'The registry does not answer.' }).waitFor();
    await context.setOffline(false);
    await page.getByRole('region', { name: 'Jobs' }).waitFor();
    await page.locator('.banner', { hasText: 'The registry does not answer.' }).waitFor({ state: 'detached' });
  });

  it('shows an error as an error, without the rows of the search before', async () => {
    isBroken = true;
    const { page } = await open('?page=search&query=cat');
    await page.getByLabel('Search for').fill('dog');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('region', { name: 'Objects found' }).count()).toBe(0);
    expect(await page.getByRole('alert').innerText()).toContain('too many searches');
    isBroken = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('region', { name: 'Objects found' }).waitFor();
  });

  it('Bug: of a key the beginning of the folder is cut, never the name nor what differs, however wide the screen is', async () => {
    const folder = 'warehouse/'.repeat(12);
    const names = ['short.txt', `part-00017-${'4f0c9b1e-'.repeat(9)}c000.snappy.parquet`, '2026 דוח שנתי.pdf'];
    const items = ['', 'photos/', `${folder}day=1/`, `${folder}day=2/`].flatMap((each) =>
      names.map((name) => ({ ...objectDocument, key: each + name })),
    );
    const long = await startPanelWorld({ operations: { searchObjects: async () => ({ items }) } });
    const { page } = await open(undefined, {});
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

  it('keeps a dialog open until its act has its answer, which leads nowhere after the page was left', async () => {
    const { page } = await open('?page=bucket&bucket=photos');
    await page.getByRole('button', { name: 'Re-Index and Repair' }).click();
    let sent = 0;
    page.on('request', (request) => void (request.method() === 'POST' && (sent += 1)));
    gate.close();
    // a person who sees no answer presses again
    await page.getByRole('button', { name: 'Start' }).dblclick();
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
    await page.getByText('The re-index of photos has started.').waitFor();
    expect(sent).toBe(1);
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Dead letters');
  });

  it('does not read again before an answer came, nor while it is not seen, and at once when it is seen again', async () => {
    const { page } = await open(undefined, {});
    await page.clock.install();
    await openPanel(page, world().url, '?page=activity');
    let reads = 0;
    const isOpen = (message: { url(): string }): boolean => /[/]v1[/]gaps[?](?!.*closed)/.test(message.url());
    page.on('request', (request) => void (isOpen(request) && (reads += 1)));
    gate.close();
    await page.clock.fastForward(10_000);
    await page.clock.fastForward(10_000);
    await page.clock.fastForward(10_000);
    await page.evaluate(ASK_ONCE);
    expect(reads).toBe(1);
    const answer = page.waitForResponse(isOpen);
    gate.open();
    await (await answer).finished();
    await page.evaluate(HIDE);
    await page.clock.fastForward(60_000);
    await page.evaluate(ASK_ONCE);
    expect(reads).toBe(1);
    const seen = page.waitForRequest(isOpen);
    await page.evaluate(SHOW);
    await seen;
  });

  it('shows an act of the audit as one row, with the outcome of its second record, on a day in UTC', async () => {
    const { page } = await open();
    const request = page.waitForRequest((each) => each.url().includes('/v1/admin/audit'));
    await openPanel(page, world().url, '?page=audit&day=2026-03-29');
    expect(new URL((await request).url()).searchParams.get('date')).toBe('2026/03/29');
    const rows = page.getByRole('region', { name: 'Audited actions' }).getByRole('row');
    expect(await rows.count()).toBe(3);
    // Bug: it said that the bucket was disconnected
    expect(await rows.nth(1).innerText()).toMatch(/disconnect a bucket.*failed/s);
    expect(await rows.nth(2).innerText()).toContain('outcome unknown');
  });
});
