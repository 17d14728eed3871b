/**
 * The whole story of a bucket that others use already, where the bucket queue is and in another region:
 * connected with each source, changed, and disconnected, while the daemon indexes. What AWS answers before and after must be the same.
 *
 * LocalStack has no CloudTrail: the trail of the source `routed` is on moto, and the test puts each call on the event bus as
 * CloudTrail would. From there everything is real: Tally's rule, its transformer, the topic, the queue and the daemon.
 */
import {
  CloudTrailClient,
  CreateTrailCommand,
  GetEventSelectorsCommand,
  GetTrailStatusCommand,
  PutEventSelectorsCommand,
  StartLoggingCommand,
  type AdvancedEventSelector,
} from '@aws-sdk/client-cloudtrail';
import { CreateBucketCommand, DeleteObjectsCommand, S3Client } from '@aws-sdk/client-s3';
import { GetTopicAttributesCommand } from '@aws-sdk/client-sns';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { omit } from '../../src/base/defined.ts';
import { markId } from '../../src/records/dirty.ts';
import type { Bucket } from '../../src/registry/contract/bucket.ts';
import type { ConnectionView } from '../../src/registry/contract/connections.ts';
import { createSqliteStore } from '../../src/store/sqlite/store.ts';
import { refs, updateRecord } from '../../src/store/stored.ts';
import { canRun } from '../docs/programs.ts';
import { documentedTransformer, tellTrail, type Call } from '../support/audit-trail.ts';
import { isLong } from '../support/breadth.ts';
import { listBucket } from '../support/random/operations.ts';
import { createTestAws, until, type TestAws } from '../support/servers/aws.ts';
import { runTally } from '../support/servers/daemon.ts';
import { awsEndpoint } from '../support/servers/found.ts';
import { MOTO, startMoto } from '../support/servers/moto.ts';
import { startWorld, type World } from '../support/worlds/aws.ts';
import { createBystanders, tracesOf, type Bystanders } from '../support/worlds/bystanders.ts';
import { indexKinds, openIndex, type IndexKind, type TestIndex } from '../support/worlds/flow.ts';

const REGION = 'us-east-1';
const ELSEWHERE = 'eu-west-1';
/** Some processes start at once on few cores. */
const TEST_TIMEOUT_MS = 600_000;

interface Story {
  readonly source: 'notification' | 'topic' | 'eventbridge' | 'routed';
  /** Of the bucket. */
  readonly place: string;
  readonly region: string;
  /** Half of the stories on each store: the wiring does not depend on it. */
  readonly store: IndexKind;
  /** What the plan says that it touches of others. */
  readonly foreign: readonly string[];
  /** Gaps besides those of connecting. */
  readonly gaps: readonly string[];
}

const server = indexKinds.at(-1) ?? 'sqlite';
const common: readonly Omit<Story, 'place' | 'region'>[] = [
  { source: 'notification', store: server, foreign: ['destination', 'destination'], gaps: [] },
  { source: 'topic', store: 'sqlite', foreign: [], gaps: [] },
  { source: 'eventbridge', store: 'sqlite', foreign: [], gaps: [] },
  // a trail does not name the objects of a bulk delete in its call
  { source: 'routed', store: server, foreign: ['trail'], gaps: ['bulk-delete'] },
];
const stories: readonly Story[] = [
  ...common.map((story) => ({ ...story, place: 'beside the bucket queue', region: REGION })),
  // of the source topic, Tally makes nothing beside the bucket
  ...common.filter(({ source }) => source !== 'topic').map((story) => ({ ...story, place: 'in another region', region: ELSEWHERE })),
];

describe.skipIf(!awsEndpoint() || !canRun('the story of a routed bucket', [MOTO])).concurrent('a bucket that others use', () => {
  let trails: Trails;
  beforeAll(async () => {
    trails = await startTrails(stories.map(({ place }) => place));
  }, TEST_TIMEOUT_MS);
  afterAll(() => trails.stop());

  it.each(stories)('$place is connected by $source, indexed, and left as it was', { timeout: TEST_TIMEOUT_MS }, async (story) => {
    const aws = createTestAws(awsEndpoint() ?? '', { region: story.region });
    const trail = trails.of(story.place);
    const env = {
      ...(story.source === 'routed' && { TALLY_TRAIL_ARN: trail.arn, AWS_ENDPOINT_URL_CLOUDTRAIL: trail.endpoint }),
    };
    const world = await startWorld({ store: story.store, env, regions: story.region === REGION ? [] : [story.region] });
    const others = await createBystanders(aws, world, { sendsToTopic: story.source === 'topic' });
    try {
      await tell(story, { world, aws, others, trail });
    } finally {
      others.close();
      await world.dispose();
      await aws.dispose();
    }
  });
});

