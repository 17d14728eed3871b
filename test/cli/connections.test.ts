import { describe, expect, it } from 'vitest';
import { RequestError } from '../../src/base/request-error.ts';
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

  it('applies until it is done', async () => {
    const world = createCliWorld();
    world.nextAnswers({ ...bucketAnswer, connection: { bucket: 'photos', state: 'applying', retry_after_ms: 1 } });
    const { exitCode } = await world.run('bucket add photos --json --no-reindex --bucket-account 210987654321');
    expect(exitCode).toBe(0);
    const body = { bucket: 'photos', reindex: false, bucket_account: '210987654321' };
    expect(world.asked).toEqual([
      ['addBucket', { body }],
      ['addBucket', { body }],
    ]);
    expect((await world.run('bucket add photos --bucket-account 7')).exitCode).toBe(64);
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
    expect(JSON.parse(stdout)).toMatchObject({
      Statement: expect.arrayContaining([
        expect.objectContaining({ Sid: 'ReadTopics', Resource: [expect.any(String), theirs, `${theirs}-2`] }),
        expect.objectContaining({ Sid: 'ConfirmSubscriptions', Resource: [expect.any(String), theirs, `${theirs}-2`] }),
      ]),
    });
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
    const policyOf = async (more: object) => {
      const { stdout } = await createCliWorld({ env: { ...env, ...more } }).run('iam-policy --for connecting');
      const { Statement } = JSON.parse(stdout) as { Statement: { Action: string[]; Resource: string }[] };
      return Statement.filter(({ Action }) => Action.some((action) => action.startsWith('cloudtrail:'))).map(({ Action, Resource }) => [
        Action.join(' '),
        Resource,
      ]);
    };
    const reads = 'cloudtrail:GetTrailStatus cloudtrail:GetEventSelectors';
    const own = [
      ['cloudtrail:DescribeTrails', '*'],
      [reads, trail],
      ['cloudtrail:PutEventSelectors', trail],
    ];
    expect(await policyOf({})).toEqual([]);
    expect(await policyOf({ TALLY_TRAIL_ARN: trail })).toEqual(own);
    expect(await policyOf({ TALLY_TRAIL_BUCKET: 'logs' })).toEqual([]);
  });
});
