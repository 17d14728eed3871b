import { globSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bucketSources, type BucketSource } from '../../src/records/bucket.ts';
import { iamPolicy, permissions, type IamRole } from '../../src/connect/permissions.rules.ts';
import { ROOT, textOf } from '../docs/pages.ts';

const names = {
  partition: 'aws',
  region: 'us-east-1',
  account: '123456789012',
  bucketQueues: ['arn:aws:sqs:us-east-1:123456789012:a'],
  letterQueues: ['arn:aws:sqs:us-east-1:123456789012:letters'],
  bucket: 'photos',
  installation: '0a1b2c3d',
};
const inChina = {
  ...names,
  partition: 'aws-cn',
  region: 'cn-north-1',
  bucketQueues: ['arn:aws-cn:sqs:cn-north-1:123456789012:a'],
  letterQueues: [],
};

/** What `tally setup` shares with connections. */
const SHARED = [
  ...['GetQueueUrl', 'GetQueueAttributes', 'SetQueueAttributes', 'ListQueueTags'].map((name) => `sqs:${name}`),
  ...['GetTopicAttributes', 'SetTopicAttributes', 'ListSubscriptionsByTopic', 'Subscribe', 'GetSubscriptionAttributes'].map(
    (name) => `sns:${name}`,
  ),
];

/** What IAM calls by another name than the SDK. HEAD and LIST stand for the bytes and the bucket. */
const RENAMED: Readonly<Record<string, readonly string[]>> = {
  's3:HeadObject': ['s3:GetObject', 's3:GetObjectVersion'],
  's3:GetObjectTagging': ['s3:GetObjectTagging', 's3:GetObjectVersionTagging'],
  's3:HeadBucket': ['s3:ListBucket'],
  's3:ListObjectsV2': ['s3:ListBucket'],
  's3:ListMultipartUploads': ['s3:ListBucketMultipartUploads'],
  's3:GetBucketLifecycleConfiguration': ['s3:GetLifecycleConfiguration'],
  's3:GetBucketNotificationConfiguration': ['s3:GetBucketNotification'],
  's3:PutBucketNotificationConfiguration': ['s3:PutBucketNotification'],
  // with its tags
  'events:PutRule': ['events:PutRule', 'events:TagResource'],
  // it needs no permission
  'sts:GetCallerIdentity': [],
};
/** SQS itself asks KMS, as the caller, where a queue has a key of the user's own. */
const OF_SQS = ['kms:Decrypt', 'kms:GenerateDataKey'];

/** What the requests that a file of the source can send need. */
function neededBy(file: string): readonly string[] {
  const imported = textOf(file).matchAll(/import \{([^}]+)\} from '@aws-sdk\/client-(\w+)'/g);
  const requests = [...imported].flatMap(([, commands = '', client = '']) =>
    [...commands.matchAll(/\b([A-Z]\w+?)(?:Batch)?Command\b/g)].map(
      ([, name]) => `${client === 'eventbridge' ? 'events' : client}:${name}`,
    ),
  );
  return requests.flatMap((request) => RENAMED[request] ?? [request]);
}

const actionsFor = (role: IamRole): readonly string[] =>
  permissions.filter(({ roles }) => roles.includes(role)).flatMap(({ actions }) => actions);