/**
 * Section 6 of the specification with the operator's own topic, by the commands of docs/guides/connect.md: the first workaround, and
 * the second one by hand (the trail was supplied; the transformer is the specification's letter for letter) and with Tally's rule.
 */
const ways = [
  { way: 'a topic that gets exactly created and removed objects', source: 'topic', isByHand: false },
  { way: 'the ten steps by hand', source: 'routed', isByHand: true },
  { way: 'the ten steps with a rule of Tally', source: 'routed', isByHand: false },
] as const;

/** Each waits minutes for what a person would: `npm run test:long` plays them. */
if (isLong) {
  describe.skipIf(!awsEndpoint() || !canRun('the ten steps', [MOTO])).concurrent('a bucket with a topic of the operator', () => {
    let trails: Trails;
    beforeAll(async () => {
      trails = await startTrails(ways.map(({ way }) => way));
    }, TEST_TIMEOUT_MS);
    afterAll(() => trails.stop());

    it.each(ways)('$way: after one put and one delete it is ok', { timeout: TEST_TIMEOUT_MS }, async ({ way, source, isByHand }) => {
      const trail = trails.of(way);
      const index = await openIndex('sqlite');
      const named = isByHand ? { TALLY_TRAIL_BUCKET: trail.logs } : { TALLY_TRAIL_ARN: trail.arn };
      const env = { ...index.env, ...named, AWS_ENDPOINT_URL_CLOUDTRAIL: trail.endpoint };
      const world = await startWorld({ regions: [], env });
      const { aws, daemon } = world;
      const tally = (...args: readonly string[]) => runTally(args, daemon.operator);
      /** What one request cannot finish, on a busy machine, is repeated, as its error says. */
      const tallyRepeated = async (...args: readonly string[]): Promise<void> => {
        let said = '';
        await until('the command succeeds', async () => {
          const { code, stderr } = await tally(...args);
          said = stderr;
          return code === 0;
        }).catch((error: unknown) => {
          throw new Error(said, { cause: error });
        });
      };
      try {
        const bucket = await aws.createBucket();
        await aws.put(bucket, 'before.txt', 'x');
        const topic = await aws.createTopic();
        const policyOf = async () => (await aws.sns.send(new GetTopicAttributesCommand({ TopicArn: topic }))).Attributes?.['Policy'];
        const policy = JSON.parse((await policyOf()) ?? '') as object;
        if (source === 'topic') await aws.notify(bucket, topic);
        const add = ['bucket', 'add', bucket, '--source', source, '--topic', topic];
        const { token, findings } = JSON.parse((await tally(...add, '--plan', '--json')).stdout) as {
          token: string;
          findings: { code: string; fix: string }[];
        };
        const record = async (eventName: Call['eventName'], key: string): Promise<void> => {
          if (source === 'routed') await tellTrail(aws, [{ eventName, bucket, key, timeMs: Date.now() }]);
        };
        if (isByHand) {
          expect(findings.map(({ code }) => code)).toEqual(['connect.trail-unchecked']);
          // as its owner adds what the plan prints
          await trail.select(JSON.parse(/ shows: (.*), or, if /.exec(findings[0]?.fix ?? '')?.[1] ?? '') as AdvancedEventSelector[]);
          const eventName = ['PutObject', 'CopyObject', 'CompleteMultipartUpload', 'DeleteObject', 'DeleteObjects'];
          const detail = { eventSource: ['s3.amazonaws.com'], eventName, requestParameters: { bucketName: [bucket] } };
          const pattern = { source: ['aws.s3'], 'detail-type': ['AWS API Call via CloudTrail'], detail };
          await aws.createRule({ pattern, targetArn: topic, transformer: documentedTransformer });
        }
        const how = isByHand ? ['--wired-by-hand'] : ['--agree', token];
        await tallyRepeated(...add, ...how);
        if (source === 'routed') expect(JSON.stringify(await trail.snapshot())).toContain(`arn:aws:s3:::${bucket}/`);
        // nothing of these sources is to be repaired
        expect(await tally('reindex', bucket, '--repair')).toMatchObject({
          code: 1,
          stderr: expect.stringContaining('without repair') as string,
        });
        await tallyRepeated('reindex', bucket, '--wait');
        expect(await world.find(bucket, 'before.txt')).toBeDefined();
        await aws.put(bucket, 'after.txt', 'x');
        await record('PutObject', 'after.txt');
        await until('the object is found', async () => (await world.find(bucket, 'after.txt')) !== undefined);
        await aws.remove(bucket, 'after.txt');
        await record('DeleteObject', 'after.txt');
        await until('the object is gone', async () => (await world.find(bucket, 'after.txt')) === undefined);
        await ended(index, bucket);
        let status: Bucket['status'] | undefined;
        await until('the bucket is ok', async () => {
          ({ status } = await world.bucketRecord(bucket));
          return status.state === 'ok';
        }).catch(() => expect(status).toMatchObject({ state: 'ok' }));
        expect(await tally('doctor', bucket)).toMatchObject({ code: 0 });
        await tallyRepeated('bucket', 'remove', bucket, '--yes');
        expect(JSON.parse((await policyOf()) ?? '')).toEqual(policy);
      } finally {
        await world.dispose();
        await index.close();
      }
    });
  });
}

