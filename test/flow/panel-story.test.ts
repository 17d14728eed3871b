/** The panel and a real registry in Chromium: a bucket is added, gets its topic and its re-index, and every key that can be is found. */
import { CreateTopicCommand, SNSClient } from '@aws-sdk/client-sns';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { printable } from '../../src/domain/printable.ts';
import { canBrowse, openWindow, startChromium, type Window } from '../support/identity/chromium.ts';
import { until } from '../support/servers/aws.ts';
import { startDaemon, type Daemon } from '../support/servers/daemon.ts';
import { openPanel, settled, startPrefixProxy } from '../support/worlds/panel.ts';

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
  "it's $(x) `y`",
  'x'.repeat(1_024),
];

describe.skipIf(!canBrowse('the story of the panel in Chromium'))('the panel and a real registry in Chromium', () => {
  let home: string;
  let daemon: Daemon;
  let browser: Browser;
  const windows: Window[] = [];

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'tally-panel-'));
    [daemon, browser] = await Promise.all([
      // a person adds the bucket, not its first event
      startDaemon({ TALLY_EMBEDDED_DATA: join(home, 'data'), TALLY_AUTO_CONNECT: 'false' }, ['serve', '--embedded']),
      startChromium(),
    ]);
    await daemon.ready();
    await fetch(`${daemon.embeddedUrl}/photos`, { method: 'PUT' });
    for (const key of goldenKeys) {
      const { status } = await fetch(`${daemon.embeddedUrl}/photos/${encodeURIComponent(key)}`, { method: 'PUT', body: 'some bytes' });
      if (status !== 200) throw new Error(`${JSON.stringify(key)} was not put: ${status}`);
    }
  });
  afterEach(async () => {
    for (const { context } of windows.splice(0)) await context.close();
  });
  afterAll(async () => {
    await browser?.close();
    await daemon?.stop();
    await rm(home, { recursive: true, force: true });
  });

  async function open(): Promise<Window> {
    const window = await openWindow(browser);
    windows.push(window);
    return window;
  }

  it('adds a bucket whose events are routed, sets its topic identifier, and re-indexes it with Repair unchecked', async () => {
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    const topics = new SNSClient({ endpoint: daemon.embeddedUrl, region: 'us-east-1', credentials });
    const { TopicArn: topic = '' } = await topics.send(new CreateTopicCommand({ Name: 'photos-events' }));
    const { page, complaints } = await open();
    await openPanel(page, daemon.controlUrl);
    await page.getByRole('button', { name: 'Add bucket' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add bucket' });
    await dialog.getByLabel('Name').fill('photos');
    await dialog.getByLabel('Source').selectOption('routed');
    await dialog.getByLabel('Index what the bucket holds already').uncheck();
    await dialog.getByRole('button', { name: 'Add bucket' }).click();
    await page.getByRole('heading', { level: 1, name: 'Bucket photos' }).waitFor();

    const settings = page.getByRole('region', { name: 'Indexing and notifications' });
    await settings.getByLabel('Topic identifier').fill(topic);
    await settings.getByRole('button', { name: 'Save…' }).click();
    await page.getByRole('dialog').getByText(topic).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByText('The settings are saved.').waitFor();
    expect((await daemon.request('GET', '/v1/buckets/photos')).body).toMatchObject({ source: 'routed', topic_arn: topic });

    await page.getByRole('button', { name: 'Re-Index and Repair' }).click();
    const reindex = page.getByRole('dialog', { name: 'Re-index photos' });
    expect([await reindex.getByLabel('Repair').isChecked(), await reindex.getByLabel('Repair').isDisabled()]).toEqual([false, true]);
    await reindex.getByRole('button', { name: 'Start the re-index' }).click();
    // late events are waited for, for less than a minute
    await page.locator('.state.good', { hasText: 'done' }).waitFor();
    const { items } = (await daemon.request('GET', '/v1/jobs')).body as { readonly items: readonly object[] };
    expect(items.at(-1)).toMatchObject({ bucket: 'photos', state: 'done', counts: { listed: goldenKeys.length } });
    // nothing leads to an embedded bucket in AWS, so there is no plan of it
    expect(complaints.filter((text) => !text.includes('/plan?'))).toEqual([]);
  });

  // without a proxy panel-search.test.ts does, by the box and by their folders
  it('finds, opens, copies and links every key behind the prefix of a proxy', async () => {
    await until('every key is indexed', async () => {
      const { body } = await daemon.request('GET', '/v1/objects?bucket=photos');
      return (body as { readonly items: readonly object[] }).items.length === goldenKeys.length;
    });
    const proxy = await startPrefixProxy(daemon.controlUrl, '/x/y');
    const { page, context, complaints } = await open();
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: new URL(proxy.url).origin });
    // the address without its slash leads there too
    await page.goto(`${proxy.url}/panel?page=search&bucket=photos`);
    await settled(page);
    const table = page.getByRole('region', { name: 'Objects found' });
    await table.waitFor();
    const order = goldenKeys.toSorted((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
    expect(await table.getByRole('rowheader').allTextContents()).toEqual(order.map((key) => printable(key)));
    for (const [index, key] of order.entries()) {
      await table
        .getByRole('row')
        .nth(index + 1)
        .getByRole('button', { name: 'Key', exact: true })
        .click();
      const isJson = key.includes('\n');
      await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(isJson ? JSON.stringify(key) : key);
      await table.getByRole('rowheader').nth(index).getByRole('link').click();
      await page.getByText('Index and S3 agree').waitFor();
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(printable(key));
      const { searchParams, pathname } = new URL(page.url());
      expect([searchParams.get('key'), pathname]).toEqual([key, '/x/y/panel/']);
      // the address alone leads there too
      await page.reload();
      await settled(page);
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(printable(key));
      await page.goBack();
      await table.waitFor();
    }
    expect(await page.locator('img, #panel script').count()).toBe(0);
    expect(complaints).toEqual([]);
    await proxy.close();
  });
});
