/**
 * The source `topic`, and a named topic of the source `routed`: the queue's subscription to it, and the statements that let its messages
 * reach the queue. A policy is one document, in which Tally leaves other owners' statements unchanged.
 */
import { shellWord } from '../../base/commands.ts';
import { subscriptionName, existing, queueIn, subscribed, type Check, type Desired, type Look, type Remains } from './look.ts';
import type { ConnectionSpec } from '../../records/bucket.ts';
import { blocking } from '../finding.rules.ts';
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
import { changedMeanwhile } from './notification.ts';

export function desiredTopic(spec: ConnectionSpec): Desired {
  return subscribed(spec, spec.topicArn ?? '');
}

/** The ids of Tally's statements in queues' and topics' policies. */
export function sidsOf(owner: Owner): { readonly named: string; readonly all: ReadonlySet<string> } {
  const mark = markOf(owner);
  const named = `${mark}-named`;
  return { named, all: new Set([mark, `${mark}-topics`, `${mark}-rules`, named]) };
}

/** The statement for all named topics. A policy has at most 20 statements, so they share one, which keeps what it already allows. */
export function namedStatement(spec: ConnectionSpec, queueArn: string, { Statement: present }: Policy): Statement {
  const { named: sid } = sidsOf(spec);
  const earlier = present.find(({ Sid }) => Sid === sid);
  const arns = [...conditionValues(earlier, 'ArnLike', 'aws:SourceArn'), spec.topicArn ?? ''];
  const services = [...regionsOfSns(earlier), ...snsPrincipals(spec.region, parseArn(queueArn)?.region ?? spec.region)];
  return senderStatement(sid, queueArn, [...new Set(services)], [...new Set(arns)]);
}

/** The changes for a named topic. Tally's own topics need none, because their parts are shared. */
export function topicChanges(look: Look): readonly Change[] {
  const { spec, desired } = look;
  const { subscription } = desired;
  if (spec.topicArn === undefined || subscription === undefined) return [];
  const ofTopic = topicPolicies(look);
  const ofQueues = desired.queues.flatMap((arn) => {
    const before = queuePolicy(look, arn);
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

/** The queue's policy; undefined if there is no such queue. */
function queuePolicy({ observed }: Look, arn: string): Policy | undefined {
  const queue = queueIn(observed, arn);
  return queue && parsePolicy(queue.attributes['Policy']);
}

/** The topic's policy as it is, and as it must be; undefined if there is no such topic. */
function topicPolicies({ desired: { topic }, observed }: Look): Policies | undefined {
  const present = existing(observed.topic);
  if (topic === undefined || present === undefined) return undefined;
  const before = parsePolicy(present.attributes['Policy']);
  return { before, after: withStatements(before, [topic.statement]) };
}

interface Policies {
  readonly before: Policy;
  readonly after: Policy;
}

function policyChange(look: Look, arn: string, { before, after }: Policies, isRemoval = false): readonly Change[] {
  const {
    spec,
    tools: { aws },
  } = look;
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
        const read = async (): Promise<Policy> => {
          const found = isQueue ? await aws.queueOf(arn, signal) : await aws.topicOf(arn, spec.queueArn, signal);
          return parsePolicy(existing(found)?.attributes['Policy']);
        };
        if (!sameStatements((await read()).Statement, before.Statement)) return;
        // SQS removes a policy that is empty
        const Policy = after.Statement.length === 0 ? '' : JSON.stringify(after);
        await (isQueue ? aws.setQueue(arn, { Policy }, signal) : aws.setTopic(arn, { Policy }, signal));
        const { all: sids } = sidsOf(spec);
        const wanted = foreignStatements(before, sids);
        const theirs = foreignStatements(await read(), sids);
        if (!sameStatements(theirs, wanted)) throw changedMeanwhile(spec.bucket, `the policy of ${arn}`, wanted, theirs);
      },
    },
  ];
}

function subscriptionChanges({ observed, tools: { aws } }: Look, wanted: Subscription): readonly Change[] {
  if (confirmed(observed.topic) !== undefined) return [];
  const { topicArn, queueArn, deadLetterArn } = wanted;
  const attributes: Attributes =
    deadLetterArn === undefined ? {} : { RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadLetterArn }) };
  const make: Change['make'] = (signal) => aws.subscribe(topicArn, queueArn, attributes, signal);
  return [{ part: 'subscription', action: 'create', name: subscriptionName(wanted), after: wanted, touches: [], make }];
}

/** Someone else set these attributes, perhaps on purpose, so Tally leaves them. */
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
    `someone else has set ${name} on the subscription ${arn}`,
    'not every event reaches the bucket queue in a form that Tally reads',
    `aws sns set-subscription-attributes --region ${region} --subscription-arn ${arn} --attribute-name ${name} --attribute-value ${shellWord(wanted)}`,
  );
};

/** Removes what Tally made for a named topic, unless something else needs it. */
export function topicRemovals(look: Look, remains: Remains): readonly (Change | Kept)[] {
  const { subscription } = look.desired;
  if (subscription === undefined || look.spec.topicArn === undefined) return [];
  const { topicArn } = subscription;
  const { still, used, made } = remains;
  // only rules need the statement
  const isStatementUsed = used.has(topicArn) || still?.topic?.arn === topicArn;
  return [
    ...(isLinkUsed(remains, subscription) ? [] : subscriptionRemoval(look, made.includes(subscriptionName(subscription)))),
    ...(isStatementUsed ? [] : statementRemoval(look)),
    ...look.desired.queues.flatMap((queueArn) =>
      isLinkUsed(remains, { topicArn, queueArn }) ? [] : queueRemoval(look, queueArn, topicArn),
    ),
  ];
}

/** Whether this bucket or another still needs the topic's messages in the queue. */
function isLinkUsed({ still, used }: Remains, link: Subscription): boolean {
  const isStill = link.topicArn === still?.subscription?.topicArn && still.queues.includes(link.queueArn);
  return isStill || used.has(subscriptionName(link));
}

function subscriptionRemoval({ observed, tools: { aws } }: Look, isMade: boolean): readonly (Change | Kept)[] {
  const { arn: name } = existing(existing(observed.topic)?.subscription) ?? {};
  if (name === undefined) return [];
  if (!isMade) return [{ name, reason: "nothing shows that Tally created this subscription to someone else's topic" }];
  return [{ part: 'subscription', action: 'remove', name, touches: [], make: (signal) => aws.unsubscribe(name, signal) }];
}

/** Removes only Tally's statement from a named topic. */
function statementRemoval(look: Look): readonly (Change | Kept)[] {
  const { spec, desired, observed } = look;
  if (desired.topic === undefined) return [];
  const { arn } = desired.topic;
  const before = parsePolicy(existing(observed.topic)?.attributes['Policy']);
  const after = withoutStatements(before, new Set([markOf(spec)]));
  if (after.Statement.length > 0 || before.Statement.length === 0) return policyChange(look, arn, { before, after }, true);
  return [{ name: arn, reason: `the statement ${markOf(spec)} is the only one in its policy, and a topic must have one` }];
}

/** Removes the topic from the list of named ones in a queue's policy. */
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

/** Tally does not make other owners' topics. */
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
