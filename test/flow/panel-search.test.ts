/** The search of the panel and a real registry in Chromium: the one box, folders, changes, deleted objects, and every key that can be. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { printable } from '../../src/domain/printable.ts';
import { canBrowse, createWindows, startChromium, type Window } from '../support/identity/chromium.ts';
import { AXE_WINDOW, findingsOf } from '../support/panel/axe.ts';
import { until } from '../support/servers/aws.ts';
import { startDaemon, type Daemon } from '../support/servers/daemon.ts';
import { startFront } from '../support/servers/front.ts';
import { openMenu, openPanel, settled } from '../support/worlds/panel.ts';

/** Keys that break pages, addresses, shells and terminals. */
const goldenKeys = [
  'a%b%2Fc',
  'a+b c',
  'a:b',
  'a//b',
  '/leading',
  'trailing/',
  'про/файл.txt',
  'new\nline',
  '?page=users&x=#y',
  '"><img src=x onerror=alert(1)><script>alert(2)</script>',
  '\u202Egpj.exe',
  "it's, $(x) `y` \\",
  'x'.repeat(1_024),
];
const DEEP = 'deep/2/3/4/5/6/7/8/9/file.bin';
const plainKeys = ['2026/', '2026/invoices/0001.pdf', '2026/invoices/0002.pdf', '2026/photos/cat.jpg', DEEP];
const keys = [...goldenKeys, ...plainKeys];

