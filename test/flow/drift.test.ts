/** A stranger's view of re-index: the program's commands on a serving process, by the settings and by its address. */
import { afterAll, describe, expect, it } from 'vitest';
import type { Job } from '../../src/api/jobs.ts';
import type { TestAws } from '../support/servers/aws.ts';
import { createTestAws, until } from '../support/servers/aws.ts';
import { runTally, startDaemon, type CommandResult, type Daemon, type Environment } from '../support/servers/daemon.ts';
import { oneOf } from '../support/breadth.ts';
import { indexKinds, openIndex, type IndexKind } from '../support/worlds/flow.ts';
import { awsEndpoint } from '../support/servers/found.ts';

/** A job that writes waits a minute for late events first, and a dozen processes are started on a machine that is shared. */
const TIMEOUT_MS = 600_000;

/** The commands are the same whatever the kind. */
const kinds = oneOf(indexKinds);

interface DriftWorld {
  readonly aws: TestAws;
  readonly daemon: Daemon;
  readonly bucket: string;
  /** What a command is given to find index and queues by itself. */
  readonly settings: Environment;
  /** What a command is given to find the registry. */
  readonly registry: Environment;
}

const disposals: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  await Promise.all(disposals.map((dispose) => dispose()));
});

/** A daemon with a connected bucket whose events reach nobody. */
async function startDriftWorld(kind: IndexKind): Promise<DriftWorld> {
  const aws = createTestAws(awsEndpoint() ?? '');
  const [queue, index, bucket] = await Promise.all([aws.createQueue(), openIndex(kind), aws.createBucket()]);
  const settings = { ...index.env, AWS_ENDPOINT_URL: aws.endpoint, TALLY_QUEUE_URL: queue.url };
  const daemon = await startDaemon(settings);
  disposals.push(async () => {
    await daemon.kill();
    await Promise.all([index.close(), aws.dispose()]);
  });
  const connect = async (): Promise<boolean> => (await daemon.request('POST', '/v1/buckets', { bucket, reindex: false })).status === 201;
  await until('the bucket is connected', connect, TIMEOUT_MS);
  await daemon.ready();
  return { aws, daemon, bucket, settings, registry: { TALLY_REGISTRY_URL: daemon.controlUrl } };
}

/** Its report, and how it ended. */
async function drift(bucket: string, env: Environment, ...options: readonly string[]): Promise<CommandResult & { readonly job: Job }> {
  const result = await runTally(['drift', bucket, '--json', ...options], env);
  if (result.stdout === '') throw new Error(result.stderr);
  return { ...result, job: JSON.parse(result.stdout) as Job };
}

describe.skipIf(!awsEndpoint()).concurrent.each(kinds)('tally drift and tally reindex on %s', { timeout: TIMEOUT_MS }, (kind) => {
  it('ends with 2 while there is drift, and with 0 after tally reindex --wait, by the settings', async () => {
    const { aws, bucket, settings } = await startDriftWorld(kind);
    for (const key of ['a', 'b/ü 😀', 'c\u001b[2J']) await aws.put(bucket, key, key);
    const before = await drift(bucket, settings);
    expect(before.code).toBe(2);
    expect(before.job).toMatchObject({ state: 'done', mode: 'report', counts: { missing: 3, stale: 0, phantom: 0, equal: 0 } });

    const reindex = await runTally(['reindex', bucket, '--wait'], settings);
    expect(reindex).toMatchObject({ code: 0, stdout: expect.stringMatching(/^written +3$/m) });
    expect(reindex.stderr).toContain('waiting for late events');

    expect(await drift(bucket, settings)).toMatchObject({ code: 0, stderr: '', job: { counts: { missing: 0, equal: 3 } } });
  });
});

describe.skipIf(!awsEndpoint()).concurrent.each(oneOf(indexKinds))(
  'tally drift and tally reindex beside a registry on %s',
  { timeout: TIMEOUT_MS },
  (kind) => {
    it('do so by its address, without any other setting', async () => {
      const { aws, bucket, registry } = await startDriftWorld(kind);
      for (const key of ['changed', 'gone', 'same']) await aws.put(bucket, key, key);
      const asked = await runTally(['reindex', bucket, '--now', '--wait', '--json'], registry);
      expect(asked).toMatchObject({ code: 0, stderr: '' });
      expect(JSON.parse(asked.stdout)).toMatchObject({ state: 'done', now: true, counts: { written: 3 } });
      expect((await drift(bucket, registry)).code).toBe(0);

      await aws.put(bucket, 'changed', 'other words');
      await aws.remove(bucket, 'gone');
      await aws.put(bucket, 'new', 'new');
      let found = await drift(bucket, registry);
      // in flight until S3's clock, which tells seconds, has moved on
      await until('all three are told', async () => {
        found = await drift(bucket, registry);
        return found.job.counts?.in_flight === 0;
      });
      expect(found.code).toBe(2);
      expect(found.job.counts).toMatchObject({ missing: 1, stale: 1, phantom: 1, equal: 1 });
      expect(found.job.examples).toMatchObject({ missing: [{ key: 'new' }], stale: [{ key: 'changed' }], phantom: [{ key: 'gone' }] });
      expect((await drift(bucket, registry, '--prefix', 'sa')).code).toBe(0);

      expect(await runTally(['reindex', bucket, '--now', '--wait'], registry)).toMatchObject({ code: 0 });
      expect(await drift(bucket, registry)).toMatchObject({ code: 0, job: { counts: { equal: 3 } } });
      // a list may be a second behind: OpenSearch searches what it has refreshed
      await until('the list shows that all jobs are done', async () => {
        const jobs = await runTally(['jobs', '--json'], registry);
        const { items } = JSON.parse(jobs.stdout) as { items: Job[] };
        return items.every(({ state }) => state === 'done');
      });
    });
  },
);
