/**
 * What `tally iam-policy` prints, before an emulator whose every request is judged by it: nothing more is needed to connect a bucket,
 * to keep its index and to take it away again, and nothing of it goes unused.
 */
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { SetQueueAttributesCommand, UntagQueueCommand } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import { createS3Storage } from '../../../src/aws/s3-storage.ts';
import { createProvisioner } from '../../../src/connect/aws/provisioner.ts';
import { createConnectBucket } from '../../../src/connect/connect.ts';
import { RequestError } from '../../../src/base/request-error.ts';
import { createConnections } from '../../../src/connect/connections.ts';
import { iamPolicy, type IamRole } from '../../../src/connect/permissions.rules.ts';
import { sequencerOf } from '../../../src/demo/clock.ts';
import { unwrap } from '../../../src/events/envelope.ts';
import { createGapReports } from '../../../src/observing/gaps.ts';
import { systemClock as clock } from '../../../src/process/clock.ts';
import type { BucketSource } from '../../../src/records/bucket.ts';
import { readRecord, refs } from '../../../src/store/stored.ts';
import { createMemoryStore } from '../../support/fakes/memory-store.ts';
import { createFakeTelemetry } from '../../support/fakes/ports.ts';
import { confirmationBody } from '../../support/sources.ts';
import { createTestAws, until, type TestAws, type TestQueue } from '../../support/servers/aws.ts';
import { runTally, startDaemon, type Environment } from '../../support/servers/daemon.ts';
import { awsEndpoint } from '../../support/servers/found.ts';
import { setUp, setupOn } from '../../support/servers/set-up.ts';
import { startIamProxy, type Statement } from '../../support/servers/iam-proxy.ts';
import { openIndex } from '../../support/worlds/flow.ts';

const HOME = 'us-east-1';
const ELSEWHERE = 'eu-west-1';
/** What a daemon does besides watching connections. */
const OF_THE_DATA_PATH =
  /^(?:ReceiveAndSettleMessages|ConfirmSubscriptions|ReadLifecycleRules|LookAtObjects|EnrichDocuments):|s3:(?:ListBucket|GetBucketVersioning)/;

interface Document {
  readonly Statement: readonly Statement[];
}

/** What the command prints. */
async function printed(env: Environment, ...args: readonly string[]): Promise<readonly Statement[]> {
  const { code, stdout, stderr } = await runTally(['iam-policy', ...args], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return (JSON.parse(stdout) as Document).Statement;
}

/** The queue's URL as AWS writes it: some emulators name a queue by another form, which names no queue to the printed policy. */
function regularUrl({ arn }: TestQueue): string {
  const [, , , region = '', account = '', name = ''] = arn.split(':');
  return `http://sqs.${region}.localhost/${account}/${name}`;
}

/** Puts an object; returns an event that names its version and order, as S3 sends it. */
async function putExactly(aws: TestAws, bucket: string, key: string): Promise<string> {
  const { VersionId, ETag = '' } = await aws.s3.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: 'x', Tagging: 'team=ml' }));
  const object = { key, size: 1, eTag: ETag.replaceAll('"', ''), versionId: VersionId, sequencer: sequencerOf(Date.now() * 1_000) };
  const facts = { eventName: 'ObjectCreated:Put', eventTime: new Date().toISOString(), s3: { bucket: { name: bucket }, object } };
  return JSON.stringify({ Records: [{ eventVersion: '2.1', eventSource: 'aws:s3', awsRegion: aws.region, ...facts }] });
}

/** What connects by each source, there and in another region, where Tally's parts differ. */
const stories: readonly (readonly [source: BucketSource, region: string])[] = [
  ['notification', HOME],
  ['topic', HOME],
  ['eventbridge', HOME],
  ['eventbridge', ELSEWHERE],
  ['routed', HOME],
];

/** Removes the bucket's connection as far as one pass comes, and resolves with whether that was all: a slow AWS needs several. */
async function removed({ remove }: Pick<ReturnType<typeof createConnections>, 'remove'>, bucket: string): Promise<boolean> {
  return remove(bucket, { keepAws: false }).then(
    () => true,
    (error: unknown) => {
      if (error instanceof RequestError && error.code === 'connect.removing') return false;
      throw error;
    },
  );
}

