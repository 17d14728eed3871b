/**
 * Chromium without a window: Debian's package, or the one that TALLY_TEST_CHROMIUM names. What its pages complain about is
 * collected: violations of their policy, errors and warnings of the console, and scripts that failed.
 */
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';
import { canRun, findProgram } from '../../docs/programs.ts';

const CHROMIUM = { name: 'chromium', variable: 'TALLY_TEST_CHROMIUM' };

/** Longer than anything takes on a machine that is ten times too busy, and shorter than a test may take. */
const PATIENCE_MS = 300_000;

/** Whether a suite can run; it says so where it cannot, and in CI that is an error. */
export function canBrowse(suite: string): boolean {
  return canRun(suite, [CHROMIUM]);
}

export function startChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: findProgram(CHROMIUM) ?? '',
    // CI runs as root, for which Chromium has no sandbox; the pages are those of the tests
    chromiumSandbox: false,
    // shared memory is 64 MB in a container
    args: ['--disable-dev-shm-usage'],
    timeout: PATIENCE_MS,
  });
}

export interface Window {
  readonly context: BrowserContext;
  readonly page: Page;
  /** What the pages of this window complained about so far. */
  readonly complaints: readonly string[];
}

interface Kept extends Window {
  readonly complaints: string[];
}

/** The console is the one way out of a page that its policy does not close. */
const REPORT_VIOLATIONS = `addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.effectiveDirective + ' ' + event.blockedURI + ' ' + event.sample));`;

/** A window with cookies and permissions of its own. */
export async function openWindow(browser: Browser, options: BrowserContextOptions = {}): Promise<Kept> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE_MS);
  const complaints: string[] = [];
  context.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`${message.type()}: ${message.text()} (${message.location().url})`);
  });
  context.on('weberror', (error) => complaints.push(`script: ${error.error().message}`));
  context.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await context.addInitScript({ content: REPORT_VIOLATIONS });
  return { context, page: await context.newPage(), complaints };
}

/**
 * The windows of one test file. For each new window Chromium starts a process, which costs more than to load the panel three
 * times: tests that ask for nothing special have one window after another, emptied in between.
 */
export function createWindows() {
  let kept: Kept | undefined;
  const own: Window[] = [];

  return {
    /** Without options the window is the one that is kept. Who changes what a window is (its clock, its network) asks for `{}`. */
    async open(browser: Browser, options?: BrowserContextOptions): Promise<Window> {
      if (options === undefined) return (kept ??= await openWindow(browser));
      const window = await openWindow(browser, options);
      own.push(window);
      return window;
    },

    /** After each test. `quietUrl`: a page of the registry that asks it nothing, so that nothing of the test goes on. */
    async empty(quietUrl: string): Promise<void> {
      for (const { context } of own.splice(0)) await context.close();
      if (kept === undefined) return;
      const { context, page, complaints } = kept;
      await page.goto(quietUrl);
      await page.evaluate('localStorage.clear(); sessionStorage.clear()');
      await context.clearCookies();
      await context.clearPermissions();
      complaints.splice(0);
    },
  };
}
