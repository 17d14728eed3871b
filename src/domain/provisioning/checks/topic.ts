/** Checks of the topic that events come through. */
import { existing, ownTopic } from '../facts.ts';
import { parseArn } from '../names.ts';
import { getsExpirations, missingFamilies } from '../overlap.ts';
import { parsePolicy, policyBytes, sameStatements, TOPIC_POLICY_BYTES_MAX, withStatements } from '../policy.ts';
import { topicStatement } from '../wiring.ts';
import { blocking, healable, tooLarge, unreadable, type Check } from './finding.ts';

export const topicMissing: Check = (facts) => {
  const { wiring, observed } = facts;
  if (observed.topic !== 'absent' || wiring.subscription === undefined) return undefined;
  const { topicArn } = wiring.subscription;
  if (wiring.topic !== undefined)
    return healable(facts, 'connect.topic-missing', `there is no topic ${topicArn}`, 'nothing can be published to it');
  return blocking(
    'connect.topic-missing',
    `there is no topic ${topicArn}`,
    'Tally does not make the topics of others',
    `tally bucket plan ${facts.wish.bucket} --source notification`,
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
    'S3 publishes only to topics of the region of the bucket',
    `tally bucket plan ${wish.bucket} --source eventbridge`,
  );
};

export const topicIncomplete: Check = ({ wish, observed: { notification } }) => {
  if (wish.source !== 'topic' || wish.topicArn === undefined || !notification.ok) return undefined;
  const missing = missingFamilies(notification.configuration, wish.topicArn);
  if (missing.length === 0) return undefined;
  return blocking(
    'connect.topic-incomplete',
    `${wish.bucket} does not send ${missing.join(' and ')} of all keys to ${wish.topicArn}`,
    'changes without an event are not indexed. The configuration that names the topic must have both families and no filter',
    `aws s3api get-bucket-notification-configuration --bucket ${wish.bucket} --query TopicConfigurations`,
  );
};

export const topicWithoutExpirations: Check = ({ wish, observed: { notification } }) => {
  if (wish.source !== 'topic' || wish.topicArn === undefined || !notification.ok) return undefined;
  if (getsExpirations(notification.configuration, wish.topicArn) || missingFamilies(notification.configuration, wish.topicArn).length > 0)
    return undefined;
  return {
    code: 'connect.topic-without-expirations',
    severity: 'degraded',
    what: `${wish.topicArn} does not get the lifecycle expirations of ${wish.bucket}`,
    why: 'objects that a lifecycle rule expires leave the index only when Tally looks for them',
    fix: `add s3:LifecycleExpiration:* to the events of the configuration of ${wish.bucket} that names ${wish.topicArn}`,
    blocks: false,
  };
};

export const topicPolicyMissing: Check = (facts) => {
  const { wiring } = facts;
  const topic = ownTopic(facts);
  if (wiring.topic === undefined || topic === undefined) return undefined;
  const policy = parsePolicy(topic.policy);
  if (policy === undefined) return unreadable(wiring.topic.arn);
  const wanted = topicStatement(wiring.topic.statement, policy.Statement);
  const after = withStatements(policy, [wanted]);
  if (policyBytes(after) > TOPIC_POLICY_BYTES_MAX) return tooLarge(wiring.topic.arn, TOPIC_POLICY_BYTES_MAX);
  if (sameStatements(policy.Statement, after.Statement)) return undefined;
  const present = policy.Statement.find(({ Sid }) => Sid === wanted.Sid);
  // SNS supports no Condition for EventBridge: every event would be dropped
  if (present?.['Condition'] !== undefined && wanted['Condition'] === undefined) {
    return healable(
      facts,
      'connect.topic-policy-condition',
      `the statement for EventBridge in the policy of ${wiring.topic.arn} has a Condition`,
      'SNS supports none for EventBridge, so every event is dropped',
    );
  }
  return healable(
    facts,
    'connect.topic-policy',
    `the policy of ${wiring.topic.arn} lacks the statement ${JSON.stringify(wanted)}`,
    'nothing may publish to the topic',
  );
};