const queryFor = (key: string): string => `bucket:demo key:"${key.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
const folderOf = (key: string): string => key.slice(0, key.lastIndexOf('/') + 1);
const address = (choices: Readonly<Record<string, string>>): string => `?${new URLSearchParams({ page: 'search', ...choices }).toString()}`;

describe.skipIf(!canBrowse('the search of the panel in Chromium'))('the search of the panel in Chromium', () => {
  let home: string;
  let daemon: Daemon;
  let browser: Browser;
  const windows = createWindows();

  async function put(key: string, body: string): Promise<void> {
    const { status } = await fetch(`${daemon.embeddedUrl}/demo/${encodeURIComponent(key)}`, { method: 'PUT', body });
    if (status !== 200) throw new Error(`${JSON.stringify(key)} was not put: ${status}`);
  }

  async function total(query: string): Promise<number> {
    const { body } = await daemon.request('GET', `/v1/objects?query=${encodeURIComponent(query)}&total=true`);
    return (body as { readonly total?: { readonly value: number } }).total?.value ?? -1;
  }

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'tally-search-'));
    [daemon, browser] = await Promise.all([
      startDaemon({ TALLY_EMBEDDED_DATA: join(home, 'data') }, ['serve', '--embedded']),
      startChromium(),
    ]);
    await daemon.ready();
    await until('the bucket is connected', async () => (await daemon.request('GET', '/v1/buckets/demo')).status === 200);
    for (const key of keys) await put(key, key === DEEP ? 'x'.repeat(5_000) : 'some bytes');
    await until('every key is indexed', async () => (await total('bucket:demo')) === keys.length);
  });
  afterEach(async () => {
    await windows.empty(`${daemon.controlUrl}/livez`);
  });
  afterAll(async () => {
    await browser?.close();
    await daemon?.stop();
    await rm(home, { recursive: true, force: true });
  });

  const open = (options?: BrowserContextOptions): Promise<Window> => windows.open(browser, options);

  async function openCopying(url = daemon.controlUrl): Promise<Window> {
    const window = await open();
    await window.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: new URL(url).origin });
    return window;
  }

  const clipboard = (page: Page): Promise<string> => page.evaluate<string>('navigator.clipboard.readText()');
  const listed = (page: Page): Promise<string[]> =>
    page.getByRole('region', { name: 'Objects found' }).getByRole('rowheader').getByRole('link').allTextContents();
  async function exporting(page: Page, name: string): Promise<void> {
    await page.getByRole('button', { name: 'Export and copy this search' }).click();
    await page.getByRole('button', { name }).click();
  }
  const queryOf = (page: Page): string | null => new URL(page.url()).searchParams.get('query');

  it('shows what it understood as chips that can be removed, the total, and how far the index agrees', async () => {
    const { page, complaints } = await open();
    await openPanel(page, daemon.controlUrl, '?page=search');
    await page.getByLabel('Search for').fill('bucket:demo ext:pdf 0001');
    await page.keyboard.press('Enter');
    await expect.poll(() => listed(page)).toEqual(['2026/invoices/0001.pdf']);
    const chips = page.getByRole('list', { name: 'The search as it was understood' }).getByRole('listitem');
    expect(await chips.count()).toBe(3);
    await page.locator('.agreement summary').click();
    await page.locator('.as-of', { hasText: 'demo' }).waitFor();
    await chips.filter({ hasText: '0001' }).getByRole('link').click();
    await expect.poll(() => listed(page)).toEqual(['2026/invoices/0001.pdf', '2026/invoices/0002.pdf']);
    expect(queryOf(page)).toBe('bucket:demo ext:pdf');
    await page.getByText('2 objects', { exact: true }).waitFor();
    await page.goBack();
    await expect.poll(() => listed(page)).toEqual(['2026/invoices/0001.pdf']);
    expect(await page.getByLabel('Search for').inputValue()).toBe('bucket:demo ext:pdf 0001');
    expect(complaints).toEqual([]);
  });

  it('has a filter form that only writes into the box', async () => {
    const { page } = await open();
    await openPanel(page, daemon.controlUrl, address({ query: 'cat modified<7d' }));
    await page.getByText('Filters', { exact: true }).click();
    await page.getByRole('combobox', { name: 'Bucket' }).selectOption('demo');
    await page.getByLabel('Prefix', { exact: true }).fill('2026/my photos/');
    await page.getByLabel('Extension', { exact: true }).fill('jpg,png');
    await page.getByLabel('Size at least', { exact: true }).fill('1K');
    await page.getByLabel('Modified since', { exact: true }).fill('2026-01-02');
    await page.getByLabel('Tag', { exact: true }).fill('team=ml');
    const box = page.getByLabel('Search for');
    expect(await box.inputValue()).toBe(
      'cat modified<7d bucket:demo prefix:"2026/my photos/" ext:jpg,png size>=1K modified>=2026-01-02 tag:team=ml',
    );
    expect(queryOf(page)).toBe('cat modified<7d');
    await page.getByLabel('Prefix', { exact: true }).fill('');
    await page.getByLabel('Tag', { exact: true }).fill('');
    expect(await box.inputValue()).toBe('cat modified<7d bucket:demo ext:jpg,png size>=1K modified>=2026-01-02');
    await box.fill('bucket:demo prefix:"a b/" "open');
    await page.getByText('The text has a mistake').waitFor();
  });

  it('shows a mistake at its place in the box, without the rows of the search before', async () => {
    const { page } = await open();
    await openPanel(page, daemon.controlUrl, address({ query: 'bucket:demo' }));
    await page.getByLabel('Search for').fill('bucket:demo extn:pdf');
    await page.keyboard.press('Enter');
    const alert = page.getByRole('alert');
    await alert.waitFor();
    expect(await alert.innerText()).toContain('did you mean ext:?');
    expect(await page.getByRole('region', { name: 'Objects found' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Go to the mistake' }).click();
    expect(await page.evaluate('document.activeElement.selectionStart')).toBe('bucket:demo '.length);
    expect(await page.getByLabel('Search for').getAttribute('aria-invalid')).toBe('true');
  });

  it('sorts by its headings, and Back returns to the row', async () => {
    const { page } = await open();
    await openPanel(page, daemon.controlUrl, address({ query: 'bucket:demo' }));
    await page.getByRole('columnheader', { name: 'Size' }).getByRole('link').click();
    await expect.poll(async () => (await listed(page))[0]).toBe(DEEP);
    expect(new URL(page.url()).searchParams.get('sort')).toBe('size');
    expect(page.url()).not.toContain('cursor');
    const head = page.getByRole('columnheader', { name: 'Size' });
    expect(await head.getAttribute('aria-sort')).toBe('descending');
    await head.getByRole('link').click();
    await expect.poll(async () => (await listed(page)).at(-1)).toBe(DEEP);
    const exact = page.locator('.size', { hasText: '5,000 bytes' });
    expect(await exact.count()).toBe(1);
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    const row = await page.evaluate<string>('document.activeElement.textContent');
    await page.keyboard.press('Enter');
    await page.getByText('Index and S3 agree').waitFor();
    await page.goBack();
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe(row);
    await page.keyboard.press('e');
    await page.getByRole('link', { name: 'Objects with the same etag and size' }).click();
    // all of these were put with the same bytes
    await page.getByText(`${keys.length - 1} objects`, { exact: true }).waitFor();
  });

  it('leads through the folders with their counts and bytes', async () => {
    const { page, complaints } = await openCopying();
    await openPanel(page, daemon.controlUrl, address({ query: 'bucket:demo', view: 'folders' }));
    const groups = page.getByRole('region', { name: 'Objects and bytes' });
    const row = (name: string) => groups.getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact: true }) });
    expect(await row('2026/').getByRole('cell').first().innerText()).toBe('4');
    expect(await row('(no name)/').getByRole('cell').first().innerText()).toBe('1');
    const here = goldenKeys.filter((key) => !key.includes('/'));
    expect(await row('in this folder itself').getByRole('cell').first().innerText()).toBe(String(here.length));
    await row('2026/').getByRole('link').click();
    await row('invoices/').getByRole('link').click();
    await expect.poll(() => row('in this folder itself').getByRole('cell').first().innerText()).toBe('2');
    expect(queryOf(page)).toBe('bucket:demo prefix:2026/invoices/');
    await page.getByRole('navigation', { name: 'Folders above' }).getByRole('link', { name: 'demo' }).click();
    await row('a/').getByRole('link').click();
    await page.getByRole('navigation', { name: 'Folders above' }).getByText('a/').waitFor();
    await row('(no name)/').getByRole('link').click();
    await page.getByText('1 object,').waitFor();
    await page.getByRole('navigation', { name: 'Group by' }).getByRole('link', { name: 'Age', exact: true }).click();
    await row('less than a day').getByRole('link').click();
    await expect.poll(() => listed(page)).toEqual(['a//b']);
    await openPanel(page, daemon.controlUrl, address({ query: 'bucket:demo', view: 'folders', by: 'extension' }));
    await row('pdf').getByRole('link').click();
    await page.getByText('2 objects', { exact: true }).waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'Copy sums as command' }).click();
    await expect.poll(() => clipboard(page)).toBe('tally du --by extension --query bucket:demo --limit 200 -- demo');
    await openPanel(page, daemon.controlUrl, address({ query: 'bucket:demo prefix:deep/2/3/4/5/6/7/8/', view: 'folders' }));
    await page.getByText('Folders are counted down to 8 levels.').waitFor();
    await page.getByRole('link', { name: 'List the objects' }).click();
    await expect.poll(() => listed(page)).toEqual([DEEP]);
    await openPanel(page, daemon.controlUrl, address({ query: 'bucket:demo prefix:20', view: 'folders' }));
    expect(await row('2026/').getByRole('cell').first().innerText()).toBe('4');
    expect(complaints).toEqual([]);
  });

  it('helps where nothing is found', async () => {
    const { page } = await open();
    await openPanel(page, daemon.controlUrl, address({ query: 'bucket:demo ext:pdf cat size>1T' }));
    const left = page.getByRole('list', { name: 'Without one of the filters' });
    await page.getByText('Nor does any without one of the filters.').waitFor();
    await openPanel(page, daemon.controlUrl, address({ query: 'bucket:demo ext:pdf cat' }));
    await left.getByRole('link', { name: 'Without cat: 2' }).click();
    await expect.poll(() => listed(page)).toEqual(['2026/invoices/0001.pdf', '2026/invoices/0002.pdf']);
    await openPanel(page, daemon.controlUrl, address({ query: 'bucket:demo key:none/at/all' }));
    await page.getByText('Why is it not here?').click();
    expect(await page.getByLabel('Key', { exact: true }).inputValue()).toBe('none/at/all');
    await page.getByRole('button', { name: 'Ask S3 and the index' }).click();
    await page.getByRole('heading', { level: 1, name: 'none/at/all' }).waitFor();
    await page.getByText('Index and S3 agree').waitFor();
  });

  it('copies selected rows as lines, and gives all of them as a command, by curl and as a file', async () => {
    const { page, complaints } = await openCopying();
    await openPanel(page, daemon.controlUrl, address({ query: 'bucket:demo -ext:pdf', sort: 'size', order: 'desc' }));
    const table = page.getByRole('region', { name: 'Objects found' });
    const rowOf = (key: string) =>
      table.getByRole('row').filter({ has: page.getByRole('rowheader', { name: printable(key), exact: true }) });
    for (const key of ['a:b', 'new\nline']) await rowOf(key).getByRole('checkbox').check();
    await page.getByText('2 selected').waitFor();
    await page.getByRole('button', { name: 'Copy keys' }).click();
    await page.getByText('Copied lines: 2. JSON strings among them').waitFor();
    expect(await clipboard(page)).toBe('a:b\n"new\\nline"');
    await page.getByRole('button', { name: 'Copy URIs' }).click();
    await expect.poll(() => clipboard(page)).toBe('s3://demo/a:b\n"s3://demo/new\\nline"');
    await exporting(page, 'Copy command for all');
    await expect.poll(() => clipboard(page)).toBe("tally search --query 'bucket:demo -ext:pdf' --sort size --order desc --csv");
    await exporting(page, 'Copy as curl');
    await expect.poll(() => clipboard(page)).toContain('/v1/objects?query=bucket%3Ademo+-ext%3Apdf&sort=size&order=desc');
    const curl = (await clipboard(page)).replace(/^curl '?|'$/g, '');
    expect(((await (await fetch(curl)).json()) as { readonly items: readonly object[] }).items).toHaveLength(keys.length - 2);
    const [download] = await Promise.all([page.waitForEvent('download'), exporting(page, 'Download all')]);
    const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\n');
    expect(lines).toHaveLength(1 + keys.length - 2);
    expect(lines[0]).toMatch(/^bucket,key,size/);
    await page.getByText(`Saved rows: ${keys.length - 2}.`).waitFor();
    expect(complaints).toEqual([]);
  });

  it('finds, opens, copies and links every key by the box, by its address and by its folder, behind the prefix of a proxy', async () => {
    const proxy = await startFront({ prefix: '/x/y', saysSo: false });
    proxy.leadsTo(daemon.controlUrl);
    const { page, complaints } = await openCopying(proxy.url);
    // the address without its slash leads there too
    await page.goto(`${proxy.url}/panel?page=search`);
    await settled(page);
    for (const key of goldenKeys) {
      await openPanel(page, proxy.url, address({ query: queryFor(key) }));
      await expect.poll(() => listed(page), { message: JSON.stringify(key) }).toEqual([printable(key)]);
      // the box holds it exactly, and what is submitted again finds it
      expect(await page.getByLabel('Search for').inputValue()).toBe(queryFor(key));
      await page.getByLabel('Search for').press('Enter');
      await settled(page);
      await expect.poll(() => listed(page), { message: JSON.stringify(key) }).toEqual([printable(key)]);
      await page.keyboard.press('Escape');
      await page.keyboard.press('j');
      await page.keyboard.press('c');
      await expect.poll(() => clipboard(page)).toBe(key.includes('\n') ? JSON.stringify(key) : key);
      await page.locator('td.copies button').first().click();
      await page.getByRole('button', { name: 'Copy URI' }).click();
      const uri = `s3://demo/${key}`;
      await expect.poll(() => clipboard(page)).toBe(key.includes('\n') ? JSON.stringify(uri) : uri);
      // the address opens the object, or the folder whose marker it is
      await page.getByLabel('Search for').fill(uri);
      await page.keyboard.press('Enter');
      if (key.endsWith('/')) {
        await page.getByRole('link', { name: 'List the objects' }).click();
        await page.getByRole('region', { name: 'Objects found' }).getByRole('rowheader').getByRole('link').first().click();
        await page.getByRole('link', { name: 'Open as a page' }).click();
      }
      await page.getByText('Index and S3 agree').waitFor();
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(printable(key));
      const { searchParams, pathname } = new URL(page.url());
      expect([searchParams.get('key'), pathname]).toEqual([key, '/x/y/panel/']);
      // the address alone leads there too
      await page.reload();
      await settled(page);
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(printable(key));
    }
    for (const folder of new Set(goldenKeys.map(folderOf))) {
      const inFolder = folder === '' ? 'bucket:demo' : `bucket:demo prefix:"${folder.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
      await openPanel(page, proxy.url, address({ query: inFolder, view: 'folders' }));
      const own = page.getByRole('row').filter({ hasText: 'in this folder itself' });
      const count = goldenKeys.filter((key) => folderOf(key) === folder).length;
      await expect.poll(() => own.getByRole('cell').first().innerText(), { message: JSON.stringify(folder) }).toBe(String(count));
    }
    expect(await page.locator('img, #panel script').count()).toBe(0);
    expect(complaints).toEqual([]);
    await proxy.close();
  });

  it('follows changes without moving what is read, and shows deleted objects for seven days', async () => {
    const { page, complaints } = await open();
    await put('changes/first.txt', 'one');
    await until('it is indexed', async () => (await total('bucket:demo prefix:changes/')) === 1);
    await openPanel(page, daemon.controlUrl, address({ query: 'bucket:demo prefix:changes/', view: 'changes' }));
    const table = page.getByRole('region', { name: 'Changes of the index' });
    const rows = (): Promise<string[]> => table.getByRole('rowheader').allTextContents();
    expect(await rows()).toEqual(['changes/first.txt']);
    await table.getByRole('checkbox').check();
    await put('changes/second.txt', 'two');
    await page.getByRole('button', { name: '1 new' }).waitFor();
    expect(await rows()).toEqual(['changes/first.txt']);
    await page.getByRole('button', { name: '1 new' }).click();
    expect(await rows()).toEqual(['changes/second.txt', 'changes/first.txt']);
    await page.getByText('1 selected').waitFor();
    await fetch(`${daemon.embeddedUrl}/demo/changes/first.txt`, { method: 'DELETE' });
    await until('it is deleted', async () => (await total('bucket:demo prefix:changes/')) === 1);
    await page.getByRole('button', { name: '1 new' }).click();
    await table
      .getByRole('row', { name: /first\.txt/ })
      .getByText('deleted', { exact: true })
      .waitFor();

    await page.getByRole('link', { name: 'Deleted', exact: true }).click();
    await page.getByText('Deleted objects are shown for seven days').waitFor();
    await expect.poll(() => listed(page)).toEqual(['changes/first.txt']);
    await page.getByRole('columnheader', { name: 'Deleted' }).getByRole('link').click();
    await expect.poll(() => listed(page)).toEqual(['changes/first.txt']);
    expect(new URL(page.url()).searchParams.get('sort')).toBe('deleted_at');
    await fetch(`${daemon.embeddedUrl}/demo/changes/second.txt`, { method: 'DELETE' });
    await until('all are deleted', async () => (await total('bucket:demo prefix:changes/')) === 0);
    expect(complaints).toEqual([]);
  });

  it('reads dates in the zone of its times, which is a part of the link', async () => {
    const { page } = await open({ timezoneId: 'Asia/Tokyo' });
    await openPanel(page, daemon.controlUrl, address({ query: 'bucket:demo modified>=2026-01-02' }));
    const chips = page.getByRole('list', { name: 'The search as it was understood' });
    await chips.getByText('2026-01-02 00:00:00 UTC', { exact: false }).waitFor();
    await openMenu(page);
    await page.getByRole('button', { name: 'Times: UTC' }).click();
    await chips.getByText('2026-01-02 00:00:00 UTC+09:00', { exact: false }).waitFor();
    expect(new URL(page.url()).searchParams.get('tz')).toBe('Asia/Tokyo');
    const other = await open();
    await other.page.goto(page.url());
    await other.page.getByRole('list', { name: 'The search as it was understood' }).getByText('2026-01-01 15:00:00 UTC').waitFor();
  });

  /** Each way to look at a search. */
  const looks: readonly (readonly [name: string, choices: Readonly<Record<string, string>>])[] = [
    ['all buckets', {}],
    // what differs from here on is not how many rows there are
    ['list', { query: 'bucket:demo prefix:2026/' }],
    ['chips', { query: 'bucket:demo ext:pdf,jpg -"draft" size>1 modified<7d' }],
    ['mistake', { query: 'bucket:demo extn:pdf' }],
    ['nothing', { query: 'bucket:demo nothing-like-this' }],
    ['folders', { query: 'bucket:demo', view: 'folders' }],
    ['one folder', { query: 'bucket:demo prefix:2026/', view: 'folders' }],
    ['classes', { query: 'bucket:demo', view: 'folders', by: 'class' }],
    ['which folders', { view: 'folders' }],
    ['changes', { query: 'bucket:demo prefix:2026/', view: 'changes' }],
    ['deleted', { query: 'bucket:demo is:deleted' }],
  ];

  it('has nothing that axe finds, light and dark, and fits on a screen of 360 pixels', async () => {
    const { page } = await open(AXE_WINDOW);
    const found: string[] = [];
    for (const [name, choices] of looks) {
      await openPanel(page, daemon.controlUrl, address(choices));
      const filters = page.getByText('Filters', { exact: true });
      if (await filters.isVisible()) await filters.click();
      found.push(...(await findingsOf(page, name)));
    }
    expect(found).toEqual([]);
  });
});