/** Until AWS has applied a change, its gap waits: here that time is over. */
async function ended({ env }: TestIndex, bucket: string): Promise<void> {
  const store = createSqliteStore((env['TALLY_INDEX_URL'] ?? '').replace('sqlite:', ''));
  await updateRecord(store.state, refs.gap(markId(bucket)), (mark) => mark && { ...omit(mark, 'waits', 'urgent'), lastSeenMs: Date.now() });
  await store.close();
}

interface Scene {
  readonly world: World;
  /** In the region of the bucket. */
  readonly aws: TestAws;
  readonly others: Bystanders;
  readonly trail: Trail;
}

async function tell(story: Story, { world, aws, others, trail }: Scene): Promise<void> {
  const { ask, daemon, queue } = world;
  const { bucket, topicArn } = others;
  const ours = `/v1/buckets/${bucket}`;
  // the stories run side by side, and only that of the source `routed` looks at the trail
  const theirs = async () => ({ ...(await others.snapshot()), ...(story.source === 'routed' && { trail: await trail.snapshot() }) });
  const tracesIn = (place: TestAws) => tracesOf(place, `tally-${world.installation}`, queue);
  const traces = async () => [...(await tracesIn(world.aws)), ...(story.place === stories[0]?.place ? [] : await tracesIn(aws))];
  const before = await theirs();
  const shared = await traces();

  const choice = { source: story.source, ...(story.source === 'topic' && { topic_arn: topicArn }) };
  const query = new URLSearchParams(choice).toString();
  const plan = await ask<{ token: string; foreign: { kind: string }[]; findings: { blocks: boolean }[] }>('GET', `${ours}/plan?${query}`);
  expect(plan.findings.filter(({ blocks }) => blocks)).toEqual([]);
  expect(plan.foreign.map(({ kind }) => kind)).toEqual(story.foreign);
  // a plan only reads
  expect(await theirs()).toEqual(before);
  const body = { bucket, ...choice, plan: plan.token, reindex: false };
  let applied: ConnectionView | undefined;
  await until('the plan is applied', async () => {
    applied = (await ask<{ connection: ConnectionView }>('POST', '/v1/buckets', body)).connection;
    return applied.state !== 'applying';
  });
  expect(applied).toMatchObject({ state: 'applied', source: story.source });
  // the entry of a notification is in the bucket's own configuration
  expect((await traces()).length > shared.length).toBe(story.source !== 'notification');
  const doctorsCodes = async () => (await ask<{ findings: { code: string }[] }>('GET', `${ours}/doctor`)).findings.map(({ code }) => code);
  expect(['', 'connect.unproven']).toContain((await doctorsCodes()).join());

  // a stock LocalStack encodes keys in EventBridge's events, which AWS does not
  const special = story.source === 'eventbridge' ? 'plain' : 'a b/ü+&%20 "q".txt';
  const keys = ['0', '1', '2', '3', '4', '5', '6', '7', '8', special];
  await change(aws, bucket, keys, story.source === 'routed' ? (calls) => tellTrail(aws, calls) : undefined);
  await expectAgreement(world, aws, bucket);
  // created and removed objects were reported, by the source and through its topic
  await until('the connection is proven', async () => (await doctorsCodes()).length === 0);
  const gaps = async () =>
    (await world.gaps(bucket)).flatMap(({ reasons }) => reasons.map(({ kind }) => kind).filter((kind) => kind === 'bulk-delete'));
  // the index agrees by the deletes of the keys, and the message that opens the gap may come after them
  await until('the gaps are told', async () => (await gaps()).length >= story.gaps.length);
  expect(await gaps()).toEqual(story.gaps);
  expect(await world.letters()).toEqual([]);

  // rules of others may need it
  const kept = story.source === 'eventbridge' ? [{ name: `the EventBridge switch of ${bucket}` }] : [];
  expect(await ask('DELETE', ours)).toMatchObject({ bucket, kept });
  expect(await traces()).toEqual(shared);
  const after = await theirs();
  expect(after).toEqual(before);
  expect((await daemon.request('GET', `/v1/buckets/${bucket}`)).status).toBe(404);
}