describe.skipIf(!awsEndpoint())('what tally iam-policy prints', () => {
  type Dispose = (dispose: () => Promise<void>) => void;

  /** The emulator, or a proxy before it, as a principal in a region. */
  function awsAs(endpoint: string, dispose: Dispose, at: { readonly region?: string; readonly account?: string } = {}): TestAws {
    const aws = createTestAws(endpoint, at);
    dispose(() => aws.dispose());
    return aws;
  }

  /** A person connects a bucket and removes it, and the daemon watches it. Returns the actions that one of both did not need. */
  async function connect([source, region]: (typeof stories)[number], dispose: Dispose): Promise<ReadonlySet<string>> {
    const endpoint = awsEndpoint()!;
    const [home, aws] = [awsAs(endpoint, dispose), awsAs(endpoint, dispose, { region })];
    const { queue, deadLetters, installation } = await setUp(home, { regions: region === HOME ? [] : [region] });
    const [bucket, named] = [await aws.createBucket(), source === 'topic' || source === 'routed' ? await aws.createTopic() : undefined];
    const names = {
      partition: 'aws',
      region: HOME,
      account: '000000000000',
      bucketQueues: [queue.arn],
      letterQueues: [deadLetters.arn],
      bucket,
      installation,
      ...(named !== undefined && { topicArns: [named] }),
    };
    const statementsFor = (role: IamRole) => (iamPolicy(role, [source], names) as Document).Statement;
    const iam = await startIamProxy(endpoint, { process: statementsFor('daemon'), person: statementsFor('connecting') });
    dispose(() => iam.close());
    const store = createMemoryStore();
    const as = (account?: string) => {
      const clients = awsAs(iam.url, dispose, account === undefined ? {} : { account }).clients();
      const storage = createS3Storage({ clientFor: clients.s3For, region: HOME, clock });
      const parts = { state: store.state, clock, storage, isEmbedded: false, queueUrls: [queue.url] };
      return {
        storage,
        connections: createConnections({ ...parts, aws: createProvisioner({ aws: clients, queueUrl: queue.url, clock }) }),
      };
    };
    const [daemon, person] = [as(), as('person')];
    const telemetry = createFakeTelemetry();
    const gaps = createGapReports({ ...store, clock, telemetry });
    await createConnectBucket({ ...store, storage: person.storage, gaps, clock, telemetry }).connect({ bucket }, 'test');
    const request = { bucket, source, ...(named !== undefined && { topic_arn: named }) };
    const { token } = (await person.connections.plan(request)).plan;
    await until('it is applied', async () => (await person.connections.apply(request, { token })).state === 'applied');
    const record = (await readRecord(store.state, refs.bucket(bucket)))!;
    const { findings } = await daemon.connections.diagnose(record);
    expect(findings.filter(({ code }) => code !== 'connect.trail-unchecked')).toEqual([]);
    await daemon.connections.probe(record.connection!, false);
    if (source === 'notification')
      await until('the probe has come', async () => (await home.takeBodies(queue.url, 1)).some((body) => unwrap(body).kind === 'probe'));
    await until('it is removed', () => removed(person.connections, bucket));
    expect([...iam.refused]).toEqual([]);
    return new Set([...iam.unused('person'), ...iam.unused('process')].map((name) => name.split(' ').slice(0, 2).join(' ')));
  }

  it('is enough for a person who connects a bucket by any source and removes it, and for the watch, and used to the last action', async ({
    onTestFinished: dispose,
  }) => {
    const unused = await Promise.all(stories.map((story) => connect(story, dispose)));
    const ofSources = new Set(unused.flatMap((names) => [...names]));
    const never = [...ofSources].filter((name) => unused.every((names) => names.has(name)));
    // what the daemon alone does besides: below
    expect(never.filter((name) => !OF_THE_DATA_PATH.test(name))).toEqual([]);
  });

  it.for([{ isReplaced: false }, { isReplaced: true }])(
    'is enough for a setup where the settings name a bucket queue that was changed, and another that is to replace it: %j',
    async ({ isReplaced }, { onTestFinished: dispose }) => {
      const endpoint = awsEndpoint()!;
      const home = awsAs(endpoint, dispose);
      const { queue } = await setUp(home);
      if (!isReplaced) {
        await home.sqs.send(new SetQueueAttributesCommand({ QueueUrl: queue.url, Attributes: { DelaySeconds: '900' } }));
        await home.sqs.send(new UntagQueueCommand({ QueueUrl: queue.url, TagKeys: ['tally:registry'] }));
      }
      const queues = [...(isReplaced ? [{ url: `${queue.url}-2`, arn: `${queue.arn}-2` }] : []), queue];
      const process = await printed({ TALLY_QUEUE_URL: queues.map(regularUrl).join(','), AWS_ENDPOINT_URL: endpoint }, '--for', 'setup');
      const iam = await startIamProxy(endpoint, { process, person: [] });
      dispose(() => iam.close());
      const setup = setupOn(awsAs(iam.url, dispose), ...queues.map(({ url }) => url));
      const { made = [] } = await setup.apply({});
      if (!isReplaced) expect(made).toEqual([expect.stringContaining(queue.arn)]);
      // it is as planned in whatever form AWS answers
      expect(await setup.apply({})).not.toHaveProperty('made');
      expect([...iam.refused]).toEqual([]);
    },
  );

  it('is enough for a daemon that connects, as it is printed for its settings, and used to the last action', async ({
    onTestFinished: dispose,
  }) => {
    const endpoint = awsEndpoint()!;
    const aws = awsAs(endpoint, dispose);
    const { queue, installation } = await setUp(aws);
    const topicArn = `arn:aws:sns:${aws.region}:000000000000:tally-${installation}-events`;
    const index = await openIndex('sqlite');
    dispose(() => index.close());
    const bucket = await aws.createBucket();
    await aws.put(bucket, 'before.txt', 'x');
    const settings = { TALLY_QUEUE_URL: queue.url, TALLY_INSTALLATION: installation, TALLY_INGEST_POLLERS: '1', ...index.env };
    const reading = { ...settings, TALLY_QUEUE_URL: regularUrl(queue), AWS_ENDPOINT_URL: endpoint };
    const statementsFor = (role: string) => printed(reading, '--for', role, '--source', 'notification', '--bucket', bucket);
    const process = [...(await statementsFor('daemon')), ...(await statementsFor('connecting'))];
    const iam = await startIamProxy(endpoint, { process, person: [] });
    dispose(() => iam.close());
    const daemon = await startDaemon({ ...settings, AWS_ENDPOINT_URL: iam.url });
    dispose(async () => void (await daemon.stop()));
    /** Asks the daemon; it must succeed. */
    const ask = async (method: string, path: string, body?: unknown): Promise<Readonly<Record<string, unknown>>> => {
      const answer = await daemon.request(method, path, body);
      expect(answer.status, `${path}: ${[...iam.refused].join('; ')} ${JSON.stringify(answer.body)}`).toBeLessThan(300);
      return answer.body as Readonly<Record<string, unknown>>;
    };
    const itemsOf = async (path: string) => (await ask('GET', path))['items'] as readonly Readonly<Record<string, unknown>>[];
    const has = (...keys: readonly string[]) =>
      until(`the index has ${keys.join(', ')}`, async () => {
        const found = (await itemsOf(`/v1/objects?bucket=${bucket}`)).map(({ key }) => key);
        return JSON.stringify(found) === JSON.stringify(keys);
      });
    const letters = (count: number) =>
      until(`there are ${count} dead letters`, async () => (await itemsOf('/v1/dead-letters')).length === count);
    const ours = `/v1/buckets/${bucket}`;
    await ask('POST', '/v1/buckets', { bucket, enrich: 'tags', wired_by_hand: true });
    // nothing else announces these objects, and the emulator's own events do not name a state exactly, as those of S3 do
    await aws.sendBodies(queue.url, [await putExactly(aws, bucket, 'exact.txt')]);
    await has('before.txt', 'exact.txt');
    await aws.setVersioning(bucket, 'Enabled');
    await aws.sendBodies(queue.url, [await putExactly(aws, bucket, 'version.txt')]);
    await has('before.txt', 'exact.txt', 'version.txt');
    const tagged = (await itemsOf(`/v1/objects?bucket=${bucket}&tag=team=ml`)).map(({ key }) => key);
    expect(tagged).toEqual(['exact.txt', 'version.txt']);
    const connection = { state: 'applied' };
    expect(await ask('POST', '/v1/buckets', { bucket, wired_by_hand: false })).toMatchObject({ connection });
    await aws.put(bucket, 'delivered.txt', 'x');
    await aws.remove(bucket, 'before.txt');
    await has('delivered.txt', 'exact.txt', 'version.txt');
    // the job of the bucket's gap may be under way
    await until('no job of the bucket runs', async () => (await itemsOf('/v1/jobs')).every(({ state }) => state === 'done'));
    const { id } = await ask('POST', `${ours}/reindex`, { now: true });
    await until('the re-index is done', async () => (await ask('GET', `/v1/jobs/${String(id)}`))['state'] === 'done');
    expect(JSON.stringify(await ask('GET', `${ours}/doctor`))).not.toMatch(/denied|not authorized/i);
    await aws.sendBodies(queue.url, ['not JSON', confirmationBody(topicArn, 'spent')]);
    await letters(1);
    await ask('POST', '/v1/dead-letters/replay', { all: true });
    await letters(1);
    await ask('POST', '/v1/dead-letters/discard', { all: true });
    await ask('DELETE', ours);
    expect([...iam.refused]).toEqual([]);
    // a probe is due once an hour (above), and letters of other regions where there are some
    const isRare = (name: string): boolean => name.startsWith('ProbeTopics:') || name.includes('arn:aws:sqs:*:');
    expect(iam.unused('process').filter((name) => !isRare(name))).toEqual([]);
  });
});
