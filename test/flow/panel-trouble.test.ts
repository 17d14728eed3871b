/** The panel in Chromium with ten buckets and trouble: what is wrong, since when, what Tally does about it, and what a person does. */
import type { Page } from 'playwright-core';
import { afterEach, describe, expect, it } from 'vitest';
import type { Bucket } from '../../src/registry/contract/bucket.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { planAnswer, runningJob } from '../support/fakes/control.ts';
import { canBrowse } from '../support/identity/chromium.ts';
import { findingsOf } from '../support/panel/axe.ts';
import { troubledOperations } from '../support/panel/trouble.ts';
import { openPanel, inChromium, startPanelWorld } from '../support/worlds/panel.ts';

/** A key that S3 has and the index does not. */
const LOST = 'raw/2026/lost.csv';
const AT = '2026-01-02T03:04:05.000Z';

type Act = NonNullable<Bucket['status']['act']>;

/** The pages that show trouble as no other does: panel-pages.test.ts has each page. */
const PAGES = [
  '?page=overview',
  '?page=overview&wall',
  '?page=bucket&bucket=acme-scratch',
  '?page=bucket&bucket=acme-clickstream&tab=connection',
  '?page=activity',
  '?page=job&id=job-7f3k2m9q4x',
  '?page=job&id=job-2b8n5c1w7z',
] as const;

