import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bucketSources } from '../../src/records/bucket.ts';
import { iamPolicy, permissions, type IamRole } from '../../src/connect/permissions.rules.ts';

const ROOT = new URL('../..', import.meta.url).pathname;

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
const SERVICES: Readonly<Record<string, string>> = { eventbridge: 'events' };

/** The actions of the commands that a file imports, and those that it names: S3's permissions have other names than its requests. */
function actionsIn(file: string): readonly string[] {
  const text = readFileSync(`${ROOT}/${file}`, 'utf8');
  const imported = [...text.matchAll(/import \{([^}]*)\} from '@aws-sdk\/client-(sns|sqs|eventbridge|cloudtrail)'/g)];
  return [
    ...imported.flatMap(([, commands = '', service = '']) =>
      [...commands.matchAll(/(\w+)Command\b/g)].map(([, name]) => `${SERVICES[service] ?? service}:${name}`),
    ),
    ...[...text.matchAll(/'(s3:\w+)'/g)].map(([, action = '']) => action),
  ];
}

const OF_SETUP = 'src/connect/aws/shared-parts.ts';
/** Those of connections. */
const called = new Set(
  globSync('src/connect/aws/*.ts', { cwd: ROOT })
    .filter((file) => file !== OF_SETUP)
    .flatMap(actionsIn),
);
const actionsFor = (role: IamRole): readonly string[] =>
  permissions.filter(({ roles }) => roles.includes(role)).flatMap(({ actions }) => actions);

describe('the table of permissions', () => {
  it('has every call that makes or reads a connection, and no other for the person who connects', () => {
    // the daemon alone publishes probes
    expect([...called].filter((action) => !actionsFor('connecting').includes(action))).toEqual(['sns:Publish']);
    // HeadBucket, and the tags that PutRule takes
    const others = new Set(['s3:ListBucket', 's3:GetBucketVersioning', 'events:TagResource']);
    expect(actionsFor('connecting').filter((action) => !called.has(action) && !others.has(action))).toEqual([]);
  });

  it('has every call of `tally setup` for who runs it, and no other', () => {
    expect([...actionsIn(OF_SETUP), ...SHARED].toSorted()).toEqual(actionsFor('setup').toSorted());
  });

  it('has every read of a connection for the daemon, and no write but a probe of its own topics', () => {
    const isRead = (action: string): boolean => /:(?:Get|List|Describe)/.test(action);
    expect([...called].filter((action) => isRead(action) && !actionsFor('daemon').includes(action))).toEqual([]);
    expect(actionsFor('daemon').filter((action) => /:(?:Put|Set|Create|Subscribe|Unsubscribe|Tag|Remove)/.test(action))).toEqual([]);
  });

  it('permits the statement for EventBridge in a topic of others that is named for routed, and reads of it', () => {
    const topic = 'arn:aws:sns:us-east-1:123456789012:ops';
    const policy = iamPolicy('connecting', ['routed'], { ...names, topicArns: [topic] });
    expect(policy).toMatchObject({
      Statement: expect.arrayContaining([
        expect.objectContaining({ Action: ['sns:SetTopicAttributes'], Resource: [topic] }),
        expect.objectContaining({ Sid: 'ReadTopics', Resource: expect.arrayContaining([topic]) }),
        expect.objectContaining({ Sid: 'SubscribeTheQueue', Resource: expect.arrayContaining([topic]) }),
      ]),
    });
    expect(JSON.stringify(iamPolicy('connecting', ['routed'], names))).not.toContain('AdmitEventBridge');
  });

  it('permits no writes to the topics of others, although the source topic reads them', () => {
    const writingOf = (role: IamRole) => {
      const { Statement } = iamPolicy(role, bucketSources, names) as { Statement: { Action: string[]; Resource: string | string[] }[] };
      return Statement.filter(({ Action }) => Action.some((action) => /^sns:(?:Set|Delete|Create)Topic/.test(action)));
    };
    expect(writingOf('connecting')).toEqual([]);
    expect(writingOf('setup').map(({ Resource }) => Resource)).toEqual(['arn:aws:sns:*:123456789012:tally-0a1b2c3d-*']);
  });

  it('names the topics of the source topic where they are given, those of other accounts included', () => {
    const theirs = 'arn:aws:sns:us-east-1:999999999999:changes';
    const resourcesOf = (sources: Parameters<typeof iamPolicy>[1], topicArns?: readonly string[]): readonly unknown[] => {
      const { Statement } = iamPolicy('connecting', sources, { ...names, topicArns }) as {
        Statement: { Sid: string; Resource: unknown }[];
      };
      return Statement.filter(({ Sid }) => Sid === 'SubscribeTheQueue').map(({ Resource }) => Resource);
    };
    const own = 'arn:aws:sns:*:123456789012:tally-0a1b2c3d-*';
    expect(resourcesOf(['topic'])).toEqual(['arn:aws:sns:*:123456789012:*']);
    expect(resourcesOf(['topic'], [theirs])).toEqual([[own, theirs]]);
    expect(resourcesOf(bucketSources, [theirs])).toEqual([[own, theirs]]);
    expect(resourcesOf(['notification'], [theirs])).toEqual([]);
  });

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
