/**
 * Every page of the panel in Chromium with answers in which every text attacks it: policy, console, markup, addresses,
 * accessibility, small screens, dark screens and the keyboard. The pages are those of support/panel/pages.ts.
 */
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { createFakeControl, runningJob } from '../support/fakes/control.ts';
import { hostileOperations } from '../support/fakes/hostile.ts';
import { canBrowse, type Window } from '../support/identity/chromium.ts';
import { bearer, startHttpWorld } from '../support/identity/http-world.ts';
import { findingsOf } from '../support/panel/axe.ts';
import { panelPages, queryTo, type PanelPage } from '../support/panel/pages.ts';
import { inChromium, loadBuiltPanel, openPanel, overflowOf, settled } from '../support/worlds/panel.ts';

/** No page has as many places for the focus. */
const TABS_MAX = 200;

const HREFS = `[...document.querySelectorAll('a')].map((link) => link.getAttribute('href') ?? '')`;
/** Notes that the element that has the focus was reached. Returns how it shows that, or what it is if it does not. */
const REACHED = `(() => {
  const element = document.activeElement;
  if (element === null || element === document.body) return 'none';
  // a field for a date is several stops
  if (element === window.lastReached) return 'same';
  window.lastReached = element;
  if (element.dataset.reached !== undefined) return 'again';
  element.dataset.reached = '';
  const { outlineStyle, boxShadow } = getComputedStyle(element);
  const { width, height } = element.getBoundingClientRect();
  const isSeen = (outlineStyle !== 'none' || boxShadow !== 'none') && width > 0 && height > 0;
  return isSeen ? 'seen' : 'unseen: ' + element.outerHTML.slice(0, 200);
})()`;
const NOT_REACHED = `[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
  .filter((element) => !element.disabled && element.tabIndex >= 0 && element.checkVisibility() && element.dataset.reached === undefined)
  .map((element) => element.outerHTML.slice(0, 200))`;
const FORGET = `document.querySelectorAll('[data-reached]').forEach((element) => delete element.dataset.reached)`;
/** Marks the button that has the focus, and notes where the focus is in the moment in which its dialog disappears. */
const NOTE_BACK = `(() => {
  const opener = document.activeElement;
  window.focusBack = 'a dialog that is open';
  const removed = new MutationObserver(() => {
    if (document.querySelector('dialog') !== null || window.focusBack !== 'a dialog that is open') return;
    window.focusBack = document.activeElement === opener ? 'opener' : document.activeElement.outerHTML.slice(0, 200);
    removed.disconnect();
  });
  window.watchDialog = () => removed.observe(document, { childList: true, subtree: true });
})()`;
const IS_IN_DIALOG = `document.activeElement?.closest('dialog') !== null || document.activeElement === document.body`;

/** Below this a person takes a page for one that stands still (https://web.dev/articles/cls). */
const JUMPS_MAX = 0.1;
/** Notes from the beginning on whether the content says that it is loading, and how far what is shown moves without a press. */
const NOTE_LOADING = `(() => {
  window.loading = { isSaid: false, jumps: [] };
  new MutationObserver(() => {
    window.loading.isSaid ||= document.querySelector('main#content [aria-busy="true"]') !== null;
  }).observe(document, { childList: true, subtree: true });
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries()) {
      if (!hadRecentInput) window.loading.jumps.push([value, ...sources.map(({ node }) => node?.outerHTML?.slice(0, 80))]);
    }
  }).observe({ type: 'layout-shift', buffered: true });
})()`;

