/**
 * Ways through the panel in Chromium: what takes a moment, what fails or is left meanwhile, what is read again, and connecting: plans, applies
 * that take a while, and what is refused. panel-pages.test.ts has every page, panel-trouble.test.ts what a person does about trouble.
 */
import { afterEach, describe, expect, it } from 'vitest';
import type { ConnectionView, Diagnosis } from '../../src/registry/contract/connections.ts';
import { FaultError } from '../../src/base/fault.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { auditRecord, bucketAnswer, createFakeControl, objectDocument, planAnswer, runningJob } from '../support/fakes/control.ts';
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

const overlap: Diagnosis['findings'][number] = {
  code: 'connect.overlap',
  severity: 'broken',
  what: 'photos has notifications for the same events',
  why: 'S3 refuses overlapping configurations of one bucket',
  fix: 'tally bucket add photos --source eventbridge',
  blocks: true,
};
describe.skipIf(!canBrowse('the panel in Chromium'))('the panel in Chromium', () => {
  const gate = createGate();
  const fake = createFakeControl();
  /** What the registry answers; each test begins with these. */
  const fresh = () => ({
    job: runningJob,
    /** A search for dogs. */
    isBroken: false,
    /** The bucket is not connected before it is added. */
    isNew: false,
    /** How an apply fails. */
    failure: undefined as Error | undefined,
    isEmbedded: false,
    plan: planAnswer,
    bucket: bucketAnswer,
    connections: [] as ConnectionView[],
  });
  let now = fresh();
  /** What the registry was asked that does not answer as the fake does. */
  const noted: (readonly [name: string, request: object])[] = [];

  /** The next answer of an apply; without one everything is applied. */
  const reached = (): ConnectionView => now.connections.shift() ?? { bucket: 'photos', state: 'applied', source: 'notification' };

  const { world, open } = inChromium(() =>
    startPanelWorld({
      operations: {
        startReindex: async ({ body }) => {
          noted.push(['startReindex', { body }]);
          await gate.passed();
          return runningJob;
        },
        getJob: async () => now.job,
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
          if (query.query === 'dog' && now.isBroken) throw new RequestError('request.overloaded', 'too many searches');
          return { items: [objectDocument] };
        },
        planBucket: async ({ params, query }) => {
          noted.push(['planBucket', { params, query }]);
          if (now.isEmbedded) throw new RequestError('connect.embedded', 'the embedded bucket sends its events by itself');
          return { ...now.plan, connected: !now.isNew };
        },
        addBucket: async ({ body }) => {
          noted.push(['addBucket', { body }]);
          now.isNew = false;
          if (now.failure !== undefined) throw now.failure;
          return { ...bucketAnswer, changed: true, ...(body.wired_by_hand !== true && { connection: reached() }) };
        },
        getBucket: async () => now.bucket,
        removeBucket: async ({ params, query }) => {
          noted.push(['removeBucket', { params, query }]);
          return { bucket: 'photos', kept: [{ name: 'a topic', reason: 'others have changed it' }] };
        },
      },
    }),
  );
  afterEach(() => {
    gate.open();
    now = fresh();
  });

  it('follows a job through a lost connection, behind the prefix of a proxy, until it has ended', async () => {
    const proxy = await startFront('/x/y');
    proxy.leadsTo(world().url);
    const { page } = await open(undefined, {});
    await page.clock.install();
    await openPanel(page, proxy.url, '?page=job&id=job-1');
    await page.getByText('running, 25 %').waitFor();
    proxy.cut();
    now.job = { ...runningJob, progress: 0.75 };
    await page.clock.fastForward(2_000);
    await page.getByText('running, 75 %').waitFor();
    now.job = { ...runningJob, state: 'done' };
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
    now.isBroken = true;
    const { page } = await open('?page=search&query=cat');
    await page.getByLabel('Search for').fill('dog');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    expect(await page.getByRole('region', { name: 'Objects found' }).count()).toBe(0);
    expect(await page.getByRole('alert').innerText()).toContain('too many searches');
    now.isBroken = false;
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

  describe('connecting a bucket', () => {
    const lastOf = (name: string): unknown => [...world().fake.asked, ...noted].findLast(([each]) => each === name)?.[1];

    const TAB = '?page=bucket&bucket=photos&tab=connection';

    it('shows the plan of a new bucket at an address, applies exactly that, and follows it until it is applied', async () => {
      now.connections = [{ bucket: 'photos', state: 'applying', waiting_for: 'S3 to take it', retry_after_ms: 1_000 }];
      now.isNew = true;
      const { page, complaints } = await open('?page=buckets');
      await page.getByLabel('Bucket name').fill('photos');
      await page.getByRole('button', { name: 'Add bucket' }).click();
      await page.getByText('Source, enrichment and account').click();
      await page.getByLabel('Enrichment').selectOption('tags');
      await page.getByLabel('Account').fill('123456789012');
      await page.keyboard.press('Enter');
      await page.getByText('Create the bucket’s notification configuration photos').waitFor();
      // the address has it all
      await page.reload();
      await page.getByText('Show the difference').click();
      await page.getByText('+       "Id": "tally-0a1b2c3d"').waitFor();
      await page.getByText('arn:aws:sqs:eu-west-1:123456789012:theirs gets an s3:TestEvent').waitFor();
      const wish = { source: 'notification', enrich: 'tags', bucket_account: '123456789012' };
      expect(lastOf('planBucket')).toEqual({ params: { bucket: 'photos' }, query: wish });
      await page.getByRole('button', { name: 'Add and apply' }).click();
      await page.getByText('Waiting for S3 to take').waitFor();
      await page.getByRole('heading', { level: 1, name: 'Bucket photos' }).waitFor();
      const { token } = planAnswer;
      const body = { bucket: 'photos', ...wish, reindex: true, plan: token };
      const asked = noted.filter(([name]) => name === 'addBucket').map(([, request]) => request);
      expect(asked).toEqual([{ body }, { body }]);
      expect(complaints).toEqual([]);
    });

    it('leaves a bucket that is connected already as it is', async () => {
      noted.length = 0;
      const { page } = await open('?page=add&bucket=photos');
      await page.getByText('photos is already connected, and nothing has changed').waitFor();
      expect(noted.filter(([name]) => name !== 'planBucket')).toEqual([]);
    });

    const failures = [new RequestError('connect.denied', 'AWS refuses it'), new FaultError('s3.throttled', 'AWS refuses it')];
    it.each(failures)('Bug: continues with a bucket whose first apply was refused, after AWS was read again: %s', async (failure) => {
      now.isNew = true;
      now.failure = failure;
      const { page } = await open('?page=add&bucket=photos');
      await page.getByRole('button', { name: 'Add and apply' }).click();
      await page.getByRole('alert').getByText('AWS refuses it').waitFor();
      now.failure = undefined;
      const plans = noted.filter(([name]) => name === 'planBucket').length;
      await page.getByRole('button', { name: 'Read AWS again' }).click();
      await expect.poll(() => noted.filter(([name]) => name === 'planBucket').length).toBe(plans + 1);
      await page.getByRole('button', { name: 'Add and apply' }).click();
      await page.getByRole('heading', { level: 1, name: 'Bucket photos' }).waitFor();
    });

    it('Bug: says of the embedded storage in a grey line that nothing is made in AWS, and adds the bucket', async () => {
      now.isNew = true;
      now.isEmbedded = true;
      const { page } = await open('?page=add&bucket=photos');
      await page.locator('p.quiet', { hasText: 'Tally creates nothing in AWS' }).waitFor();
      expect(await page.getByRole('alert').count()).toBe(0);
      // Bug: the page said what it takes in AWS, and offered to read AWS again
      expect(
        await page
          .getByText('What it takes in AWS')
          .or(page.getByRole('button', { name: 'Read AWS again' }))
          .count(),
      ).toBe(0);
      await page.getByRole('button', { name: 'Add the bucket' }).click();
      await page.getByRole('heading', { level: 1, name: 'Bucket photos' }).waitFor();
    });

    it('says what goes around an overlap, and applies nothing that is blocked', async () => {
      now.isNew = true;
      now.plan = { ...planAnswer, changes: [], findings: [overlap] };
      const { page, complaints } = await open('?page=add&bucket=photos');
      await page.getByText('Tally cannot apply this plan').waitFor();
      expect(await page.getByText('Nothing to do').count()).toBe(0);
      expect(await page.getByRole('button', { name: 'Add and apply' }).count()).toBe(0);
      await page.getByText(overlap.fix).waitFor();
      now.plan = { ...planAnswer, source: 'routed', foreign: [], findings: [] };
      await page.getByText('Source, enrichment and account').click();
      await page.getByLabel('Source').selectOption('routed');
      await page.getByRole('button', { name: 'Show the plan' }).click();
      await page.getByRole('button', { name: 'Add and apply' }).click();
      await page.getByRole('heading', { level: 1, name: 'Bucket photos' }).waitFor();
      expect(lastOf('addBucket')).toMatchObject({ body: { source: 'routed' } });
      expect(complaints).toEqual([]);
    });

    it('shows the plan of changed settings at an address before they are applied', async () => {
      const { page } = await open(TAB);
      const settings = page.getByRole('region', { name: 'Indexing and notifications' });
      await settings.getByLabel('Source').selectOption('eventbridge');
      await settings.getByRole('button', { name: 'Show the plan' }).click();
      await settings.getByText('Source: notification → eventbridge').waitFor();
      await page.reload();
      await settings.getByText('1 step', { exact: true }).waitFor();
      await settings.getByRole('button', { name: 'Apply' }).click();
      await page.getByText('Everything is applied.').waitFor();
      expect(new URL(page.url()).search).toBe(TAB);
      expect(lastOf('addBucket')).toEqual({
        body: { bucket: 'photos', source: 'eventbridge', enrich: 'none', plan: planAnswer.token },
      });
    });

    it('adds a bucket that a person wired, sets its topic identifier, and re-indexes it with Repair unchecked, which would clash', async () => {
      const topic = 'arn:aws:sns:eu-west-1:123456789012:uploads';
      now.isNew = true;
      now.bucket = { ...bucketAnswer, source: 'routed' };
      const { page, complaints } = await open('?page=add&bucket=photos');
      await page.getByText('Source, enrichment and account').click();
      await page.getByLabel('Source').selectOption('routed');
      await page.getByLabel('Index the existing objects').uncheck();
      await page.getByRole('button', { name: 'Show the plan' }).click();
      await page.getByRole('button', { name: 'I have wired it myself' }).click();
      await page.getByRole('heading', { level: 1, name: 'Bucket photos' }).waitFor();
      const byHand = { bucket: 'photos', source: 'routed', enrich: 'none', wired_by_hand: true };
      expect(lastOf('addBucket')).toEqual({ body: { ...byHand, reindex: false } });

      await page.getByRole('link', { name: 'Connection', exact: true }).click();
      const settings = page.getByRole('region', { name: 'Indexing and notifications' });
      await settings.getByLabel('Topic identifier').fill(topic);
      await settings.getByRole('button', { name: 'Show the plan' }).click();
      await settings.getByText(`Topic identifier: none → ${topic}`).waitFor();
      await settings.getByRole('button', { name: 'I have wired it myself' }).click();
      await page.getByText('The settings are saved.').waitFor();
      expect(lastOf('addBucket')).toEqual({ body: { ...byHand, topic_arn: topic } });

      await page.getByRole('button', { name: 'Re-Index and Repair' }).click();
      const dialog = page.getByRole('dialog', { name: 'Re-index photos' });
      await dialog.getByText('a storage event notification would clash').waitFor();
      expect([await dialog.getByLabel('Repair').isChecked(), await dialog.getByLabel('Repair').isDisabled()]).toEqual([false, true]);
      await dialog.getByRole('button', { name: 'Start' }).click();
      await page.getByRole('heading', { level: 1, name: 'Re-index photos' }).waitFor();
      expect(lastOf('startReindex')).toMatchObject({ body: { repair: false } });
      expect(complaints).toEqual([]);
    });

    it('has Repair unchecked at each opening, and possible for the source notification', async () => {
      const { page } = await open(TAB);
      for (const end of ['Cancel', 'Start']) {
        await page.getByRole('button', { name: 'Re-Index and Repair' }).click();
        const repair = page.getByRole('checkbox', { name: 'Repair' });
        expect([await repair.isChecked(), await repair.isDisabled()]).toEqual([false, false]);
        await repair.check();
        await page.getByRole('button', { name: end }).click();
      }
      await page.getByRole('heading', { level: 1, name: 'Re-index photos' }).waitFor();
      expect(lastOf('startReindex')).toMatchObject({ body: { repair: true } });
    });

    it('says what is left in AWS after a bucket is disconnected', async () => {
      const { page } = await open(TAB);
      await page.getByRole('button', { name: 'Disconnect…' }).click();
      await page.getByLabel('Keep what Tally created in AWS').check();
      await page.getByLabel('Type the bucket’s name').fill('photos');
      await page.getByRole('dialog').getByRole('button', { name: 'Disconnect' }).click();
      await page.getByText('others have changed it').waitFor();
      expect(lastOf('removeBucket')).toEqual({ params: { bucket: 'photos' }, query: { keep_aws: 'true' } });
      await page.getByRole('button', { name: 'Close' }).click();
      await page.getByRole('heading', { level: 1, name: 'Buckets' }).waitFor();
    });
  });
});
