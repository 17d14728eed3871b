import { describe, expect, it } from 'vitest';
import { admits, denialsOf } from '../../../src/domain/provisioning/denials.ts';

const QUEUE = 'arn:aws:sqs:eu-central-1:123456789012:tally-bucket-events';
const TOPIC = 'arn:aws:sns:eu-central-1:123456789012:tally-0a1b2c3d-events';
const delivery = { service: 'sns.amazonaws.com', action: 'sqs:SendMessage', resource: QUEUE, sourceArn: TOPIC };
const base = { Sid: 'Theirs', Effect: 'Deny', Principal: '*', Action: 'sqs:SendMessage', Resource: QUEUE };

function isDenied(change: object): boolean {
  return denialsOf({ Statement: [{ ...base, ...change }] }, delivery, new Set(['Ours'])).length === 1;
}

/** A change to the statement, of which `undefined` removes a field. */
type Case = readonly [what: string, change: object];

const denying: readonly Case[] = [
  ['everyone', {}],
  ['every AWS principal', { Principal: { AWS: '*' } }],
  ['the service', { Principal: { Service: ['s3.amazonaws.com', 'sns.amazonaws.com'] } }],
  ['all but a role', { Principal: undefined, NotPrincipal: { AWS: 'arn:aws:iam::123456789012:role/x' } }],
  ['an action with another case and a star', { Action: ['SQS:Receive*', 'SQS:Send*'] }],
  ['every action', { Action: '*' }],
  ['all actions but one', { Action: undefined, NotAction: 'sqs:ReceiveMessage' }],
  ['every resource', { Resource: '*' }],
  ['a resource with a star', { Resource: 'arn:aws:sqs:*:123456789012:tally-*' }],
  ['who is not in an organisation', { Condition: { StringNotEquals: { 'aws:PrincipalOrgID': ['o-a', 'o-b'] } } }],
  ['who is not in a network', { Condition: { StringNotEquals: { 'aws:SourceVpce': 'vpce-1' } } }],
  ['other topics', { Condition: { ArnNotLike: { 'AWS:SourceArn': 'arn:aws:sns:*:*:other-*' } } }],
  ['this topic', { Condition: { ArnEquals: { 'aws:SourceArn': TOPIC } } }],
  ['services', { Condition: { Bool: { 'aws:PrincipalIsAWSService': true } } }],
  ['requests without an organisation', { Condition: { Null: { 'aws:PrincipalOrgID': 'true' } } }],
  [
    'two conditions that both hold',
    { Condition: { StringNotEqualsIfExists: { 'aws:PrincipalOrgID': 'o-a' }, Bool: { 'aws:SecureTransport': 'true' } } },
  ],
];

const admitting: readonly Case[] = [
  ['an Allow', { Effect: 'Allow' }],
  ["a statement with an id of Tally's", { Sid: 'Ours' }],
  ['a role', { Principal: { AWS: 'arn:aws:iam::123456789012:role/x' } }],
  ['another service', { Principal: { Service: 's3.amazonaws.com' } }],
  ['all but the service', { Principal: undefined, NotPrincipal: { Service: 'sns.amazonaws.com' } }],
  ['another action', { Action: 'sqs:ReceiveMessage' }],
  ['all actions but this', { Action: undefined, NotAction: ['sqs:SendMessage'] }],
  ['another resource', { Resource: `${QUEUE}-other` }],
  ['no resource', { Resource: undefined }],
  ['requests without TLS', { Condition: { Bool: { 'aws:SecureTransport': 'false' } } }],
  [
    'who is no service',
    { Condition: { StringNotEquals: { 'aws:PrincipalOrgID': 'o-a' }, Bool: { 'aws:PrincipalIsAWSService': 'false' } } },
  ],
  ['other topics than this', { Condition: { ArnNotLike: { 'aws:SourceArn': 'arn:aws:sns:*:*:tally-*' } } }],
  ['a star that would have to reach over a colon', { Condition: { ArnLike: { 'aws:SourceArn': 'arn:aws:sns:*:tally-0a1b2c3d-events' } } }],
  ['members of an organisation', { Condition: { StringEquals: { 'aws:PrincipalOrgID': 'o-a' } } }],
  ['requests with an organisation', { Condition: { Null: { 'aws:PrincipalOrgID': 'false' } } }],
  ['a key that is not known', { Condition: { StringNotEquals: { 'aws:SourceAccount': '999999999999' } } }],
  ['an address', { Condition: { NotIpAddress: { 'aws:SourceIp': '10.0.0.0/8' } } }],
  ['an operator that is not known', { Condition: { 'ForAllValues:StringNotEquals': { 'aws:SourceArn': 'x' } } }],
  ['a variable of the policy', { Condition: { StringNotEquals: { 'aws:SourceArn': '${aws:PrincipalTag/topic}' } } }],
  ['a Condition that is none', { Condition: 'x' }],
];

describe('a Deny of others', () => {
  it.each(denying)('for %s denies the delivery', (_, change) => {
    expect(isDenied(change)).toBe(true);
  });

  it.each(admitting)('that is %s, is not certain to', (_, change) => {
    expect(isDenied(change)).toBe(false);
  });

  it('decides over an Allow, and an Allow whose condition is not known decides nothing', () => {
    const allow = { ...base, Effect: 'Allow' };
    const answerOf = (...statements: readonly object[]) =>
      admits({ Statement: statements.map((change) => ({ ...base, ...change })) }, delivery);
    expect(answerOf()).toBe('refused');
    expect(answerOf(allow)).toBe('admitted');
    expect(answerOf(allow, {})).toBe('refused');
    expect(answerOf({ ...allow, Principal: { Service: 's3.amazonaws.com' } })).toBe('refused');
    expect(answerOf({ ...allow, Condition: { StringEquals: { 'kms:ViaService': 'sqs' } } })).toBe('unknown');
    expect(answerOf({ ...allow, Condition: { ArnLike: { 'aws:SourceArn': TOPIC } } })).toBe('admitted');
  });

  it('with a hostile pattern is read in time', () => {
    expect(isDenied({ Resource: `${'*?'.repeat(2_000)}*` })).toBe(false);
    expect(isDenied({ Resource: `${'*?'.repeat(QUEUE.length)}*` })).toBe(true);
  });
});
