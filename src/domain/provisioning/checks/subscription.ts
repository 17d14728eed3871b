/** Checks of the subscription of the bucket queue. */
import { existing, isTopicForeign, subscriptionAttributes, type Facts } from '../facts.ts';
import { apply, healable, type Check } from './finding.ts';

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
  return {
    code: 'connect.subscription-unauthenticated',
    severity: 'degraded',
    what: `the subscription ${subscription.arn} was confirmed without authentication`,
    why: 'anyone who holds a message can unsubscribe the queue by the address in it',
    fix: isOurs
      ? `aws sns unsubscribe --region ${facts.wish.region} --subscription-arn ${subscription.arn} && ${apply(facts)}`
      : `aws sns get-subscription-attributes --region ${facts.wish.region} --subscription-arn ${subscription.arn}`,
    blocks: false,
  };
};