describe.skipIf(!canBrowse('the panel with trouble in Chromium'))('the panel with trouble', () => {
  const started: object[] = [];
  /** What a person can do about the bucket acme-scratch. */
  let act: Act | undefined;
  let refuses: 'nothing' | 'sums' | 'doctor' = 'nothing';

  const paused = { code: 'connect.paused', severity: 'degraded', what: 'its notification is paused' } as const;
  const pausedFinding = { ...paused, why: 'no events arrive', fix: 'tally bucket resume acme-scratch', blocks: false };
  const operations = troubledOperations();
  const panel = inChromium(() =>
    startPanelWorld({
      operations: {
        ...operations,
        getBucket: async (...asked) => {
          if (asked[0].params.bucket === 'nobody') throw new RequestError('bucket.not-connected', 'nobody is not connected');
          const found = await operations.getBucket!(...asked);
          if (act === undefined) return found;
          const state = act.kind === 'plan' ? ('broken' as const) : ('ok' as const);
          const wiring = { state, since: AT, checked_at: AT, findings: [] };
          return {
            ...found,
            wiring,
            status: { state: act.kind === 'resume' ? 'events_lost' : 'differs', severity: 'bad', sentence: 'It differs', act },
          };
        },
        explainObject: async (...asked) => {
          if (asked[0].params.bucket === 'nobody') throw new RequestError('bucket.not-connected', 'nobody is not connected');
          const found = await operations.explainObject!(...asked);
          return asked[0].query.key === LOST ? { ...found, agrees: false, sentence: 'S3 has it: its event is missing.' } : found;
        },
        searchObjects: async (...asked) => {
          const found = await operations.searchObjects!(...asked);
          return asked[0].query.query === LOST ? { ...found, items: [] } : found;
        },
        planBucket: async ({ params: { bucket } }) => ({ ...planAnswer, bucket, connected: true }),
        startReindex: async ({ params, body }) => {
          started.push({ ...params, ...body });
          return { ...runningJob, id: 'job-7f3k2m9q4x' };
        },
        changeJob: async ({ params, body }) => {
          started.push({ ...params, ...body });
          return runningJob;
        },
        getUsage: async (...asked) => {
          if (refuses === 'sums') throw new RequestError('search.too-wide', 'the sum took longer than 10 s');
          return operations.getUsage!(...asked);
        },
        diagnoseBucket: async (...asked) => {
          if (refuses === 'doctor') throw new RequestError('connect.embedded', 'the embedded bucket sends its events by itself');
          const found = await operations.diagnoseBucket!(...asked);
          // its status may be worse than that it is paused
          return act?.kind === 'resume' ? { ...found, status: 'degraded' as const, findings: [pausedFinding] } : found;
        },
      },
    }),
  );
  afterEach(() => {
    refuses = 'nothing';
    act = undefined;
    started.length = 0;
  });

  const open = async (query: string): Promise<Page> => (await panel.open(query)).page;

  it('has nothing that axe finds, and nothing that is too wide or cut off', async () => {
    const { page, complaints } = await panel.open();
    const found: string[] = [];
    for (const query of PAGES) {
      await openPanel(page, panel.world().url, query);
      found.push(...(await findingsOf(page, query)));
    }
    expect(found).toEqual([]);
    expect(complaints.filter((text) => !/status of 503 .*\/readyz/s.test(text))).toEqual([]);
  });

  it('says first how many objects differ, then what waits for a person and since when, then what Tally is at', async () => {
    const page = await open('');
    expect(await page.locator('.verdict strong').innerText()).toBe('1,084 objects differ');
    const you = page.getByRole('region', { name: 'What waits for you' }).getByRole('row');
    expect((await you.allInnerTexts()).map((text) => text.split('\t')[0])).toEqual([
      'Bucket',
      'acme-partner-drop',
      'acme-invoices',
      'acme-clickstream',
      'Dead letters',
      'acme-legacy',
    ]);
    expect(await you.nth(1).innerText()).toMatch(/Check its connection\s+3 h ago$/);
    expect(await you.nth(4).innerText()).toMatch(/Tally could not process 2 messages\s+Show the letters/);
    const atIt = page.getByRole('region', { name: 'Tally is working on it' });
    await atIt.getByText('running, 43 %').waitFor();
    await atIt.getByText('left', { exact: false }).first().waitFor();
    await atIt.getByRole('row').filter({ hasText: 'acme-reports' }).getByText('a re-index begins (in').waitFor();
    await page.getByText('Tally itself: not ready (ingest)').click();
    await page.getByRole('region', { name: 'Checks' }).getByText('Start it.').waitFor();
  });

  const rowOf = (page: Page, bucket: string) => page.getByRole('row').filter({ hasText: bucket });

  it('says from the box of the overview why an object is missing, with what mends it', async () => {
    const page = await open('');
    // the box has the focus
    await page.keyboard.type(LOST);
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'acme-scratch' }).click();
    await page.getByText('its event is missing').waitFor();
    await page.getByRole('button', { name: 'Re-index this folder' }).waitFor();
  });

  it('Bug: repairs from the overview what is known to differ, and a connection, whose plan is shown at once', async () => {
    const page = await open('');
    await rowOf(page, 'acme-reports').getByRole('button', { name: 'Re-index now' }).click();
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Re-index acme-data-lake' }).waitFor();
    expect(started).toEqual([{ bucket: 'acme-reports', prefix: '', mode: 'apply', fill: false, now: false, repair: false }]);
    await openPanel(page, panel.world().url);
    await rowOf(page, 'acme-clickstream').getByRole('link', { name: 'Check its connection' }).click();
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByText('Everything is applied.').waitFor();
  });

  it('leads from deletions that wait to the job that held them back, which allows as many as it shows', async () => {
    const page = await open('?page=bucket&bucket=acme-invoices');
    await page.getByRole('link', { name: 'Show the job' }).click();
    await page.getByRole('button', { name: 'Allow the deletions…' }).click();
    expect(await findingsOf(page, 'the dialog of the deletions', 'dialog')).toEqual([]);
    await page.getByRole('button', { name: 'Delete 1,035 documents' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(started).toEqual([{ id: 'job-2b8n5c1w7z', deletions: 'allowed' }]);
  });

  const ends: readonly (readonly [act: Partial<Act>, presses: readonly string[]])[] = [
    [{ kind: 'plan' }, ['Create its parts in AWS', 'Apply']],
    [{ kind: 'resume' }, ['Resume its notification', 'Resume notification']],
    [{ kind: 'remove' }, ['Disconnect it', 'Disconnect…', 'Cancel']],
    [{ kind: 'jobs', job_id: 'job-1a9z8y7x6w' }, ['Show the job', 'Re-index again', 'Start']],
    [{ kind: 'jobs', job_id: 'job-7f3k2m9q4x' }, ['Show the job', 'Cancel the job…', 'Cancel the job']],
  ];

  it('leads from each sentence to its end', async () => {
    for (const [given, presses] of ends) {
      act = { kind: 'doctor', command: 'tally …', ...given };
      const page = await open('?page=bucket&bucket=acme-scratch');
      for (const name of presses) {
        const control = page.getByRole('button', { name, exact: true }).or(page.getByRole('link', { name, exact: true }));
        await control.last().click();
      }
      await page.locator('dialog').waitFor({ state: 'detached' });
      expect(await page.getByRole('alert').count(), JSON.stringify(given)).toBe(0);
    }
  });

  it('Bug: offers to add a bucket that is not connected', async () => {
    for (const query of ['bucket&bucket=nobody', 'object&bucket=nobody&key=a']) {
      const page = await open(`?page=${query}`);
      await page.getByText('The bucket nobody is not connected').waitFor();
      expect(await page.getByRole('button', { name: /Re-index|Try again/i }).count()).toBe(0);
      await page.getByRole('link', { name: 'Add it' }).click();
      await page.getByRole('heading', { level: 1, name: 'Add bucket' }).waitFor();
      expect(await page.getByLabel('Name').inputValue()).toBe('nobody');
    }
  });

  it('as a wall has a row for each bucket, and the worst of them in the title and the icon of its tab', async () => {
    const page = await open('?page=overview&wall');
    await expect.poll(() => page.title()).toBe('● 1,084 objects differ · Tally');
    const icon = page.locator('link[rel="icon"]');
    expect(await icon.getAttribute('href')).toContain('%23b3201c');
    expect(await page.locator('.wall td .strip').count()).toBe(10);
    expect(await page.locator('.rail').isVisible()).toBe(false);
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    expect([await page.title(), await icon.getAttribute('href')]).toEqual(['Overview · Tally', expect.stringContaining('%232a55d5')]);
  });

  it('lists buckets with the worst first and their day, and – with the reason where sums take too long', async () => {
    const page = await open('?page=buckets');
    const rows = page.getByRole('region', { name: 'Connected buckets' }).getByRole('row');
    expect((await rows.nth(1).innerText()).split('\t')[0]).toBe('acme-partner-drop');
    const scratch = rows.filter({ hasText: 'acme-scratch' });
    const day = await scratch.getByRole('img').getAttribute('aria-label');
    expect(day).toBe('Last 24 hours: in agreement, changes may be missing, being repaired');
    // what has lasted for a minute is seen too
    expect(Number(await rows.filter({ hasText: 'acme-reports' }).locator('rect.differs').getAttribute('x'))).toBeLessThan(0.995);
    const sums = scratch.locator('td.number');
    const aligned = `[...document.querySelectorAll('td.number')].map((cell) => getComputedStyle(cell).textAlign)`;
    expect(new Set(await page.evaluate<readonly string[]>(aligned))).toEqual(new Set(['right']));
    refuses = 'sums';
    await page.reload();
    await page.getByText('the sum took longer than 10 s').waitFor();
    expect(await sums.allInnerTexts()).toEqual(['–', '–']);
  });

  it('says that an answer is late, but not while it is only being loaded', async () => {
    const { page } = await panel.open('?page=overview', {});
    await page.route('**/v1/dead-letters*', () => new Promise(() => {}));
    const late = page.getByText('This is taking longer than usual.');
    await page.getByRole('link', { name: 'Dead letters' }).click();
    await page.getByText('Loading…').waitFor();
    expect(await late.isVisible()).toBe(false);
    await late.waitFor();
  });

  it('shows of a connection what is wrong in the colour of how bad it is, and one grey line where there is none', async () => {
    const page = await open('?page=bucket&bucket=acme-clickstream&tab=connection');
    await page.locator('.findings .state.bad', { hasText: 'broken' }).waitFor();
    await openPanel(page, panel.world().url, '?page=bucket&bucket=acme-scratch&tab=connection');
    await page.getByText('No problems').waitFor();
    // green is compared and equal, and nothing else
    expect(await page.locator('section .good').filter({ hasText: 'No problems' }).count()).toBe(0);
    refuses = 'doctor';
    await page.getByRole('button', { name: 'Check again' }).click();
    await page.getByText('The embedded storage sends this bucket’s events itself.').waitFor();
    expect(await page.getByRole('button', { name: /Check again|plan/ }).count()).toBe(0);
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  it('says of a job that failed that it did, why, and who asked for it, and of a gap whose bucket has a job what it waits for', async () => {
    const page = await open('?page=activity');
    const row = page.getByRole('region', { name: 'Ended jobs' }).getByRole('row').filter({ hasText: 'acme-partner-drop' });
    expect(await row.innerText()).toMatch(/re-index failed: object\.denied: S3 denies .*Tally, for a gap/s);
    // Bug: beside the job that ran it said when another one begins
    const gap = page.getByRole('region', { name: 'Gaps' }).getByRole('row').filter({ hasText: 'acme-media-masters' });
    await gap.getByRole('link', { name: 'It waits for this job to end' }).click();
    await page.getByRole('heading', { level: 1, name: 'Re-index acme-media-masters' }).waitFor();
    expect(await page.locator('main button.danger').count()).toBe(0);
  });
});
