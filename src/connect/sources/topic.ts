/**
 * The source `topic`, and the topic that was named for `routed`: the bucket's own subscription of the queue to it, and the statements
 * that let what is published reach the queue. A policy is one document, of which what others have stays.
 */
import { shellWord } from '../../base/commands.ts';
import { subscriptionName, existing, queueIn, subscribed, type Check, type Desired, type Look, type Remains } from './look.ts';
import type { ConnectionSpec } from '../../records/bucket.ts';
import { blocking, unchecked } from '../finding.rules.ts';
import { markOf, parseArn, snsPrincipals, type Owner } from '../names.rules.ts';
import type { Attributes, Subscription, Change, Kept } from '../plan.rules.ts';
import {
  canonicalStatement,
  conditionValues,
  foreignStatements,
  parsePolicy,
  regionsOfSns,
  sameStatements,
  withoutStatements,
  withStatements,
  type Policy,
  type Statement,
} from '../policy.rules.ts';
import { confirmed, differencesOf, PASSES_ALL, senderStatement } from '../shared.rules.ts';
import { changedMeanwhile } from './write-notification.ts';

export function desiredTopic(spec: ConnectionSpec): Desired {
  return subscribed(spec, spec.topicArn ?? '');
}

/** The ids of our statements in the policies of queues and topics. */
export function sidsOf(owner: Owner): { readonly named: string; readonly all: ReadonlySet<string> } {
  const mark = markOf(owner);
  const named = `${mark}-named`;
  return { named, all: new Set([mark, `${mark}-topics`, `${mark}-rules`, named]) };
}

/** One statement lists all topics that were named, because a policy has at most 20, so what it allows already stays in it. */
export function namedStatement(spec: ConnectionSpec, queueArn: string, { Statement: present }: Policy): Statement {
  const { named: sid } = sidsOf(spec);
  const earlier = present.find(({ Sid }) => Sid === sid);
  const arns = [...conditionValues(earlier, 'ArnLike', 'aws:SourceArn'), spec.topicArn ?? ''];
  const services = [...regionsOfSns(earlier), ...snsPrincipals(spec.region, parseArn(queueArn)?.region ?? spec.region)];
  return senderStatement(sid, queueArn, [...new Set(services)], [...new Set(arns)]);
}

/** What Tally's own topics need is shared. */
export function topicChanges(look: Look): readonly Change[] {
  const { spec, desired, observed } = look;
  const { subscription } = desired;
  if (spec.topicArn === undefined || subscription === undefined) return [];
  const ofTopic = topicPolicies(look);
  const ofQueues = desired.queues.flatMap((arn) => {
    const before = queueIn(observed, arn) && queuePolicy(look, arn);
    return before === undefined
      ? []
      : policyChange(look, arn, { before, after: withStatements(before, [namedStatement(spec, arn, before)]) });
  });
  return [
    ...(ofTopic === undefined ? [] : policyChange(look, spec.topicArn, ofTopic)),
    ...ofQueues,
    ...subscriptionChanges(look, subscription),
  ];
}

/** The policy of a queue as it is; undefined if it cannot be read, and then nothing writes it. */
function queuePolicy({ observed }: Look, arn: string): Policy | undefined {
  return parsePolicy(queueIn(observed, arn)?.attributes['Policy']);
}

/** The policy of the topic as it is, and as it must be; undefined if there is no such topic, or its policy cannot be read. */
function topicPolicies({ desired: { topic }, observed }: Look): Policies | undefined {
  const present = existing(observed.topic);
  const before = present === undefined ? undefined : parsePolicy(present.attributes['Policy']);
  if (topic === undefined || before === undefined) return undefined;
  return { before, after: withStatements(before, [topic.statement]) };
}

interface Policies {
  readonly before: Policy;
  readonly after: Policy;
}