// that each role has what it needs: aws/iam-policy.test.ts, which uses all but the permissions of trails and keys
describe('the table of permissions', () => {
  it('has what the code asks of AWS, and nothing else', () => {
    const needed = globSync('src/**/*.ts', { cwd: ROOT }).flatMap(neededBy);
    expect(new Set(permissions.flatMap(({ actions }) => actions))).toEqual(new Set([...needed, ...OF_SQS]));
  });

  it('has every call of `tally setup` for who runs it, and no other', () => {
    expect([...neededBy('src/connect/aws/shared-parts.ts'), ...SHARED].toSorted()).toEqual(actionsFor('setup').toSorted());
  });

  it('has every read of a connection for the daemon, and no write but a probe of its own topics', () => {
    const reads = actionsFor('connecting').filter((action) => /:(?:Get|List|Describe)/.test(action));
    expect(reads.filter((action) => !actionsFor('daemon').includes(action))).toEqual([]);
    expect(actionsFor('daemon').filter((action) => /:(?:Put|Set|Create|Subscribe|Unsubscribe|Tag|Remove)/.test(action))).toEqual([]);
  });

  it('permits no writes to the topics of others, although the source topic reads them', () => {
    const writingOf = (role: IamRole) => {
      const { Statement } = iamPolicy(role, bucketSources, names) as { Statement: { Action: string[]; Resource: string | string[] }[] };
      return Statement.filter(({ Action }) => Action.some((action) => /^sns:(?:Set|Delete|Create)Topic/.test(action)));
    };
    expect(writingOf('connecting')).toEqual([]);
    expect(writingOf('setup').map(({ Resource }) => Resource)).toEqual(['arn:aws:sns:*:123456789012:tally-0a1b2c3d-*']);
  });

  const own = 'arn:aws:sns:*:123456789012:tally-0a1b2c3d-*';
  const theirs = 'arn:aws:sns:us-east-1:999999999999:changes';

  it.each<[sid: string, sources: readonly BucketSource[], topicArns: readonly string[] | undefined, resources: readonly unknown[]]>([
    ['SubscribeTheQueue', ['topic'], undefined, ['arn:aws:sns:*:123456789012:*']],
    ['SubscribeTheQueue', ['topic'], [theirs], [[own, theirs]]],
    ['SubscribeTheQueue', bucketSources, [theirs], [[own, theirs]]],
    ['SubscribeTheQueue', ['notification'], [theirs], []],
    ['ReadTopics', ['routed'], [theirs], [[own, theirs]]],
    ['AdmitEventBridge', ['routed'], [theirs], [[theirs]]],
    ['AdmitEventBridge', ['routed'], undefined, []],
  ])(
    'names the topics of others where they are given, those of other accounts included: %s, %j, %j',
    (sid, sources, topicArns, resources) => {
      const { Statement } = iamPolicy('connecting', sources, { ...names, topicArns }) as {
        Statement: { Sid: string; Resource: unknown }[];
      };
      expect(Statement.filter(({ Sid }) => Sid === sid).map(({ Resource }) => Resource)).toEqual(resources);
    },
  );

  it('permits the daemon the key of its queues by way of SQS only', () => {
    const keyArn = 'arn:aws-cn:kms:cn-north-1:123456789012:key/1';
    expect(JSON.stringify(iamPolicy('daemon', bucketSources, inChina))).not.toContain('kms:');
    expect(iamPolicy('daemon', bucketSources, { ...inChina, keyArn })).toMatchObject({
      Statement: expect.arrayContaining([
        {
          Sid: 'UseTheKeyOfTheQueues',
          Effect: 'Allow',
          Action: ['kms:Decrypt', 'kms:GenerateDataKey'],
          Resource: keyArn,
          Condition: { StringEquals: { 'kms:ViaService': 'sqs.cn-north-1.amazonaws.com.cn' } },
        },
      ]),
    });
  });

  it('makes policies in which each statement has a separate name, and only what the source needs', () => {
    for (const role of ['daemon', 'connecting', 'setup'] as const) {
      for (const source of bucketSources) {
        const { Statement } = iamPolicy(role, [source], inChina) as { Statement: { Sid: string; Resource: string | string[] }[] };
        expect(new Set(Statement.map(({ Sid }) => Sid)).size).toBe(Statement.length);
        for (const resource of Statement.flatMap(({ Resource }) => Resource)) expect(resource).toMatch(/^arn:aws-cn:|^\*$/);
        expect(JSON.stringify(Statement).includes('events:')).toBe(role !== 'setup' && (source === 'eventbridge' || source === 'routed'));
      }
    }
  });
});
