import { describe, expect, it } from 'vitest';
import { queueFindings } from '../../../src/domain/provisioning/checks/queue.ts';
import { attributeTexts, queueDifferences, wantedQueues } from '../../../src/domain/provisioning/planning/queue-pair.ts';
import { wiringOf } from '../../../src/domain/provisioning/wiring.ts';
import { LETTERS_ARN, QUEUE_ARN, wish } from '../../support/fakes/aws-parts.ts';

const [letters, bucket] = wantedQueues('tally', wish);
const found = attributeTexts(bucket);
const changed = (attributes: Readonly<Record<string, string>>) => queueDifferences(bucket, { ...found, ...attributes });

describe('the queues that `tally queue create` makes', () => {
  it('are those of which the doctor finds nothing', () => {
    const [first, second] = [letters, bucket].map(({ arn, attributes }) => ({
      arn,
      retentionS: Number(attributes['MessageRetentionPeriod']),
    }));
    const redrive = JSON.parse(found['RedrivePolicy'] ?? '') as { deadLetterTargetArn: string; maxReceiveCount: number };
    const queues = [{ ...second!, deadLetterArn: redrive.deadLetterTargetArn, maxReceiveCount: redrive.maxReceiveCount }, first!];
    const notification = { ok: true, configuration: { entries: [], eventBridge: false }, xml: '' } as const;
    const facts = { wish, wiring: wiringOf(wish), observed: { notification, queues } };
    expect([letters.arn, bucket.arn]).toEqual([LETTERS_ARN, QUEUE_ARN]);
    expect(queueFindings(facts)).toEqual([]);
  });

  it('are as planned in whatever form SQS answers', () => {
    expect(queueDifferences(bucket, found)).toEqual([]);
    const RedrivePolicy = JSON.stringify({ maxReceiveCount: '100', deadLetterTargetArn: LETTERS_ARN });
    expect(changed({ RedrivePolicy, ApproximateNumberOfMessages: '7' })).toEqual([]);
    // a key of the user's own encrypts as well
    expect(changed({ SqsManagedSseEnabled: 'false', KmsMasterKeyId: 'alias/tally' })).toEqual([]);
  });

  it('may have statements of others and of connections besides the planned one', () => {
    const policy = JSON.parse(found['Policy'] ?? '') as { Statement: object[] };
    const theirs = { Sid: 'Theirs', Effect: 'Allow', Principal: { AWS: '*' }, Action: 'sqs:SendMessage', Resource: '*' };
    expect(changed({ Policy: JSON.stringify({ ...policy, Statement: [theirs, ...policy.Statement] }) })).toEqual([]);
    // the value that adds the planned one keeps them
    const [difference] = changed({ Policy: JSON.stringify({ ...policy, Statement: [theirs] }) });
    expect(difference).toMatchObject({ attribute: 'Policy', wanted: expect.stringMatching(/Theirs.*OnlyEncryptedConnections/) });
  });

  it.each(Object.keys(found))('differ by %s alone', (attribute) => {
    const { [attribute]: _, ...without } = found;
    expect(queueDifferences(bucket, without)).toEqual([{ attribute, wanted: found[attribute] }]);
    expect(changed({ [attribute]: '1' })).toMatchObject([{ attribute, found: '1' }]);
  });
});