function policyChange(look: Look, arn: string, { before, after }: Policies, isRemoval = false): readonly Change[] {
  const { spec, tools } = look;
  if (sameStatements(before.Statement, after.Statement)) return [];
  const isQueue = parseArn(arn)?.service === 'sqs';
  const known = new Set(before.Statement.map(canonicalStatement));
  const added = after.Statement.filter((statement) => !known.has(canonicalStatement(statement)));
  return [
    {
      part: 'policy',
      action: isRemoval ? 'remove' : before.Statement.length === 0 ? 'create' : 'change',
      name: arn,
      before,
      after,
      touches: isQueue || isRemoval ? [] : [{ kind: 'topic-policy', arn, after: added }],
      isOfLetters: isQueue && arn !== spec.queueArn,
      async make(signal) {
        const readAgain = async (): Promise<Policy | undefined> => {
          const found = isQueue ? await tools.aws.queueOf(arn, signal) : await tools.aws.topicOf(arn, spec.queueArn, signal);
          return parsePolicy(existing(found)?.attributes['Policy']);
        };
        const current = await readAgain();
        if (current === undefined || !sameStatements(current.Statement, before.Statement)) return;
        // SQS removes a policy that is empty
        const text = after.Statement.length === 0 ? '' : JSON.stringify(after);
        if (isQueue) await tools.aws.setQueue(arn, { Policy: text }, signal);
        else await tools.aws.setTopic(arn, { Policy: text }, signal);
        refuseChanged(spec, arn, before, await readAgain());
      },
    },
  ];
}

/** A policy that is not to be seen yet, or has an unknown form, says nothing. */
function refuseChanged(spec: ConnectionSpec, arn: string, before: Policy, now: Policy | undefined): void {
  const { all: sids } = sidsOf(spec);
  const wanted = foreignStatements(before, sids);
  const theirs = now === undefined ? wanted : foreignStatements(now, sids);
  if (sameStatements(theirs, wanted)) return;
  throw changedMeanwhile(spec.bucket, `the policy of ${arn}`, wanted, theirs);
}

function subscriptionChanges({ observed, tools: { aws } }: Look, wanted: Subscription): readonly Change[] {
  if (confirmed(observed.topic) !== undefined) return [];
  const { topicArn, queueArn, deadLetterArn } = wanted;
  const attributes: Attributes =
    deadLetterArn === undefined ? {} : { RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadLetterArn }) };
  const make: Change['make'] = (signal) => aws.subscribe(topicArn, queueArn, attributes, signal);
  return [{ part: 'subscription', action: 'create', name: subscriptionName(wanted), after: wanted, touches: [], make }];
}

/** What Tally does not set was set by others, on purpose perhaps: Tally leaves it. */
export const subscriptionAltered: Check = ({ spec: { topicArn }, observed }) => {
  const present = confirmed(observed.topic);
  if (topicArn === undefined || present === undefined) return undefined;
  const { arn = '' } = present;
  const [different] = differencesOf({ attributes: PASSES_ALL }, present);
  if (different === undefined) return undefined;
  const { attribute: name, wanted } = different;
  const { region = '' } = parseArn(topicArn) ?? {};
  return blocking(
    'connect.subscription',
    `someone else has set ${name} of the subscription ${arn}`,
    'not every event reaches the bucket queue in a form that Tally reads',
    `aws sns set-subscription-attributes --region ${region} --subscription-arn ${arn} --attribute-name ${name} --attribute-value ${shellWord(wanted)}`,
  );
};

/** What a topic that was named has of Tally, as far as nothing else needs it. */
export function topicRemovals(look: Look, remains: Remains): readonly (Change | Kept)[] {
  const { subscription } = look.desired;
  if (subscription === undefined || look.spec.topicArn === undefined) return [];
  const { topicArn } = subscription;
  const { still, used, made } = remains;
  // only a rule needs it
  const isStatementUsed = used.has(topicArn) || still?.topic?.arn === topicArn;
  return [
    ...(isLinkUsed(remains, subscription) ? [] : subscriptionRemoval(look, made.includes(subscriptionName(subscription)))),
    ...(isStatementUsed ? [] : statementRemoval(look)),
    ...look.desired.queues.flatMap((queueArn) =>
      isLinkUsed(remains, { topicArn, queueArn }) ? [] : queueRemoval(look, queueArn, topicArn),
    ),
  ];
}

