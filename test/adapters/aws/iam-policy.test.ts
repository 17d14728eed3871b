/**
 * What `tally iam-policy` prints, by a daemon whose every request is judged by it: nothing more is needed to connect a bucket, to
 * keep its index and to take it away again, and nothing of it goes unused.
 */
import { randomBytes } from 'node:crypto';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { ListSubscriptionsByTopicCommand, SetSubscriptionAttributesCommand } from '@aws-sdk/client-sns';
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import { sequencerOf } from '../../../src/adapters/embedded/clock.ts';
import { isLong } from '../../support/breadth.ts';
import { confirmationBody } from '../../support/sources.ts';
import { createTestAws, until, type TestAws, type TestQueue } from '../../support/servers/aws.ts';
import { runTally, startDaemon, type Environment } from '../../support/servers/daemon.ts';
import { awsEndpoint } from '../../support/servers/found.ts';
import { startIamProxy, type Statement } from '../../support/servers/iam-proxy.ts';
import { openIndex } from '../../support/worlds/flow.ts';

/** A process starts for each command, on few cores. */
const TEST_TIMEOUT_MS = 600_000;

type Source = 'notification' | 'eventbridge';

const OTHER_ACCOUNT = '222222222222';

async function printed(env: Environment, ...args: readonly string[]): Promise<readonly Statement[]> {
  const { code, stdout, stderr } = await runTally(['iam-policy', ...args], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return (JSON.parse(stdout) as { readonly Statement: readonly Statement[] }).Statement;
}

interface Document {
  readonly Statement: readonly Statement[];
}

/** The policies of both accounts. */
async function printedBoth(env: Environment, ...args: readonly string[]) {
  const { code, stdout, stderr } = await runTally(['iam-policy', ...args], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as { readonly process: Document; readonly role: Document };
}

/** The queue's URL as AWS writes it: some emulators name a queue by another form, which names no queue to the printed policy. */
function regularUrl({ arn }: TestQueue): string {
  const [, , , region = '', account = '', name = ''] = arn.split(':');
  return `http://sqs.${region}.localhost/${account}/${name}`;
}

/** Puts an object; returns an event that names its version and order, as S3 sends it. */
async function putExactly(aws: TestAws, bucket: string, key: string): Promise<string> {
  const { VersionId, ETag = '' } = await aws.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: 'x' }));
  const object = { key, size: 1, eTag: ETag.replaceAll('"', ''), versionId: VersionId, sequencer: sequencerOf(Date.now() * 1_000) };
  const facts = { eventName: 'ObjectCreated:Put', eventTime: new Date().toISOString(), s3: { bucket: { name: bucket }, object } };
  return JSON.stringify({ Records: [{ eventVersion: '2.1', eventSource: 'aws:s3', awsRegion: aws.region, ...facts }] });
}

