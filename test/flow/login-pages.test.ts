/** The pages of a login in Chromium, as people with small screens, keyboards and dark screens have them, and with texts that attack them. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { listen } from '../../src/client/listener.ts';
import { canBrowse, openWindow, startChromium, type Window } from '../support/identity/chromium.ts';
import type { Person } from '../support/identity/provider.ts';
import { startBrowserWorld, type BrowserWorld } from '../support/worlds/browser.ts';

const ALICE: Person = { sub: 's-alice', email: 'alice@example.com', email_verified: true, groups: ['tally-users'] };
/** An address without a space, as an address must be. */
const HOSTILE_EMAIL = '"><img/src=x/onerror=alert(1)><script>alert(2)</script>@example.com';
const HOSTILE_MACHINE = '<img src=x onerror=alert(3)>"\'&amp;<script>alert(4)</script>';

describe.skipIf(!canBrowse('the pages of a login in Chromium'))('the pages of a login in Chromium', () => {
  let world: BrowserWorld;
  let browser: Browser;
  /** The program that waits for the browser. */
  let program: Server;
  let redirectUri: string;
  const windows: Window[] = [];

  beforeAll(async () => {
    [world, browser] = await Promise.all([startBrowserWorld(), startChromium()]);
    program = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<!doctype html><p>the program has it'));
    await new Promise<void>((resolve) => void program.listen(0, '127.0.0.1', resolve));
    redirectUri = `http://127.0.0.1:${(program.address() as AddressInfo).port}/callback`;
  });
  afterEach(async () => {
    for (const { context } of windows.splice(0)) await context.close();
  });
  afterAll(async () => {
    await browser?.close();
    await world?.close();
    program?.closeAllConnections();
    await new Promise((resolve) => void program?.close(resolve));
  });

  async function open(options: Parameters<typeof openWindow>[1], person: Person = ALICE): Promise<Window> {
    world.provider.personIs(person);
    const window = await openWindow(browser, options);
    windows.push(window);
    return window;
  }

  /** Opens the page on which the person decides. */
  const ask = (page: Page, machine = 'laptop', more: Readonly<Record<string, string>> = { state: 'mine', redirect_uri: redirectUri }) =>
    page.goto(world.authorize({ ...more, machine }));
  const paste = { no_browser: 'true' };

  /** How far what is shown is wider than the screen, in pixels. */
  const overflow = (page: Page): Promise<number> =>
    page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');

  it.each([
    ['a usual name', ALICE, 'laptop'],
    ['names without a place to break', { ...ALICE, email: `${'a'.repeat(200)}@example.com` }, 'm'.repeat(100)],
  ])('fit on a screen of 360 pixels, with %s', async (_, person, machine) => {
    const { page, complaints } = await open({ viewport: { width: 360, height: 640 }, isMobile: true, hasTouch: true }, person);
    await ask(page, machine, paste);
    expect(await overflow(page)).toBe(0);
    const allow = page.getByRole('button', { name: 'Allow' });
    for (const button of [allow, page.getByRole('button', { name: 'Refuse' })])
      // WCAG 2.5.5: a finger meets 44 pixels
      expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(44);
    await allow.tap();
    await page.getByLabel('Login code').waitFor();
    expect(await overflow(page)).toBe(0);
    expect(complaints).toEqual([]);
  });

  it('that report a problem fit there too', async () => {
    const { page, complaints } = await open({ viewport: { width: 360, height: 640 }, isMobile: true });
    const answer = await page.goto(`${world.url}/login/consent`);
    expect(answer?.status()).toBe(400);
    expect(await page.getByRole('heading').innerText()).toBe('The login did not succeed');
    expect(await overflow(page)).toBe(0);
    // Chromium reports every answer of 400 itself
    expect(complaints.filter((text) => !text.includes('status of 400'))).toEqual([]);
  });

  it('of programs fit there too, and follow a dark screen', async () => {
    const { page, complaints } = await open({ viewport: { width: 360, height: 640 }, isMobile: true, colorScheme: 'dark' });
    const listener = await listen('mine');
    void listener.returned.then((returned) => returned.show({ title: 'The login failed', text: HOSTILE_MACHINE }));
    await page.goto(`${listener.address}?state=mine&code=x`);
    expect(await page.locator('p').innerText()).toContain(HOSTILE_MACHINE);
    expect(await overflow(page)).toBe(0);
    expect(await page.evaluate('matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.body).color')).toBe(
      'rgb(255, 255, 255)',
    );
    expect(complaints).toEqual([]);
    listener.close();
  });

  it('work with the keyboard alone', async () => {
    const { page, complaints } = await open({});
    const focused = (): Promise<string> => page.evaluate('document.activeElement.textContent.trim()');
    await ask(page);
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Allow');
    const outline = 'getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth';
    expect(await page.evaluate(outline)).toBe('solid3px');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Refuse');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByText('the program has it').waitFor();
    expect(new URL(page.url()).searchParams.get('code')).toMatch(/^\w{44}$/);

    await ask(page, 'notebook', paste);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    const code = page.getByLabel('Login code');
    await code.waitFor();
    await expect.poll(focused).toBe(await code.innerText());
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Copy the code');
    expect(complaints).toEqual([]);
  });

  it('tell a screen reader what is asked, and what happened', async () => {
    const { page } = await open({});
    await ask(page, 'notebook', paste);
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe('Log in to Tally on notebook?');
    expect(await page.evaluate('document.documentElement.lang')).toBe('en');
    await page.getByRole('button', { name: 'Refuse' }).click();
    await page.getByRole('status').getByText('The login was refused').waitFor();
  });

  it('show names that attack the page as text', async () => {
    const { page, complaints } = await open({}, { ...ALICE, email: HOSTILE_EMAIL });
    await ask(page, HOSTILE_MACHINE);
    expect(await page.locator('img, dd script, h1 script').count()).toBe(0);
    const [email, , machine] = await page.locator('dd').allInnerTexts();
    expect([email, machine]).toEqual([HOSTILE_EMAIL, HOSTILE_MACHINE]);
    await page.getByRole('button', { name: 'Refuse' }).click();
    await page.getByText('the program has it').waitFor();
    expect(complaints).toEqual([]);
  });

  it('show the name of a person who may not log in as text', async () => {
    const { page, complaints } = await open({}, { sub: 's-eve', email: HOSTILE_EMAIL, groups: [] });
    await page.goto(`${world.url}/login/authorize?return_to=/v1/session`);
    expect(await page.locator('main').innerText()).toContain(`${HOSTILE_EMAIL} (not verified) may not log in`);
    expect(await page.locator('img, script').count()).toBe(0);
    expect(complaints.filter((text) => !text.includes('status of 403'))).toEqual([]);
  });

  it('show characters that turn or hide others as what they are', async () => {
    const turned = '\u202Emoc.elpmaxe@ecila\u202C';
    const { page, complaints } = await open({}, { ...ALICE, sub: `s-${turned}`, email: turned });
    await ask(page);
    expect((await page.locator('dd').allInnerTexts())[0]).toContain('s-\\u{202e}moc.elpmaxe@ecila\\u{202c}@');
    const refused = await page.goto(world.authorize({ ...paste, machine: `a\u202Eb` }));
    expect(refused?.status()).toBe(400);
    expect(await page.locator('main').innerText()).toContain('printable characters');
    expect(complaints.filter((text) => !text.includes('status of 400'))).toEqual([]);
  });

  it('run no script that got into them, and load nothing', async () => {
    const { page, complaints } = await open({});
    await ask(page);
    await page.evaluate(
      `document.querySelector('main').insertAdjacentHTML('beforeend', '<img src=x onerror=alert(5)><button onclick=alert(6)>Planted</button>')`,
    );
    await page.getByText('Planted').click();
    await expect.poll(() => complaints.filter((text) => text.includes('policy: ')).length).toBeGreaterThanOrEqual(3);
    expect(complaints.join()).toContain('policy: img-src');
    expect(complaints.join()).toContain('policy: script-src-attr');
    expect(complaints.join()).not.toContain('dialog');
  });

  it('without scripts say what is missing', async () => {
    const { page } = await open({ javaScriptEnabled: false });
    await ask(page);
    expect(await page.locator('noscript').innerText()).toContain('This page needs JavaScript.');
  });

  it.each(['light', 'dark'] as const)('can be read on a %s screen', async (colorScheme) => {
    const { page, complaints } = await open({ colorScheme });
    await ask(page);
    const back = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    expect(luminanceOf(back) > 0.5).toBe(colorScheme === 'light');
    // WCAG 1.4.3
    expect(contrastOf(await page.evaluate('getComputedStyle(document.body).color'), back)).toBeGreaterThanOrEqual(4.5);
    const [text, own] = await page.evaluate<[string, string]>(
      '(({ color, backgroundColor }) => [color, backgroundColor])(getComputedStyle(document.querySelector("button.main")))',
    );
    expect(contrastOf(text, own)).toBeGreaterThanOrEqual(4.5);
    // WCAG 1.4.11: what can be pressed is seen to be there
    const border = await page.evaluate<string>('getComputedStyle(document.querySelector("button:not(.main)")).borderTopColor');
    expect(contrastOf(border, back)).toBeGreaterThanOrEqual(3);
    expect(complaints).toEqual([]);
  });
});

/** The relative luminance of `rgb(r, g, b)`, as WCAG defines it. */
function luminanceOf(color: string): number {
  const [red = 0, green = 0, blue = 0] = [...color.matchAll(/\d+/g)].map(([part]) => {
    const share = Number(part) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrastOf(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminanceOf(one), luminanceOf(other)].toSorted((left, right) => left - right);
  return (lighter + 0.05) / (darker + 0.05);
}
