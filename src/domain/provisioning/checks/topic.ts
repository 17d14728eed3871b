/** Checks of the topic that events come through. */
import { shellWord } from '../../commands.ts';
import { docsPage } from '../../doc-pages.ts';
import { canonicalJson } from '../canonical.ts';
import { topicPolicies } from '../deliveries.ts';
import { existing, ownTopic, isTopicForeign, subscriptionAttributes, type Facts } from '../facts.ts';
import { parseArn } from '../names.ts';
import type { NotificationEntry } from '../notification.ts';
import { getsExpirations, missingFamilies } from '../overlap.ts';
import { policyBytes, sameStatements, TOPIC_POLICY_BYTES_MAX, type Policy, type Statement } from '../policy.ts';
import { degraded, blocking, healable, tooLarge, unreadable, type Check, apply } from './finding.ts';

export const topicMissing: Check = (facts) => {
  const { wiring, observed } = facts;
  if (observed.topic !== 'absent' || wiring.subscription === undefined) return undefined;
  const { topicArn } = wiring.subscription;
  if (wiring.topic !== undefined && wiring.topic.isForeign !== true)
    return healable(facts, 'connect.topic-missing', `there is no topic ${topicArn}`, 'nothing can be published to it');
  const { region = '', resource = '' } = parseArn(topicArn) ?? {};
  return blocking(
    'connect.topic-missing',
    `there is no topic ${topicArn}`,
    'Tally does not make the topics of others',
    `aws sns create-topic --region ${region} --name ${resource}`,
  );
};

export const topicFifo: Check = ({ wish, wiring, observed }) => {
  const topicArn = wiring.subscription?.topicArn;
  if (topicArn === undefined || !(topicArn.endsWith('.fifo') || existing(observed.topic)?.isFifo === true)) return undefined;
  return blocking(
    'connect.topic-fifo',
    `${topicArn} is a FIFO topic`,
    'S3 and EventBridge publish to standard topics only',
    `tally bucket plan ${wish.bucket} --source eventbridge`,
  );
};

export const topicElsewhere: Check = ({ wish, wiring }) => {
  const topic = parseArn(wiring.subscription?.topicArn ?? '');
  if (topic === undefined || topic.region === wish.region) return undefined;
  return blocking(
    'connect.topic-region',
    `the topic ${wiring.subscription?.topicArn ?? ''} is in ${topic.region}, and ${wish.bucket} in ${wish.region}`,
    'S3 and the rules of EventBridge publish only to topics of the region of the bucket',
    wish.source === 'routed' ? `tally bucket plan ${wish.bucket} --source routed` : `tally bucket plan ${wish.bucket} --source eventbridge`,
  );
};

/** EventBridge sends to a topic of another account only with a role for it, and then SNS sees that role instead of the rule. */
export const topicOfOtherAccount: Check = ({ wish, wiring }) => {
  const topic = parseArn(wiring.subscription?.topicArn ?? '');
  const { account } = wish;
  if (topic === undefined || wiring.rule === undefined || topic.account === account) return undefined;
  return blocking(
    'connect.topic-account',
    `the topic ${wish.topicArn} is of the account ${topic.account}, and the rule of ${wish.bucket} of ${account}`,
    'a rule sends to a topic of another account only with a role for it, which Tally does not make',
    `tally bucket plan ${wish.bucket} --source routed`,
  );
};

export const topicIncomplete: Check = ({ wish, observed: { notification } }) => {
  const { source, bucket, topicArn } = wish;
  if (source !== 'topic' || topicArn === undefined || !notification.ok) return undefined;
  const missing = missingFamilies(notification.configuration, topicArn);
  if (missing.length === 0) return undefined;
  const entries = notification.configuration.entries.filter(({ kind, arn }) => kind === 'topic' && arn === topicArn);
  return blocking(
    'connect.topic-incomplete',
    `${bucket} does not send ${missing.join(' and ')} of all keys to ${topicArn}`,
    'changes without an event are not indexed. Tally does not change the notifications of others',
    incompleteFix(bucket, topicArn, entries),
  );
};

/** What must become of the configuration, which is of others: S3 replaces it as a whole, so no command is given. */
function incompleteFix(bucket: string, topicArn: string, entries: readonly NotificationEntry[]): string {
  const wanted = 's3:ObjectCreated:*, s3:ObjectRemoved:* and s3:LifecycleExpiration:*, and no filter';
  if (entries.length === 0) {
    return `if a rule of EventBridge publishes to the topic: \`tally bucket plan ${bucket} --source routed --topic ${shellWord(topicArn)}\`. Otherwise add a notification to ${bucket} that names the topic, with ${wanted} (${docsPage('docs/guides/shared-notification.md#the-topic-of-others')})`;
  }
  const named = entries.map(({ id, events, filter }) => {
    const filters = filter.map(({ name, value }) => `${name} ${value}`).join(', ');
    return `${id === '' ? 'the one without an Id' : id} (${events.join(', ')}${filters === '' ? '' : `, with the filter ${filters}`})`;
  });
  return `in the notification configuration of ${bucket}, let one notification that names the topic have ${wanted}. Those that name it now: ${named.join('; ')}`;
}

