/** Connecting by the panel in Chromium: plans, applies that take a while, and what is refused. */
import { afterEach, describe, expect, it } from 'vitest';
import type { ConnectionView, Diagnosis } from '../../src/registry/contract/connections.ts';
import { FaultError } from '../../src/base/fault.ts';
import { RequestError } from '../../src/base/request-error.ts';
import { bucketAnswer, planAnswer } from '../support/fakes/control.ts';
import { canBrowse } from '../support/identity/chromium.ts';
import { inChromium, startPanelWorld } from '../support/worlds/panel.ts';

const overlap: Diagnosis['findings'][number] = {
  code: 'connect.overlap',
  severity: 'broken',
  what: 'photos has notifications for the same events',
  why: 'S3 refuses overlapping configurations of one bucket',
  fix: 'tally bucket add photos --source eventbridge',
  blocks: true,
};
describe.skipIf(!canBrowse('connecting by the panel in Chromium'))('connecting by the panel in Chromium', () => {
  /** What the registry answers; each test begins with these. */
  const fresh = () => ({
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
    now = fresh();
  });

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
    for (let opening = 0; opening < 2; opening++) {
      await page.getByRole('button', { name: 'Re-Index and Repair' }).click();
      const repair = page.getByRole('checkbox', { name: 'Repair' });
      expect([await repair.isChecked(), await repair.isDisabled()]).toEqual([false, false]);
      await repair.check();
      await page.getByRole('button', { name: 'Cancel' }).click();
    }
    await page.getByRole('button', { name: 'Re-Index and Repair' }).click();
    await page.getByRole('checkbox', { name: 'Repair' }).check();
    await page.getByRole('button', { name: 'Start' }).click();
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
