/** A stranger's view of re-index: the program's commands on a serving process, by the settings and by its address. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Job } from '../../src/api/job.ts';
import type { TestAws } from '../support/servers/aws.ts';
import { createTestAws, until } from '../support/servers/aws.ts';
import { runTally, startDaemon, type CommandResult, type Environment } from '../support/servers/daemon.ts';
import { indexKinds, openIndex } from '../support/worlds/flow.ts';
import { awsEndpoint } from '../support/servers/found.ts';

/** A dozen processes are started on a machine that is shared. */
const TIMEOUT_MS = 600_000;

interface DriftWorld {
  readonly aws: TestAws;
  readonly bucket: string;
  /** What makes a command the operator. */
  readonly operator: Environment;
  /** What a command is given to find the registry. */
  readonly registry: Environment;
  dispose(): Promise<void>;
}

/** A daemon with a connected bucket whose events reach nobody. */
async function startDriftWorld(): Promise<DriftWorld> {
  const aws = createTestAws(awsEndpoint() ?? '');
  const [queue, index, bucket] = await Promise.all([aws.createQueue(), openIndex(indexKinds.at(-1) ?? 'sqlite'), aws.createBucket()]);
  const settings = { ...index.env, AWS_ENDPOINT_URL: aws.endpoint, TALLY_QUEUE_URL: queue.url };
  const daemon = await startDaemon(settings);
  const connect = async (): Promise<boolean> =>
    (await daemon.request('POST', '/v1/buckets', { bucket, reindex: false, wired_by_hand: true })).status === 201;
  await until('the bucket is connected', connect, TIMEOUT_MS);
  await daemon.ready();
  const dispose = async (): Promise<void> => {
    await daemon.kill();
    await Promise.all([index.close(), aws.dispose()]);
  };
  return { aws, bucket, operator: daemon.operator, registry: { TALLY_REGISTRY_URL: daemon.controlUrl }, dispose };
}

/** Its report, and how it ended. */
async function drift(bucket: string, env: Environment, ...options: readonly string[]): Promise<CommandResult & { readonly job: Job }> {
  const result = await runTally(['drift', bucket, '--json', ...options], env);
  if (result.stdout === '') throw new Error(result.stderr);
  return { ...result, job: JSON.parse(result.stdout) as Job };
}

describe.skipIf(!awsEndpoint())('tally drift and tally reindex', { timeout: TIMEOUT_MS }, () => {
  let world: DriftWorld;
  beforeAll(async () => {
    world = await startDriftWorld();
  });
  afterAll(() => world?.dispose());

  it('end with 2 while there is drift, and with 0 after a re-index, by the socket and by the address of a registry', async () => {
    const { aws, bucket, operator, registry } = world;
    for (const key of ['a', 'b/ü 😀', 'c\u001b[2J', 'd b+c 100%20.txt', 'd/\u{e000}']) await aws.put(bucket, key, key);
    const before = await drift(bucket, operator);
    expect(before.code).toBe(2);
    expect(before.job).toMatchObject({ state: 'done', mode: 'report', counts: { missing: 5, stale: 0, phantom: 0, equal: 0 } });

    // docs/commands.test.ts has one that waits a minute for late events first
    const reindex = await runTally(['reindex', bucket, '--now', '--wait'], operator);
    expect(reindex).toMatchObject({ code: 0, stdout: expect.stringMatching(/^written +5$/m) });
    expect(await drift(bucket, operator)).toMatchObject({ code: 0, stderr: '', job: { counts: { missing: 0, equal: 5 } } });

    await aws.put(bucket, 'a', 'other words');
    await aws.remove(bucket, 'b/ü 😀');
    await aws.put(bucket, 'new', 'new');
    let found = await drift(bucket, registry);
    // in flight until S3's clock, which tells seconds, has moved on
    await until('all three are told', async () => {
      found = await drift(bucket, registry);
      return found.job.counts?.in_flight === 0;
    });
    expect(found.code).toBe(2);
    expect(found.job.counts).toMatchObject({ missing: 1, stale: 1, phantom: 1, equal: 3 });
    expect(found.job.examples).toMatchObject({ missing: [{ key: 'new' }], stale: [{ key: 'a' }], phantom: [{ key: 'b/ü 😀' }] });
    expect((await drift(bucket, registry, '--prefix', 'c')).code).toBe(0);

    const asked = await runTally(['reindex', bucket, '--now', '--wait', '--json'], registry);
    expect(asked).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(asked.stdout)).toMatchObject({ state: 'done', now: true, counts: { written: 2 } });
    expect(await drift(bucket, registry)).toMatchObject({ code: 0, job: { counts: { equal: 5 } } });
    const jobs = await runTally(['jobs', '--json'], registry);
    expect((JSON.parse(jobs.stdout) as { items: Job[] }).items.every(({ state }) => state === 'done')).toBe(true);
  });
});