/** Whether what the topic sends must reach the queue further, for this bucket or another. */
function isLinkUsed({ still, used }: Remains, link: Subscription): boolean {
  const isStill = link.topicArn === still?.subscription?.topicArn && still.queues.includes(link.queueArn);
  return isStill || used.has(subscriptionName(link));
}

function subscriptionRemoval({ observed, tools: { aws } }: Look, isMade: boolean): readonly (Change | Kept)[] {
  const { arn: name } = existing(existing(observed.topic)?.subscription) ?? {};
  if (name === undefined) return [];
  if (!isMade) return [{ name, reason: 'nothing shows that Tally created this subscription to a topic that is not its own' }];
  return [{ part: 'subscription', action: 'remove', name, touches: [], make: (signal) => aws.unsubscribe(name, signal) }];
}

/** Of a topic that was named only our statement goes. */
function statementRemoval(look: Look): readonly (Change | Kept)[] {
  const { spec, desired, observed } = look;
  const before = parsePolicy(existing(observed.topic)?.attributes['Policy']);
  if (desired.topic === undefined || before === undefined) return [];
  const { arn } = desired.topic;
  const after = withoutStatements(before, new Set([markOf(spec)]));
  if (after.Statement.length > 0 || before.Statement.length === 0) return policyChange(look, arn, { before, after }, true);
  return [{ name: arn, reason: `the statement ${markOf(spec)} is the only one in its policy, and a topic must have one` }];
}

/** The topic goes from the list of named ones in a queue's policy. */
function queueRemoval(look: Look, queueArn: string, topicArn: string): readonly Change[] {
  const { named: sid } = sidsOf(look.spec);
  const before = queuePolicy(look, queueArn);
  const statement = before?.Statement.find(({ Sid }) => Sid === sid);
  if (before === undefined || statement === undefined) return [];
  const [only, ...more] = conditionValues(statement, 'ArnLike', 'aws:SourceArn').filter((each) => each !== topicArn);
  const rest = { ...statement, Condition: { ArnLike: { 'aws:SourceArn': more.length === 0 ? only : [only, ...more] } } };
  const after = only === undefined ? withoutStatements(before, new Set([sid])) : withStatements(before, [rest]);
  return policyChange(look, queueArn, { before, after }, true);
}

export const policyUnreadable: Check = ({ desired: { topic, queues }, observed }) => {
  const policies = [
    ...queues.map((arn) => {
      const { url, attributes } = queueIn(observed, arn) ?? {};
      return { arn, policy: attributes?.['Policy'], show: `aws sqs get-queue-attributes --attribute-names Policy --queue-url ${url}` };
    }),
    ...(topic === undefined
      ? []
      : [
          {
            arn: topic.arn,
            policy: existing(observed.topic)?.attributes['Policy'],
            show: `aws sns get-topic-attributes --topic-arn ${topic.arn}`,
          },
        ]),
  ];
  const found = policies.find(({ policy }) => parsePolicy(policy) === undefined);
  if (found === undefined) return undefined;
  const why = 'a write replaces the whole policy, so it would delete unknown statements';
  return unchecked('connect.policy-unreadable', `the policy of ${found.arn} cannot be read`, why, found.show);
};

/** Tally does not make the topics of others. */
export const namedTopicMissing: Check = ({ spec: { topicArn }, observed }) => {
  if (observed.topic !== 'absent' || topicArn === undefined) return undefined;
  const { region = '', resource = '' } = parseArn(topicArn) ?? {};
  return blocking(
    'connect.topic-missing',
    `there is no topic ${topicArn}`,
    'Tally subscribes the bucket queue to your own topic, and does not create it',
    `aws sns create-topic --region ${region} --name ${resource}`,
  );
};
