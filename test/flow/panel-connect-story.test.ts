/** A person connects a bucket that is wired by hand, by the panel of a real daemon. */
import { PublishCommand } from '@aws-sdk/client-sns';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { canBrowse } from '../support/identity/chromium.ts';
import { until } from '../support/servers/aws.ts';
import { awsEndpoint } from '../support/servers/found.ts';
import { startWorld } from '../support/worlds/aws.ts';
import { inChromium, openPanel } from '../support/worlds/panel.ts';

describe.skipIf(!awsEndpoint() || !canBrowse('the story of connecting in Chromium'))('the panel and a real daemon in Chromium', () => {
  const { world, open } = inChromium(async () => {
    const started = await startWorld({ regions: [] });
    return { ...started, url: started.daemon.controlUrl, close: () => started.dispose() };
  });

  async function finds(page: Page, bucket: string, key: string): Promise<void> {
    await until(`${key} is found`, async () => (await world().find(bucket, key)) !== undefined);
    await openPanel(page, world().url, `?page=object&bucket=${bucket}&key=${key}`);
    await page.getByText('Index and S3 agree').waitFor();
  }

  it('adds a bucket, sets the topic identifier under Indexing and notifications, and re-indexes it with Repair unchecked', async () => {
    const { aws, daemon, queue } = world();
    const bucket = await aws.createBucket();
    await aws.put(bucket, 'before.txt', 'some bytes');
    // the rule, its target and its transformer deliver to this topic; the queue is subscribed to it
    const topic = await aws.createTopic();
    await aws.subscribe(topic, queue);
    const { page, complaints } = await open('?page=buckets');

    await page.getByLabel('Bucket name').fill(bucket);
    await page.getByRole('button', { name: 'Add bucket' }).click();
    await page.getByText('Source, enrichment and account').click();
    await page.getByLabel('Source').selectOption('routed');
    await page.getByLabel('Index the existing objects').uncheck();
    await page.getByRole('button', { name: 'Show the plan' }).click();
    await page.getByRole('button', { name: 'I have wired it myself' }).click();
    await page.getByRole('heading', { level: 1, name: `Bucket ${bucket}` }).waitFor();

    await page.getByRole('link', { name: 'Connection', exact: true }).click();
    const settings = page.getByRole('region', { name: 'Indexing and notifications' });
    await settings.getByLabel('Topic identifier').fill(topic);
    await settings.getByRole('button', { name: 'Show the plan' }).click();
    await settings.getByText(`Topic identifier: none → ${topic}`).waitFor();
    await settings.getByRole('button', { name: 'I have wired it myself' }).click();
    await page.getByText('The settings are saved.').waitFor();
    expect(await world().bucketRecord(bucket)).toMatchObject({ source: 'routed', topic_arn: topic });

    await page.getByRole('button', { name: 'Re-Index and Repair' }).click();
    const reindex = page.getByRole('dialog', { name: `Re-index ${bucket}` });
    expect([await reindex.getByLabel('Repair').isChecked(), await reindex.getByLabel('Repair').isDisabled()]).toEqual([false, true]);
    await reindex.getByText('a storage event notification would clash').waitFor();
    await reindex.getByRole('button', { name: 'Start' }).click();
    await page.locator('.state', { hasText: 'done' }).waitFor();
    await finds(page, bucket, 'before.txt');

    // what the rule's transformer sends for a PutObject
    await aws.put(bucket, 'after.txt', 'more bytes');
    const object = { eTag: '', isDeleteMarker: '', key: 'after.txt', versionId: '' };
    const record = {
      cloudRegion: aws.region,
      eventName: 'PutObject',
      eventTime: new Date().toISOString(),
      storage: { bucket: { name: bucket }, object },
    };
    await aws.sns.send(new PublishCommand({ TopicArn: topic, Message: JSON.stringify({ Records: [record] }) }));
    await finds(page, bucket, 'after.txt');
    // the gap of the change may have begun another one
    const done = expect.objectContaining({ bucket, state: 'done', requested_by: expect.not.stringMatching('gap') });
    expect(await daemon.request('GET', '/v1/jobs')).toMatchObject({ body: { items: expect.arrayContaining([done]) } });
    expect(complaints).toEqual([]);
  });
});
