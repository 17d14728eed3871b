import { describe, expect, it } from 'vitest';
import { FaultError } from '../../src/base/fault.ts';
import { RequestError } from '../../src/base/request-error.ts';
import type { AddedBucket } from '../../src/registry/contract/buckets.ts';
import { bucketAnswer, planAnswer } from '../support/fakes/control.ts';
import { createCliWorld, unsafeIn } from './world.ts';

const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:uploads';

describe('tally bucket add --plan', () => {
  it('shows the difference, what it touches of others, what was found, and the command that makes it so', async () => {
    const world = createCliWorld();
    const words = ['--source', 'topic', '--topic', TOPIC, '--enrich', 'head', '--wired-by-hand'];
    const { exitCode, stdout, stderr } = await world.run('bucket add photos --plan', ...words);
    expect(world.asked).toEqual([
      ['planBucket', { params: { bucket: 'photos' }, query: { source: 'topic', topic_arn: TOPIC, enrich: 'head', wired_by_hand: 'true' } }],
    ]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^token +0f1e2d3c4b5a6978$/m);
    expect(stdout).toMatch(/^\+ notification photos$/m);
    expect(stdout).toMatch(/^ {4}\+ .*"TopicConfigurations": \[$/m);
    expect(stdout).toMatch(/^ {6}.*"QueueConfigurations": \[$/m);
    expect(stdout).toContain('gets an s3:TestEvent');
    expect(stdout).toContain('broken: photos has no notification with the Id tally-0a1b2c3d (connect.not-made)\n  why  ');
    expect(stderr).toContain('repeat the command with --agree 0f1e2d3c4b5a6978 instead of --plan');
    expect(unsafeIn(stdout)).toEqual([]);
  });

  it('says so when there is nothing to do, and when nothing can be done', async () => {
    const world = createCliWorld();
    const inOrder = { ...planAnswer, changes: [], findings: [], foreign: [] };
    world.nextAnswers(inOrder);
    expect((await world.run('bucket add photos --plan')).stderr).toBe('Nothing to do: everything in AWS is in place.\n');
    // a bucket that is not connected still has to be
    world.nextAnswers({ ...inOrder, connected: false });
    expect((await world.run('bucket add photos --plan')).stderr).toBe('To apply it, repeat the command without --plan.\n');
    world.nextAnswers({ ...planAnswer, findings: [{ ...planAnswer.findings[0]!, blocks: true }] });
    expect(await world.run('bucket add photos --plan')).toMatchObject({ exitCode: 1, stderr: 'Tally cannot apply this plan.\n' });
  });
});

describe('tally bucket add', () => {
  it('says what it is going to make, and what keeps events away', async () => {
    const world = createCliWorld();
    const stopped = {
      code: 'connect.trail',
      severity: 'broken',
      what: 'the trail is stopped',
      why: 'the rule matches nothing',
    } as const;
    world.nextAnswers({ ...planAnswer, findings: [{ ...stopped, fix: '{}', blocks: false }] });
    world.nextAnswers(bucketAnswer);
    const { exitCode, stdout, stderr } = await world.run('bucket add photos --source routed --agree 0f1e');
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/^\+ notification photos$/m);
    expect(stderr).toContain('broken: the trail is stopped (connect.trail)\n  why  the rule');
    expect(unsafeIn(`${stdout}${stderr}`)).toEqual([]);
    expect(world.asked[1]).toEqual(['addBucket', { body: { bucket: 'photos', source: 'routed', plan: '0f1e' } }]);
  });

  it('says once why it is refused', async () => {
    const world = createCliWorld();
    world.nextAnswers({ ...planAnswer, findings: [{ ...planAnswer.findings[0]!, blocks: true }] });
    world.nextFails(new RequestError('connect.overlap', 'photos has notifications for the same events'));
    const { stderr } = await world.run('bucket add photos');
    expect(stderr.match(/photos/g)).toHaveLength(1);
  });
});

describe('tally iam-policy', () => {
  const env = {
    TALLY_INDEX_URL: 'sqlite:nowhere',
    TALLY_QUEUE_URL: 'https://sqs.eu-central-1.amazonaws.com/123456789012/tally-bucket-events',
    TALLY_INSTALLATION: '0a1b2c3d',
  };

  it('prints the least for a role, a source and a bucket, with the names of the settings', async () => {
    const { stdout } = await createCliWorld({ env }).run('iam-policy --for connecting --source notification --bucket photos');
    const policy = JSON.parse(stdout) as { Statement: { Sid: string; Action: string[]; Resource: string | string[] }[] };
    const of = (sid: string) => policy.Statement.find(({ Sid }) => Sid === sid);
    expect(of('NotifyTally')).toMatchObject({ Action: ['s3:PutBucketNotification'], Resource: 'arn:aws:s3:::photos' });
    const wired = ['tally-bucket-events', 'tally-dead-letters'].map((name) => `arn:aws:sqs:eu-central-1:123456789012:${name}`);
    // of buckets in any region
    const far = 'arn:aws:sqs:*:123456789012:tally-0a1b2c3d-dead-letters';
    expect(of('ReadQueues')).toMatchObject({ Resource: [...wired, far] });
    expect(of('FindTheDeadLetterQueue')).toMatchObject({ Resource: [wired[1], far] });
    expect(JSON.stringify(policy)).not.toMatch(/events:|sqs:ReceiveMessage|s3:GetObject|sns:CreateTopic|sqs:SetQueueAttributes/);
    const setup = await createCliWorld({ env }).run('iam-policy --for setup');
    expect(setup.stdout).toContain('arn:aws:sns:*:123456789012:tally-0a1b2c3d-*');
  });

  it('names the topics of others that it is given, and takes nothing else for one', async () => {
    const theirs = 'arn:aws:sns:eu-central-1:999999999999:changes';
    const world = createCliWorld({ env });
    const { stdout } = await world.run('iam-policy', '--source', 'topic', '--topic', theirs, `${theirs}-2`);
    // to read them, and to confirm subscriptions to them
    for (const arn of [theirs, `${theirs}-2`]) expect(stdout.split(`"${arn}"`)).toHaveLength(3);
    const refused = await world.run('iam-policy --topic photos');
    expect(refused).toMatchObject({ exitCode: 64, stderr: expect.stringContaining('It must be the ARN of an SNS topic.') });
  });

  it.each([
    [undefined, 'tally-dead-letters'],
    ['https://sqs.eu-central-1.amazonaws.com/123456789012/letters', 'letters'],
  ])('has the dead-letter queues for the daemon as well, which sends letters there: %s', async (url, letters) => {
    const { stdout } = await createCliWorld({ env: { ...env, ...(url && { TALLY_DEAD_LETTER_QUEUE_URL: url }) } }).run('iam-policy');
    const { Statement } = JSON.parse(stdout) as { Statement: { Sid: string; Resource: string[] }[] };
    const names = (sid: string) => Statement.find(({ Sid }) => Sid === sid)?.Resource.map((arn) => arn.split(':').at(-1));
    const far = expect.stringMatching(/^tally-.*-dead-letters$/) as string;
    expect(names('ReceiveAndSettleMessages')).toEqual(['tally-bucket-events', letters, far]);
    expect(names('FindTheDeadLetterQueue')).toEqual([letters, far]);
  });

  it('permits changes of the trail that Tally may change, and of no other', async () => {
    const trail = 'arn:aws:cloudtrail:eu-central-1:123456789012:trail/audit';
    const resourcesWith = async (more: object) => {
      const { stdout } = await createCliWorld({ env: { ...env, ...more } }).run('iam-policy --for connecting');
      const { Statement } = JSON.parse(stdout) as { Statement: { Action: string[]; Resource: string }[] };
      return Statement.filter(({ Action }) => Action[0]?.startsWith('cloudtrail:')).map(({ Resource }) => Resource);
    };
    // to find it, to read it and to change it
    expect(await resourcesWith({ TALLY_TRAIL_ARN: trail })).toEqual(['*', trail, trail]);
    for (const none of [{}, { TALLY_TRAIL_BUCKET: 'logs' }]) expect(await resourcesWith(none)).toEqual([]);
  });
});

function answerOf(bucket: string, how: { readonly changed?: boolean; readonly made?: boolean } = {}): AddedBucket {
  const connection = how.made === undefined ? {} : { connection: { bucket, state: 'applied' as const, changed: how.made } };
  return { ...bucketAnswer, bucket, changed: how.changed ?? false, ...connection };
}

const lines = ({ stdout }: { readonly stdout: string }): readonly string[] =>
  stdout.split('\n').map((line) => line.replaceAll(/ {2,}/g, ' | '));

describe('tally bucket add of several buckets', () => {
  it('adds each by itself, and prints one table, with each failure, its code and its advice', async () => {
    const world = createCliWorld();
    world.nextAnswers(answerOf('photos', { changed: true, made: true }));
    world.nextFails(new FaultError('bucket.missing', 'there is no bucket gone\u001b[2J'));
    world.nextAnswers(answerOf('videos', { made: false }));
    world.nextFails(new RequestError('connect.overlap', 'photos has another: run `tally bucket add music`'));
    const ran = await world.run('bucket add --source eventbridge photos gone videos music photos');
    expect(world.asked.map(([, request]) => request)).toEqual(
      ['photos', 'gone', 'videos', 'music'].map((bucket) => ({ body: { bucket, source: 'eventbridge' } })),
    );
    expect(lines(ran).slice(0, 6)).toEqual([
      'BUCKET | RESULT | SOURCE',
      'photos | applied | notification',
      'gone | failed | -',
      'videos | unchanged | notification',
      'music | failed | -',
      '',
    ]);
    expect(ran.stdout).toMatch(/^gone: there is no bucket gone\\u\{1b\}.* \(bucket\.missing\)$/m);
    expect(ran.stdout).toMatch(/^ {2}see https?:\/\/\S+\/docs\/reference\/error-codes\.\w+#bucket-missing$/m);
    expect(ran.stdout).toMatch(/^music: photos has another: run `tally bucket add music` \(connect\.overlap\)$/m);
    expect(ran.exitCode).toBe(7);
  });

  it('says in JSON what became of each', async () => {
    const world = createCliWorld();
    world.nextAnswers(answerOf('photos', { changed: true }));
    world.nextFails(new FaultError('bucket.missing', 'there is no bucket gone'));
    const { stdout, stderr } = await world.run('bucket add photos gone --json');
    expect(JSON.parse(stdout)).toMatchObject({
      buckets: [
        { bucket: 'photos', result: 'connected', answer: { bucket: 'photos', changed: true } },
        { bucket: 'gone', result: 'failed', error: { code: 'bucket.missing', advice: expect.any(String) } },
      ],
    });
    expect(stderr).toBe('');
  });

  it('agrees to the switch of EventBridge where it is asked to, each time that it repeats an apply', async () => {
    const world = createCliWorld();
    world.nextAnswers({ ...answerOf('photos'), connection: { bucket: 'photos', state: 'applying', retry_after_ms: 1 } });
    world.nextAnswers(answerOf('videos', { made: false }));
    const ran = await world.run('bucket add photos videos --source eventbridge --switch-on-eventbridge');
    const bodies = world.asked.map(([, { body }]) => body);
    expect(bodies).toEqual(
      ['photos', 'videos', 'photos'].map((bucket) => ({ bucket, source: 'eventbridge', switch_on_eventbridge: true })),
    );
    expect(ran.exitCode).toBe(0);
  });

  it('reads names from a file, one a line, with comments', async () => {
    const text = '# ours\nphotos\n\n  videos # the large one\r\n';
    const byFile = createCliWorld({ readText: (path) => (path === 'buckets.txt' ? text : undefined) });
    await byFile.run('bucket add --from-file buckets.txt music');
    expect(byFile.asked.map(([, request]) => (request.body as { bucket: string }).bucket)).toEqual(['music', 'photos', 'videos']);
  });

  it('refuses what names no bucket, and a plan and its token, which are about one', async () => {
    const world = createCliWorld({ readText: (path) => (path === 'large' ? undefined : '# none\n') });
    for (const args of [
      [],
      ['--from-file', 'buckets.txt'],
      ['--from-file', 'large'],
      ['a-b', 'c-d', '--agree', '0f1e'],
      ['a-b', 'c-d', '--plan'],
    ])
      expect((await world.run('bucket add', ...args)).exitCode).toBe(64);
    expect(world.asked).toEqual([]);
  });
});