describe.skipIf(!canBrowse('the pages of the panel in Chromium'))('the pages of the panel in Chromium', () => {
  const { world, open: openWindow } = inChromium(() => {
    const fake = createFakeControl();
    const operations = hostileOperations({ ...fake.checked, getJob: async () => ({ ...runningJob, state: 'done' }) });
    return startHttpWorld({ operations, loadPanel: loadBuiltPanel });
  });

  /** A window of a person who has logged in. `refused`: what was answered with 403. */
  async function open(role: 'user' | 'admin'): Promise<Window & { readonly refused: readonly string[] }> {
    const window = await openWindow(undefined, { extraHTTPHeaders: bearer(await world().tokenOf(role)) });
    const refused: string[] = [];
    window.context.on('response', (response) => {
      if (response.status() === 403) refused.push(response.url());
    });
    return { ...window, refused };
  }

  async function openDialog(page: Page, opener: RegExp): Promise<void> {
    const button = page.getByRole('button', { name: opener }).first();
    await button.focus();
    await page.evaluate(NOTE_BACK);
    await button.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.evaluate('window.watchDialog()');
    await settled(page);
  }

  async function closeDialog(page: Page): Promise<void> {
    await page.keyboard.press('Escape');
    // by its element: one that is closed has no role, and is removed a moment later
    await page.locator('dialog').waitFor({ state: 'detached' });
    await settled(page);
  }

  /** What a text has made that should be shown. */
  async function textFaultsOf(page: Page): Promise<readonly string[]> {
    const hrefs = await page.evaluate<readonly string[]>(HREFS);
    const bad = hrefs.filter((href) => !/^(?:\?|#|\.\.\/|https?:\/\/127\.0\.0\.1:\d+\/)/.test(href));
    const made = await page.locator('img, iframe, object, embed, #panel script').count();
    return [...bad.map((href) => `leads to ${href}`), ...(made > 0 ? [`${made} elements were made of a text`] : [])];
  }

  /** What is wrong with the page that is shown. */
  async function faultsOf(page: Page, row: PanelPage): Promise<readonly string[]> {
    const heading = await page.getByRole('heading', { level: 1 }).innerText();
    const overflow = await overflowOf(page);
    return [
      ...(heading.startsWith(row.heading) ? [] : [heading]),
      ...(await page.getByRole('alert').allInnerTexts()),
      ...(await textFaultsOf(page)),
      ...(overflow > 0 ? [`${overflow} pixels wider than the screen`] : []),
    ].map((fault) => `${row.name}: ${fault}`);
  }

  /** What happened while the page that is shown was loading: it must say that it loads, and what is shown must stay where it is. */
  async function loadingFaultsOf(page: Page, row: PanelPage): Promise<readonly string[]> {
    const { isSaid, jumps } = await page.evaluate<{ isSaid: boolean; jumps: readonly (readonly [number, ...string[]])[] }>(
      'window.loading',
    );
    // a wall takes the whole screen once there is something to see
    const moved = row.choices?.['wall'] === undefined ? jumps.reduce((sum, [value]) => sum + value, 0) : 0;
    return [
      ...(row.name !== 'unknown' && !isSaid ? ['does not say that it loads'] : []),
      ...(moved > JUMPS_MAX ? [`jumps by ${moved}: ${JSON.stringify(jumps)}`] : []),
    ].map((fault) => `${row.name} ${row.choices?.['tab'] ?? ''}: ${fault}`);
  }

  it('are refused to a user as a page, and ask nothing then', async () => {
    const { page, complaints, refused } = await open('user');
    for (const row of panelPages.filter(({ isForAdmins = false }) => isForAdmins)) {
      await openPanel(page, world().url, queryTo(row));
      expect(await faultsOf(page, { ...row, heading: 'Not permitted' })).toEqual([]);
    }
    expect(refused).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it('work with the keyboard alone, dialogs keep the focus and give it back, and axe finds nothing, light and dark', async () => {
    const { page, context, complaints, refused } = await open('admin');
    await context.addInitScript({ content: NOTE_LOADING });
    const faults: string[] = [];
    for (const row of panelPages) {
      await openPanel(page, world().url, queryTo(row));
      faults.push(...(await loadingFaultsOf(page, row)), ...(await faultsOf(page, row)));
      faults.push(...(await tabThrough(page)).map((fault) => `${row.name}: ${fault}`));
      faults.push(...(await findingsOf(page, row.name)));
      for (const dialog of row.dialogs ?? []) faults.push(...(await dialogFaultsOf(page, `${row.name}, dialog ${String(dialog)}`, dialog)));
    }
    expect(faults).toEqual([]);
    expect(refused).toEqual([]);
    expect(complaints).toEqual([]);
  });

  /** Opens a dialog, looks at it and closes it. Returns what is wrong with it. */
  async function dialogFaultsOf(page: Page, name: string, dialog: RegExp): Promise<readonly string[]> {
    const faults: string[] = [];
    await openDialog(page, dialog);
    await page.evaluate(FORGET);
    for (let presses = 0; presses < 12; presses++) {
      if (!(await page.evaluate<boolean>(IS_IN_DIALOG))) faults.push(`${name}: the focus leaves it`);
      await page.keyboard.press('Tab');
    }
    faults.push(...(await findingsOf(page, name, 'dialog')), ...(await textFaultsOf(page)).map((fault) => `${name}: ${fault}`));
    await closeDialog(page);
    const back = await page.evaluate<string>('window.focusBack');
    if (back !== 'opener') faults.push(`${name}: the focus is not given back, but is at ${back}`);
    return faults;
  }

  /** Presses Tab until every control was reached: from the content to the end, and from the beginning again. */
  async function tabThrough(page: Page): Promise<readonly string[]> {
    const faults: string[] = [];
    const left = () => page.evaluate<readonly string[]>(NOT_REACHED);
    for (let presses = 0; presses < TABS_MAX; presses++) {
      await page.keyboard.press('Tab');
      const reached = await page.evaluate<string>(REACHED);
      if (reached.startsWith('unseen')) faults.push(reached);
      // what came while the keys were pressed is reached in the next round
      if (reached === 'again' && (await left()).length === 0) break;
    }
    return [...faults, ...(await left()).map((html) => `not reached: ${html}`)];
  }
});