export const topicWithoutExpirations: Check = ({ wish, observed: { notification } }) => {
  if (wish.source !== 'topic' || wish.topicArn === undefined || !notification.ok) return undefined;
  if (getsExpirations(notification.configuration, wish.topicArn) || missingFamilies(notification.configuration, wish.topicArn).length > 0)
    return undefined;
  const finding = degraded(
    'connect.topic-without-expirations',
    `${wish.topicArn} does not get the lifecycle expirations of ${wish.bucket}`,
    'objects that a lifecycle rule expires leave the index only when Tally looks for them',
    `add s3:LifecycleExpiration:* to the events of the configuration of ${wish.bucket} that names ${wish.topicArn}`,
  );
  // both families arrive, which is all that a topic must have
  return { ...finding, severity: 'note' };
};

export const topicPolicyMissing: Check = (facts) => {
  const { topic } = facts.wiring;
  if (topic === undefined || ownTopic(facts) === undefined) return undefined;
  const policies = topicPolicies(facts);
  if (policies === undefined) return unreadable(topic.arn);
  const { before, after } = policies;
  if (policyBytes(after) > TOPIC_POLICY_BYTES_MAX) return tooLarge(topic.arn, TOPIC_POLICY_BYTES_MAX);
  if (sameStatements(before.Statement, after.Statement)) return undefined;
  const [was, wanted] = firstDifference(topic.statements, before, after);
  // SNS supports no Condition for EventBridge: every event would be dropped
  if (was?.['Condition'] !== undefined && wanted?.['Condition'] === undefined) {
    return healable(
      facts,
      'connect.topic-policy-condition',
      `the statement for EventBridge in the policy of ${topic.arn} has a Condition`,
      'SNS supports none for EventBridge, so every event is dropped',
    );
  }
  return healable(
    facts,
    'connect.topic-policy',
    `the policy of ${topic.arn} lacks the statement ${JSON.stringify(wanted)}`,
    'nothing may publish to the topic',
  );
};

/** The first of these statements that is not as it must be: as it is, and as it must be. */
function firstDifference(statements: readonly Statement[], before: Policy, after: Policy): readonly (Statement | undefined)[] {
  for (const { Sid } of statements) {
    const [is, should] = [before, after].map((policy) => policy.Statement.find((each) => each.Sid === Sid));
    if (canonicalJson(is) !== canonicalJson(should)) return [is, should];
  }
  return [];
}

export const subscriptionMissing: Check = (facts) => {
  if (facts.observed.subscription !== 'absent' || facts.wiring.subscription === undefined) return undefined;
  const { topicArn, queueArn } = facts.wiring.subscription;
  return healable(
    facts,
    'connect.subscription-missing',
    `${queueArn} is not subscribed to ${topicArn}`,
    'what is published to the topic does not reach Tally',
  );
};

export const subscriptionPending: Check = (facts) => {
  const subscription = existing(facts.observed.subscription);
  if (subscription?.isPending !== true) return undefined;
  return healable(
    facts,
    'connect.subscription-pending',
    `the subscription of ${facts.wish.queueArn} is not confirmed`,
    'SNS delivers nothing until it is',
  );
};

export const subscriptionFiltered: Check = (facts) => {
  const before = wrongAttributes(facts);
  if (before['FilterPolicy'] === undefined) return undefined;
  return healable(
    facts,
    'connect.subscription-filtered',
    `the subscription of ${facts.wish.queueArn} has the filter ${before['FilterPolicy']}`,
    'events that do not match it are not delivered',
  );
};

export const subscriptionRaw: Check = (facts) => {
  const before = wrongAttributes(facts);
  if (before['RawMessageDelivery'] === undefined) return undefined;
  return {
    ...healable(
      facts,
      'connect.subscription-raw',
      `the subscription of ${facts.wish.queueArn} uses raw delivery`,
      'a record could then pass for one that came straight from its service',
    ),
    severity: 'degraded',
  };
};

export const subscriptionRedrive: Check = (facts) => {
  const before = wrongAttributes(facts);
  if (before['RedrivePolicy'] === undefined) return undefined;
  return {
    ...healable(
      facts,
      'connect.subscription-redrive',
      `the subscription of ${facts.wish.queueArn} has not the dead-letter queue ${facts.wish.deadLetterArn ?? ''}`,
      'what SNS cannot deliver is lost',
    ),
    severity: 'degraded',
  };
};

function wrongAttributes({ wiring, observed }: Facts): ReturnType<typeof subscriptionAttributes>[0] {
  const subscription = existing(observed.subscription);
  return subscription === undefined || wiring.subscription === undefined
    ? {}
    : subscriptionAttributes(subscription, wiring.subscription)[0];
}

export const subscriptionUnauthenticated: Check = (facts) => {
  const subscription = existing(facts.observed.subscription);
  if (subscription?.wasAuthenticated !== false || subscription.arn === undefined || isTopicForeign(facts)) return undefined;
  const isOurs = facts.wiring.topic !== undefined && facts.wiring.topic.isForeign !== true;
  return degraded(
    'connect.subscription-unauthenticated',
    `the subscription ${subscription.arn} was confirmed without authentication`,
    'anyone who holds a message can unsubscribe the queue by the address in it',
    isOurs
      ? `aws sns unsubscribe --region ${facts.wish.region} --subscription-arn ${subscription.arn} && ${apply(facts)}`
      : `aws sns get-subscription-attributes --region ${facts.wish.region} --subscription-arn ${subscription.arn}`,
  );
};
