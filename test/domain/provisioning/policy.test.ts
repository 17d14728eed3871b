import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  foreignStatements,
  parsePolicy,
  policyText,
  sameStatements,
  withoutStatements,
  withStatements,
  type Policy,
  type Statement,
} from '../../../src/domain/provisioning/policy.ts';
import { queueStatements, sidsOf, wiringOf, type Wish } from '../../../src/domain/provisioning/wiring.ts';
import { ACCOUNT, INSTALLATION, REGISTRY, THEIR_TOPIC, wish } from '../../support/fakes/aws-parts.ts';

const statement: fc.Arbitrary<Statement> = fc.record(
  {
    Sid: fc.constantFrom('ours', 'theirs', 'another'),
    Effect: fc.constantFrom('Allow', 'Deny'),
    Action: fc.oneof(fc.constantFrom('sqs:SendMessage', 'SQS:*'), fc.array(fc.constantFrom('sqs:SendMessage', 'sqs:ReceiveMessage'))),
    Condition: fc.dictionary(
      fc.constantFrom('ArnLike', 'StringEquals'),
      fc.dictionary(fc.string({ maxLength: 4 }), fc.array(fc.string({ maxLength: 4 }))),
    ),
  },
  { requiredKeys: ['Effect'] },
);
const policy: fc.Arbitrary<Policy> = fc.record({
  Version: fc.constant('2012-10-17'),
  Id: fc.string(),
  Statement: fc.array(statement, { maxLength: 6 }),
});
const OURS = new Set(['ours']);
const wanted: Statement = { Sid: 'ours', Effect: 'Allow', Action: 'sqs:SendMessage' };

describe('a policy', () => {
  it('keeps every statement of others, in its order, when ours is merged and when it is taken away', () => {
    fc.assert(
      fc.property(policy, (before) => {
        const merged = withStatements(before, [wanted]);
        expect(foreignStatements(merged, OURS)).toEqual(foreignStatements(before, OURS));
        expect(merged.Statement.filter(({ Sid }) => Sid === 'ours')).toContainEqual(wanted);
        const { Statement: _, ...rest } = merged;
        expect(before).toMatchObject(rest);
        expect(withoutStatements(merged, OURS).Statement).toEqual(foreignStatements(before, OURS));
      }),
    );
  });

  it('is the same after a second merge', () => {
    fc.assert(
      fc.property(policy, (before) => {
        const once = withStatements(before, [wanted]);
        expect(withStatements(once, [wanted])).toEqual(once);
      }),
    );
  });

  it('is read as it was written', () => {
    fc.assert(
      fc.property(policy, (before) => {
        expect(parsePolicy(policyText(before))).toEqual(JSON.parse(JSON.stringify(before)));
      }),
    );
  });

  it('may have one statement without a list, and is not read if it is no policy', () => {
    expect(parsePolicy('{"Statement":{"Sid":"x"}}')?.Statement).toEqual([{ Sid: 'x' }]);
    for (const text of ['{', '[]', '{"Statement":7}', 'null']) expect(parsePolicy(text)).toBeUndefined();
    expect(parsePolicy(undefined)?.Statement).toEqual([]);
  });

  it('means the same whatever the order of lists, the case of actions, and the form of a list of one', () => {
    const one = { Sid: 'a', Action: ['SQS:SendMessage'], Principal: { Service: ['x', 'y'] } };
    expect(sameStatements([one], [{ Principal: { Service: ['y', 'x'] }, Sid: 'a', Action: 'sqs:SendMessage' }])).toBe(true);
    expect(sameStatements([one], [{ ...one, Principal: { Service: ['y'] } }])).toBe(false);
    expect(sameStatements([one, one], [one])).toBe(false);
  });
});

describe('the policies of 200 buckets', () => {
  /** Each bucket merges its own in turn. */
  function policiesOf(wishes: readonly Wish[]): readonly Policy[] {
    const policies = new Map<string, Policy>();
    for (const each of wishes) {
      for (const queue of wiringOf(each).queues) {
        const before = policies.get(queue.arn) ?? { Version: '2012-10-17', Statement: [] };
        policies.set(queue.arn, withStatements(before, queueStatements(each, queue, before.Statement)));
      }
    }
    return [...policies.values()];
  }

  it('are as large as that of one, with every source that has a topic or rule of ours', () => {
    const sources = ['notification', 'eventbridge', 'routed'] as const;
    const wishes = Array.from({ length: 200 }, (_, index) => ({ ...wish, bucket: `bucket-${index}`, source: sources[index % 3]! }));
    for (const each of policiesOf(wishes)) {
      expect(each.Statement).toHaveLength(2);
      expect(policyText(each).length).toBeLessThan(1_000);
    }
  });

  it('name each topic of somebody else once, and have room for the statements of others', () => {
    const wishes = Array.from({ length: 200 }, (_, index) => ({
      ...wish,
      source: 'topic' as const,
      topicArn: `${THEIR_TOPIC}-${index % 20}`,
    }));
    const [first] = policiesOf(wishes);
    // SQS takes 8,192 bytes and 20 statements
    expect(policyText(first!).length).toBeLessThan(8_192);
    expect(first!.Statement.length).toBeLessThan(20);
  });

  it('keep what a statement of ours allows already, and gain no principal of somebody else', () => {
    const [queue] = wiringOf(wish).queues;
    const sid = sidsOf({ installation: INSTALLATION, registry: REGISTRY }).topics;
    const present = [
      {
        Sid: sid,
        Principal: { Service: ['sns.eu-south-1.amazonaws.com', 'lambda.amazonaws.com'] },
        Condition: { ArnLike: { 'aws:SourceArn': [THEIR_TOPIC] } },
      },
    ];
    const [merged] = queueStatements(wish, queue!, present);
    expect(merged).toMatchObject({
      Principal: { Service: ['sns.amazonaws.com', 'sns.eu-south-1.amazonaws.com'] },
      Condition: { ArnLike: { 'aws:SourceArn': [THEIR_TOPIC, `arn:aws:sns:*:${ACCOUNT}:tally-${INSTALLATION}-*`].sort() } },
    });
  });
});
