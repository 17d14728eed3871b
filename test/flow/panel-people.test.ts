/** The panel of people who log in: what a user and an administrator see, and that no control answers 403. */
import type { Browser, Page, Response } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Person } from '../support/identity/provider.ts';
import { canBrowse, openWindow, startChromium, type Window } from '../support/identity/chromium.ts';
import { startBrowserWorld, type BrowserWorld } from '../support/worlds/browser.ts';
import { openPanel, settled } from '../support/worlds/panel.ts';

const USER = { sub: 's-alice', email: 'alice@example.com', email_verified: true, groups: ['tally-users'] };
const ADMIN = { sub: 's-root', email: 'root@example.com', email_verified: true, groups: ['tally-users', 'tally-admins'] };

/** All that a page keeps or has in its address: what is drawn and typed, where it was, what it read from where, what it stored. */
const KEPT = `JSON.stringify([
  document.documentElement.outerHTML, document.title, location.href, history.state, document.cookie, window.name,
  [...document.querySelectorAll('input, textarea')].map(({ value }) => value),
  performance.getEntries().map(({ name }) => name), { ...localStorage }, { ...sessionStorage },
])`;

const navigationOf = (page: Page): Promise<readonly string[]> => page.getByRole('navigation').getByRole('link').allInnerTexts();

describe.skipIf(!canBrowse('the panel of people in Chromium'))('the panel in Chromium, of a person who logs in', () => {
  let world: BrowserWorld;
  let browser: Browser;
  const windows: Window[] = [];

  beforeAll(async () => {
    [world, browser] = await Promise.all([startBrowserWorld(), startChromium()]);
  });
  afterEach(async () => {
    for (const { context } of windows.splice(0)) await context.close();
  });
  afterAll(async () => {
    await browser?.close();
    await world?.close();
  });

  /** Logs the person in from the panel. Collects the answers that refuse something. */
  async function logIn(person: Person, query = ''): Promise<Window & { readonly refused: readonly string[] }> {
    world.provider.personIs(person);
    const window = await openWindow(browser);
    windows.push(window);
    const refused: string[] = [];
    window.context.on('response', (response: Response) => {
      if (response.status() === 403) refused.push(response.url());
    });
    await openPanel(window.page, world.url, query);
    await window.page.getByRole('button', { name: 'Log in' }).click();
    await window.page.getByRole('navigation').waitFor();
    await settled(window.page);
    return { ...window, refused };
  }

  async function visitAll(page: Page): Promise<void> {
    for (const name of await navigationOf(page)) {
      await page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
      await settled(page);
      expect(await page.getByRole('alert').count(), name).toBe(0);
    }
  }

  /** Chromium reports the answer 401 before the login itself. */
  const complaintsOf = ({ complaints }: Window): readonly string[] => complaints.filter((text) => !text.includes('status of 401'));

  it('Fix: marks an address for which the issuer does not vouch', async () => {
    const { email_verified: _, ...unverified } = USER;
    const { page } = await logIn(unverified);
    expect(await page.getByRole('banner').innerText()).toContain('alice@example.com (not verified) (user)');
    const { page: other } = await logIn({ ...USER, sub: 's-verified' });
    expect(await other.getByRole('banner').innerText()).toContain('alice@example.com (user)');
  });

  it('shows a user what users may do, and returns to the page that was asked for', async () => {
    const window = await logIn(USER, '?page=gaps&state=open');
    const { page, refused } = window;
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Gaps');
    expect(new URL(page.url()).search).toBe('?page=gaps&state=open');
    expect(await navigationOf(page)).toEqual(['Buckets', 'Search', 'Jobs', 'Gaps', 'API keys']);
    await visitAll(page);
    await page.goto(`${world.url}/panel/?page=bucket&bucket=demo`);
    await page.getByText('Topic identifier').or(page.getByText('Enrichment')).first().waitFor();
    for (const name of ['Re-Index and Repair', 'Save…', 'Disconnect…', 'Show the plan', 'Show the script', 'Pause notification…', 'Clean…'])
      expect(await page.getByRole('button', { name }).count(), name).toBe(0);
    expect(await page.getByRole('link', { name: 'Ask the doctor' }).count()).toBe(0);
    for (const hidden of ['doctor', 'letters', 'all-keys', 'users', 'audit', 'health']) {
      await openPanel(page, world.url, `?page=${hidden}`);
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Not permitted');
    }
    expect(refused).toEqual([]);
    expect(complaintsOf(window)).toEqual([]);
  });

  it('shows an administrator every page', async () => {
    const window = await logIn(ADMIN);
    expect(await navigationOf(window.page)).toEqual([
      'Buckets',
      'Search',
      'Jobs',
      'Gaps',
      'Dead letters',
      'API keys',
      'All API keys',
      'Users',
      'Audit',
      'Health',
    ]);
    await visitAll(window.page);
    expect(window.refused).toEqual([]);
    expect(complaintsOf(window)).toEqual([]);
  });

  it('shows the secret of a new key once, and the audit names who created it', async () => {
    const window = await logIn(ADMIN, '?page=keys');
    const { page } = window;
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('nightly <b>export</b>');
    await page.getByLabel('Days until it ends').fill('7');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const secret = await page.locator('.secret').innerText();
    expect(secret).toMatch(/^qk_[0-9A-Za-z]{49}$/);
    const answer = await fetch(`${world.url}/v1/session`, { headers: { authorization: `Bearer ${secret}` } });
    expect(answer.status).toBe(200);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByText('nightly <b>export</b>').first().waitFor();
    expect(await page.evaluate<string>(KEPT)).not.toContain(secret);
    // neither do Back and Forward show it again
    await page.getByRole('link', { name: 'Buckets' }).click();
    await page.goBack();
    await page.getByRole('button', { name: 'Create key' }).waitFor();
    await settled(page);
    expect(await page.evaluate<string>(KEPT)).not.toContain(secret);
    await page.reload();
    // it ends within 14 days
    await page.getByText('Your API key').waitFor();
    await page.getByRole('button', { name: 'Revoke nightly' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('You have no key.').waitFor();
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByRole('rowheader', { name: 'ApiKeyRevoke' }).first().waitFor();
    expect(await page.getByRole('region', { name: 'Records of the audit' }).innerText()).toContain('root@example.com');
    expect(complaintsOf(window)).toEqual([]);
  });

  it('keeps what was typed when the session ends, and continues after a login in another tab', async () => {
    const { page, context } = await logIn(USER, '?page=keys');
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('typed before the end');
    const cookies = await context.cookies();
    await context.clearCookies();
    const create = page.getByRole('dialog', { name: 'Create' });
    await create.getByRole('button', { name: 'Create' }).click();
    const ended = page.getByRole('dialog', { name: 'Your session has ended' });
    await ended
      .getByRole('link', { name: 'Log in' })
      .or(ended.getByRole('button', { name: 'Log in' }))
      .waitFor();
    await page.keyboard.press('Escape');
    await ended.getByRole('button', { name: 'Continue' }).click();
    // nobody has logged in yet
    await ended.waitFor();
    await context.addCookies(cookies);
    await ended.getByRole('button', { name: 'Continue' }).click();
    await ended.waitFor({ state: 'detached' });
    expect(await page.getByLabel('Name').inputValue()).toBe('typed before the end');
    await create.getByRole('button', { name: 'Create' }).click();
    await page.getByText(/qk_[0-9A-Za-z]{49}/).waitFor();
  });

  it('logs out', async () => {
    const { page } = await logIn(USER);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('button', { name: 'Log in' }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: 'Log in' }).waitFor();
  });
});
