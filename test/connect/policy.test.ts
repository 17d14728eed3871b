import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  foreignStatements,
  parsePolicy,
  sameStatements,
  withoutStatements,
  withStatements,
  type Policy,
  type Statement,
} from '../../src/connect/policy.rules.ts';
import { namedStatement, sidsOf } from '../../src/connect/sources/topic.ts';
import { QUEUE_ARN, spec, THEIR_TOPIC } from '../support/fakes/aws-parts.ts';

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
  it('keeps every statement of others, in its order, when ours is merged, once or twice, and when it is taken away', () => {
    fc.assert(
      fc.property(policy, (before) => {
        const merged = withStatements(before, [wanted]);
        expect(foreignStatements(merged, OURS)).toEqual(foreignStatements(before, OURS));
        expect(merged.Statement.filter(({ Sid }) => Sid === 'ours')).toContainEqual(wanted);
        const { Statement: _, ...rest } = merged;
        expect(before).toMatchObject(rest);
        expect(withoutStatements(merged, OURS).Statement).toEqual(foreignStatements(before, OURS));
        expect(withStatements(merged, [wanted])).toEqual(merged);
      }),
    );
  });

  it('may have one statement without a list, and is refused if it is no policy, which a write would destroy', () => {
    expect(parsePolicy('{"Statement":{"Sid":"x"}}').Statement).toEqual([{ Sid: 'x' }]);
    for (const text of ['{', '[]', '{"Statement":7}', 'null']) expect(() => parsePolicy(text)).toThrow('a policy that Tally cannot read');
    expect(parsePolicy(undefined).Statement).toEqual([]);
  });

  it('means the same whatever the order of lists, the case of actions, and the form of a list of one', () => {
    const one = { Sid: 'a', Action: ['SQS:SendMessage'], Principal: { Service: ['x', 'y'] } };
    expect(sameStatements([one], [{ Principal: { Service: ['y', 'x'] }, Sid: 'a', Action: 'sqs:SendMessage' }])).toBe(true);
    expect(sameStatements([one], [{ ...one, Principal: { Service: ['y'] } }])).toBe(false);
    expect(sameStatements([one, one], [one])).toBe(false);
  });
});

describe('the statement of the topics that were named', () => {
  it('names each once, and has room for the statements of others', () => {
    let named: Policy = { Version: '2012-10-17', Statement: [] };
    for (let index = 0; index < 200; index += 1) {
      const each = { ...spec, source: 'topic', topicArn: `${THEIR_TOPIC}-${index % 20}` } as const;
      named = withStatements(named, [namedStatement(each, QUEUE_ARN, named)]);
    }
    expect(named.Statement).toHaveLength(1);
    // SQS takes 8,192 bytes
    expect(JSON.stringify(named).length).toBeLessThan(4_096);
  });

  it('keeps what it allows already, and gains no principal of somebody else', () => {
    const each = { ...spec, source: 'topic', topicArn: `${THEIR_TOPIC}-2` } as const;
    const Statement = [
      {
        Sid: sidsOf(spec).named,
        Principal: { Service: ['sns.eu-south-1.amazonaws.com', 'lambda.amazonaws.com'] },
        Condition: { ArnLike: { 'aws:SourceArn': [THEIR_TOPIC] } },
      },
    ];
    expect(namedStatement(each, QUEUE_ARN, { Statement })).toMatchObject({
      Principal: { Service: ['sns.amazonaws.com', 'sns.eu-south-1.amazonaws.com'] },
      Condition: { ArnLike: { 'aws:SourceArn': [THEIR_TOPIC, `${THEIR_TOPIC}-2`] } },
    });
  });
});