describe.skipIf(!awsEndpoint())('what tally iam-policy prints', () => {
  /** A daemon behind the policies that are printed for its settings, one for itself and one for its role that connects. */
  async function startWorld(source: Source, afterwards: TestContext['onTestFinished']) {
    const aws = createTestAws(awsEndpoint()!);
    afterwards(() => aws.dispose());
    const letters = await aws.createQueue();
    const queue = await aws.createQueue({ deadLetters: { queue: letters, maxReceiveCount: 20 } });
    const index = await openIndex('sqlite');
    afterwards(() => index.close());
    const bucket = await aws.createBucket();
    const settings = {
      TALLY_QUEUE_URL: queue.url,
      TALLY_INSTALLATION: randomBytes(4).toString('hex'),
      TALLY_CONNECT_ROLE_ARN: 'arn:aws:iam::000000000000:role/tally-connect',
      TALLY_INGEST_POLLERS: '1',
      ...index.env,
    };
    const about = ['--source', source, '--bucket', bucket];
    const named = { TALLY_QUEUE_URL: regularUrl(queue) };
    const reading = { ...settings, ...named, AWS_ENDPOINT_URL: aws.endpoint };
    const policies = {
      process: await printed(reading, '--for', 'daemon', ...about),
      assumed: await printed(reading, '--for', 'connecting', ...about),
    };
    const iam = await startIamProxy(aws.endpoint, policies);
    afterwards(() => iam.close());
    await aws.put(bucket, 'before.txt', 'x');
    const daemon = await startDaemon({ ...settings, AWS_ENDPOINT_URL: iam.url });
    afterwards(async () => void (await daemon.stop()));

    return {
      aws,
      iam,
      bucket,
      queue,
      topicArn: `arn:aws:sns:${aws.region}:000000000000:tally-${settings.TALLY_INSTALLATION}-events`,
      daemon,
      /** Asks the daemon; it must succeed. */
      ask: async (method: string, path: string, body?: unknown): Promise<Readonly<Record<string, unknown>>> => {
        const answer = await daemon.request(method, path, body);
        expect({ path, isDone: answer.status < 300, text: answer.status < 300 ? '' : answer.body }).toEqual({
          path,
          isDone: true,
          text: '',
        });
        return answer.body as Readonly<Record<string, unknown>>;
      },
      /** Runs a command in a process of its own with the credentials of who connects. */
      person: async (args: readonly string[]) => {
        const { TALLY_CONNECT_ROLE_ARN: _, ...own } = settings;
        const { code, stdout, stderr } = await runTally(args, { ...own, AWS_ENDPOINT_URL: iam.url, AWS_ACCESS_KEY_ID: 'person' });
        expect({ args, code, text: code === 0 ? '' : `${[...iam.refused].join('; ')} ${stdout}${stderr}` }).toEqual({
          args,
          code: 0,
          text: '',
        });
        return stdout;
      },
      /** Resolves when the index has these objects. */
      has: async (keys: readonly string[]) => {
        await until(`the index has ${keys.join(', ')} (${[...iam.refused].join('; ')})`, async () => {
          const { body } = await daemon.request('GET', `/v1/objects?bucket=${bucket}`);
          const { items } = body as { readonly items?: readonly { readonly key: string }[] };
          return JSON.stringify(items?.map(({ key }) => key)) === JSON.stringify(keys);
        });
      },
      letters: async (count: number) => {
        await until(`there are ${count} dead letters`, async () => {
          const { body } = await daemon.request('GET', '/v1/dead-letters');
          return (body as { readonly items?: readonly unknown[] }).items?.length === count;
        });
      },
    };
  }

  // which requests go to which side is the same for all places that differ
  it.concurrent.for(['notification', 'eventbridge'] as const)(
    'is enough on both sides of a bucket of another account and region with the source %s, and used to the last action of its role',
    { timeout: TEST_TIMEOUT_MS },
    async (source, { onTestFinished: afterwards }) => {
      const endpoint = awsEndpoint()!;
      const [home, there] = [createTestAws(endpoint), createTestAws(endpoint, { region: 'eu-west-1', account: OTHER_ACCOUNT })];
      afterwards(() => home.dispose());
      afterwards(() => there.dispose());
      const letters = await home.createQueue();
      const queue = await home.createQueue({ deadLetters: { queue: letters, maxReceiveCount: 20 } });
      const index = await openIndex('sqlite');
      afterwards(() => index.close());
      const bucket = await there.createBucket();
      const settings = {
        TALLY_QUEUE_URL: queue.url,
        TALLY_INSTALLATION: randomBytes(4).toString('hex'),
        TALLY_CONNECT_ROLE_ARN: `arn:aws:iam::${OTHER_ACCOUNT}:role/tally-connect`,
        TALLY_INGEST_POLLERS: '1',
        ...index.env,
      };
      const reading = { ...settings, TALLY_QUEUE_URL: regularUrl(queue), AWS_ENDPOINT_URL: endpoint };
      const about = ['--source', source, '--bucket', bucket, '--bucket-account', OTHER_ACCOUNT, '--bucket-region', 'eu-west-1'];
      const [daemonSide, connectingSide] = [
        await printedBoth(reading, '--for', 'daemon', ...about),
        await printedBoth(reading, '--for', 'connecting', ...about),
      ];
      expect(daemonSide.role).toEqual(connectingSide.role);
      // without a role in the account of the queue, the process applies as well
      const process = [...daemonSide.process.Statement, ...connectingSide.process.Statement];
      const assumed = daemonSide.role.Statement;
      const iam = await startIamProxy(endpoint, { process, assumed }, { assumedAccount: OTHER_ACCOUNT });
      afterwards(() => iam.close());
      const daemon = await startDaemon({ ...settings, AWS_ENDPOINT_URL: iam.url });
      afterwards(async () => void (await daemon.stop()));

      async function ask(method: string, path: string, body?: unknown): Promise<unknown> {
        const answer = await daemon.request(method, path, body);
        expect({ path, status: answer.status, refused: [...iam.refused], body: answer.body }).toMatchObject({
          status: expect.any(Number),
          refused: [],
        });
        expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
        return answer.body;
      }
      const ours = `/v1/buckets/${bucket}`;
      await ask('POST', '/v1/buckets', { bucket, source, bucket_account: OTHER_ACCOUNT, reindex: false });
      const { token } = (await ask('GET', `${ours}/plan`)) as { readonly token: string };
      await until('it is applied', async () => {
        return ((await ask('POST', `${ours}/apply`, { plan: token })) as { readonly state: string }).state === 'applied';
      });
      await there.put(bucket, 'delivered.txt', 'x');
      await until('the index has it', async () =>
        JSON.stringify(await ask('GET', `/v1/objects?bucket=${bucket}`)).includes('delivered.txt'),
      );
      expect(await ask('GET', `${ours}/doctor`)).toMatchObject({ status: 'ok', findings: [] });
      await ask('DELETE', ours);
      expect([...iam.refused]).toEqual([]);
      expect(iam.unused('assumed')).toEqual([]);
    },
  );

  it('is asked for by each service: what no statement allows is refused in its words', async () => {
    const iam = await startIamProxy(awsEndpoint()!, { process: [], assumed: [] });
    onTestFinished(() => iam.close());
    const aws = createTestAws(iam.url);
    onTestFinished(() => aws.dispose());
    const refusals = await Promise.allSettled([
      aws.createBucket(),
      aws.createTopic(),
      aws.createQueue(),
      aws.createRule({ pattern: {}, targetArn: 'a' }),
    ]);
    expect(refusals.map((refusal) => refusal.status === 'rejected' && (refusal.reason as Error).name)).toEqual([
      'AccessDenied',
      'AuthorizationErrorException',
      'AccessDeniedException',
      'AccessDeniedException',
    ]);
    expect([...iam.refused].map((text) => text.split(' ')[1] ?? '').toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
      'events:PutRule',
      's3:CreateBucket',
      'sns:CreateTopic',
      'sqs:CreateQueue',
    ]);
  });

  // at once: they wait most of their time
  it.concurrent.for(['notification', 'eventbridge'] as const)(
    'is enough for the whole life of a bucket with the source %s, by the daemon and then by a person, and used to the last action',
    { timeout: TEST_TIMEOUT_MS },
    async (source, { onTestFinished: afterwards }) => {
      const { aws, iam, bucket, queue, topicArn, ask, has, letters, person } = await startWorld(source, afterwards);
      const ours = `/v1/buckets/${bucket}`;
      const apply = async (): Promise<void> => {
        const { token } = await ask('GET', `${ours}/plan`);
        expect(await ask('POST', `${ours}/apply`, { plan: token })).toMatchObject({ state: 'applied' });
      };
      await ask('POST', '/v1/buckets', { bucket, source, enrich: 'tags' });
      // nothing else announces these objects, and the emulator's own events do not name a state exactly, as those of S3 do
      await aws.sendBodies(queue.url, [await putExactly(aws, bucket, 'exact.txt')]);
      await has(['before.txt', 'exact.txt']);
      await aws.setVersioning(bucket, 'Enabled');
      await aws.sendBodies(queue.url, [await putExactly(aws, bucket, 'version.txt')]);
      await has(['before.txt', 'exact.txt', 'version.txt']);
      await apply();
      await aws.put(bucket, 'delivered.txt', 'x');
      await aws.remove(bucket, 'before.txt');
      await has(['delivered.txt', 'exact.txt', 'version.txt']);
      if (source === 'notification') {
        const { Subscriptions = [] } = await aws.sns.send(new ListSubscriptionsByTopicCommand({ TopicArn: topicArn }));
        const [SubscriptionArn] = Subscriptions.map((subscription) => subscription.SubscriptionArn);
        await aws.sns.send(
          new SetSubscriptionAttributesCommand({ SubscriptionArn, AttributeName: 'RawMessageDelivery', AttributeValue: 'true' }),
        );
        await apply();
      }
      const { id } = await ask('POST', `${ours}/reindex`, { now: true });
      await until('the re-index is done', async () => (await ask('GET', `/v1/jobs/${String(id)}`))['state'] === 'done');
      expect(JSON.stringify(await ask('GET', `${ours}/doctor`))).not.toMatch(/denied|not authorized/i);

      await aws.sendBodies(queue.url, ['not JSON', ...(source === 'notification' ? [confirmationBody(topicArn, 'spent')] : [])]);
      await letters(1);
      await ask('POST', '/v1/dead-letters/replay', { all: true });
      await letters(1);
      await ask('POST', '/v1/dead-letters/discard', { all: true });
      await ask('DELETE', ours);
      expect([...iam.refused]).toEqual([]);
      // the emulator's events of EventBridge lead to HEAD requests for the present object; the notification's story reads a version
      const versions = source === 'eventbridge' ? [`EnrichDocuments: s3:GetObjectVersion arn:aws:s3:::${bucket}/*`] : [];
      expect(iam.unused('process')).toEqual(versions);

      await person(['bucket', 'add', bucket, '--source', source, '--no-reindex']);
      // the requests of a plan are the same for everybody who applies it: each day a person applies that of one source
      if (isLong || source === 'notification') {
        const { token } = JSON.parse(await person(['bucket', 'plan', bucket, '--json'])) as { readonly token: string };
        await person(['bucket', 'apply', bucket, '--plan', token]);
        await person(['bucket', 'remove', bucket, '--yes']);
      }
      expect([...iam.refused]).toEqual([]);
      expect(iam.unused('assumed')).toEqual([]);
    },
  );
});