/** Puts ten objects, changes one, deletes one alone and three together. `hear` gets the calls as a trail records them. */
async function change(
  aws: TestAws,
  bucket: string,
  keys: readonly string[],
  hear: (calls: readonly Call[]) => Promise<void> = async () => undefined,
): Promise<void> {
  const [changed = '', gone = '', ...rest] = keys;
  const bulk = rest.slice(0, 3);
  const called = (eventName: Call['eventName'], key?: string): Call => ({
    eventName,
    bucket,
    timeMs: Date.now(),
    ...(key !== undefined && { key }),
  });
  for (const key of keys) await aws.put(bucket, key, key);
  await hear(keys.map((key) => called('PutObject', key)));
  await aws.put(bucket, changed, 'other words');
  await aws.remove(bucket, gone);
  await aws.s3.send(new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects: bulk.map((Key) => ({ Key })) } }));
  const deletes = bulk.map((key) => called('DeleteObject', key));
  await hear([called('PutObject', changed), called('DeleteObject', gone), called('DeleteObjects'), ...deletes]);
}

/** Object by object. */
async function expectAgreement(world: World, aws: TestAws, bucket: string): Promise<void> {
  const truth = await listBucket(aws, bucket);
  expect(truth).toHaveLength(6);
  const indexed = async () => (await world.documents(bucket, 4)).map(({ key, etag, size }) => ({ key, etag, size }));
  const isEqual = async (): Promise<boolean> => JSON.stringify(await indexed()) === JSON.stringify(truth);
  // what is not equal in the end is shown by what follows
  await until('the index equals the bucket', isEqual).catch(() => undefined);
  expect(await indexed()).toEqual(truth);
}

type Trails = Awaited<ReturnType<typeof startTrails>>;
type Trail = ReturnType<Trails['of']>;

/** A trail of each name, with logs of its own and a selector of others. */
async function startTrails(names: readonly string[]) {
  const moto = await startMoto();
  const at = { endpoint: moto.endpoint, region: REGION, credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };
  const [client, s3] = [new CloudTrailClient(at), new S3Client({ ...at, forcePathStyle: true })];
  const FieldSelectors = [
    { Field: 'eventCategory', Equals: ['Data'] },
    { Field: 'resources.type', Equals: ['AWS::S3::Object'] },
    { Field: 'resources.ARN', StartsWith: ['arn:aws:s3:::finance/'] },
  ];
  const arns = new Map<string, string>();
  const nameOf = (name: string): string => `audit-${name.toLowerCase().replaceAll(' ', '-')}`;
  for (const name of new Set(names)) {
    const TrailName = nameOf(name);
    await s3.send(new CreateBucketCommand({ Bucket: TrailName }));
    const about = { Name: TrailName, S3BucketName: TrailName, IsMultiRegionTrail: true };
    const { TrailARN = '' } = await client.send(new CreateTrailCommand(about));
    await client.send(new StartLoggingCommand({ Name: TrailName }));
    await client.send(new PutEventSelectorsCommand({ TrailName, AdvancedEventSelectors: [{ Name: 'finance', FieldSelectors }] }));
    arns.set(name, TrailARN);
  }
  return {
    of: (name: string) => ({
      arn: arns.get(name) ?? '',
      logs: nameOf(name),
      endpoint: moto.endpoint,
      async select(more: readonly AdvancedEventSelector[]): Promise<void> {
        const AdvancedEventSelectors = [{ Name: 'finance', FieldSelectors }, ...more];
        await client.send(new PutEventSelectorsCommand({ TrailName: nameOf(name), AdvancedEventSelectors }));
      },
      async snapshot() {
        const { $metadata: _, ...selectors } = await client.send(new GetEventSelectorsCommand({ TrailName: nameOf(name) }));
        const { IsLogging } = await client.send(new GetTrailStatusCommand({ Name: nameOf(name) }));
        return { selectors, IsLogging };
      },
    }),
    stop() {
      client.destroy();
      s3.destroy();
      moto.stop();
    },
  };
}
