/** The panel of a person who reads a part of a bucket: what is not granted is nowhere in it. An administrator grants it in two tabs. */
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { people, startRegistryWorld, type PersonName } from '../support/identity/registry-world.ts';
import { canBrowse } from '../support/identity/chromium.ts';
import { inChromium, logInAtPanel, openPanel, settled } from '../support/worlds/panel.ts';

describe.skipIf(!canBrowse('a reader in Chromium'))('the panel of a person who reads a part of a bucket', () => {
  const { world, open } = inChromium(() => startRegistryWorld({ TALLY_READERS: 'granted' }));

  /** A window of a person who has logged in, and what was answered with 403. */
  async function logIn(person: PersonName, query: string) {
    world().issuer.personIs(people[person]);
    const window = await open(undefined, {});
    return { ...window, refused: await logInAtPanel(window, world().url, query) };
  }

  const textOf = async (page: Page): Promise<string> => (await page.locator('main').textContent()) ?? '';

  it('shows that part once it is granted on the page People, says so, and shows nothing when the grant is removed in another tab', async () => {
    for (const key of ['docs/plan.txt', 'secret/plan.txt'])
      expect((await fetch(`${world().daemon.embeddedUrl}/demo/${key}`, { method: 'PUT', body: 'x' })).status).toBe(200);
    const { page, complaints, refused } = await logIn('alice', '?page=buckets');
    await page.getByText('No grant applies to you').waitFor();

    const admin = await logIn('root', '?page=people');
    const grants = admin.page.getByRole('region', { name: 'Grants', exact: true });
    await admin.page.getByRole('button', { name: 'Add grant' }).click();
    await admin.page.getByLabel('Who', { exact: true }).fill('user:alice@example.com');
    await admin.page.getByLabel('May read', { exact: true }).fill('demo/docs/');
    await admin.page.keyboard.press('Enter');
    await grants.getByText('demo/docs/').waitFor();
    const alice = admin.page.getByRole('region', { name: 'Users', exact: true }).getByRole('row', { name: 'alice@example.com' });
    await alice.getByText('What this person can read').click();
    await alice.getByText('demo/docs/').first().waitFor();

    await page.goto(`${world().url}/panel/?page=search&query=plan`);
    await page.getByText('You may read demo/docs/').waitFor();
    await expect
      .poll(async () => {
        await page.reload();
        await settled(page);
        return textOf(page);
      })
      .toContain('docs/plan.txt');
    expect(await textOf(page)).not.toContain('secret');

    const tab = await admin.context.newPage();
    await openPanel(tab, world().url, '?page=people');
    await tab.getByRole('button', { name: 'Remove user:alice@example.com' }).click();
    await tab.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await tab.getByText('No grants: only administrators can read.').waitFor();
    await page.reload();
    await page.getByText('No grant applies to you').waitFor();
    await settled(page);
    expect(await textOf(page)).not.toContain('docs/plan.txt');

    // the first tab shows the grant still: to remove it again says what is the case
    await admin.page.getByRole('button', { name: 'Remove user:alice@example.com' }).click();
    await admin.page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await admin.page.getByRole('dialog').getByRole('alert').waitFor();
    await admin.page.keyboard.press('Escape');
    await admin.page.getByText('No grants: only administrators can read.').waitFor();

    expect([...refused, ...admin.refused]).toEqual([]);
    expect(complaints.filter((text) => !text.includes('status of 401'))).toEqual([]);
  });
});
