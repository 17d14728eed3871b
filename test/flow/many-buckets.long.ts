/** Fifty buckets in one command on LocalStack, of which three are broken: the command is killed on its way, and the next one continues. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GetBucketNotificationConfigurationCommand, PutBucketNotificationConfigurationCommand } from '@aws-sdk/client-s3';
import { describe, expect, it } from 'vitest';
import { createTestAws, until } from '../support/servers/aws.ts';
import { runTally, startDaemon } from '../support/servers/daemon.ts';
import { startFaultProxy } from '../support/servers/fault-proxy.ts';
import { awsEndpoint } from '../support/servers/found.ts';
import { MAIN, nodeOptions } from '../support/servers/program.ts';
import { createBystanders } from '../support/worlds/bystanders.ts';

const DENIED = '<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>';
/** Eight are under way at a time, so the command is far from its end then. */
const KILLED_AFTER = 12;

interface Row {
  readonly bucket: string;
  readonly result: string;
  readonly error?: { readonly code: string };
}

describe.skipIf(awsEndpoint() === undefined)('fifty buckets', () => {
  it.each(['notification', 'eventbridge'] as const)(
    'are connected by %s, but for the broken ones',
    { timeout: 900_000 },
    async (source) => {
      const aws = createTestAws(awsEndpoint()!);
      const deadLetters = await aws.createQueue();
      const queue = await aws.createQueue({ deadLetters: { queue: deadLetters, maxReceiveCount: 20 } });
      const others = await createBystanders(aws, { queue, deadLetters }, { sendsToTopic: false });
      const proxy = await startFaultProxy(aws.endpoint);
      const folder = await mkdtemp(join(tmpdir(), 'tally-many-'));
      const buckets: string[] = [];
      while (buckets.length < 48) buckets.push(await aws.createBucket());
      const [denied = '', overlapping = '', ...good] = buckets;
      const missing = `${denied}-gone`;
      const wrong = new Map([
        [missing, 'bucket.missing'],
        [denied, 'connect.denied'],
        // EventBridge overlaps with nothing, but the notification of others gets a test event
        [overlapping, source === 'notification' ? 'connect.overlap' : 'connect.plan-needed'],
      ]);
      proxy.interfere(
        { kind: 'answer', status: 403, body: DENIED },
        ({ path }) => path.includes(denied) && !path.includes(missing) && /[?&]notification/.test(path),
      );
      const QueueConfigurations = [{ Id: 'theirs', QueueArn: others.queue.arn, Events: ['s3:ObjectCreated:*' as const] }];
      const NotificationConfiguration = { QueueConfigurations };
      await aws.s3.send(new PutBucketNotificationConfigurationCommand({ Bucket: overlapping, NotificationConfiguration }));
      const isConfigured = async (Bucket: string): Promise<boolean> => {
        const { TopicConfigurations = [], EventBridgeConfiguration } = await aws.s3.send(
          new GetBucketNotificationConfigurationCommand({ Bucket }),
        );
        return source === 'notification' ? TopicConfigurations.length > 0 : EventBridgeConfiguration !== undefined;
      };
      const countConfigured = async (): Promise<number> => (await Promise.all(good.map(isConfigured))).filter(Boolean).length;
      // the policies of the queues have statements of Tally afterwards
      const foreign = async () => {
        const { queues: _, ...rest } = await others.snapshot();
        return { ...rest, overlapping: await (await fetch(`${aws.endpoint}/${overlapping}?notification`)).text() };
      };
      const names = join(folder, 'buckets.txt');
      await writeFile(names, [...buckets, missing].join('\n'));
      const store = { TALLY_INDEX_URL: `sqlite:${join(folder, 'index.sqlite')}`, TALLY_QUEUE_URL: queue.url };
      const daemon = await startDaemon({ ...store, AWS_ENDPOINT_URL: proxy.url });
      const args = ['bucket', 'add', '--json', '--source', source, '--switch-on-eventbridge', '--from-file', names];
      const before = await foreign();

      const kill = new AbortController();
      const options = { env: { PATH: process.env['PATH'], ...daemon.operator }, signal: kill.signal, killSignal: 'SIGKILL' } as const;
      const killed = new Promise((resolve) => execFile(process.execPath, [...nodeOptions(), MAIN, ...args], options, resolve));
      await until('some are connected', async () => (await countConfigured()) >= KILLED_AFTER, 120_000);
      kill.abort();
      await killed;
      expect(await countConfigured()).toBeLessThan(good.length);

      const rowsOf = (stdout: string): readonly Row[] => (JSON.parse(stdout) as { readonly buckets: readonly Row[] }).buckets;
      const failures = (rows: readonly Row[]) =>
        new Map(rows.flatMap(({ bucket, error }) => (error ? [[bucket, error.code] as const] : [])));
      const second = await runTally(args, daemon.operator);
      expect(second, second.stderr).toMatchObject({ code: 7 });
      expect(failures(rowsOf(second.stdout))).toEqual(wrong);
      expect(await countConfigured()).toBe(good.length);
      const third = await runTally(args, daemon.operator);
      expect(third.code).toBe(7);
      expect(rowsOf(third.stdout).filter(({ result }) => result === 'unchanged')).toHaveLength(good.length);
      expect(failures(rowsOf(third.stdout))).toEqual(wrong);
      expect(await foreign()).toEqual(before);

      // one leaves, and the events of the others still come
      const [leaving = '', ...staying] = good;
      await runTally(['bucket', 'remove', leaving, '--yes'], daemon.operator);
      for (const bucket of staying) await aws.put(bucket, 'after.txt', 'x');
      for (const bucket of staying)
        await until(`${bucket} is indexed`, async () => {
          const { body } = await daemon.request('GET', `/v1/objects?bucket=${bucket}`);
          return (body as { items?: unknown[] }).items?.length === 1;
        });
      await daemon.stop();
      await proxy.close();
      others.close();
      await aws.dispose();
      await rm(folder, { recursive: true, force: true });
    },
  );
});
