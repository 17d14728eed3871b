/** The search of the panel and a real registry in Chromium: the one box, deleted objects, folders, and every key that can be. */
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { printable } from '../../src/base/texts.ts';
import { canBrowse, type Window } from '../support/identity/chromium.ts';
import { findingsOf } from '../support/panel/axe.ts';
import { until } from '../support/servers/aws.ts';
import { startEmbeddedRegistry } from '../support/servers/embedded-registry.ts';
import { startFront } from '../support/servers/front.ts';
import { inChromium, openPanel, settled } from '../support/worlds/panel.ts';

/** Each object has its key as its content. */
const LARGEST = 'x'.repeat(1_024);
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
  LARGEST,
];
const plainKeys = ['2026/', '2026/invoices/0001.pdf', '2026/invoices/0002.pdf', '2026/photos/cat.jpg', 'deep/2/3/4/5/6/7/8/9/file.bin'];
const keys = [...goldenKeys, ...plainKeys];

const queryFor = (key: string): string => `bucket:demo key:"${key.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
const address = (choices: Readonly<Record<string, string>>): string => `?${new URLSearchParams({ page: 'search', ...choices }).toString()}`;

describe.skipIf(!canBrowse('the search of the panel in Chromium'))('the search of the panel in Chromium', () => {
  let registry: Awaited<ReturnType<typeof startEmbeddedRegistry>>;

  async function total(query: string): Promise<number> {
    const { body } = await registry.request('GET', `/v1/objects?query=${encodeURIComponent(query)}&total=true`);
    return (body as { readonly total?: { readonly value: number } }).total?.value ?? -1;
  }

  const { world, open } = inChromium(async () => {
    registry = await startEmbeddedRegistry();
    await until('the bucket is connected', async () => (await registry.request('GET', '/v1/buckets/demo')).status === 200);
    await registry.put('demo', keys);
    await until('every key is indexed', async () => (await total('bucket:demo')) === keys.length);
    return { url: registry.controlUrl, close: () => registry.close() };
  });

  async function openCopying(url = world().url): Promise<Window> {
    const window = await open();
    await window.context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: new URL(url).origin });
    return window;
  }

  const clipboard = (page: Page): Promise<string> => page.evaluate<string>('navigator.clipboard.readText()');
  const listed = (page: Page): Promise<string[]> =>
    page.getByRole('region', { name: 'Objects found' }).getByRole('rowheader').getByRole('link').allTextContents();
  const queryOf = (page: Page): string | null => new URL(page.url()).searchParams.get('query');

  it('shows the total and whether the index agrees, and Back returns to the search before', async () => {
    const { page, complaints } = await open();
    await openPanel(page, world().url);
    // the box of the home has the focus, and its result is found without a click
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('search-box');
    await page.keyboard.type('bucket:demo ext:pdf 0001');
    await page.keyboard.press('Enter');
    await expect.poll(() => listed(page)).toEqual(['2026/invoices/0001.pdf']);
    await page.locator('.summary .dot').waitFor();
    await page.getByLabel('Search for').fill('bucket:demo ext:pdf');
    await page.keyboard.press('Enter');
    await expect.poll(() => listed(page)).toEqual(['2026/invoices/0001.pdf', '2026/invoices/0002.pdf']);
    expect(queryOf(page)).toBe('bucket:demo ext:pdf');
    await page.getByText('2 objects', { exact: true }).waitFor();
    await page.goBack();
    await expect.poll(() => listed(page)).toEqual(['2026/invoices/0001.pdf']);
    expect(await page.getByLabel('Search for').inputValue()).toBe('bucket:demo ext:pdf 0001');
    expect(complaints).toEqual([]);
  });

  it('shows a mistake at its place in the box, and does not ask the registry', async () => {
    const { page, complaints } = await open(address({ query: 'bucket:demo' }));
    await page.getByLabel('Search for').fill('bucket:demo extn:pdf');
    await page.keyboard.press('Enter');
    const alert = page.getByRole('alert');
    await alert.waitFor();
    expect(await alert.innerText()).toContain('there is no field extn');
    expect(await page.getByRole('region', { name: 'Objects found' }).count()).toBe(0);
    expect(await alert.locator('code').innerText()).toBe('bucket:demo extn:pdf');
    expect(await alert.locator('mark').innerText()).toBe('extn:pdf');
    expect(await findingsOf(page, 'a mistake')).toEqual([]);
    // Chromium itself notes what was refused
    expect(complaints).toEqual([]);
  });

  it('sorts by its headings, and Back returns to the row', async () => {
    const { page } = await open(address({ query: 'bucket:demo' }));
    await page.getByRole('columnheader', { name: 'Size' }).getByRole('link').click();
    await expect.poll(async () => (await listed(page))[0]).toBe(LARGEST);
    expect(new URL(page.url()).searchParams.get('sort')).toBe('size');
    expect(page.url()).not.toContain('cursor');
    const head = page.getByRole('columnheader', { name: 'Size' });
    expect(await head.getAttribute('aria-sort')).toBe('descending');
    await head.getByRole('link').click();
    await expect.poll(async () => (await listed(page)).at(-1)).toBe(LARGEST);
    expect(await page.locator('.size', { hasText: '1,024 bytes' }).count()).toBe(1);
    await page.getByRole('region', { name: 'Objects found' }).getByRole('rowheader').getByRole('link').nth(1).focus();
    const row = await page.evaluate<string>('document.activeElement.textContent');
    await page.keyboard.press('Enter');
    await page.getByText('Index and S3 agree', { exact: true }).waitFor();
    await page.goBack();
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe(row);
  });

  it('leads through the folders of a bucket with their counts and bytes', async () => {
    const { page, complaints } = await open('?page=bucket&bucket=demo');
    const groups = page.getByRole('region', { name: 'Objects and bytes' });
    const row = (name: string) => groups.getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact: true }) });
    expect(await row('2026/').getByRole('cell').first().innerText()).toBe('4');
    expect(await row('(no name)/').getByRole('cell').first().innerText()).toBe('1');
    const here = goldenKeys.filter((key) => !key.includes('/'));
    expect(await row('in this folder itself').getByRole('cell').first().innerText()).toBe(String(here.length));
    await row('2026/').getByRole('link').click();
    await row('invoices/').getByRole('link').click();
    await page.getByRole('link', { name: 'List the objects' }).click();
    await expect.poll(() => listed(page)).toEqual(['2026/invoices/0001.pdf', '2026/invoices/0002.pdf']);
    expect(queryOf(page)).toBe('bucket:demo prefix:2026/invoices/');
    expect(complaints).toEqual([]);
  });

  it('says why nothing is found: within words, or of a whole key in each bucket, and gives the search as a command', async () => {
    const { page } = await openCopying();
    await openPanel(page, world().url, address({ query: 'voices/0001' }));
    await page.getByRole('link', { name: '*voices/0001*' }).click();
    await expect.poll(() => listed(page)).toEqual(['2026/invoices/0001.pdf']);
    // a key that is pasted without its bucket
    await page.getByLabel('Search for').fill('none/at all');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'demo', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'none/at all' }).waitFor();
    await page.getByText('A search does not find it, which is correct').waitFor();
    await openPanel(page, world().url, address({ query: 'bucket:demo key:none/at/all' }));
    await page.getByText('A search does not find it, which is correct').waitFor();
    // what neither of them holds has no size and no time
    expect(await page.getByRole('table').innerText()).not.toMatch(/never|unknown/);
    // Bug: it named no bucket
    await openPanel(page, world().url, address({ query: 'bucket:nobody key:a' }));
    await page.getByRole('alert').getByText('nobody').waitFor();
    await openPanel(page, world().url, address({ query: 'bucket:demo -ext:pdf', sort: 'size', order: 'desc' }));
    await page.getByRole('button', { name: 'Copy the command that prints all as CSV' }).click();
    await expect.poll(() => clipboard(page)).toBe("tally search --query 'bucket:demo -ext:pdf' --sort size --order desc --csv");
  });

  it('finds, opens, copies and links every key by the box and by its address, behind the prefix of a proxy', async () => {
    const proxy = await startFront('/x/y');
    proxy.leadsTo(world().url);
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
      await page.getByRole('rowheader').getByRole('link').press('Enter');
      await page.getByRole('button', { name: 'Copy key' }).click();
      await expect.poll(() => clipboard(page)).toBe(key.includes('\n') ? JSON.stringify(key) : key);
      await page.getByRole('button', { name: 'Copy URI' }).click();
      const uri = `s3://demo/${key}`;
      await expect.poll(() => clipboard(page)).toBe(key.includes('\n') ? JSON.stringify(uri) : uri);
      // the address opens the object, or the folder whose marker it is
      if (!key.endsWith('/')) {
        await page.getByLabel('Search for').fill(uri);
        await page.keyboard.press('Enter');
      }
      await page.getByRole('heading', { level: 1, name: printable(key).trim() }).waitFor();
      await page.getByText('Index and S3 agree', { exact: true }).waitFor();
      // Bug: times stood in it as machines write them
      expect(await page.locator('.sentence').innerText()).not.toMatch(/\d{4}-\d\d-\d\dT/);
      const { searchParams, pathname } = new URL(page.url());
      expect([searchParams.get('key'), pathname]).toEqual([key, '/x/y/panel/']);
      // the address alone leads there too
      await page.reload();
      await settled(page);
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(printable(key));
    }
    expect(await page.locator('img, #panel script').count()).toBe(0);
    expect(complaints).toEqual([]);
    await proxy.close();
  });

  it('shows deleted objects for at least seven days', async () => {
    const { page, complaints } = await open();
    await registry.put('demo', ['changes/first.txt']);
    await until('it is indexed', async () => (await total('bucket:demo prefix:changes/')) === 1);
    await fetch(`${registry.embeddedUrl}/demo/changes/first.txt`, { method: 'DELETE' });
    await until('it is deleted', async () => (await total('bucket:demo prefix:changes/')) === 0);
    await openPanel(page, world().url, address({ query: 'bucket:demo prefix:changes/' }));
    await page.getByRole('link', { name: 'Deleted', exact: true }).click();
    await page.getByText('Deleted objects are shown for at least seven days').waitFor();
    await expect.poll(() => listed(page)).toEqual(['changes/first.txt']);
    await page.getByRole('columnheader', { name: 'Deleted' }).getByRole('link').click();
    await expect.poll(() => listed(page)).toEqual(['changes/first.txt']);
    expect(new URL(page.url()).searchParams.get('sort')).toBe('deleted_at');
    expect(complaints).toEqual([]);
  });
});
