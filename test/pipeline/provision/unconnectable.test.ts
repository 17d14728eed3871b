import { describe, expect, it } from 'vitest';
import type { NotificationEntry } from '../../../src/domain/provisioning/notification.ts';
import { ACCOUNT, QUEUE_ARN, REGION, TOPIC_ARN } from '../../support/fakes/aws-parts.ts';
import { allTo, startWorld, theirs, type World } from './world.ts';

const EARLIER = 'tally-99999999-77777777';
const earlier = { ...allTo(`arn:aws:sns:${REGION}:${ACCOUNT}:tally-99999999-events`), id: EARLIER };

async function startAfterAnother(entries: readonly NotificationEntry[] = [...theirs, earlier]): Promise<World> {
  const world = await startWorld();
  world.populate();
  world.notify(entries);
  return world;
}

describe('the notification of another registry', () => {
  it('is an overlap that is not touched: that registry may be in use', async () => {
    const world = await startAfterAnother();
    const plan = await world.plan();
    expect(plan.findings).toContainEqual(
      expect.objectContaining({ code: 'connect.overlap', fix: 'tally bucket plan photos --source eventbridge', blocks: true }),
    );
    await expect(world.apply()).rejects.toMatchObject({ code: 'connect.overlap' });
    expect(world.aws.writes).toEqual([]);
  });
});

describe('a bucket that cannot be connected', () => {
  it('is named before anything is read: a directory bucket sends no events', async () => {
    const world = await startWorld();
    await expect(world.plan({ bucket: 'photos--use1-az4--x-s3' })).rejects.toMatchObject({
      code: 'connect.blocked',
      message: expect.stringContaining('directory bucket'),
    });
  });

  it('is one of a store that only speaks the protocol of S3', async () => {
    const entry = { kind: 'queue', id: 'x', arn: 'arn:minio:sqs::PRIMARY:webhook', events: ['s3:ObjectCreated:*'], filter: [] } as const;
    const world = await startAfterAnother([entry]);
    const plan = await world.plan({ source: 'eventbridge' });
    expect(plan.findings).toContainEqual(expect.objectContaining({ code: 'connect.other-store', severity: 'unknown', blocks: true }));
    await expect(world.apply({ source: 'eventbridge' })).rejects.toMatchObject({
      code: 'connect.blocked',
      extra: { finding: 'connect.other-store' },
    });
    expect(await world.codes()).toContain('connect.other-store');
  });
});

describe('a key', () => {
  const statementOf = async (world: World, source: 'notification' | 'eventbridge' | 'routed', at: string) => {
    const plan = await world.plan({ source });
    const { fix } = plan.findings.find(({ code, what }) => code === 'connect.kms-unchecked' && what.startsWith(at))!;
    return JSON.parse(fix) as { Principal: { Service: unknown }; Action: unknown };
  };

  it('is to be opened to those that send, and to no others', async () => {
    const world = await startWorld();
    world.aws.parts.queues.get(QUEUE_ARN)!.kmsKeyId = 'alias/tally';
    expect(await statementOf(world, 'notification', QUEUE_ARN)).toMatchObject({
      Principal: { Service: 'sns.amazonaws.com' },
      Action: ['kms:GenerateDataKey', 'kms:Decrypt'],
    });
    expect(await statementOf(world, 'eventbridge', QUEUE_ARN)).toMatchObject({ Principal: { Service: 'events.amazonaws.com' } });
    await world.apply();
    world.aws.parts.topics.get(TOPIC_ARN)!.kmsKeyId = 'alias/tally';
    expect(await statementOf(world, 'notification', TOPIC_ARN)).toMatchObject({ Principal: { Service: 's3.amazonaws.com' } });
  });

  const allow = (Service: string, more: object = {}) => ({
    Effect: 'Allow',
    Principal: { Service },
    Action: 'kms:*',
    Resource: '*',
    ...more,
  });
  /** The policy, and what is said of the services that send: S3 to the topic, SNS to the queue. */
  const policies: readonly (readonly [what: string, statements: readonly object[], codes: readonly string[]])[] = [
    ['opens it to one', [allow('s3.amazonaws.com')], ['connect.kms-denied']],
    [
      'opens it for half of what is needed',
      [allow('s3.amazonaws.com'), allow('sns.amazonaws.com', { Action: 'kms:Decrypt' })],
      ['connect.kms-denied'],
    ],
    [
      'cannot be judged',
      [allow('s3.amazonaws.com'), allow('sns.amazonaws.com', { Condition: { StringEquals: { 'kms:ViaService': 'x' } } })],
      ['connect.kms-unchecked'],
    ],
    [
      'denies it to SNS',
      [
        { ...allow('x'), Principal: '*' },
        { ...allow('sns.amazonaws.com'), Effect: 'Deny' },
      ],
      ['connect.kms-denied'],
    ],
  ];

  it.each(policies)('whose policy %s is judged by it', async (_, Statement, codes) => {
    const world = await startWorld();
    await world.apply();
    world.aws.parts.keys.set('alias/tally', { policy: JSON.stringify({ Statement }) });
    world.aws.parts.topics.get(TOPIC_ARN)!.kmsKeyId = 'alias/tally';
    world.aws.parts.queues.get(QUEUE_ARN)!.kmsKeyId = 'alias/tally';
    const plan = await world.plan();
    const found = plan.findings.filter(({ code }) => code.startsWith('connect.kms'));
    expect(found.map(({ code }) => code)).toEqual(codes);
    // what is printed heals it, unless something is denied
    const heals = found.map(({ fix }) => JSON.parse(fix) as object);
    const healed = [...Statement.filter((each) => !JSON.stringify(each).includes('Deny')), ...heals];
    world.aws.parts.keys.set('alias/tally', { policy: JSON.stringify({ Statement: healed }) });
    const after = await world.plan();
    expect(after.findings.filter(({ code }) => code.startsWith('connect.kms'))).toEqual([]);
  });

  it('that AWS made for the account is known by its metadata too', async () => {
    const world = await startWorld();
    world.aws.parts.keys.set('arn:aws:kms:us-east-1:123456789012:key/1', { policy: '{"Statement":[]}', isManagedByAws: true });
    world.aws.parts.queues.get(QUEUE_ARN)!.kmsKeyId = 'arn:aws:kms:us-east-1:123456789012:key/1';
    const plan = await world.plan();
    expect(plan.findings).toContainEqual(expect.objectContaining({ code: 'connect.kms-managed-key', blocks: true }));
  });
});
